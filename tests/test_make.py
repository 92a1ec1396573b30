"""What `make` says before it does anything: names that are mistyped, tools that are missing, places
that cannot be written.

Each lack is a real one: the disk is a small file system that is full, the checkout is mounted
read-only, the compiler is not on PATH.
"""

import fcntl
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest
from pytest_timeout import Settings

from .conftest import pytest_timeout_set_timer

REPOSITORY = Path(__file__).resolve().parent.parent
NEEDED = ["Makefile", "setup.py", "pyproject.toml", "requirements.lock", "notebooks", "workloads"]
NEEDED += ["injector_c", "simulator_c"]
BLANK = "a ü b"
OUTSIDE = {
    name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "PYTEST"))
}
PRIVATE = ["unshare", "--map-root-user", "--mount"]


def mounts() -> bool:
    return subprocess.run([*PRIVATE, "true"], capture_output=True).returncode == 0


needs_mounts = pytest.mark.skipif(
    not mounts(), reason="this user may not mount, not even in a namespace of its own"
)


@pytest.fixture
def copy(tmp_path) -> Path:
    """What `make` reads of this repository, in a folder with a blank and an umlaut."""
    folder = tmp_path / BLANK
    for name in NEEDED:
        folder.mkdir(exist_ok=True)
        copied = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copy
        copied(REPOSITORY / name, folder / name)
    (folder / "nbhelpers").symlink_to(REPOSITORY / "nbhelpers")
    return folder


def make(*words: str, cwd: Path = REPOSITORY, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["make", *words], cwd=cwd, capture_output=True, text=True, env={**OUTSIDE, **environment}
    )


@pytest.mark.parametrize(
    "words, message",
    [
        (["papers"], "No rule to make target 'papers'"),
        (["paper", "PROFILE=quik"], "there is no profile 'quik'"),
        (["paper", "PROFILE=it's"], "there is no profile 'it's'"),
        (["paper", "PROFILE=no such/mine.yml"], "no such/mine.yml"),
        (["paper", "PROFILE=notebooks/parameters/quick.yml"], "cannot be the name of a profile"),
    ],
)
def test_a_mistyped_name_is_refused_before_anything_is_run(words, message):
    done = make(*words, f"PY={sys.executable}")
    assert done.returncode == 2 and message in " ".join(done.stderr.split()), done.stderr
    assert "00-machine" not in done.stdout


def test_all_that_make_shows_exists():
    shown = re.findall(r"\bmake ([a-z-]+)", make("help").stdout)
    assert len(shown) > 8
    done = make("-n", *shown)
    assert done.returncode == 0, done.stderr  # it names a target that there is not


@pytest.mark.long
@pytest.mark.timeout(600)
def test_in_a_folder_with_a_blank_programs_are_built_and_a_stage_runs(copy):
    """Another program waits before its main() there, too: its loader takes no path with a blank."""
    needed = ("nbstart", "libnbstart.so", "victim")
    done = make("-C", "workloads", *(f"../build/bin/{name}" for name in needed), cwd=copy)
    assert done.returncode == 0, done.stderr
    script = f"""
import sys; sys.path.insert(0, {str(REPOSITORY)!r})
from nbhelpers.measurement import measure
from nbhelpers.workloads import binary_folder, program
assert {BLANK!r} in str(binary_folder())
code = "import os; assert 'LD_PRELOAD' not in os.environ; print(len(os.listdir('/proc/self/fd')))"
run = measure(program([sys.executable, "-c", code], start="main"), runs=2)
assert list(run["status"]) == ["ok", "ok"], run
"""
    env = {**OUTSIDE, "NOISEBOOK_BIN": str(copy / "build/bin")}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr


def check(
    copy: Path, *words: str, before: str = "", goal: str = "paper", **environment: str
) -> subprocess.CompletedProcess:
    """The first step of a goal of make, in a mount namespace where `before` has been done."""
    script = f"set -e; {before or ':'}; cd {shlex.quote(str(copy))}; exec make {goal}"
    command = [*(PRIVATE if before else []), "sh", "-c", f"{script} {shlex.join(words)}"]
    done = subprocess.run(command, capture_output=True, text=True, env={**OUTSIDE, **environment})
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    assert "Installing" not in done.stdout and not (copy / ".venv").exists()
    return done


def tools(folder: Path, *names: str) -> str:
    """A PATH with these programs and no others."""
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(shutil.which(name))
    return str(folder)


SHELL = ["sh", "make", "mktemp", "dd", "rm", "df", "awk", "id"]
SHELL += ["sed", "tr", "basename", "test", "printf", "env"]


def test_all_that_is_missing_is_said_at_once(copy, tmp_path):
    done = check(copy, PATH=tools(tmp_path / "bin", *SHELL))
    assert (
        "There is no Python here." in done.stderr and "There is no C compiler 'cc'." in done.stderr
    )
    assert "apt-get install python3 python3-venv python3-dev gcc libc6-dev" in done.stderr


def test_with_a_compiler_without_openmp(copy, tmp_path):
    compiler = tmp_path / "plain-cc"
    compiler.write_text(
        '#!/bin/sh\nfor word; do [ "$word" != -fopenmp ] || exit 1; done\nexec'
        f' {shutil.which("cc")} "$@"\n'
    )
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    done = check(copy, f"PYTHON={sys.executable}", f"CC={compiler}")
    assert "cannot build OpenMP programs" in done.stderr and "make paper CC=gcc" in done.stderr


def test_of_two_installations_at_the_same_time_the_second_waits_and_clears_nothing(copy):
    (copy / "build").mkdir()
    with open(copy / "build/.lock", "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        words = ["sh", "workloads/environment.sh"]
        second = subprocess.Popen(words, cwd=copy, stdout=subprocess.PIPE, text=True)
        assert "waiting for its end" in second.stdout.readline()
        (copy / ".venv").mkdir()
        (copy / ".venv/installed").touch()
    assert second.communicate(timeout=60)[0] == "" and second.returncode == 0


def test_what_a_link_in_place_of_the_environment_points_to_is_not_emptied(copy, tmp_path):
    (copy / ".venv").symlink_to(tmp_path)
    assert ".venv is a link" in make("env", cwd=copy).stderr and any(tmp_path.iterdir())


def test_without_venv(copy, tmp_path):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden/ensurepip.py").write_text("raise ImportError('as Debian leaves it')\n")
    done = check(copy, f"PYTHON={sys.executable}", PYTHONPATH=str(tmp_path / "hidden"))
    assert "apt-get install python3-venv" in done.stderr


@needs_mounts
def test_without_pythons_headers(copy, tmp_path):
    (tmp_path / "empty").mkdir()
    headers = sysconfig.get_path("include")
    before = f"mount --bind {tmp_path / 'empty'} {shlex.quote(headers)}"
    done = check(copy, f"PYTHON={sys.executable}", before=before)
    assert "apt-get install python3-dev" in done.stderr


def test_an_old_python_is_refused(copy, tmp_path):
    old = tmp_path / "python3.9"
    old.write_text("#!/bin/sh\necho 3.9\n")
    old.chmod(0o755)
    assert f"'{old}' is 3.9." in check(copy, f"PYTHON={old}").stderr


@needs_mounts
def test_in_a_read_only_checkout(copy):
    place = shlex.quote(str(copy))
    before = f"mount --bind {place} {place}; mount -o remount,ro,bind {place}"
    done = check(copy, f"PYTHON={sys.executable}", before=before)
    assert "read-only file system" in done.stderr and "copy the repository" in done.stderr


@needs_mounts
def test_with_a_full_disk(copy, tmp_path):
    place = shlex.quote(str(copy))
    (tmp_path / "kept").mkdir()
    before = (
        f"cp -r {place}/. {tmp_path}/kept/; mount -t tmpfs -o size=4m tmpfs {place}; cp -r"
        f" {tmp_path}/kept/. {place}/"
    )
    done = check(copy, f"PYTHON={sys.executable}", before=before)
    assert "The environment needs 1500 MB" in done.stderr and "make room" in done.stderr
    before += f"; head -c 9m /dev/zero >{place}/filler 2>/dev/null || true"
    done = check(copy, f"PYTHON={sys.executable}", before=before)
    assert "The disk is full" in done.stderr and "make room" in done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="root alone can own what another user may not write")
def test_in_a_checkout_of_another_user(copy):
    shutil.chown(copy, 65534)
    for parent in copy.parents[:3]:
        parent.chmod(0o755)
    copy.chmod(0o555)
    command = ["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups", "make", "paper"]
    command.append("PYTHON=/usr/bin/python3")
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, env=OUTSIDE)
    assert done.returncode == 2 and "may not write" in done.stderr and "chown" in done.stderr


@pytest.mark.parametrize("runs_s, in_time", [(0.1, True), (3, False)])
def test_the_limit_of_a_test_does_not_count_that_it_was_stopped(request, runs_s, in_time):
    child = os.fork()
    if not child:
        try:
            pytest_timeout_set_timer(request.node, Settings(0.5, "signal", False, True))
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(runs_s)
        except BaseException:
            os._exit(1)
        os._exit(0)
    os.waitpid(child, os.WUNTRACED)
    time.sleep(0.8)
    os.kill(child, signal.SIGCONT)
    assert (os.waitpid(child, 0)[1] == 0) is in_time


@pytest.mark.parametrize("name", ["PROFILE", "DATA", "NAMES", "LAB"])
@pytest.mark.parametrize("given", ["on the command line", "by the environment"])
def test_a_file_that_somebody_named_like_a_command_runs_nothing(name, given, tmp_path):
    """make itself expands what it is given."""
    pwned = tmp_path / "pwned"
    evil = f"{tmp_path}/a$(shell touch {pwned}).yml"
    words = [f"{name}={evil}"] if given == "on the command line" else []
    done = make("-n", "paper", *words, **({} if words else {name: evil}))
    assert done.returncode == 2 and f"{name} has a $ in it" in done.stderr
    assert not pwned.exists()


@pytest.mark.parametrize("name", ["a`touch pwned`", "a';touch pwned;'", "a;touch pwned", "a|b&c"])
def test_shell_words_in_the_name_of_a_profile_or_of_data_run_nothing(name, tmp_path):
    shutil.copy(REPOSITORY / "notebooks/parameters/quick.yml", tmp_path / f"{name}.yml")
    (tmp_path / f"{name}.zip").touch()
    done = make("paper", f"PROFILE={tmp_path}/{name}.yml", f"PY={sys.executable}")
    assert done.returncode == 2 and "cannot be the name of a profile" in done.stderr
    done = make("-n", "paper", f"DATA={tmp_path}/{name}.zip")
    assert "pwned" not in os.listdir(REPOSITORY) and "pwned" not in os.listdir(tmp_path)
    assert not done.returncode and " --profile shared-a-" in done.stdout
