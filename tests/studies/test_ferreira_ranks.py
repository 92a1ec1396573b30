"""Real ranks under signatures: the page's cells on known runs, and real campaigns of two ranks."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nbhelpers.answers import CANNOT_TELL
from nbhelpers.empty import why_empty
from nbhelpers.mpi import Calls
from nbhelpers.simulation.loggops import LogGOPS
from nbhelpers.studies.ferreira import traced
from nbhelpers.studies.ferreira.ranks import (
    SIGNATURES,
    collective_times,
    net_noise_ns,
    rank_program,
    rank_runs,
)
from nbhelpers.studies.ferreira.traced import trace_and_simulate
from tests.cells import run_cells
from tests.mpi import needs_mpi, traced_run
from tests.shown import Shown

ROUNDS = 12
PAGE = "75-mpi-at-scale"


def page(*tags, **names):
    """What cells of the page show, one after the other; and all names that there are then."""
    shown = Shown()
    names |= {"study": shown, "found": shown}
    for tag in tags:
        names = run_cells(PAGE, tag, **names)
    return shown, names


def made_runs(
    beyond: float, program: str = "halo2d", noise: str = "daemon", seed: int = 1
) -> pd.DataFrame:
    """Runs of 1 s, less or more by 0.1 %; each CPU is given 25 ms, and `beyond` is lost on top."""
    rng = np.random.default_rng(seed)
    calm = 1 + 0.001 * rng.standard_normal(ROUNDS)
    case = {"program": program, "ranks": 2, "round": range(ROUNDS), "runqueue_wait_ns": 0}
    quiet = pd.DataFrame(case | {"noise": "none", "seconds": calm})
    seconds = calm * (1 + beyond) + 0.025 + 0.001 * rng.standard_normal(ROUNDS)
    injected = {"noise": noise, "seconds": seconds, "net_noise_ns": 25e6, "noisy_cpus": 2}
    return pd.concat([quiet, pd.DataFrame(case | injected)], ignore_index=True)


# what the page's sentences are made of, where they do not matter
TEXTS: dict = {"amplified": "", "phases": "", "read": [], "predicted": ""}


@pytest.mark.parametrize(
    "beyond, effect, word",
    [(0.03, "amplified", "yes"), (-0.02, "absorbed", "no"), (0.0, "neither", "no")],
)
def test_what_is_lost_beyond_the_injected_noise_is_found_and_answered(beyond, effect, word):
    runs = made_runs(beyond)
    shown, _ = page("accumulated", "claims", "answer", runs=runs, **TEXTS)
    (row,) = shown.tables["accumulated"].to_dict("records")
    assert row["effect"] == effect and row["rounds"] == ROUNDS
    for name, expected in (
        ("accumulated", beyond),
        ("accumulated_trimmed", beyond),
        ("slowdown", beyond + 0.025),
        ("injected_share", 0.025),
    ):
        assert row[name] == pytest.approx(expected, abs=0.001)
    assert row["most_possible"] == row["injected_share"]
    seconds = runs.pivot(index="round", columns="noise", values="seconds")
    logs = np.log((seconds["daemon"] - 0.025) / seconds["none"])
    ends = stats.t.interval(0.95, ROUNDS - 1, logs.mean(), stats.sem(logs))
    assert np.log1p([row["accumulated_low"], row["accumulated_high"]]) == pytest.approx(ends)
    assert shown.answer.answer == word
    assert shown.answer.value == pytest.approx(100 * row["accumulated"])


def both_ways(*cases):
    """Runs at random phases and co-scheduled; a case is its program and what each loses."""
    parts = []
    for seed, (program, apart, at_once) in enumerate(cases):
        parts.append(made_runs(apart, program, seed=2 * seed + 1))
        together = made_runs(at_once, program, "daemon, co-scheduled", seed=2 * seed + 2)
        parts.append(together.query("noise != 'none'"))
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize("waiting", [0.02, 0.0, -0.03])
def test_what_injection_costs_by_itself_is_no_waiting(waiting):
    """3 % are lost either way: `accumulated` calls it amplified, the phases only the waiting."""
    runs = both_ways(("halo2d", 0.03 + waiting, 0.03))
    shown, _ = page("accumulated", "read", "phases", runs=runs)
    row = shown.tables["phases"].iloc[0]
    assert row["noise"] == "daemon" and row["rounds"] == ROUNDS
    assert row["effect"] == {0.02: "amplified", 0.0: "neither", -0.03: "absorbed"}[waiting]
    assert row["extra"] == pytest.approx((1.03 + waiting) / 1.03 - 1, abs=0.001)
    assert row["extra_low"] < row["extra"] < row["extra_high"]


def test_all_cases_of_a_number_of_ranks_are_judged_together_too():
    """Each case weighs the same; one costs 4 % more, the other none."""
    runs = both_ways(("halo2d", 0.04, 0.0), ("halo3d", 0.0, 0.0))
    tags = ("accumulated", "read", "phases", "claims", "answer")
    shown, _ = page(*tags, runs=runs, predicted="")
    table = shown.tables["phases"]
    assert shown.sentences[1].endswith("0 are open.")
    assert " over all CPUs at once, 2 ranks: +2.0% (" in shown.sentences[2]
    assert table["program"].tolist() == ["halo2d", "halo3d", "all"]
    assert table["effect"].tolist() == ["amplified", "neither", "amplified"]
    assert table["extra"].iloc[-1] == pytest.approx(np.sqrt(1.04) - 1, abs=0.001)


def test_few_rounds_are_open():
    runs = made_runs(0.03)
    for few in (runs[runs["round"] < 2], runs[runs["noise"] == "none"]):
        shown, _ = page("accumulated", "claims", "answer", runs=few, **TEXTS)
        assert set(shown.tables["accumulated"]["effect"]) <= {"open"}
        assert shown.answer.answer == CANNOT_TELL


def test_noise_after_the_region_does_not_count():
    times = {"taken_ns": [0, 1000, 9_500, 20_000], "end_ns": [500, 1500, 10_500, 20_500]}
    rest = dict.fromkeys(["cpu_time_ns", "exit_ns", "preempted_ns"], 0)
    words = {"policy": "SCHED_FIFO", "outcome": "injected", "kind": "irq"}
    log = pd.DataFrame(times | rest | words)
    assert net_noise_ns(log, 900, 10_000) == 500 + 500


@pytest.mark.filterwarnings("ignore:.*invalid value")
def test_without_ranks_the_whole_page_says_why(tmp_path):
    runs = rank_runs(tmp_path, ["halo2d"], [2], ["timer"], 3, recorded_only=True)
    calls = collective_times(tmp_path, runs)
    simulated = trace_and_simulate(tmp_path, ["halo2d"], ["timer"], recorded_only=True)
    assert {why_empty(one) for one in simulated.values()} == {"no traced run was recorded"}
    names = {"runs": runs, "calls_made": calls, "simulated": simulated}
    names |= {"untraced": why_empty(*simulated.values())}
    tags = "shares accumulated read phases claims calls predicted beyond answer"
    shown, _ = page(*tags.split(), **names)
    assert not any(len(table) for table in shown.tables.values())
    for name in ("accumulated", "collectives"):
        assert shown.whys[name] == "no runs of real ranks were recorded"
    assert shown.answer.answer == CANNOT_TELL and "recorded" in shown.answer.sentence
    assert not shown.sentences


def test_mean_times_of_calls_are_compared_within_a_round():
    keys = {"operation": "allreduce", "ranks": 2, "bytes": 8, "rank": 0}
    rows = [
        keys | {"noise": noise, "round": number, "mean_us": mean_us}
        for number in range(5)
        for noise, mean_us in (("none", 2.0 + number), ("daemon", 3 * (2.0 + number)))
    ]
    shown, _ = page("calls", calls_made=pd.DataFrame(rows))
    (row,) = shown.tables["collectives"].to_dict("records")
    assert row["slowdown"] == pytest.approx(3) and row["rounds"] == 5 and row["quiet_us"] == 4
    assert row["published"] == "12 to 35"


def test_what_a_lone_cpu_loses_is_subtracted_from_simulated_runs():
    rows = [
        {"program": "amg", "ranks": 8, "noise": "timer", "seed": seed, "quiet_ms": 10.0}
        | {"noisy_ms": 10.0 / 0.975 + seed, "injected_share": 0.025}
        for seed in range(3)
    ]
    names = {"simulated": {"beyond": pd.DataFrame(rows)}, "untraced": ""}
    shown, _ = page("beyond", case=["program", "ranks", "noise"], **names)
    (row,) = shown.tables["beyond"].to_dict("records")
    assert row["accumulated"] == pytest.approx(0.1)
    assert (row["accumulated_low"], row["accumulated_high"]) == pytest.approx((0, 0.2))


def test_one_run_that_waited_does_not_decide_the_trimmed_error():
    """Nine runs as simulated, and one that took twice as long; its ranks waited for a CPU."""
    rows = [
        {"program": "amg", "ranks": 2, "round": k, "measured_ms": 10.0 + 0.01 * k}
        | {"simulated_ms": 10.0, "waited_ms": 0.0, "mpi_ms": 4.0, "mpi_simulated_ms": 5.0}
        for k in range(10)
    ]
    rows[4] |= {"measured_ms": 20.0, "waited_ms": 10.0}
    simulated = {"predicted": pd.DataFrame(rows)}
    shown, _ = page("predicted", simulated=simulated, untraced="", least=5)
    (row,) = shown.tables["predicted"].to_dict("records")
    ratios = np.log([one["simulated_ms"] / one["measured_ms"] for one in rows])
    assert np.log1p(row["error"]) == pytest.approx(ratios.mean())
    assert np.log1p(row["error_trimmed"]) == pytest.approx(np.sort(ratios)[1:-1].mean())
    assert abs(row["error_less_waits"]) < 0.01 and abs(row["error_trimmed"]) < 0.01
    assert row["error_mpi"] == pytest.approx(0.25) and "for 0." in shown.texts[0]
    assert shown.texts[0].startswith("0 of 1 programs")


@pytest.mark.long
@needs_mpi
def test_traced_runs_are_kept_and_a_stopped_campaign_goes_on(tmp_path, monkeypatch):
    """What is there is not traced again, whether nothing or a round was added."""
    monkeypatch.setenv("OMPI_MCA_mpi_yield_when_idle", "1")
    options = {"length": 0.05, "times": [1, 2], "seeds": 1}
    first = trace_and_simulate(tmp_path, ["halo3d"], ["timer"], rounds=1, **options)
    traces = {path: path.stat().st_mtime_ns for path in (tmp_path / ".calls").glob("**/*.*")}
    again = trace_and_simulate(tmp_path, ["halo3d"], ["timer"], rounds=1, **options)
    assert traces == {path: path.stat().st_mtime_ns for path in traces}
    more = trace_and_simulate(tmp_path, ["halo3d"], ["timer"], rounds=2, **options)
    pd.testing.assert_frame_equal(first["predicted"], again["predicted"])
    pd.testing.assert_frame_equal(first["predicted"], more["predicted"].head(1))
    assert more["predicted"]["round"].tolist() == [0, 1] and set(more["beyond"]["ranks"]) == {2, 4}
    shown = trace_and_simulate(tmp_path, ["halo3d"], ["timer"], recorded_only=True)
    pd.testing.assert_frame_equal(shown["beyond"], more["beyond"])


@pytest.mark.alone
@pytest.mark.long
@needs_mpi
def test_all_collectives_of_a_run_are_in_the_table(tmp_path, monkeypatch):
    monkeypatch.setenv("OMPI_MCA_mpi_yield_when_idle", "1")
    options = {"operation": "all", "smallest": 8, "largest": 2**18, "factor": 32}
    options |= {"before": "nothing", "calls": 5, "span": 1}
    runs = rank_runs(tmp_path, ["collectives"], [2], ["timer"], 2, **options)
    times = collective_times(tmp_path, runs)
    sizes = times.groupby("operation")["bytes"].nunique().to_dict()
    assert sizes == {"allreduce": 4, "bcast": 4, "barrier": 1, "alltoall": 4}
    assert (times["values"] == 5).all() and (times["mean_us"] > 0).all()
    shown, _ = page("calls", calls_made=times)
    table = shown.tables["collectives"]
    assert len(table) == 13 and (table["rounds"] == 2).all()


@pytest.mark.alone
@pytest.mark.long
@needs_mpi
def test_two_ranks_under_noise(tmp_path, monkeypatch):
    """Phases differ from run to run, and each CPU is given its share."""
    monkeypatch.setenv("OMPI_MCA_mpi_yield_when_idle", "1")
    runs = rank_runs(tmp_path, ["halo3d"], [2], ["between"], 2, length=0.1)
    noisy = runs[runs["noise"] == "between"]
    assert len(runs) == 4 and noisy["phase_seed"].nunique() == 2
    shares = noisy["net_noise_ns"] * 1e-9 / noisy["seconds"]
    assert shares.between(0.3 * SIGNATURES["between"].share, 0.06).all()
    again = rank_runs(tmp_path, ["halo3d"], [2], ["between"], 2, recorded_only=True)
    assert again["seconds"].tolist() == runs["seconds"].tolist()


@needs_mpi
def test_a_traced_run_is_simulated_as_a_whole(monkeypatch, tmp_path):
    from nbhelpers.simulation import simulate
    from nbhelpers.simulation.traces import schedule_of_calls

    monkeypatch.setenv("OMPI_MCA_mpi_yield_when_idle", "1")
    row, calls = traced_run(rank_program("sweep", 2, 0.1), tmp_path)
    assert row["status"] == "ok"
    schedule = schedule_of_calls(traced.without_end(calls))
    free = LogGOPS(L=0, o=0, g=0, G=0, O=0)
    simulated_ms = simulate(schedule, free).makespan_ns / 1e6
    assert 0 < simulated_ms <= traced.span_ms(calls) * 1.001
    sizes = traced.program_sizes(calls, "sweep").set_index("function")
    assert sizes.loc["MPI_Allreduce", "most_bytes"] == 8
    shares = traced.function_shares(calls, "sweep")
    assert shares["of_communication"].sum() == pytest.approx(1)


COLUMNS = ["rank", "call", "kind", "start_ns", "end_ns", "bytes", "received_bytes", "comm"]


@pytest.fixture
def calls():
    rows = [
        (0, "MPI_Init", "other", -5000, 0, 0, 0, 0),
        (0, "MPI_Send", "send", 1000, 3000, 8, 0, 0),
        (0, "MPI_Bcast", "collective", 4000, 5000, 16, 0, 0),
        (0, "MPI_Allreduce", "collective", 6000, 10000, 8, 8, 0),
        (0, "MPI_Finalize", "other", 20000, 30000, 0, 0, 0),
        (1, "MPI_Init", "other", -4000, 2000, 0, 0, 0),
        (1, "MPI_Recv", "receive", 2000, 4000, 0, 8, 0),
        (1, "MPI_Bcast", "collective", 5000, 6000, 0, 16, 0),
        (1, "MPI_Allreduce", "collective", 7000, 9000, 8, 8, 0),
        (1, "MPI_Barrier", "collective", 9000, 10000, 0, 0, 1),
        (1, "MPI_Finalize", "other", 12000, 30000, 0, 0, 0),
    ]
    table = pd.DataFrame(rows, columns=COLUMNS)
    return Calls(table, pd.DataFrame(), {0: (0, 1), 1: (1,)}, 2)


def test_time_by_function(calls):
    shares = traced.function_shares(calls, "known").set_index("function")
    assert shares.index[0] == "MPI_Allreduce" and len(shares) == 5
    assert shares.loc["MPI_Allreduce", "of_communication"] == pytest.approx(6 / 13)
    assert shares.loc["MPI_Allreduce", "share"] == pytest.approx(6 / 30)
    assert shares.loc["MPI_Allreduce", ["mean_us", "max_us"]].tolist() == [3, 4]


def test_what_follows_the_last_message_is_computation(calls):
    """Until MPI_Finalize rank 0 computes for 10 µs and rank 1 for 2: no time in MPI."""
    table = calls.table.assign(peer=1 - calls.table["rank"], tag=7, received_tag=7, root=0)
    table = table.assign(source=table["peer"], request=-1)
    waits = pd.DataFrame(columns=["rank", "row", "request"])
    times = traced.mpi_times(Calls(table, waits, calls.comms, 2), LogGOPS())
    assert times["measured_ms"] == 0.02
    assert times["mpi_ms"] == pytest.approx(((2 + 1 + 4) + (2 + 1 + 2 + 1)) / 1000)


def test_a_rank_that_died_counts_to_its_last_call(calls):
    cut = calls.table[~((calls.table["rank"] == 1) & (calls.table["call"] == "MPI_Finalize"))]
    shares = traced.function_shares(Calls(cut, pd.DataFrame(), calls.comms, 2))
    assert shares["share"].iloc[0] == pytest.approx(6 / 28)


def test_an_operation_of_all_ranks_counts_one_time(calls):
    sizes = traced.program_sizes(calls).set_index("function")
    assert set(sizes["operations"]) == {1}
    assert sizes["most_bytes"].to_dict() == {"MPI_Allreduce": 8, "MPI_Barrier": 0, "MPI_Bcast": 16}
    assert sizes["per_second"].tolist() == pytest.approx([1 / 20e-6] * 3)
