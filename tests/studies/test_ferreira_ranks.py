"""Real ranks under signatures: tables of known runs, and one real campaign of two ranks."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.answers import CANNOT_TELL
from nbhelpers.empty import why_empty
from nbhelpers.studies.answers_scale import real_ranks_answer
from nbhelpers.studies.ferreira import (
    accumulated,
    call_times,
    phases,
    predicted,
    ranks_at_work,
    traced,
)
from nbhelpers.studies.ferreira.fresh_phases import net_noise_ns
from nbhelpers.studies.ferreira.ranks_at_work import SIGNATURES, rank_program, rank_runs
from tests.mpi import needs_mpi

ROUNDS = 12


def made_runs(
    beyond: float, program: str = "halo2d", noise: str = "daemon", seed: int = 1
) -> pd.DataFrame:
    """Runs of 1 s, less or more by 0.1 %; each CPU is given 25 ms, and `beyond` is lost on top."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(ROUNDS):
        quiet = 1 + 0.001 * rng.standard_normal()
        case = {"program": program, "ranks": 2, "round": number}
        rows.append(case | {"noise": "none", "seconds": quiet})
        noisy = quiet * (1 + beyond) + 0.025 + 0.001 * rng.standard_normal()
        rows.append(
            case | {"noise": noise, "seconds": noisy, "net_noise_ns": 25e6, "noisy_cpus": 2}
        )
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    "beyond, effect", [(0.03, "amplified"), (-0.02, "absorbed"), (0.0, "neither")]
)
def test_what_is_lost_beyond_the_injected_noise_is_found(beyond, effect):
    table = accumulated.accumulated_table(made_runs(beyond))
    (row,) = table.to_dict("records")
    assert row["effect"] == effect and row["rounds"] == ROUNDS
    assert row["accumulated"] == pytest.approx(beyond, abs=0.001)
    assert row["slowdown"] == pytest.approx(beyond + 0.025, abs=0.001)
    assert row["injected_share"] == pytest.approx(0.025, abs=0.0002)
    assert row["most_possible"] == row["injected_share"]
    assert row["accumulated_trimmed"] == pytest.approx(beyond, abs=0.001)
    assert row["accumulated_low"] < row["accumulated"] < row["accumulated_high"]


def test_the_interval_is_students_over_rounds():
    from scipy import stats

    runs = made_runs(0.03)
    pairs = accumulated.paired(runs)
    low, high = stats.t.interval(
        0.95, ROUNDS - 1, pairs["log_ratio"].mean(), stats.sem(pairs["log_ratio"])
    )
    (row,) = accumulated.accumulated_table(runs).to_dict("records")
    assert np.log1p([row["accumulated_low"], row["accumulated_high"]]) == pytest.approx((low, high))


def test_the_papers_claims_are_judged_in_its_direction():
    verdicts = accumulated.verdicts_table(
        pd.concat([made_runs(0.03), made_runs(0.03, "halo3d", "timer")], ignore_index=True)
    ).set_index("program")["verdict"]
    assert verdicts.to_dict() == {"halo2d": "reproduced", "halo3d": "reversed"}


@pytest.mark.parametrize("waiting", [0.02, 0.0, -0.03])
def test_what_injection_costs_by_itself_is_no_waiting(waiting):
    """3 % are lost either way: `accumulated` calls it amplified, the phases only the waiting."""
    runs = pd.concat(
        [
            made_runs(0.03 + waiting),
            made_runs(0.03, noise="daemon, co-scheduled", seed=2).query("noise != 'none'"),
        ],
        ignore_index=True,
    )
    (row,) = phases.phases_table(runs).to_dict("records")
    assert row["noise"] == "daemon" and row["rounds"] == ROUNDS
    assert row["effect"] == {0.02: "amplified", 0.0: "neither", -0.03: "absorbed"}[waiting]
    assert row["extra"] == pytest.approx((1.03 + waiting) / 1.03 - 1, abs=0.001)
    assert row["extra_low"] < row["extra"] < row["extra_high"]
    assert f"({row['extra_low']:+.1%} to" in phases.phases_sentence(phases.phases_table(runs))


def test_all_cases_of_a_number_of_ranks_are_judged_together_too():
    """Each case weighs the same; one costs 4 % more, the other none."""
    runs = pd.concat(
        [
            made_runs(0.04),
            made_runs(0.0, noise="daemon, co-scheduled", seed=2).query("noise != 'none'"),
            made_runs(0.0, "halo3d", seed=3),
            made_runs(0.0, "halo3d", "daemon, co-scheduled", seed=4).query("noise != 'none'"),
        ],
        ignore_index=True,
    )
    table = phases.phases_table(runs)
    assert table["program"].tolist() == ["halo2d", "halo3d", phases.ALL]
    assert table["effect"].tolist() == ["amplified", "neither", "amplified"]
    assert table["extra"].iloc[-1] == pytest.approx(np.sqrt(1.04) - 1, abs=0.001)
    sentence = phases.phases_sentence(table)
    assert "cost more in 1 of 2 cases" in sentence and "On 2 ranks, all cases together" in sentence


def test_without_co_scheduled_runs_the_phases_say_so():
    table = phases.phases_table(made_runs(0.03))
    assert "co-scheduled" in why_empty(table)
    assert why_empty(table) in phases.phases_sentence(table)


@pytest.mark.parametrize("beyond, word", [(0.03, "yes"), (-0.02, "no"), (0.0, "no")])
def test_the_answer_is_yes_or_no_with_the_number_of_its_case(beyond, word):
    runs = made_runs(beyond)
    table = accumulated.accumulated_table(runs)
    answer = real_ranks_answer(table)
    assert answer.answer == word and len(answer.sentence.split()) <= 25
    pairs = accumulated.paired(runs)
    left = (pairs["seconds"] - pairs["injected_s"]) / pairs["quiet_seconds"]
    assert answer.value == pytest.approx(100 * (np.exp(np.log(left).mean()) - 1))
    assert answer.published.startswith("POP amplifies: 1900 %")
    (sentence,) = accumulated.case_sentences(table)
    assert sentence.startswith(f"**{int(word == 'yes')} of 1** cases amplify")


def test_few_rounds_are_open():
    runs = made_runs(0.03)
    table = accumulated.accumulated_table(runs[runs["round"] < 2])
    assert table["effect"].tolist() == ["open"]
    assert real_ranks_answer(table).answer == CANNOT_TELL
    nothing = accumulated.accumulated_table(runs[runs["noise"] == "none"])
    assert real_ranks_answer(nothing).answer == CANNOT_TELL


def test_runs_whose_ranks_waited_for_a_cpu_are_counted():
    quiet = {"noise": "none", "seconds": 1.0}
    runs = pd.DataFrame(
        [
            quiet | {"ranks": 2, "runqueue_wait_ns": 99_000_000},
            quiet | {"ranks": 2, "runqueue_wait_ns": 101_000_000},
            quiet | {"ranks": 4, "runqueue_wait_ns": 2_000_000_000},
            quiet | {"ranks": 4, "runqueue_wait_ns": 2_000_000_000, "noise": "timer"},
        ]
    )
    sentence = ranks_at_work.waiting_sentence(runs)
    assert "1 of 2 on 2 ranks, 1 of 1 on 4 ranks." in sentence
    assert ranks_at_work.waiting_sentence(runs[:0]) == ""


def test_noise_after_the_region_does_not_count():
    log = pd.DataFrame(
        {
            "taken_ns": [0, 1000, 9_500, 20_000],
            "end_ns": [500, 1500, 10_500, 20_500],
            "cpu_time_ns": 0,
            "policy": "SCHED_FIFO",
            "outcome": "injected",
            "kind": "irq",
        }
    )
    assert net_noise_ns(log, 900, 10_000) == 500 + 500


def test_a_recording_that_is_not_there_says_so(tmp_path):
    runs = rank_runs(tmp_path, ["halo2d"], [2], ["timer"], 3, recorded_only=True)
    assert "recorded" in why_empty(runs)
    table = accumulated.accumulated_table(runs)
    assert why_empty(table) == why_empty(runs)
    assert why_empty(accumulated.verdicts_table(runs))
    found = traced.trace_and_simulate(tmp_path, ["halo2d"], ["timer"], recorded_only=True)
    for one in (
        call_times.largest_shares(found.shares),
        call_times.with_published_sizes(found.sizes),
        predicted.prediction_table(found.predicted),
        traced.beyond_table(found.beyond),
    ):
        assert why_empty(one) == "no traced run was recorded"
    calls = call_times.collective_times(tmp_path, ["timer"], 2, recorded_only=True)
    assert why_empty(call_times.collective_slowdown(calls)) == "no calls were recorded"


def test_mean_times_of_calls_are_compared_within_a_round():
    keys = {"operation": "allreduce", "ranks": 2, "bytes": 8, "rank": 0}
    rows = [
        keys | {"noise": noise, "round": number, "mean_us": mean_us}
        for number in range(5)
        for noise, mean_us in (("none", 2.0 + number), ("daemon", 3 * (2.0 + number)))
    ]
    (row,) = call_times.collective_slowdown(pd.DataFrame(rows)).to_dict("records")
    assert row["slowdown"] == pytest.approx(3) and row["rounds"] == 5 and row["quiet_us"] == 4
    assert row["published"] == "12 to 35"


def test_what_a_lone_cpu_loses_is_subtracted_from_simulated_runs():
    rows = [
        {"program": "amg", "ranks": 8, "noise": "timer", "seed": seed, "quiet_ms": 10.0}
        | {"noisy_ms": 10.0 / 0.975 + seed, "injected_share": 0.025}
        for seed in range(3)
    ]
    (row,) = traced.beyond_table(pd.DataFrame(rows)).to_dict("records")
    assert row["accumulated"] == pytest.approx(0.1)
    assert (row["accumulated_low"], row["accumulated_high"]) == pytest.approx((0, 0.2))


def test_the_error_of_a_prediction_is_a_share_of_the_measured_time():
    rows = [
        {"program": "amg", "ranks": 2, "round": k, "measured_ms": 10.0, "simulated_ms": 9.8}
        for k in range(4)
    ]
    table = predicted.prediction_table(pd.DataFrame(rows))
    assert table["error"].tolist() == pytest.approx([-0.02])
    assert predicted.prediction_sentence(table).startswith("1 of 1 programs")


def test_whom_the_trimmed_mean_judges_otherwise_is_named():
    """Nine runs as simulated, and one that took twice as long; its ranks waited for a CPU."""
    rows = [
        {"program": "amg", "ranks": 2, "round": k, "measured_ms": 10.0 + 0.01 * k}
        | {"simulated_ms": 10.0, "waited_ms": 0.0}
        for k in range(10)
    ]
    rows[4] |= {"measured_ms": 20.0, "waited_ms": 10.0}
    table = predicted.prediction_table(pd.DataFrame(rows))
    (row,) = table.to_dict("records")
    ratios = np.log([one["simulated_ms"] / one["measured_ms"] for one in rows])
    assert np.log1p(row["error"]) == pytest.approx(ratios.mean())
    assert np.log1p(row["error_trimmed"]) == pytest.approx(np.sort(ratios)[1:-1].mean())
    assert abs(row["error_less_waits"]) < 0.01 and abs(row["error_trimmed"]) < 0.01
    sentence = predicted.prediction_sentence(table)
    assert sentence.startswith("0 of 1 programs") and "By the trimmed mean amg differs" in sentence


@needs_mpi
def test_traced_runs_are_kept_and_a_stopped_campaign_goes_on(tmp_path, monkeypatch):
    """What is there is not traced again, whether nothing or a round was added."""
    monkeypatch.setenv("OMPI_MCA_mpi_yield_when_idle", "1")
    options = {"length": 0.05, "times": [1, 2], "seeds": 1}
    first = traced.trace_and_simulate(tmp_path, ["halo3d"], ["timer"], rounds=1, **options)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    again = traced.trace_and_simulate(tmp_path, ["halo3d"], ["timer"], rounds=1, **options)
    unchanged = {path: path.stat().st_mtime_ns for path in files}
    logs = {path for path in files if path.name.endswith("lock")}
    assert {one: at for one, at in unchanged.items() if one not in logs} == {
        one: at for one, at in files.items() if one not in logs
    }
    more = traced.trace_and_simulate(tmp_path, ["halo3d"], ["timer"], rounds=2, **options)
    pd.testing.assert_frame_equal(first.predicted, again.predicted)
    pd.testing.assert_frame_equal(first.predicted, more.predicted.head(1))
    assert more.predicted["round"].tolist() == [0, 1] and set(more.beyond["ranks"]) == {2, 4}
    shown = traced.trace_and_simulate(tmp_path, ["halo3d"], ["timer"], recorded_only=True)
    pd.testing.assert_frame_equal(shown.beyond, more.beyond)


@needs_mpi
def test_all_collectives_of_a_run_are_in_the_table(tmp_path, monkeypatch):
    monkeypatch.setenv("OMPI_MCA_mpi_yield_when_idle", "1")
    times = call_times.collective_times(tmp_path, ["timer"], 2, ranks=[2], calls=5, span_ms=1)
    sizes = times.groupby("operation")["bytes"].nunique().to_dict()
    assert sizes == {"allreduce": 4, "bcast": 4, "barrier": 1, "alltoall": 4}
    assert (times["values"] == 5).all() and (times["mean_us"] > 0).all()
    table = call_times.collective_slowdown(times)
    assert len(table) == 13 and (table["rounds"] == 2).all()


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
    from nbhelpers.mpi import trace_calls
    from nbhelpers.simulation import simulate
    from nbhelpers.simulation.loggops import LogGOPS
    from nbhelpers.simulation.traces import schedule_of_calls

    monkeypatch.setenv("OMPI_MCA_mpi_yield_when_idle", "1")
    row, calls = trace_calls(rank_program("sweep", 2, 0.1), tmp_path)
    assert row["status"] == "ok"
    schedule = schedule_of_calls(traced.without_end(calls))
    free = LogGOPS(L=0, o=0, g=0, G=0, O=0)
    simulated_ms = simulate(schedule, free).makespan_ns / 1e6
    assert 0 < simulated_ms <= traced.span_ms(calls) * 1.001
    sizes = call_times.program_sizes(calls, "sweep").set_index("function")
    assert sizes.loc["MPI_Allreduce", "most_bytes"] == 8
    shares = call_times.function_shares(calls, "sweep")
    assert shares["of_communication"].sum() == pytest.approx(1)


def test_recorded_ranks_are_those_of_the_machine_that_recorded_them():
    """Whatever MPI and CPUs are here: the table's bytes are the same on every machine."""
    table = ranks_at_work.ranks_table([2, 4], {"cpus": [0, 1, 2]}).set_index("what")["here"]
    assert table["MPI"] == "that of the recording" and table["CPUs"] == "3"
    assert "4 ranks share 3 CPUs" in table["placement"]
