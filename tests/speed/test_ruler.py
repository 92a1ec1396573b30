"""By what factor fixed work was slower: as a program's own clock has it, and recorded runs."""

from pathlib import Path

import pandas as pd
import pytest

from nbhelpers.measurement import run_once
from nbhelpers.speed import SpeedProbe, read_waits
from nbhelpers.speed.ruler import slowness
from nbhelpers.speed.waits import read_calls
from nbhelpers.workloads import Workload

from .printed import Printed
from .test_waits import measured, own_times, program  # noqa: F401  # a fixture

pytestmark = pytest.mark.usefixtures("binaries", "nothing_left")
RECORDED = Path(__file__).parents[2] / "data/recorded/10-trace-collection/baseline"
REGIONS, CALL_MS, RUNS, SLOW_RUN = 300, 0.06, 12, 11


@pytest.fixture
def short_runs(program, tmp_path):  # noqa: F811
    """Runs of 300 regions, of which the last is slower by 2 in its middle third; own clocks."""
    folder = tmp_path / "runs"
    rows, clocks = [], []
    probe = SpeedProbe(folder)
    for run in range(RUNS):
        env = {"OMP_NUM_THREADS": "2", "WAITS_SLOWER": "2" if run == SLOW_RUN else "1"}
        printed = Printed()
        workload = Workload("waits", "external", (str(program), "short"), env=env)
        rows.append(run_once(workload, [probe, printed], run=run))
        clocks.append(own_times(printed.output))
    probe.close()
    return folder, pd.DataFrame(rows), clocks


@pytest.mark.long
def test_calls_of_a_function_are_counted_and_it_is_the_same_in_each_run(short_runs):
    folder, runs, clocks = short_runs
    calls, waits = read_calls(folder, runs), read_waits(folder, runs)
    assert calls["function"].nunique() == 1
    for run, clock in enumerate(clocks):
        first = int(clock["thread"].min())
        own = calls[(calls["run"] == run) & (calls["thread"] == first)]
        assert own["calls"].sum() == REGIONS
        busy_ns = (clock["to_ns"] - clock["from_ns"])[clock["thread"] == first].sum()
        marked = waits[(waits["run"] == run) & (waits["thread"] == first)]["busy_ns"].sum()
        assert 0.99 * busy_ns <= own["busy_ns"].sum() <= marked + 1e6


def test_functions_in_turn_are_counted_side_by_side(program, tmp_path):  # noqa: F811
    threads = {"OMP_NUM_THREADS": "2"}
    row, _ = measured(tmp_path, Workload("many", "external", (str(program), "many"), env=threads))
    calls = read_calls(tmp_path, pd.DataFrame([row]))
    assert calls["function"].nunique() == 32
    # at a thread's end each function has one row that is no full one
    assert (calls["end_ns"] - calls["start_ns"] < 2e5).sum() <= 2 * 32


@pytest.mark.long
@pytest.mark.alone
def test_the_factor_is_that_of_the_programs_own_clock(short_runs):
    folder, runs, clocks = short_runs
    table = slowness(folder, runs)
    clock, start_ns = clocks[SLOW_RUN], runs["start_ns"].iloc[SLOW_RUN]
    own = clock[clock["thread"] == clock["thread"].min()]
    pieces = table[(table["run"] == SLOW_RUN) & (table["thread"] == own["thread"].iloc[0])]
    truth = pieces.apply(lambda piece: mean_ms(own, piece, start_ns) / CALL_MS, axis=1)
    # a thread that loses its CPU between its own clock and the mark is slow by the mark alone
    ratio = pieces["factor"] / truth
    for third in (truth > 1.6, truth < 1.2):
        assert ratio[third].median() == pytest.approx(1, abs=0.15)


def mean_ms(own: pd.DataFrame, piece: pd.Series, start_ns: int) -> float:
    """What a call took by the thread's own clock, mean of those in a piece."""
    begin, middle = piece["start_ns"] + start_ns, (own["from_ns"] + own["to_ns"]) / 2
    here = middle.between(begin, piece["end_ns"] + start_ns)
    return float((own["to_ns"] - own["from_ns"])[here].mean()) / 1e6


@pytest.mark.long
def test_taken_time_is_no_slowness(short_runs):
    folder, runs, _ = short_runs
    calls = read_calls(folder, runs)
    taken = calls[calls["run"] == SLOW_RUN].assign(
        end_ns=lambda own: (own["start_ns"] + own["end_ns"]) // 2
    )
    before, after = slowness(folder, runs), slowness(folder, runs, taken)
    ratio = (after["factor"] / before["factor"])[before["run"] == SLOW_RUN]
    assert ratio.median() == pytest.approx(0.5, rel=0.1)
