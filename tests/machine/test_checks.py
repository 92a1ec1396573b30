"""The doctor: on recorded machines, on this one, as an unprivileged user, and without tracefs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nbhelpers.machine import describe, doctor
from nbhelpers.machine.checks import Capabilities
from nbhelpers.machine.checks._trials import Trial, Trials

from ..processes import run_python
from ..trees import write_tree
from .conftest import REPOSITORY, as_nobody, as_root

ALL_WELL = Trials(*[Trial("yes", "as it should be")] * 3)
EVENTS = ("irq/irq_handler_entry", "irq/softirq_entry", "sched/sched_switch")


def check(report, name):
    return next(found for found in report.checks if found.name == name)


def add_events(root: Path) -> Path:
    return write_tree(root, {f"/sys/kernel/tracing/events/{event}/id": "1" for event in EVENTS})


def test_on_a_server_with_osnoise_nothing_is_replaced(server):
    report = doctor(server, ALL_WELL)
    assert report.replaced() == []
    assert report.capabilities == Capabilities("osnoise", True, True, "absent", True, True)
    less = {found.name for found in report.checks if found.state != "yes"}
    assert less - {"ending of runs"} == {"SMT"}  # whether groups can be made here


def test_without_osnoise_tracepoints_stand_in(server):
    (server / "sys/kernel/tracing/available_tracers").write_text("blk function nop\n")
    assert doctor(server, ALL_WELL).capabilities.tracer == "detours"
    report = doctor(add_events(server), ALL_WELL)
    assert report.capabilities.tracer == "tracepoints"
    osnoise = check(report, "osnoise tracer")
    assert osnoise.state == "no" and "CONFIG_OSNOISE_TRACER" in osnoise.fix
    assert check(report, "tracepoints").state == "yes"
    assert len(report.replaced()) == 1 and "ordinary tracepoints" in report.replaced()[0]


def test_the_laptop_user_gets_a_mend_for_everything(laptop):
    refused = Trial("no", "Operation not permitted", 1)
    limited = Trial("limited", "counting in user space only")
    report = doctor(laptop, Trials(refused, limited, refused))
    can = report.capabilities
    assert (can.tracer, can.fifo, can.fair_server) == ("detours", False, "locked")
    assert can.rt_throttling_liftable and not can.perf_hardware and not can.perf_software
    assert "rtprio" in check(report, "real-time scheduling").fix
    assert "perf_event_paranoid" in check(report, "hardware counters").fix
    assert "scaling_governor" in check(report, "CPU frequency").fix
    assert len(report.replaced()) == 3


def test_the_fair_server_is_absent_locked_or_liftable(server):
    release = server / "proc/sys/kernel/osrelease"
    assert doctor(server, ALL_WELL).capabilities.fair_server == "absent"
    release.write_text("6.12.0\n")
    report = doctor(server, ALL_WELL)
    assert report.capabilities.fair_server == "locked" and "54 ms" in " ".join(report.replaced())
    write_tree(server, {"/sys/kernel/debug/sched/fair_server/cpu0/runtime": "50000000"})
    assert doctor(server, ALL_WELL).capabilities.fair_server == "liftable"


def test_a_recorded_machine_is_not_tried_on_this_one(server):
    can = doctor(server).capabilities
    assert not (can.fifo or can.perf_software or can.perf_hardware)


def test_this_machine_is_found_as_it_is():
    can = doctor().capabilities
    code = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))"
    assert can.fifo == (run_python(code).returncode == 0)
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
    tracers = Path("/sys/kernel/tracing/available_tracers")
    if os.access(tracers, os.R_OK):
        assert (can.tracer == "osnoise") == ("osnoise" in tracers.read_text().split())
    assert (check(doctor(), "C compiler").state == "no") == (shutil.which("cc") is None)


def state_of_the_machine():
    kernel = "/proc/sys/kernel"
    paths = ("/proc/self/mounts", f"{kernel}/sched_rt_runtime_us", f"{kernel}/perf_event_paranoid")
    return [Path(path).read_text() for path in paths] + [sorted(os.listdir("/sys/kernel"))]


@pytest.mark.alone
def test_looking_changes_nothing_and_leaves_nothing_open():
    doctor()
    before, files = state_of_the_machine(), os.listdir("/proc/self/fd")
    doctor()
    assert (state_of_the_machine(), len(os.listdir("/proc/self/fd"))) == (before, len(files))


@as_root
def test_it_works_for_nobody(open_folder):
    def look() -> list:
        os.environ["NOISEBOOK_STATE"] = str(open_folder / "state")
        report = doctor()
        can = report.capabilities
        return [can.tracer, can.fifo, report.checks_text(), describe().digest, report.replaced()]

    tracer, fifo, text, digest, replaced = as_nobody(look)
    assert (tracer, fifo) == ("detours", False) and digest
    assert len(replaced) >= 2 and "run as root" in text


def in_a_mount_namespace(command: str) -> subprocess.CompletedProcess:
    if shutil.which("unshare") is None or not os.path.ismount("/sys/kernel/tracing"):
        pytest.skip("needs unshare(1) and a mounted tracefs")
    return subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-ec", command, sys.executable],
        text=True,
        capture_output=True,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
    )


@as_root
def test_tracefs_that_nobody_mounted_is_looked_into_and_left_unmounted():
    code = (
        "from nbhelpers.machine import doctor; r = doctor(); print(r.capabilities.tracer,"
        " *r.checks[:2], sep='|')"
    )
    mounted = "grep -c tracefs /proc/self/mounts || true"  # debugfs may have one, too
    done = in_a_mount_namespace(
        f'umount /sys/kernel/tracing; {mounted}; "$0" -c "{code}"; {mounted}'
    )
    before, found, after = done.stdout.splitlines()
    tracer, osnoise, tracepoints = found.split("|")
    assert tracer == doctor().capabilities.tracer
    assert "tracers: " in osnoise and "can be used" in tracepoints and before == after
