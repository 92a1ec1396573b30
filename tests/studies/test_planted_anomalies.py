"""The study of planted anomalies: its schedules, its table, its words, and one real case through
the whole chain.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nbhelpers.answers import CANNOT_TELL, NO, YES
from nbhelpers.machine import doctor
from nbhelpers.measurement import Campaign, Cell, finished, recorded_runs
from nbhelpers.noise import Signature, average_noise
from nbhelpers.studies.planted_anomalies import narrow_means
from nbhelpers.tracing import Tracer, read_traces
from nbhelpers.workloads import nbody
from tests.cells import run_cells
from tests.shown import Shown


@pytest.mark.parametrize("cpus", [2, 8, 128])
def test_schedules_take_from_a_fifth_to_the_whole_of_a_run(cpus):
    schedules = planted_schedules(10, 0.4, cpus, seed=1)
    assert schedules == planted_schedules(10, 0.4, cpus, seed=1)
    lengths_ms = [total_ms(schedule) for schedule in schedules]
    shares = np.array([sum(lengths) for lengths in lengths_ms]) / 400
    assert np.allclose(shares, np.linspace(0.2, 1.0, 10), atol=1e-6)
    assert max(map(max, lengths_ms)) <= 60
    assert (shares / [len(schedule) for schedule in schedules]).max() <= 0.9


def planted_schedules(cases, seconds, cpus, seed) -> list:
    known = {"cases": cases, "seconds": seconds, "cpus": cpus, "seed": seed}
    return run_cells("35-planted-anomaly", "schedules", **known)["schedules"]


def total_ms(schedule) -> list[float]:
    """Lengths of the blocks of all CPUs."""
    return [length / 1e6 for blocks in schedule.values() for _, length in blocks]


def planted(*ratios: float, rounds: int = 12, spread: float = 0.01) -> pd.DataFrame:
    """Rounds of undisturbed runs of 0.4 s, disturbed ones of 0.5 s, and replays by the ratios."""
    wave = spread * np.sin(np.arange(rounds) * 2.4)
    cells = {"undisturbed": 0.4}
    for case, ratio in enumerate(ratios, start=1):
        cells |= {f"disturbed {case}": 0.5, f"replayed {case}": 0.5 * ratio}
    seconds = [mean * (1 + np.roll(wave, place)) for place, mean in enumerate(cells.values())]
    columns = {"cell": np.repeat(list(cells), rounds), "round": [*range(rounds)] * len(cells)}
    return pd.DataFrame(columns | {"epoch": 0, "seconds": np.concatenate(seconds)})


def page(runs: pd.DataFrame) -> dict:
    """The cells of page 35 on these runs."""
    found = Shown()
    known = {"ok": runs, "numbers": range(1, 11), "seed": 0, "study": Shown(), "found": found}
    for tag in ("means", "answer"):
        known = run_cells("35-planted-anomaly", tag, **known)
    return known


@pytest.mark.parametrize(
    ("runs", "word"),
    [
        (planted(1.0, 1.01, 0.99), YES),
        (planted(1.0, 1.0, 0.8), NO),
        (planted(1.0, 1.0, spread=0.3), CANNOT_TELL),
        (planted(1.0, rounds=2), CANNOT_TELL),
    ],
)
def test_planted_disturbances_cost_the_same_in_replay_or_one_is_shown_not_to(runs, word):
    found = page(runs)["found"].answer
    assert found.answer == word


def test_the_number_of_planted_replays_is_their_ratio_of_means():
    runs = planted(1.02, 0.97)
    means = runs.groupby("cell")["seconds"].mean()
    ratios = [means[f"replayed {case}"] / means[f"disturbed {case}"] for case in (1, 2)]
    known = page(runs)
    found, table = known["found"].answer, known["table"]
    assert table["ratio"].tolist() == pytest.approx(ratios)
    assert table["baseline_outside"].all()
    assert ((table["ratio_low"] < table["ratio"]) & (table["ratio"] < table["ratio_high"])).all()
    assert found.value == pytest.approx(np.sqrt(np.prod(ratios)), rel=1e-6)
    assert found.n == 12 and f"{abs(np.array(ratios) - 1).max():.1%} at most" in found.sentence


def test_a_case_of_which_nothing_is_left_is_replayed_whole_or_left_out():
    noise = Signature(100, 500).config(0.1, [0])
    facts = {"seconds": 0.5, "seconds_of_all": [0.4, 0.5, 0.7]}
    usual, whole = (replace(noise, provenance=facts | more) for more in ({}, {"all_noise": True}))
    known = {"schedules": ["a", "b", "c"], "numbers": pd.RangeIndex(1, 4, name="case")}
    found = run_cells(
        "35-planted-anomaly", "left", configs=[usual, None, whole], study=Shown(), **known
    )
    assert [text[:7] for text in found["study"].texts] == ["Case 3:", "Case 2:"]
    assert found["schedules"] == ["a", "c"] and found["configs"] == [usual, whole]
    table = found["study"].tables["configs"]
    assert table["case"].tolist() == [1, 3] and table["total_ms"].tolist() == [5.0, 5.0]


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.skipif(doctor().capabilities.tracer == "detours", reason="nothing traces here")
def test_a_planted_case_goes_through_the_whole_chain(tmp_path, binaries):
    workload = nbody(2000, 20, threads=2)
    cell = Cell("traced", workload, attachments=[Tracer(tmp_path / "baseline/traces")])
    baseline = finished(Campaign(tmp_path / "baseline", [cell], runs=3).run())
    average = average_noise(read_traces(tmp_path / "baseline/traces", baseline), baseline)
    schedules = planted_schedules(1, float(baseline["seconds"].mean()), 2, seed=3)
    stage10 = Shown(workload=workload, average=lambda method: average)
    known = {"study": Shown(data=tmp_path), "stage10": stage10, "numbers": [1]}
    known |= {"schedules": schedules, "seed": 0, "method": "paper", "threads": "recorded"}

    def traced_configs(recorded_only: bool, traces: int) -> list:
        given = known | {"recorded_only": recorded_only, "traces": traces}
        return run_cells("35-planted-anomaly", "traced", **given)["configs"]

    configs = traced_configs(recorded_only=False, traces=3)
    traced = finished(recorded_runs(tmp_path / "traced")).sort_values("seconds")
    provenance = configs[0].provenance
    assert provenance["run"] == traced["run"].iloc[1]
    assert provenance["seconds_of_all"] == traced["seconds"].tolist()
    first = traced[traced["round"] == 0]["run"].iloc[0]
    # a recording of one traced run a case is enough
    [alone] = traced_configs(recorded_only=True, traces=1)
    assert alone.provenance["run"] == first
    events = configs[0].events()
    traced_ms = events.loc[events["policy"] == "SCHED_FIFO", "duration_ns"].sum() / 1e6
    # what the hog took is in the config (blocks after the run's end are not)
    assert 0.3 < traced_ms / sum(total_ms(schedules[0])) < 1.3
    known |= {"configs": configs, "runs": 3, "most_runs": 3}

    def campaign(recorded_only: bool) -> pd.DataFrame:
        how = {"seed": 0, "recorded_only": recorded_only}
        given = known | {"how": how, "recorded_only": recorded_only}
        return run_cells("35-planted-anomaly", "campaign", **given)["ok"]

    runs = campaign(recorded_only=False)
    table = page(runs)["table"]
    assert table["runs"].tolist() == [3] and table["ratio"].between(0.2, 5).all()
    assert len(campaign(recorded_only=True)) == len(runs)


def test_means_are_narrow_when_every_disturbed_case_is():
    narrow, wide = [1, 1.01, 0.99, 1], [2, 2.2, 1.8, 2]
    cells = {"disturbed 1": narrow, "disturbed 2": narrow, "undisturbed": wide, "replayed 1": wide}
    assert narrow_means(of_cells(cells))
    assert not narrow_means(of_cells(cells | {"disturbed 2": wide}))


def of_cells(cells: dict[str, list]) -> pd.DataFrame:
    return pd.DataFrame(cells).melt(var_name="cell", value_name="seconds")
