"""The measuring lock: between real processes, users and generations of them."""

import fcntl
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from nbhelpers.errors import Unavailable
from nbhelpers.machine import lock, measuring

from ..processes import run_python
from .conftest import as_nobody, as_root, sleeps

HOLDER = """
import sys
from nbhelpers.machine import measuring
with measuring(exclusive=sys.argv[1] == "exclusive", doing="30_injection"):
    %s
    print("held", flush=True)
    sys.stdin.read()
"""
WAITER = """
import os, sys, time
from nbhelpers.machine import lock
from nbhelpers.progress import reporting
class Said:
    after_s = 2.0
    def show(self, line, urgent=False): print(f"urgent={urgent} {line}", flush=True)
    def end(self, line): print("over", flush=True)
with reporting(Said()), lock.measuring(doing="the waiter"): exec(sys.argv[-1])
"""


@pytest.fixture
def holder(python, state):
    """Start a process that holds the lock."""

    def start(kind: str = "exclusive", also: str = "pass") -> subprocess.Popen:
        process = python(HOLDER % also, kind)
        line = process.stdout.readline()
        assert line == "held\n", process.stderr.read()
        return process

    return start


def outside() -> dict[str, str]:
    """The environment of a process that does not have the lock from us."""
    return {name: text for name, text in os.environ.items() if name != lock.INHERITED}


def free_for(exclusive: bool) -> bool:
    try:
        with measuring(exclusive, wait=False):
            return True
    except Unavailable:
        return False


@pytest.mark.parametrize("held", ["exclusive", "shared"])
@pytest.mark.parametrize("exclusive", [True, False])
def test_measuring_excludes_all_and_analyses_share(holder, held, exclusive):
    process = holder(held)
    assert free_for(exclusive) == (held == "shared" and not exclusive)
    process.communicate(timeout=30)
    assert free_for(exclusive)


def test_the_wait_names_the_holder_at_once(holder, python):
    first = holder()
    waiting = python(WAITER, "pass")
    line = waiting.stdout.readline()
    assert f"waiting: the machine is in use by process {first.pid} (30_injection)" in line
    assert " since " in line and line.startswith("urgent=True")
    first.stdin.close()
    assert waiting.stdout.readline() == "over\n"
    assert waiting.wait(timeout=30) == 0


def test_a_wait_sleeps_until_ctrl_c(holder, python):
    """A waiter that asked again and again would disturb the run that it waits for."""
    holder()
    waiting = python(WAITER, "print('got it')")
    assert "waiting" in waiting.stdout.readline()
    assert sleeps(waiting.pid)
    waiting.send_signal(signal.SIGINT)
    out, error = waiting.communicate(timeout=30)
    assert "got it" not in out and "KeyboardInterrupt" in error


def test_a_signature_of_a_dead_process_names_nobody(tmp_path):
    path = tmp_path / "lock"
    ended = subprocess.Popen(["true"])
    ended.wait()
    for pid, name in ((os.getpid(), f"process {os.getpid()} (a stage)"), (ended.pid, "another")):
        path.write_text(f"process {pid} (a stage) since 10:02\n")
        with open(path) as file:
            assert lock._holder(file.fileno()).startswith(name)


def test_who_holds_the_lock_is_named_whatever_stands_in_the_file(tmp_path):
    path = tmp_path / "lock"
    path.write_text(f"process {os.getppid()} (a stage) since 10:02\n")
    with open(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert lock._holder(file.fileno()) == f"process {os.getpid()} of user {os.geteuid()}"


def test_the_death_of_the_holder_frees_the_lock(holder):
    process = holder()
    process.kill()
    process.wait()
    assert free_for(True)


def test_forked_children_do_not_keep_it(holder):
    """A worker that was forked inside the block must not delay the next measurement."""
    process = holder(
        also="import os, time; os.fork() or (os.close(1), os.close(2), time.sleep(1000))"
    )
    process.stdin.close()
    assert process.wait(timeout=30) == 0
    assert free_for(True)
    os.killpg(process.pid, signal.SIGKILL)


def test_inside_the_block_we_and_our_children_have_it(state):
    code = "from nbhelpers.machine import measuring\nwith measuring(wait=False): print('inside')"
    with measuring():
        assert free_for(True) and free_for(False)
        with ThreadPoolExecutor() as pool:
            assert pool.submit(free_for, True).result(), "a thread of ours waits for nobody"
        assert run_python(code).stdout == "inside\n"
        assert "Unavailable" in run_python(code, env=outside()).stderr
    with measuring(exclusive=False), pytest.raises(Unavailable, match="shared"), measuring():
        pass


def test_those_who_wait_get_it_one_after_the_other(holder, python):
    """An overlap would show as two "in" in a row."""
    first = holder()
    log = (
        "log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT); os.write(log, b'in ');"
        " os.write(log, b'out ')"
    )
    path = lock.lock_path().with_name("log")
    waiting = [python(WAITER, path, log) for _ in range(3)]
    for process in waiting:
        assert "waiting" in process.stdout.readline()
    assert not path.exists()
    first.stdin.close()
    for process in waiting:
        process.communicate(timeout=30)
    assert path.read_text() == "in out " * 3


@as_root
@pytest.mark.parametrize("first", ["root", "nobody"])
def test_users_share_one_lock(open_folder, monkeypatch, first):
    """In a folder like /tmp, each user can lock the file that the other made, whatever the umask
    was.
    """
    monkeypatch.setattr(lock, "lock_path", lambda: open_folder / "noisebook-measuring.lock")

    def locked() -> str:
        os.umask(0o077)
        os.environ.pop(lock.INHERITED, None)
        with measuring(wait=False):
            return "locked"

    if first == "nobody":
        assert as_nobody(locked) == "locked"
    with measuring(wait=False, doing="root's"):
        said = as_nobody(locked)
        assert "in use by process" in said and "root's" in said
    assert as_nobody(locked) == "locked"
    assert lock.lock_path().stat().st_mode & 0o777 == 0o666


def test_a_link_is_not_followed(tmp_path, monkeypatch):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "lock").symlink_to(tmp_path / "victim")
    monkeypatch.setattr(lock, "lock_path", lambda: tmp_path / "lock")
    with pytest.raises(Unavailable, match="cannot be opened"), measuring():
        pass
    assert (tmp_path / "victim").read_text() == "precious"


@pytest.mark.parametrize(
    "missing", ["not there", "for root only", "read-only", "a folder there", "a private file there"]
)
def test_without_a_common_folder_the_next_is_taken(tmp_path, monkeypatch, missing):
    """Minimal systems, containers, a user who takes our name: all must come to the same answer."""
    monkeypatch.delenv("NOISEBOOK_STATE", raising=False)
    monkeypatch.setenv("TMPDIR", "/nowhere")
    first, second = tmp_path / "lock", tmp_path / "tmp"
    second.mkdir()
    second.chmod(0o1777)
    if missing != "not there":
        first.mkdir()
        first.chmod(0o755 if missing == "for root only" else 0o1777)
    if missing == "a folder there":
        (first / "noisebook-measuring.lock").mkdir()
    if missing == "a private file there":
        monkeypatch.setattr(lock, "_MAKING_S", 0)
        (first / "noisebook-measuring.lock").touch(0o600)
    if missing == "read-only":
        if os.geteuid():
            pytest.skip("needs root")
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,mode=1777", "tmpfs", first], check=True)
    monkeypatch.setattr(lock, "COMMON", (str(first), str(second)))
    try:
        assert lock.lock_path() == second / "noisebook-measuring.lock"
        with measuring(wait=False):
            assert lock.lock_path().stat().st_mode & 0o777 == 0o666
    finally:
        if missing == "read-only":
            subprocess.run(["umount", first], check=True)


def test_a_lock_that_another_user_is_just_making_is_waited_for(tmp_path, monkeypatch):
    """Between its making and its chmod, nobody else may open it."""
    path, opened = tmp_path / "lock", os.open
    monkeypatch.setattr(lock, "lock_path", lambda: path)
    refusals = [PermissionError(13, "Permission denied")] * 3

    def making(name, *arguments):
        if name == path and refusals:
            raise refusals.pop()
        return opened(name, *arguments)

    monkeypatch.setattr(os, "open", making)
    with measuring(wait=False):
        assert not refusals
