"""The timed region of any program: it begins and ends where the record has it."""

import os
import select
import shlex
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from nbhelpers.injection import Injector
from nbhelpers.measurement import Attachment, Campaign, Cell, finished, measure, run_once
from nbhelpers.measurement._regions import SymbolsWatch
from nbhelpers.measurement.table import region_notes
from nbhelpers.noise import NoiseConfig, average_noise, delta_noise
from nbhelpers.tracing import Tracer, noise_summary, read_traces
from nbhelpers.workloads import Region, Workload, program
from nbhelpers.workloads.region import as_region

from ..combined import made_noise
from ..sanitizers import build_checked
from . import truth

pytestmark = pytest.mark.usefixtures("binaries", "nothing_left")
REPOSITORY = Path(__file__).resolve().parents[2]
WAITS_THEN_WORKS = """
import time
time.sleep(0.3)
began = time.monotonic()
while time.monotonic() < began + 0.15:
    pass
print("took", time.monotonic() - began)
"""
REPORTED = r"took (?P<seconds>\S+)"


def python(script: str, **options) -> Workload:
    return program([sys.executable, "-c", script], **options)


def in_region(kind: object, *command: str, start: str = "exec", **options) -> Workload:
    region = as_region(kind)
    start = "mark" if region.armed else start
    return Workload("program", "external", command, start=start, region=region, **options)


BUSY = ("symbols, C", "lines, Python", "mpi, MPICH")  # one of each kind


@pytest.fixture
def busy_cpus():
    """A loop or two on every CPU."""
    with looping(2 * os.cpu_count()):
        yield


@contextmanager
def looping(count: int):
    words = [sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(words) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def check_truth(name: str, folder: Path) -> None:
    """Of three runs, the median of the errors is below a millisecond."""
    if missing := truth.lacking(name):
        pytest.skip(f"no {missing} here")
    workload, errors = truth.case(name, folder), []
    for _ in range(3):
        row = run_once(workload)
        assert row["status"] == "ok", row["message"]
        assert (
            row["region_seconds"] == (row["end_ns"] - row["start_ns"]) / 1e9 < row["wall_seconds"]
        )
        errors.append(truth.errors_us(row, folder / "truth"))
    assert np.median(np.abs(errors), axis=0).max() < 1000, errors


# a program that loses its CPU between its stamp and its call is late for good
@pytest.mark.alone
@pytest.mark.flaky(reruns=2)
@pytest.mark.parametrize("name", truth.CASES)
def test_begin_and_end_are_true_to_a_millisecond(name, tmp_path):
    check_truth(name, tmp_path)


@pytest.mark.alone
@pytest.mark.flaky(reruns=2)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in BUSY else [pytest.mark.long]) for name in truth.CASES],
)
def test_begin_and_end_are_true_on_busy_cpus(name, busy_cpus, tmp_path):
    check_truth(name, tmp_path)


@pytest.mark.parametrize(("pairs", "paused"), [(1, 0.0), (3, 0.010)])
def test_between_an_end_and_the_next_begin_it_pauses(pairs, paused, tmp_path):
    row = run_once(truth.case("symbols, C", tmp_path, str(pairs)))
    assert row["status"] == "ok" and paused <= row["paused_seconds"] < row["region_seconds"]
    assert (row["paused_seconds"] > 0) == (pairs > 1)
    assert row["region_seconds"] >= pairs * 0.01 + paused


def test_a_program_with_the_two_symbols_runs_without_noisebook(tmp_path):
    program = truth.case("symbols, C", tmp_path).command
    subprocess.run(program, env=os.environ | {"TRUTH": str(tmp_path / "truth")}, check=True)


@pytest.mark.alone
def test_where_the_region_begins_is_the_barrier(tmp_path):
    """What accompanies a run is made ready while the program waits at its begin, and replays from
    there.
    """
    for name in ("symbols, C", "mpi, Open MPI"):
        if not truth.lacking(name):
            row = run_once(truth.case(name, tmp_path), lead_ms=20)
            assert row["status"] == "ok" and 0 <= row["start_ns"] - row["t0_ns"] < 50_000_000


MISSING = {
    "no begin": ("symbols", "true", "never called noisebook_begin()"),
    "no end": (
        "symbols",
        f"{shlex.quote(sys.executable)} -c 'import ctypes; ctypes.CDLL(None).noisebook_begin()'",
        "noisebook_end() never",
    ),
    "no rank": ("mpi", "true", "no rank called MPI_Init"),
    "no begin line": (("^begin", "^end"), "echo end", "'^begin', the begin of its region"),
    "no end line": (("^begin", "^end"), "echo begin", "'^end', the end of its region"),
    "end first": (("^begin", "^end"), "echo end; echo begin", "before its begin"),
    "at once": (("^begin", "^end"), "printf 'begin\\nend\\n'", "flush its output"),
    "begins again": (("^begin", "^end"), "echo begin; echo end; echo begin", "begins again"),
}


@pytest.mark.parametrize("case", MISSING)
def test_a_region_that_never_began_or_ended_is_the_status(case):
    kind, command, message = MISSING[case]
    row = run_once(in_region(kind, "sh", "-c", command))
    assert row["status"] == "no region" and message in row["message"] and row["seconds"] is None, (
        row["message"]
    )


def test_a_rank_that_never_comes_to_the_end_is_named(tmp_path):
    if missing := truth.lacking("mpi, MPICH"):
        pytest.skip(f"no {missing} here")
    row = run_once(truth.case("mpi, MPICH", tmp_path, "1"))
    assert row["status"] != "ok"
    assert row["status"] != "no region" or "rank 1 of 2" in row["message"]


@pytest.mark.parametrize(("name", "kind"), [("symbols, C", "symbols"), ("lines, C", truth.LINES)])
def test_children_of_a_script_may_mark_the_region_and_print_its_lines(name, kind, tmp_path):
    program = truth.case(name, tmp_path).command[0]
    env = {"TRUTH": str(tmp_path / "truth")}
    row = run_once(in_region(kind, "sh", "-c", f"sleep 0.05; {program}; sleep 0.05", env=env))
    assert row["status"] == "ok" and row["region_seconds"] < row["wall_seconds"] - 0.05


@pytest.mark.alone
def test_a_line_counts_as_soon_as_it_is_written_that_far():
    """`Solving ... done`: the begin is written before the newline; errors count as output."""
    script = "printf 'Solving ... ' >&2; sleep 0.1; echo done"
    row = run_once(in_region((r"Solving \.\.\. ", "done"), "sh", "-c", script))
    assert row["status"] == "ok" and 0.1 <= row["region_seconds"] < 0.2


def test_all_of_a_large_output_arrives_and_large_writes_succeed():
    script = """
import os
print("go", flush=True)
os.write(1, b"x" * 300_000 + b"\\n")
for number in range(20_000): print(number)
print("stop")
"""
    row = run_once(in_region(("^go", "^stop"), sys.executable, "-c", script, start="main"))
    assert row["status"] == "ok", row["message"]


class _Begins(Attachment):
    follows_region = True

    def __init__(self):
        self.times = []

    def released(self, t0_ns):
        self.times.append((t0_ns, time.monotonic_ns()))


@pytest.mark.alone
@pytest.mark.parametrize("kind", [("^begin", "^end"), "process"])
def test_what_follows_the_region_is_released_at_its_begin(kind):
    begins, script = _Begins(), "sleep 0.1; echo begin; sleep 0.1; echo end"
    row = run_once(in_region(kind, "sh", "-c", script), [begins])
    ((told_ns, when_ns),) = begins.times
    assert row["status"] == "ok" and told_ns == row["start_ns"]
    if kind != "process":
        assert row["start_ns"] - row["t0_ns"] > 90_000_000 and when_ns - told_ns < 80_000_000


@pytest.mark.alone
@pytest.mark.long
def test_injected_noise_counts_from_the_begin_of_the_region(tmp_path):
    """A program that sets up for 0.15 s: the noise of its 50th millisecond comes then, not before
    its region.
    """
    noise = made_noise(frequency_hz=20, duration_us=2000, seconds=0.2, cpus=[0])
    injector = Injector(NoiseConfig.from_events(noise), keep_logs=True)
    script = "sleep 0.15; echo begin; sleep 0.25; echo end"
    try:
        row = run_once(in_region(("^begin", "^end"), "sh", "-c", script), [injector])
    finally:
        injector.close()
    log = injector.logs[0]
    assert row["status"] == "ok" and row["noise_start_ns"] == row["start_ns"]
    done = log[log["outcome"].isin(("injected", "late"))]
    assert len(done) >= 2 and (done["start_ns"] - done["planned_start_ns"]).median() < 50_000_000
    assert any("nobody can wait where this region begins" in note for note in injector.notes)


@pytest.mark.alone
def test_a_region_that_is_not_known_is_the_whole_process_and_says_so():
    runs = measure([sys.executable, "-c", WAITS_THEN_WORKS], runs=2, seconds=REPORTED)
    assert (runs["seconds"] < 0.25).all() and (runs["region_seconds"] > 0.44).all()
    length_ns = runs["end_ns"] - runs["start_ns"]
    assert ((runs["region_seconds"] * 1e9).round() == length_ns).all()
    (note,) = runs.attrs["notes"][-1:]
    assert [note] == region_notes(finished(runs)) and "is not known" in note


@pytest.mark.alone
@pytest.mark.skipif(os.geteuid() != 0, reason="the kernel's tracers need root")
def test_no_share_of_noise_is_above_one_whatever_the_program_reports(tmp_path):
    """The fault: noise of the whole process over the reported seconds were shares of 358 %."""
    tracer = Tracer(tmp_path)
    if tracer.source == "detours":
        pytest.skip("no kernel tracer here")
    workload = python("import time; time.sleep(0.5); print('took', 0.02)", seconds=REPORTED)
    with looping(os.cpu_count()):
        runs = Campaign(None, [Cell("traced", workload, attachments=(tracer,))], 2).run()
    events = read_traces(tmp_path, runs)
    table = noise_summary(events, runs)
    assert 0.5 < table["cpu_share"].sum() <= 1
    assert "is not known" in table.attrs["notes"][0]
    assert events.attrs["notes"] == table.attrs["notes"]
    ticks = average_noise(events, runs).query("source == 'local_timer'")["frequency_hz"].sum()
    assert ticks < 2 * 1000 * os.cpu_count()
    config = NoiseConfig.from_events(delta_noise(events, average_noise(events, runs), runs))
    assert config.window_ns == pytest.approx(
        finished(runs).set_index("run")["region_seconds"][config.provenance["run"]] * 1e9, abs=1
    )


@pytest.mark.long
def test_the_libraries_are_clean_under_the_sanitizer(tmp_path):
    """ASan and UBSan in the library and in the program that calls it."""
    sources, gnu = REPOSITORY / "workloads", "-D_GNU_SOURCE"
    words = (gnu, f"-I{sources}", truth.SOURCES / "symbols.c", sources / "nbpreload.c", "-ldl")
    program = build_checked(tmp_path, *words)
    library = (gnu, "-shared", "-fPIC", sources / "nbmpi.c", "-ldl")
    build_checked(tmp_path, *library, name="libnbmpi.so")
    watch = SymbolsWatch(Region("symbols"))
    try:
        env = os.environ | watch.env | {"TRUTH": str(tmp_path / "truth")}
        with subprocess.Popen([program, "3"], env=env) as running:
            assert select.select([watch.arrivals], [], [], 20)[0] and watch.arrived()
            watch.release(time.monotonic_ns() + 5_000_000)
        assert running.returncode == 0 and watch.times().paused_ns > 5_000_000
    finally:
        watch.close()
