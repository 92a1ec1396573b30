"""The measuring lock: between real processes, users and generations of them."""

import fcntl
import os
import pwd
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from nbhelpers.errors import Unavailable
from nbhelpers.machine import _watch, lock, measuring
from nbhelpers.measurement import measure

from ..processes import run_python
from .conftest import as_nobody, as_root, sleeps

HOLDER = """
import sys
from nbhelpers.machine import measuring
with measuring(exclusive=sys.argv[1] == "exclusive"):
    %s
    print("held", flush=True)
    sys.stdin.read()
"""
WAITER = """
import os, sys, time
from nbhelpers.machine import lock
from nbhelpers.progress import reporting
with reporting(sys.stdout), lock.measuring(): exec(sys.argv[-1])
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
    name = pwd.getpwuid(os.geteuid()).pw_name
    use = f"waiting: the machine is in use by process {first.pid} ({sys.executable} -c"
    assert line.startswith(use) and f" of user {name}" in line
    first.stdin.close()
    assert waiting.wait(timeout=30) == 0


def test_a_wait_sleeps_until_ctrl_c(holder, python):
    """A waiter that asked again and again would disturb the run that it waits for."""
    holder()
    waiting = python(WAITER, "print('got it')")
    assert "waiting" in waiting.stdout.readline()
    assert sleeps(waiting.pid, threads=2)
    waiting.send_signal(signal.SIGINT)
    out, error = waiting.communicate(timeout=30)
    assert "got it" not in out and "KeyboardInterrupt" in error


def test_who_holds_the_lock_is_named_whatever_stands_in_the_file(tmp_path):
    path = tmp_path / "lock"
    path.write_text(f"{os.getppid()} 1")
    for place in (path, tmp_path):
        handle = os.open(place, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
        assert lock._holder(handle).startswith(f"process {os.getpid()} (")
        os.close(handle)


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


def test_those_who_wait_get_it_one_after_the_other(holder, python, state):
    """An overlap would show as two "in" in a row."""
    first = holder()
    log = (
        "log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT); os.write(log, b'in ');"
        " os.write(log, b'out ')"
    )
    path = state / "log"
    waiting = [python(WAITER, path, log) for _ in range(3)]
    for process in waiting:
        assert "waiting" in process.stdout.readline()
    assert not path.exists()
    first.stdin.close()
    for process in waiting:
        process.communicate(timeout=30)
    assert path.read_text() == "in out " * 3


# ---- the lock of all users -----------------------------------------------------------------------


@pytest.fixture
def everybody(open_folder, monkeypatch):
    """A lock of all users that others do not hold; whoever asks has a home in its folder."""
    monkeypatch.setattr(lock, "COMMON", str(open_folder))
    monkeypatch.setattr(_watch, "ROOTS", open_folder / "root")
    monkeypatch.setenv("XDG_STATE_HOME", str(open_folder / "home"))
    monkeypatch.delenv("NOISEBOOK_STATE", raising=False)
    return open_folder


def locked() -> str:
    os.environ.pop(lock.INHERITED, None)
    with measuring(wait=False):
        return "locked"


@as_root
def test_users_share_one_lock(everybody):
    """Each user can lock a folder of root's, and has a file that no other can open."""
    with measuring(wait=False):
        assert f"in use by process {os.getpid()} (" in as_nobody(locked)
    assert as_nobody(locked) == "locked"
    own = sorted(everybody.glob("*/**/measuring-*.lock"))
    assert len(own) == 2 and {path.stat().st_mode & 0o777 for path in own} == {0o600}


def test_who_keeps_the_lock_of_all_users_stops_nobody(everybody, python, monkeypatch):
    """It is waited for one time; a measurement of one's own is waited for always."""
    held = "file = os.open(sys.argv[1], 0); fcntl.flock(file, 2); print('held', flush=True)"
    attacker = python(f"import fcntl, os, sys; {held}; input()", everybody)
    assert attacker.stdout.readline() == "held\n"
    monkeypatch.setattr(lock, "PATIENCE_S", 0.2)
    with measuring() as beside:
        assert beside.startswith(f"measured beside process {attacker.pid}, which kept")
        runs = measure("sleep 0.01", runs=1)
        assert runs["without_lock"].tolist() == [beside]
        assert any(f"1 of 1 runs: {beside}" in note for note in runs.attrs["notes"])
    monkeypatch.setattr(lock, "PATIENCE_S", 1000)
    with measuring(wait=False) as again:
        assert again == beside
        monkeypatch.delenv(lock.INHERITED)
        assert not free_for(True)
    attacker.communicate("")
    with measuring() as beside:
        assert not beside and "without_lock" not in measure("sleep 0.01", runs=1)


def test_without_the_lock_of_all_users_a_user_has_one(everybody, monkeypatch):
    """As in a container without sysfs."""
    monkeypatch.setattr(lock, "COMMON", str(everybody / "not there"))
    assert locked() == "locked"


def test_names_that_others_have_taken_leave_a_folder_of_ones_own(tmp_path, monkeypatch):
    """Without a home, where only temporary files can be."""
    (tmp_path / "file").touch()
    monkeypatch.setattr(_watch, "ROOTS", tmp_path / "file/root")
    monkeypatch.setattr(_watch.tempfile, "tempdir", str(tmp_path))
    for name in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "file"))
    monkeypatch.delenv("NOISEBOOK_STATE", raising=False)
    (tmp_path / f"noisebook-{os.geteuid()}").symlink_to("/")
    found = _watch.state_folder()
    assert found.parent == tmp_path and found.stat().st_mode & 0o777 == 0o700
    assert _watch.state_folder() == found
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    assert _watch.state_folder() == tmp_path / "run/noisebook"
