"""The injector as a user would break it: kills in the middle of real-time noise, closed pipes,
forks, exhausted limits, few privileges.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from nbhelpers.errors import InputError, NoisebookError, RunError
from nbhelpers.injection import Injector, Rules, inject, make_plan
from nbhelpers.injection.injector import may_realtime
from nbhelpers.injection.log import make_log
from nbhelpers.injection.replay import Replay
from nbhelpers.measurement import run_once
from nbhelpers.workloads import program

from .helpers import (
    CPU_COUNT,
    descriptors,
    gone_within,
    make_config,
    owner_and_pids,
    put_back,
    state,
)
from .test_simple import Look

REPOSITORY = Path(__file__).parents[2]
needs_realtime = pytest.mark.skipif(not may_realtime(51), reason="SCHED_FIFO is not permitted here")
ONE_LONG = [(0, "irq", 5, 900)]
EVERY_CPU = [(cpu, "irq", 5, 400) for cpu in range(CPU_COUNT)]
SPARE = [(0, "thread", 2, 3), (0, "irq", 8, 2), (0, "thread", 12, 3)]


def started(rows, **options):
    """A replay in the middle of its first event."""
    replay = Replay(make_plan(make_config(rows), **options))
    replay.start()
    replay.release(time.monotonic_ns())
    time.sleep(0.06)
    return replay, replay.pids


@needs_realtime
@pytest.mark.parametrize("whom", [0, 1], ids=["supervisor", "injector"])
def test_a_kill_in_the_middle_of_a_real_time_event_ends_all(whom):
    replay, pids = started(ONE_LONG)
    os.kill(pids[whom], signal.SIGKILL)
    assert gone_within([pids[whom]], 10)
    replay.close()
    assert gone_within(pids, 10) and replay.problem()
    assert make_log(replay)["outcome"].tolist() == ["cut"]


OWNER = """
import json, sys, time
from nbhelpers.injection import Injector, Rules
from nbhelpers.measurement import run_once
from nbhelpers.workloads import program
from tests.injection.helpers import make_config
from tests.injection.test_simple import Look
from tests.injection.test_safety import EVERY_CPU
injector = Injector(make_config(EVERY_CPU), rules=Rules(allow_full_stop=True))
look = Look(lambda: print(json.dumps(injector.pids), flush=True))
run_once(program("sleep 30"), [injector, look])
"""


@needs_realtime
def test_the_owner_is_killed_while_every_cpu_is_taken_with_real_time_priority():
    owner, pids = owner_and_pids(OWNER)
    time.sleep(0.02)
    owner.kill()
    owner.wait(timeout=10)
    assert gone_within(pids, 10)  # the workload would sleep for 30 s
    assert put_back(10)


def test_a_closed_pipe_to_the_supervisor_ends_all():
    replay, pids = started([(0, "thread", 5, 900)])
    os.close(replay._run.control_fd)
    assert gone_within(pids, 10)
    replay._run.control_fd = -1
    replay.close()
    assert replay.ended_by == "owner ended"


def test_a_child_that_was_forked_from_the_owner_does_not_end_the_injection():
    """multiprocessing, os.fork: the child has the same objects, and ends."""
    replay, pids = started([(0, "thread", 5, 1), (0, "thread", 400, 1)])
    child = os.fork()
    if child == 0:
        replay.__del__()
        os._exit(0)
    os.waitpid(child, 0)
    assert all(state(pid) not in ("", "Z") for pid in pids)
    replay.wait(5)
    replay.close()
    assert replay.ended_by == "plan done" and not replay.problem()


def test_a_workload_that_forks_away_ends_the_injection_and_is_ended_itself():
    """What the run leaves in the background is no longer the workload; the harness ends it."""
    injector = Injector(make_config([(0, "thread", 1, 1), (0, "thread", 3000, 1)]))
    look = Look(lambda: injector.pids)
    row = run_once(program(["sh", "-c", "sleep 40 & exit 0"]), [injector, look])
    injector.close()
    assert row["status"] == "ok" and row["wall_seconds"] < 3 and gone_within(look.seen, 10)


def test_a_workload_that_exceeds_its_time_is_killed_and_the_noise_with_it():
    injector = Injector(make_config([(0, "thread", 1, 1900)]))
    look = Look(lambda: injector.pids)
    row = run_once(program("sleep 30", timeout_s=0.3), [injector, look])
    injector.close()
    assert row["status"] == "timeout" and gone_within(look.seen, 10)


def test_a_full_stop_is_refused_before_anything_is_started_or_set():
    before = descriptors()
    rows = [(cpu, "irq", 5, 800) for cpu in range(CPU_COUNT)]
    with pytest.raises(InputError, match="every CPU .* for 800.000000 ms at a str") as caught:
        inject(make_config(rows), program("sleep 0.1"))
    assert "allow_full_stop" in caught.value.fix and descriptors() == before and put_back()


def test_a_config_whose_events_are_all_gone_injects_nothing():
    config = make_config([(0, "thread", 1, 1)])
    empty = type(config)((0,), config.window_ns, {}, config.events().iloc[:0])
    injection = inject(empty, program("sleep 0.02"))
    assert injection.run["status"] == "ok" and len(injection.log) == 0
    assert injection.run["injected_events"] == 0 and injection.run["not_reached_events"] == 0


@pytest.mark.parametrize("room", range(6))
def test_no_descriptor_left_is_an_error_and_leaves_none_open(room):
    before = descriptors()
    replay = Replay(make_plan(make_config(SPARE)))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = descriptors()
    highest = max(int(number) for number in held) + 1
    fillers = [os.open("/dev/null", os.O_RDONLY) for _ in range(highest + 1 - len(held))]
    limit = max(fillers + [highest]) + 1
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit + room, hard))
        if room < 5:  # a pidfd of the owner, two ends of a socket, two of a pipe
            with pytest.raises(RunError, match="Too many open files"):
                replay.start()
        else:
            replay.start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        replay.close()
        for filler in fillers:
            os.close(filler)
    assert descriptors() == before


NO_PROCESSES = """
import os, resource
from nbhelpers.errors import NoisebookError
from nbhelpers.injection import make_plan
from nbhelpers.injection.replay import Replay
from tests.injection.helpers import make_config
replay = Replay(make_plan(make_config([(0, "thread", 2, 3)])))
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
try:
    replay.start()
    print("started")
except NoisebookError as error:
    print(error.what)
replay.close()
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("no child")
"""
DEGRADED = """
import json, os
from nbhelpers.injection import inject
from nbhelpers.workloads import program
from tests.injection.helpers import make_config
config = make_config([(0, "irq", 5, 3), (0, "thread", 20, 3)])
injection = inject(config, program("sleep 0.06", start="exec"))
log = injection.log
seen = {name: sorted(set(log[name].astype(str))) for name in ("policy", "outcome")}
print(json.dumps({"uid": os.getuid(), "status": injection.run["status"], "notes": injection.notes,
                  "policies": seen["policy"], "outcomes": seen["outcome"],
                  "cpu_time_ns": int(log["cpu_time_ns"].sum())}))
"""
NOBODY = ["--reuid", "65534", "--regid", "65534", "--clear-groups"]
WAYS = {  # setpriv's arguments -> may the injector use real-time priorities
    "root with CAP_SYS_NICE alone": (["--bounding-set=-all,+sys_nice", "--inh-caps=-all"], True),
    "another user": ([*NOBODY, "--inh-caps=-all"], False),
    "another user with CAP_SYS_NICE alone": (
        [*NOBODY, "--inh-caps=-all,+sys_nice", "--ambient-caps=-all,+sys_nice"],
        True,
    ),
}


def run_as(arguments, program) -> str:
    """The output of a Python program under other privileges; skipped where they can't be taken."""
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0 or not setpriv:
        pytest.skip("only root can give privileges away, with setpriv")
    python = [setpriv, *arguments, sys.executable, "-B", "-c"]
    if subprocess.run([*python, "import numpy"], cwd=REPOSITORY, capture_output=True).returncode:
        pytest.skip("the interpreter can't be used with these privileges")
    # pytest keeps its own folders closed to other users
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        places = {"NOISEBOOK_STATE": f"{folder}/own", "HOME": folder, "TMPDIR": folder}
        done = subprocess.run(
            [*python, program],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            env=os.environ | places,
            timeout=60,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0)),
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_cap_sys_nice_alone_suffices_and_without_it_noise_is_ordinary_and_says_so(way):
    arguments, realtime = WAYS[way]
    told = json.loads(run_as(arguments, DEGRADED))
    assert told["status"] == "ok" and told["cpu_time_ns"] > 4_000_000
    assert set(told["outcomes"]) <= {"injected", "late"}
    assert told["policies"] == (["SCHED_FIFO", "SCHED_OTHER"] if realtime else ["SCHED_OTHER"])
    assert any("SCHED_FIFO is not permitted" in note for note in told["notes"]) == (not realtime)
    if told["uid"]:
        assert any("throttling was not lifted" in note for note in told["notes"])


@pytest.mark.long
def test_no_process_left_to_fork_is_an_error_and_no_half_an_injection():
    told = run_as([*NOBODY, "--inh-caps=-all"], NO_PROCESSES).splitlines()
    assert told == ["the injector failed to start: Resource temporarily unavailable", "no child"]


def test_errors_of_a_user_are_never_tracebacks(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    for config, workload in (
        (tmp_path / "missing.json", "true"),
        (tmp_path / "config.json", "true"),
        (make_config(SPARE), "no-such-program-here"),
    ):
        with pytest.raises(NoisebookError):
            inject(config, workload)


def test_the_limits_are_enforced_in_c_whatever_python_says():
    """A plan that got around Python's checks."""
    beyond = {"duration_ns": 10**12, "start_ns": -1, "priority": 99, "policy": 6}
    for column, value in beyond.items():
        replay = Replay(make_plan(make_config([(0, "irq", 2, 3)]), rules=Rules()))
        replay._columns[column][0] = value
        with pytest.raises(RunError, match="Invalid argument"):
            replay.start()
        assert not replay.pids
