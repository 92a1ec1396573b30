"""Every automated mitigation that this machine allows is applied to a real run, proved to be in
effect, and undone; the others say why not.
"""

import contextlib
import ctypes
import glob
import os
import sys
from pathlib import Path

import pytest

from nbhelpers.errors import InputError, Unavailable
from nbhelpers.machine import settings
from nbhelpers.measurement import run_once
from nbhelpers.mitigation import groups, mitigations, scheduling, treat_workload
from nbhelpers.mitigation.scheduling import Niced
from nbhelpers.mitigation.settings import Setting, changeable
from nbhelpers.workloads import program

from .programs import suitable

pytestmark = pytest.mark.flaky(reruns=2)

AUTOMATED = sorted(name for name, mitigation in mitigations().items() if mitigation.automated)


def machine_state() -> dict[str, str]:
    """All that the actions may change, as it stands."""
    actions = [action for name in AUTOMATED for action in mitigations()[name].actions]
    settings = [action for action in actions if isinstance(action, Setting)]
    paths = {path for action in settings for path in action.values(None)}
    paths |= {*glob.glob("/proc/irq/[0-9]*/smp_affinity_list"), "/sys/devices/system/cpu/online"}
    readable = [path for path in paths if os.access(path, os.R_OK) and os.path.isfile(path)]
    state = {path: Path(path).read_text() for path in readable}
    for controller in ("cpu", "cpuset"):
        with contextlib.suppress(Unavailable):
            # of others there may be some: campaigns that run meanwhile
            found = groups.hierarchy(controller).folder.glob(f"*noisebook-{os.getpid()}-*")
            state[controller] = str(sorted(found))
    own = (
        Path("/proc/self/personality").read_text(),
        ctypes.CDLL(None).prctl(42, 0, 0, 0, 0),
        os.sched_getaffinity(0),
        os.getpriority(os.PRIO_PROCESS, 0),
        os.sched_getscheduler(0),
        dict(os.environ),
    )
    return state | {"of this process": str(own)}


@pytest.mark.parametrize("name", AUTOMATED)
def test_is_applied_verified_and_undone_or_says_why_not(name, binaries, nothing_left):
    workload = suitable(name)
    answer = mitigations()[name].possible(workload)
    if not answer:
        with pytest.raises(Unavailable, match="can't be applied here"):
            treat_workload(name, workload)
        assert len(answer.reason) > 10
        pytest.skip(answer.reason)
    before = machine_state()
    row = run_once(*treat_workload(name, workload))
    assert (row["status"], row["mitigation"]) == ("ok", name), row["message"]
    assert machine_state() == before
    assert not settings.repair()


def seen_by_the_program(name: str, expression: str) -> str:
    """What a Python program under the mitigation prints as `seen=...`."""
    if not (answer := mitigations()[name].possible()):
        pytest.skip(answer.reason)
    code = f"import ctypes, os; print('seen=' + str({expression}))"
    workload = program([sys.executable, "-S", "-c", code], seconds=r"seen=(?P<seconds>[\d.]+)")
    row = run_once(*treat_workload(name, workload))
    assert row["status"] == "ok", row["message"]
    return f"{row['seconds']:g}"


@pytest.mark.parametrize(
    "name, expression, seen",
    [
        ("nice-raised", "os.getpriority(os.PRIO_PROCESS, 0) + 20", "10"),
        ("pin-process", "len(os.sched_getaffinity(0))", "1"),
        # jemalloc alone has it
        ("jemalloc", "int(hasattr(ctypes.CDLL(None), 'mallctl')) + 1", "2"),
    ],
)
def test_the_program_itself_sees_the_mitigation(binaries, name, expression, seen):
    assert seen_by_the_program(name, expression) == seen


def test_the_layout_is_the_same_in_each_run(binaries):
    place = "ctypes.cast(ctypes.CDLL(None).malloc, ctypes.c_void_p).value % 10**6 + 1"
    assert len({seen_by_the_program("aslr-off", place) for _ in range(3)}) == 1


def test_large_blocks_are_not_faulted_in_again(binaries):
    code = "for _ in range(8): bytearray(b'x') * 40_000_000"
    plain = program([sys.executable, "-S", "-c", code])
    kept = run_once(*treat_workload("malloc-keeps-memory", plain))
    assert kept["status"] == "ok" and kept["minor_faults"] < 0.4 * run_once(plain)["minor_faults"]


def test_a_cool_down_is_not_timed(binaries):
    row = run_once(*treat_workload("cool-down", program("sleep 0.01")))
    assert row["elapsed_seconds"] > 2 > row["seconds"]


def test_two_actions_of_one_mitigation_are_both_in_force(binaries):
    if not scheduling.Confined("one").possible() or not Niced(-1).possible():
        pytest.skip("one CPU only, or no permission")
    both = [scheduling.Confined("one"), Niced(-1)]
    row = run_once(*treat_workload(both, program("sleep 0.03")))
    assert (row["status"], row["mitigation"]) == ("ok", "Confined+Niced")


def test_a_setting_that_is_not_offered_or_not_there_is_refused_with_the_reason(tmp_path):
    choice = tmp_path / "enabled"
    choice.write_text("always [madvise] never\n")
    assert "does not offer 'sometimes'" in changeable({str(choice): "sometimes"}).reason
    assert changeable({str(choice): "never"})
    assert "madvise already" in changeable({str(choice): "madvise"}).reason
    assert "there is no" in changeable({str(tmp_path / "gone"): "1"}).reason


def test_control_groups_of_version_2_are_found_or_told_what_is_missing(tmp_path):
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu memory\n")
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory\n")
    mounts = tmp_path / "mounts"
    mounts.write_text(f"cgroup2 {tmp_path} cgroup2 rw,nosuid 0 0\n")
    assert groups.hierarchy("cpu", str(mounts)) == groups.Hierarchy(tmp_path, 2)
    for controller, said in (("cpuset", r"\+cpuset >"), ("hugetlb", "controller hugetlb")):
        with pytest.raises(Unavailable, match=said):
            groups.hierarchy(controller, str(mounts))


def test_cpus_are_chosen_among_those_of_the_workload():
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    assert scheduling.choose_cpus("one") == cpus[-1:]
    assert scheduling.choose_cpus((0, 0)) == (0,)
    assert cpus[0] not in scheduling.choose_cpus("housekeeping")
    with pytest.raises(InputError, match="no choice of CPUs"):
        scheduling.choose_cpus("best")
