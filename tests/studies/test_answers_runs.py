"""Answers on noise, slow runs and replays: yes, no and open by constructed runs, and their numbers
by an independent expression.
"""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.answers import CANNOT_TELL, NO, YES
from nbhelpers.report import published_table
from nbhelpers.studies.answers_noise import lost_shares, noisy_answer, who_answer
from nbhelpers.studies.answers_replay import (
    planted_answer,
    replay_answer,
    trimmed_replay_sentences,
)
from nbhelpers.studies.answers_slow_runs import noise_answer, worst_answer
from nbhelpers.studies.worst_runs import WorstCase
from nbhelpers.tracing import noise_summary

HOEFLER = published_table("hoefler2010-noise1")
PERSSON = published_table("persson2025-table7")


def seconds(mean: float, spread: float = 0.001, runs: int = 20) -> pd.DataFrame:
    """Runs whose mean is exactly this."""
    return pd.DataFrame({"seconds": mean + spread * np.linspace(-1, 1, runs)})


def detours(*lost_share: float, steps: int = 200) -> pd.DataFrame:
    """A second of a loop on one CPU that loses these shares of its time, one part after another."""
    starts = np.arange(steps) * 10**9 // steps
    shares = np.repeat(lost_share, steps // len(lost_share))
    lengths = (shares * 1e9 / steps).astype("int64") + np.arange(steps) % 3
    table = pd.DataFrame({"cpu": 0, "start_ns": starts, "end_ns": starts + lengths})
    table["duration_ns"] = lengths
    table.attrs["seconds"] = 1.0
    return table


@pytest.mark.parametrize(
    ("table", "word"),
    [
        (detours(0.03), YES),
        (detours(0.002), NO),
        (detours(0.0, 0.0, 0.08, 0.0), CANNOT_TELL),
        (detours(0.01).head(0), CANNOT_TELL),
    ],
)
def test_a_machine_is_noisy_where_a_loop_is_shown_to_lose_more_than_one_percent(table, word):
    found = noisy_answer(table, HOEFLER)
    assert found.answer == word and len(found.sentence.split()) <= 25
    if len(table):
        lost = table["duration_ns"].sum() / 1e9
        assert found.value == pytest.approx(100 * lost, rel=1e-6)
        assert sum(found.groups["CPU 0"]) / 20 == pytest.approx(found.value, rel=1e-6)
    assert found.published.startswith("0.02 to 0.21 % on 4 systems")


def test_a_detour_over_two_pieces_is_shared_between_them():
    table = pd.DataFrame({"cpu": [1], "start_ns": [40_000_000], "end_ns": [70_000_000]})
    table.attrs["seconds"] = 1.0
    shares = lost_shares(table)["lost_share"].to_numpy()
    assert shares[:2].tolist() == pytest.approx([0.2, 0.4]) and shares[2:].sum() == 0


def traced(runs: int, **per_run_us: tuple) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Runs of 1 s on one CPU, and an event of each source in each, as long as is said in turn."""
    rows = [
        {"run": run, "cpu": 0, "kind": "thread", "source": name}
        | {"start_ns": 0, "duration_ns": 1000 * lengths[run % len(lengths)]}
        for run in range(runs)
        for name, lengths in per_run_us.items()
    ]
    table = pd.DataFrame({"run": range(runs), "seconds": 1.0, "status": "ok"})
    table["region_seconds"] = 1.0
    return pd.DataFrame(rows), table


def who(runs: int, **per_run_us: tuple):
    events, table = traced(runs, **per_run_us)
    return who_answer(events, noise_summary(events, table, cpus=1), table)


def test_the_source_that_is_shown_to_take_more_is_named_with_its_share():
    found = who(20, kworker=(9000, 9100), timer=(1000, 1001), ksoftirqd=(10,))
    assert found.answer == "kworker"
    assert found.value == pytest.approx(0.905) and found.low < found.value < found.high
    assert "a run, kworker 0.90 %, timer 0.10 %." in found.sentence
    assert np.mean(found.groups["timer"]) == pytest.approx(0.10005)


def test_sources_that_are_not_told_apart_are_both_named_or_nobody_is():
    both = who(20, kworker=(0, 9000), timer=(4000, 4100), rcu=(10,))
    assert both.answer == "kworker or timer"
    three = {name: (0, 9000 - 10 * i) for i, name in enumerate("abc")}
    assert who(20, **three).answer == CANNOT_TELL
    assert who(1, kworker=(9000,)).n == 1  # and nothing is raised
    events, table = traced(3, kworker=(9000,))
    events.attrs["tracer"] = "detours"
    said = who_answer(events, noise_summary(events, table, cpus=1), table)
    assert said.answer == CANNOT_TELL and "not known" in said.sentence


def delta(run_seconds: float, noise_ms: float) -> pd.DataFrame:
    table = pd.DataFrame({"duration_ns": [int(noise_ms * 1e6)]})
    table.attrs |= {"run": 3, "seconds": run_seconds}
    return table


@pytest.mark.parametrize(
    ("noise_ms", "word"), [(40.0, YES), (10.0, NO), (25.05, CANNOT_TELL), (0.0, NO)]
)
def test_noise_explains_a_run_where_it_sums_to_half_of_the_time_lost(noise_ms, word):
    runs = seconds(0.4)
    found = noise_answer(delta(0.45, noise_ms), runs)
    assert found.answer == word
    assert found.value == pytest.approx(100 * noise_ms / 50)


def test_a_run_that_lost_nothing_was_not_made_slow():
    assert noise_answer(delta(0.3, 5.0), seconds(0.4)).answer == CANNOT_TELL
    assert noise_answer(delta(0.5, 5.0), seconds(0.4, runs=1)).answer == CANNOT_TELL


@pytest.mark.parametrize(
    ("replayed", "undisturbed", "word"),
    [
        (seconds(0.495), seconds(0.4, runs=30), YES),
        (seconds(0.45), seconds(0.4), NO),
        (seconds(0.55), seconds(0.4), NO),
        (seconds(0.51, spread=0.2), seconds(0.4), CANNOT_TELL),
        (seconds(0.5), seconds(0.5), CANNOT_TELL),
        (seconds(0.5, runs=1), seconds(0.4), CANNOT_TELL),
        (seconds(0.5, runs=0), seconds(0.4), CANNOT_TELL),
    ],
)
def test_replays_are_as_slow_where_they_are_near_the_recorded_run_and_not_undisturbed(
    replayed, undisturbed, word
):
    found = replay_answer(0.5, replayed, undisturbed, PERSSON)
    assert found.answer == word and len(found.sentence.split()) <= 25
    if len(replayed) > 1:
        assert found.value == pytest.approx(replayed["seconds"].mean() / 0.5)
        assert found.n == len(replayed) and found.low < found.value < found.high
    assert found.line == ("recorded run", 0.5)
    assert found.published == "8.57 % mean error (Persson et al. 2025, Table 7)"


def test_one_run_that_decides_a_mean_is_seen_in_a_sentence():
    """It makes the mean's interval too long to tell; the trimmed mean's is not."""
    slow = seconds(0.5)
    slow.loc[19, "seconds"] = 1.46
    assert replay_answer(0.5, slow, seconds(0.4), PERSSON).answer == CANNOT_TELL
    [said] = trimmed_replay_sentences(0.5, slow, seconds(0.4))
    assert said.startswith("By the trimmed mean the answer is yes: 1.000 (0.99")
    assert trimmed_replay_sentences(0.5, seconds(0.5), seconds(0.4)) == []
    assert trimmed_replay_sentences(0.5, seconds(0.5, runs=2), seconds(0.4)) == []


def planted(*ratios: float, rounds: int = 12, spread: float = 0.01) -> pd.DataFrame:
    """Rounds of undisturbed runs of 0.4 s, disturbed ones of 0.5 s, and replays by the ratios."""
    wave = spread * np.sin(np.arange(rounds) * 2.4)
    cells = {"undisturbed": 0.4}
    for case, ratio in enumerate(ratios, start=1):
        cells |= {f"disturbed {case}": 0.5, f"replayed {case}": 0.5 * ratio}
    return pd.concat(
        [
            pd.DataFrame(
                {"cell": cell, "round": range(rounds), "epoch": 0}
                | {"seconds": mean * (1 + np.roll(wave, place))}
            )
            for place, (cell, mean) in enumerate(cells.items())
        ],
        ignore_index=True,
    )


@pytest.mark.parametrize(
    ("runs", "word"),
    [
        (planted(1.0, 1.01, 0.99), YES),
        (planted(1.0, 1.0, 0.8), NO),
        (planted(1.0, 1.0, spread=0.3), CANNOT_TELL),
        (planted(1.0, rounds=1), CANNOT_TELL),
        (planted(), CANNOT_TELL),
    ],
)
def test_planted_disturbances_cost_the_same_in_replay_or_one_is_shown_not_to(runs, word):
    found = planted_answer(runs, PERSSON)
    assert found.answer == word and len(found.groups) <= 4


def test_the_number_of_planted_replays_is_their_ratio_of_means():
    runs = planted(1.02, 0.97)
    means = runs.groupby("cell")["seconds"].mean()
    ratios = [means[f"replayed {case}"] / means[f"disturbed {case}"] for case in (1, 2)]
    found = planted_answer(runs, PERSSON)
    assert found.value == pytest.approx(np.sqrt(np.prod(ratios)), rel=1e-6)
    assert found.n == 12 and f"{100 * abs(np.array(ratios) - 1).max():.1f} % at most" in (
        found.sentence
    )
    assert found.axis.endswith("farthest case")
    assert np.mean(found.groups["replayed"]) == pytest.approx(means["replayed 2"]), (
        "case 2 is drawn"
    )


def slow_runs(ratio: float, rounds: int = 10) -> tuple[pd.DataFrame, list[WorstCase], pd.DataFrame]:
    """Two slow runs of 0.5 s, whose replays take this part of it; undisturbed runs take 0.3 s."""
    wave = 1 + 0.01 * np.sin(np.arange(rounds) * 2.4)
    cells = {"undisturbed": 0.3, "kernel 1": 0.31, "losses 1": 0.5 * ratio}
    cells |= {"kernel 2": 0.31, "losses 2": 0.5 * ratio}
    runs = pd.concat(
        [
            pd.DataFrame({"cell": cell, "round": range(rounds), "seconds": mean * wave})
            for cell, mean in cells.items()
        ]
    )
    causes = ("kernel", "edges", "hypervisor", "slow_core", "slow_memory", "unexplained")
    table = pd.DataFrame({f"{cause}_lost_ms": [1.0, 2.0] for cause in causes})
    table["slow_core_lost_ms"] = [100.0, 90.0]
    return runs, [WorstCase(case, 7 * case, 0.5, None, None) for case in (1, 2)], table


def test_slow_runs_are_explained_where_their_replay_is_as_slow():
    found = worst_answer(*slow_runs(1.01))
    assert found.answer == "a slower core" and "(190 ms)" in found.sentence
    mean = slow_runs(1.01)[0].query("cell == 'losses 1'")["seconds"].mean()
    assert found.value == pytest.approx(mean / 0.5, rel=1e-6) and found.n == 10
    assert worst_answer(*slow_runs(0.7)).answer == "nothing that was seen"
    assert worst_answer(*slow_runs(0.95)).answer == CANNOT_TELL
    assert worst_answer(*slow_runs(1.0, rounds=1)).answer == CANNOT_TELL
