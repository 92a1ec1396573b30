"""Nothing of a run outlives it, whatever its processes do to hide, and whoever is killed: with a
control group and without.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from nbhelpers.machine import kernel, run_groups, settings
from nbhelpers.measurement import Attachment, Campaign, Cell, run_once
from nbhelpers.workloads import nbody, program

from ..absent import NOBODY
from ..machine.conftest import eventually
from ..processes import mounted

pytestmark = pytest.mark.usefixtures("binaries", "nothing_left")
REPOSITORY = Path(__file__).resolve().parents[2]
HIDING = {  # {}: how long to sleep, by which they are found
    "new session": "setsid sleep {} &",
    "empty environment": "setsid env -i sleep {} &",
    "two forks": "(setsid env -i sh -c '(sleep {} &)' > /dev/null 2>&1 < /dev/null &);",
    "nohup": "nohup env -i setsid sleep {} > /dev/null 2>&1 &",
}
UNTIL_IT_SLEEPS = """
while :; do
    for file in $(grep -lsaz '^{}$' /proc/[0-9]*/cmdline); do
        grep -qs '^sleep$' ${{file%cmdline}}comm && break 2
    done
done
"""
with_and_without = pytest.mark.parametrize("grouped", [True, False], ids=["group", "no group"])
_lengths = iter(range(1, 1_000_000))


def _use(grouped: bool, monkeypatch) -> None:
    if not grouped:
        monkeypatch.setattr(run_groups, "_base", lambda pid: "")
    elif not run_groups.base():
        pytest.skip("no control group of version 2 can be made here")


def length() -> str:
    """A time to sleep that no other process on the machine has."""
    return f"{os.getpid()}.{next(_lengths):06d}"


def sleeping(seconds: str) -> list[int]:
    """Living processes that sleep so long."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if words[:2] == [b"sleep", seconds.encode()]:
                found.append(int(pid))
    return run_groups.living(found)


def groups_of_runs() -> list[str]:
    names = os.listdir(run_groups.base()) if run_groups.base() else []
    owners = {name: kernel.owner_of(name) for name in names if name.startswith(kernel.OURS)}
    return [name for name, owner in owners.items() if owner and not kernel.alive(owner)]


@pytest.fixture
def state(tmp_path, monkeypatch):
    """A state folder of the test's own, for this process and those it starts."""
    folder = tmp_path / "state"
    monkeypatch.setenv("NOISEBOOK_STATE", str(folder))
    return folder


# ---- while the harness lives ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "grouped"), [*((way, True) for way in HIDING), ("new session", False)]
)
def test_what_hides_is_found_killed_and_named(way, grouped, monkeypatch):
    _use(grouped, monkeypatch)
    seconds = length()
    script = HIDING[way].format(seconds) + UNTIL_IT_SLEEPS.format(seconds)
    row = run_once(program(["sh", "-c", script]))
    assert row["status"] == "ok" and not sleeping(seconds)
    assert row["left_processes"] == 1
    assert row["message"] == "left 1 process(es) running, killed: sleep"


@pytest.mark.alone
@with_and_without
def test_what_ends_by_itself_a_moment_later_is_not_left_either(grouped, monkeypatch, tmp_path):
    _use(grouped, monkeypatch)
    script = f"setsid sh -c 'sleep 0.03; echo done > {tmp_path}/done' &"
    row = run_once(program(["sh", "-c", script]))
    assert row["message"] == "" and (tmp_path / "done").exists()


def test_what_a_run_left_that_never_was_ready_is_said_too():
    """It ends before it comes to the barrier."""
    small = nbody(64, steps=1)
    row = run_once(replace(small, command=("/bin/sh", "-c", "setsid sleep 60 & exit 4")))
    assert row["status"] == "exit 4" and row["left_processes"] == 1


STUBBORN = {
    "ignores SIGTERM": "trap '' TERM; setsid env -i sh -c 'trap \"\" TERM HUP INT; sleep {0}; :' &",
    "stopped": "setsid env -i sh -c 'sleep {0} & kill -STOP $! $$' &",
    "fork bomb": "b() {{ [ $1 -gt 6 ] || {{ b $(($1 + 1)) & b $(($1 + 1)) & }}; sleep {0}; }};"
    " b 0 & ",
    "never the same process": f"setsid env -i {sys.executable} -c '{{1}}' &",
}
COMET = "import os\nwhile not os.fork() or os._exit(0): pass"


@pytest.mark.parametrize("way", STUBBORN)
def test_the_time_limit_ends_all_of_it(way, monkeypatch):
    _use(True, monkeypatch)
    seconds = length()
    script = f"{STUBBORN[way].format(seconds, COMET)} sleep 60"
    row = run_once(program(["sh", "-c", script], timeout_s=0.5))
    assert row["status"] == "timeout" and not sleeping(seconds)


def test_groups_that_a_run_makes_in_its_own_go_with_it(monkeypatch):
    _use(True, monkeypatch)
    seconds, mine = length(), f"{kernel.owned_name()}-*"
    before = [*Path(run_groups.base()).glob(mine)]
    inner = f"{run_groups.base()}/$(sed -n 's/^0:://p' /proc/self/cgroup)/inner"
    script = f"mkdir {inner}; sleep {seconds} & echo $! > {inner}/cgroup.procs"
    row = run_once(program(["sh", "-c", script]))
    assert row["status"] == "ok", row["message"]
    assert row["left_processes"] == 1 and not sleeping(seconds)
    assert [*Path(run_groups.base()).glob(mine)] == before


class Mover(Attachment):
    """Moves the process into a group of its own, as some mitigations do."""

    def armed(self, pid):
        self.folder = Path(run_groups.base(), kernel.owned_name("mitigation"))
        self.folder.mkdir()
        (self.folder / "cgroup.procs").write_text(str(pid))

    def after(self, run):
        self.folder.rmdir()  # only of an empty group
        return {}


def test_a_run_is_followed_into_the_group_of_a_mitigation(monkeypatch):
    _use(True, monkeypatch)
    seconds = length()
    hidden = f"setsid env -i sleep {seconds} &"  # by its group alone
    row = run_once(program(["sh", "-c", f"{hidden} sleep 0.2"], start="exec"), [Mover()])
    assert row["status"] == "ok" and row["left_processes"] == 1 and not sleeping(seconds)


def test_what_other_threads_start_meanwhile_is_left_alone():
    others = []

    def start():
        others.append(subprocess.Popen(["sleep", "60"], start_new_session=True, env={}))

    timer = threading.Timer(0.1, start)
    timer.start()
    row = run_once(program(["sh", "-c", "setsid sleep 60 & sleep 0.3"]))
    timer.join()
    try:
        assert row["left_processes"] == 1 and others[0].poll() is None
    finally:
        others[0].kill()
        others[0].wait()


AS_USER = """
import os, sys
from nbhelpers.machine import run_groups
from nbhelpers.measurement import run_once
from nbhelpers.workloads import program
row = run_once(program(["sh", "-c", "setsid sleep 60 & sleep 0.2"]))
print(os.geteuid(), run_groups.base() or "none", row["status"], row["message"])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become an ordinary user")
@pytest.mark.parametrize("delegated", [True, False])
def test_an_ordinary_user_has_groups_where_one_is_delegated(delegated, tmp_path, monkeypatch):
    _use(True, monkeypatch)
    folder = Path(run_groups.base(), kernel.owned_name("delegated"))
    folder.mkdir()
    try:
        for path in (folder, folder / "cgroup.procs") if delegated else ():
            os.chown(path, NOBODY, NOBODY)
        join = f'echo $$ > {folder}/cgroup.procs; exec "$@"'
        words = [sys.executable, REPOSITORY / "tests/absent.py", "root", "--"]
        done = subprocess.run(
            ["sh", "-c", join, "sh", *words, sys.executable, "-c", AS_USER],
            capture_output=True,
            text=True,
            env=os.environ | {"HOME": "/tmp", "PYTHONPATH": str(REPOSITORY)},
            cwd=REPOSITORY,
        )
        user, base, rest = done.stdout.strip().split(" ", 2)
        assert user == str(NOBODY) and base == (str(folder) if delegated else "none"), done
        assert rest == "ok left 1 process(es) running, killed: sleep"
    finally:
        assert not run_groups.members(str(folder)) and not list(folder.glob("noisebook-*"))
        folder.rmdir()


# ---- after SIGKILL of the harness ----------------------------------------------------------------

HARNESS = """
import sys
from nbhelpers.measurement import Attachment, Campaign, Cell
from nbhelpers.workloads import program
class Printer(Attachment):
    def released(self, t0_ns):
        print("released", flush=True)
Campaign(None, [Cell("a", program(["sh", "-c", sys.argv[1]]), attachments=[Printer()])], 1).run()
"""


def harness(script: str, *words: str) -> subprocess.Popen:
    command, env = [sys.executable, "-c", script, *words], {"PYTHONPATH": str(REPOSITORY)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | env)


class Killed:
    """A harness that measures what hides in every way, and is killed; `hidden`: their lengths."""

    def __init__(self, more: str = ""):
        self.hidden = [length() for _ in HIDING]
        ways = [way.format(one) for way, one in zip(HIDING.values(), self.hidden, strict=True)]
        self.process = harness(HARNESS, f"{more} {' '.join(ways)} sleep {length()}")
        assert self.process.stdout.readline() == "released\n"

    def end(self) -> None:
        """Whatever a failed test left."""
        for pid in (pid for one in self.hidden for pid in sleeping(one)):
            os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def guardians(self) -> list[int]:
        threads = Path(f"/proc/{self.process.pid}/task").iterdir()
        below = [int(pid) for one in threads for pid in (one / "children").read_text().split()]
        return [pid for pid in below if b"guardian.py" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def kill(self, guardian_too: bool) -> None:
        self.process.send_signal(signal.SIGSTOP)  # it must not start another one
        watching = self.guardians()
        assert len(watching) == 1
        if guardian_too:
            os.kill(watching[0], signal.SIGKILL)
        self.process.kill()
        self.process.wait()

    def all_live(self) -> bool:
        return all(map(sleeping, self.hidden))

    def none_lives(self) -> bool:
        return not any(map(sleeping, self.hidden))


@pytest.fixture
def apart(monkeypatch):
    """A control group in which this process goes on: campaigns of other test sessions end what a
    dead harness has left beside theirs, and so could be quicker than ours.
    """
    _use(True, monkeypatch)
    folder, home = Path(run_groups.path("apart")), Path(run_groups.base())
    folder.mkdir()
    (folder / "cgroup.procs").write_text("0")
    run_groups._base.cache_clear()
    yield
    (home / "cgroup.procs").write_text("0")
    run_groups._base.cache_clear()
    run_groups.remove(str(folder))


@pytest.fixture
def killed(apart):
    """Start a harness to be killed, once all that hides lives."""
    started = []

    def start(*arguments: str) -> Killed:
        started.append(Killed(*arguments))
        assert eventually(started[-1].all_live), "they should live, else nothing is shown"
        return started[-1]

    yield start
    for harness in started:
        harness.end()


@pytest.mark.alone
def test_the_guardian_ends_what_a_killed_harness_started(state, killed):
    harness = killed()
    harness.kill(guardian_too=False)
    assert eventually(harness.none_lives)
    assert eventually(lambda: not list(state.glob("*.journal")) and not groups_of_runs())


@pytest.mark.alone
def test_the_next_campaign_ends_what_harness_and_guardian_left(monkeypatch, state, killed):
    """Any campaign does, with a state folder of its own: the journal is not needed."""
    harness = killed()
    harness.kill(guardian_too=True)
    time.sleep(0.2)
    assert harness.all_live(), "they should outlive both, else nothing is shown"
    monkeypatch.setenv("NOISEBOOK_STATE", str(state.with_name("another")))
    campaign = Campaign(None, [Cell("next", program("true"))], 1)
    notes = campaign.run().attrs["notes"]
    assert harness.none_lives() and not groups_of_runs()
    assert any("left by a run whose harness is dead" in note and "sleep" in note for note in notes)


@pytest.mark.alone
def test_the_journal_ends_them_too(state, killed):
    harness = killed()
    harness.kill(guardian_too=True)
    sentences = settings.repair()
    assert harness.none_lives() and not groups_of_runs() and not list(state.glob("*.journal"))
    assert [one for one in sentences if "sleep, sleep, sleep, sleep" in one]


HOLDER = """
import subprocess, sys
from pathlib import Path
from nbhelpers.machine import kernel, settings
folder = Path(sys.argv[1], kernel.owned_name("held"))
with settings.make_folder(folder):
    held = subprocess.Popen(["sleep", sys.argv[2]], start_new_session=True)
    (folder / "cgroup.procs").write_text(str(held.pid))
    print(folder, flush=True)
    held.wait()
"""


@pytest.mark.alone
@pytest.mark.parametrize("kind", ["cgroup", "cgroup2"])
def test_a_mitigations_group_goes_with_the_processes_that_hold_it(kind, state):
    """Version 1 as well: there is no cgroup.kill."""
    places = [place for place, one in mounted() if one == kind]
    places = [place for place in places if os.access(f"{place}/cgroup.procs", os.W_OK)]
    places = [place for place in places if not place.endswith("cpuset")]  # it wants CPUs first
    if not places:
        pytest.skip(f"no {kind} can be written here")
    seconds = length()
    holder = harness(HOLDER, places[0], seconds)
    folder = holder.stdout.readline().strip()
    try:
        assert eventually(lambda: sleeping(seconds)) and folder
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    try:
        assert eventually(lambda: not os.path.exists(folder)) and not sleeping(seconds)
    finally:
        for pid in sleeping(seconds):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.alone
@pytest.mark.skipif(not shutil.which("mpirun"), reason="no MPI on this machine")
def test_a_rank_that_calls_no_mpi_ends_with_its_harness(state, killed):
    seconds = length()
    ranks = f"mpirun --oversubscribe --allow-run-as-root -n 2 sleep {seconds} &"
    harness = killed(ranks)
    assert eventually(lambda: len(sleeping(seconds)) == 2)
    harness.kill(guardian_too=False)
    assert eventually(lambda: not sleeping(seconds))
