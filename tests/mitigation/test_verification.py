"""The proof that a mitigation is in effect can fail: each way in which one silently is not must be
noticed, and such a run is no data.
"""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from nbhelpers.errors import RunError
from nbhelpers.measurement import Campaign, Cell, finished, run_once
from nbhelpers.mitigation import (
    Treatment,
    groups,
    mitigations,
    settings,
    treat_workload,
    treatment_cells,
)
from nbhelpers.mitigation.program import Environment, Preload, find_library
from nbhelpers.mitigation.scheduling import Confined, NoRandomisation, PinnedThreads
from nbhelpers.mitigation.settings import Setting
from nbhelpers.mitigation.treatment import NOT_IN_EFFECT
from nbhelpers.studies import disturbances
from nbhelpers.workloads import program

from .programs import built

needs_two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU only")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def python(code: str, **fields):
    return program([sys.executable, "-S", "-c", textwrap.dedent(code)], **fields)


def library() -> str:
    name = next(
        (name for name in ("jemalloc", "tcmalloc_minimal", "mimalloc") if find_library(name)), None
    )
    return name or pytest.skip("no allocator is installed: apt-get install libjemalloc2")


def test_preloading_into_a_static_program_is_refused_beforehand():
    action = Preload(library())
    assert "statically linked" in action.possible(program(built("static"))).reason
    assert action.possible(program(built("dynamic")))


def test_preloading_into_a_static_program_is_noticed_in_the_process(binaries):
    """Past the refusal: the environment says LD_PRELOAD, and nothing is mapped."""
    action, workload = Preload(library()), program(built("static"))
    row = run_once(action.applied_to(workload), (Treatment("preload", [action]),))
    assert row["status"] == NOT_IN_EFFECT and "is not mapped" in row["message"]


def test_a_script_that_drops_the_library_is_noticed_and_one_that_keeps_it_is_not(
    tmp_path, binaries
):
    action = Preload(library())
    for name, line, status in (
        ("keeps", f"exec {built('dynamic')}", "ok"),
        ("drops", f"exec {built('static')}", NOT_IN_EFFECT),
    ):
        script = tmp_path / name
        script.write_text(f"#!/bin/sh\n{line}\n")
        script.chmod(0o755)
        workload = program(str(script))
        assert workload.start == "exec"
        row = run_once(action.applied_to(workload), (Treatment("preload", [action]),))
        assert row["status"] == status


def test_a_variable_that_another_allocator_ignores_is_noticed(binaries):
    variable, preload = Environment({"MALLOC_ARENA_MAX": "2"}, needs="glibc"), Preload(library())
    workload = variable.applied_to(preload.applied_to(program(built("dynamic"))))
    row = run_once(workload, (Treatment("both", [preload, variable]),))
    assert row["status"] == NOT_IN_EFFECT and "not glibc's" in row["message"]


@needs_two_cpus
def test_a_program_that_ignores_the_pinning_of_threads_is_noticed(binaries):
    code = """
        import ctypes, threading, time
        threads = [threading.Thread(target=time.sleep, args=(0.2,)) for _ in range(2)]
        [thread.start() for thread in threads]
        ctypes.CDLL("libgomp.so.1")
    """
    row = run_once(*treat_workload([PinnedThreads()], python(code)))
    assert row["status"] == NOT_IN_EFFECT and "may run on all CPUs" in row["message"]


@needs_two_cpus
def test_an_affinity_that_the_program_changes_under_way_is_noticed(binaries):
    code = "import os, time; os.sched_setaffinity(0, range(os.cpu_count())); time.sleep(0.3)"
    row = run_once(*treat_workload([Confined("one")], python(code)))
    assert row["status"] == NOT_IN_EFFECT and "may run on CPUs" in row["message"]


@needs_root
def test_a_setting_that_somebody_else_changes_under_way_is_noticed_and_left_as_it_is(binaries):
    path = Path("/proc/sys/vm/stat_interval")
    old = path.read_text()
    workload, attachments = treat_workload(
        [Setting(str(path), "77")],
        python(f"open('{path}', 'w').write('78'); import time; time.sleep(0.2)"),
    )
    try:
        with pytest.warns(RuntimeWarning, match="left alone"):
            row = run_once(workload, attachments)
        assert row["status"] == NOT_IN_EFFECT and "78, not 77" in row["message"]
        assert path.read_text().strip() == "78"
    finally:
        path.write_text(old)


def test_a_program_that_puts_its_own_layout_back_is_noticed(binaries):
    """personality(0) acts at the next exec, and the kernel tells it at once."""
    if not NoRandomisation().possible():
        pytest.skip("the personality may not be changed here")
    code = "import ctypes, time; ctypes.CDLL(None).personality(0); time.sleep(0.2)"
    row = run_once(*treat_workload([NoRandomisation()], python(code)))
    assert row["status"] == NOT_IN_EFFECT and "addresses random" in row["message"]


def test_a_campaign_does_not_count_runs_without_their_mitigation(binaries, tmp_path, nothing_left):
    """It records them, tries again, and gives up with the reason."""
    workload, attachments = treat_workload("openmp-passive", program("sleep 0.03"))
    cell = Cell("openmp-passive", workload, attachments=attachments)
    campaign = Campaign(tmp_path / "runs", [cell], 2, max_failures=2)
    with pytest.raises(RunError, match=NOT_IN_EFFECT):
        campaign.run()
    assert len(campaign.runs()) == 2 and finished(campaign.runs()).empty


def test_treated_and_untreated_runs_are_interleaved_and_told_apart(
    binaries, tmp_path, nothing_left
):
    if not mitigations()["statistics-rarely"].possible():
        pytest.skip("this user may not change sysctls")
    path = "/proc/sys/vm/stat_interval"
    workload = program(f"cat {path}", seconds=r"(?P<seconds>\d+)")
    old = float(Path(path).read_text())
    runs = finished(Campaign(tmp_path, treatment_cells(workload, ["statistics-rarely"]), 4).run())
    seen = set(zip(runs["cell"], runs["mitigation"], runs["seconds"]))
    treated = ("statistics-rarely", "statistics-rarely", 120.0)
    assert seen == {("baseline", "none", old), treated}
    assert set(runs["round"]) == {0, 1, 2, 3}


KILLED = """
    import sys, time
    from nbhelpers.measurement import Attachment, run_once
    from nbhelpers.mitigation import settings, treat_workload
    from nbhelpers.studies import disturbances
    from nbhelpers.workloads import program

    class Told(Attachment):
        def released(self, t0_ns):
            print("running", flush=True)

    workload, attachments = treat_workload(ACTIONS, program("sleep 30"))
    run_once(workload, (*attachments, Told()))
"""


STATE = {
    "settings.Setting('/proc/sys/vm/stat_interval', '66')": (
        lambda: Path("/proc/sys/vm/stat_interval").read_text()
    ),
    "settings.InterruptsAway()": lambda: {
        path: path.read_text() for path in Path("/proc/irq").glob("[0-9]*/smp_affinity_list")
    },
    "disturbances.CpuQuota(0.5)": lambda: folders("cpu"),
    "settings.Latency(0)": lambda: Path("/dev/cpu_dma_latency").open("rb", buffering=0).read(4),
}


def folders(controller: str) -> list[str]:
    return sorted(path.name for path in groups.hierarchy(controller).folder.glob("noisebook-*"))


@needs_root
def test_all_is_undone_after_a_sigkill(binaries):
    """One of each kind of action on the machine, all at once in a process that is killed in the
    middle of a run.
    """
    names = {"settings": settings, "disturbances": disturbances}
    possible = [text for text in STATE if eval(text, names).possible()]
    before = {text: STATE[text]() for text in possible}
    code = textwrap.dedent(KILLED).replace("ACTIONS", f"[{', '.join(possible)}]")
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "running\n", child.stderr.read()
        during = {text: STATE[text]() for text in possible}
    finally:
        child.kill()
        child.wait()
        child.stdout.close(), child.stderr.close()
    assert len(possible) > 2 and not [text for text in possible if during[text] == before[text]]
    until = time.monotonic() + 20
    while {text: STATE[text]() for text in possible} != before and time.monotonic() < until:
        time.sleep(0.05)
    assert {text: STATE[text]() for text in possible} == before
