"""The figures of the OpenMP study and of the way from a trace to a replay, read back from the
drawing; how they look is for eyes.
"""

import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from nbhelpers.noise import NoiseConfig
from nbhelpers.report import (
    figure_clock,
    figure_config,
    figure_extremes,
    figure_replay,
    figure_reserved,
    figure_scaling,
    figure_sides,
    figure_subtraction,
    trace_sample,
)
from nbhelpers.report._axes import apart
from nbhelpers.studies.cui import run_statistics

from .test_figures import check_inside, points, said_instead, words

NAMES = ("dynamic_1", "static_8", "reduction", "barrier", "copy", "dot")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def repeated():
    """Three rounds of 20 repetitions of six benchmarks in three configurations."""
    random, rows = np.random.default_rng(1), []
    for number, (round_number, benchmark, (config, threads)) in enumerate(
        (r, b, c) for r in range(3) for b in NAMES for c in (("Rm", 4), ("TP", 4), ("TP-ST1", 1))
    ):
        values = random.gamma(20, 5 * (1 + NAMES.index(benchmark)) / threads, 20)
        rows += [
            {
                "benchmark": benchmark,
                "compiler": "gcc",
                "config": config,
                "round": round_number,
                "run": number,
                "threads": threads,
                "index": i,
                "value_us": v,
            }
            for i, v in enumerate(values)
        ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def statistics(repeated):
    return run_statistics(repeated)


def test_the_lines_of_the_scaling_are_the_means_of_the_runs(repeated, statistics):
    pinned = statistics[statistics["config"] != "Rm"].sort_values("threads")
    figure = figure_scaling(pinned, "ms")
    means = (
        repeated[(repeated.benchmark == "barrier") & (repeated.config != "Rm")]
        .groupby("threads")
        .value_us.mean()
        / 1e3
    )
    drawn = [line.get_ydata() for line in figure.axes[0].lines]
    assert any(np.allclose(line, means) for line in drawn) and len(drawn) == len(NAMES)
    assert set(NAMES) <= {text.get_text() for text in words(figure)}
    check_inside(figure)


def test_labels_are_moved_apart_and_stay_within():
    for seed in range(20):
        places = np.random.default_rng(seed).uniform(0, 100, 8) ** 2 / 100
        moved = np.array([place for _, place in sorted(apart(places, 9, 100).items())])
        assert (
            (np.diff(np.sort(moved)) > 9 - 1e-9).all()
            and moved.min() > -1e-9
            and moved.max() < 100 + 1e-9
        )
        assert (np.argsort(moved) == np.argsort(places)).all()


def test_extremes_reach_from_the_least_to_the_greatest_of_each_run(repeated, statistics):
    figure = figure_extremes(statistics[statistics["config"] != "Rm"])
    one = repeated[
        (repeated.benchmark == "reduction") & (repeated.config == "TP") & (repeated["round"] == 0)
    ].value_us
    reached = [
        segment
        for collection in figure.axes[1].collections
        for segment in collection.get_segments()
    ]
    assert any(
        np.allclose(segment[:, 1], [one.min() / one.mean(), one.max() / one.mean()])
        for segment in reached
    )
    assert [axes.get_title() for axes in figure.axes] == ["schedbench", "syncbench", "BabelStream"]
    check_inside(figure)


def test_a_side_that_is_not_there_says_why_and_the_other_shows_every_repetition(
    repeated, statistics
):
    figure = figure_sides(
        repeated,
        statistics,
        {"TP": "", "two threads a core": "each core runs one thread"},
        middle="cv",
    )
    assert len(points(figure.axes[0])) == 3 * 20 and len(points(figure.axes[1])) == 3 * 2
    assert any("each core" in text.get_text() for text in words(figure))
    check_inside(figure)
    check_inside(figure_sides(repeated, statistics, {"Rm": "", "TP": ""}))


def test_the_clock_is_drawn_where_it_is_told_and_stolen_time_where_not(repeated):
    own = repeated[(repeated.benchmark == "reduction") & (repeated.config == "TP")]
    runs = pd.DataFrame(
        {"run": own["run"].unique(), "steal_s": [0.0, 0.1, 0.2], "wall_seconds": 1.0}
    )
    clocked = runs.assign(
        frequency_mhz=[2000.0, 2100, 2200], frequency_min_mhz=1900.0, frequency_max_mhz=2300.0
    )
    sides = {"TP": "", "TP-two-nodes": "there is one NUMA node"}
    stolen, told = figure_clock(own, runs, sides), figure_clock(own, clocked, sides)
    assert np.allclose(stolen.axes[1].lines[-1].get_ydata(), [0, 10, 20]) and np.allclose(
        told.axes[1].lines[-1].get_ydata(), [2.0, 2.1, 2.2]
    )
    busy = figure_clock(
        own, runs.assign(busy_mhz=3000.0, busy_min_mhz=2900.0, busy_max_mhz=3100.0), sides
    )
    assert np.allclose(busy.axes[1].lines[-1].get_ydata(), 3.0)
    check_inside(stolen)


def test_strips_with_and_without_reserved_cores_carry_their_variation(repeated):
    left = repeated.assign(reserved=repeated["config"] == "TP-ST1")
    figure = figure_reserved(
        pd.concat([left, left[left["config"] == "Rm"].assign(config="RmHK", reserved=True)])
    )
    own = repeated[(repeated.benchmark == "static_8") & (repeated.config == "Rm")].value_us
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["st:8", "dy:1"]
    assert f"{100 * own.std() / own.mean():.0f}" in {
        text.get_text() for text in figure.axes[0].texts
    }
    check_inside(figure)


def test_nothing_to_draw_is_said(repeated):
    assert "no repetitions" in said_instead(figure_scaling(run_statistics(repeated.head(0))))


@pytest.fixture(scope="module")
def lanes():
    rows = [
        ("worst", 0, "irq", 1_000_000, 5000, False),
        ("worst", 0, "thread", 9_000_000, 400_000, False),
        ("left", 0, "thread", 9_000_000, 390_000, True),
        ("left", 1, "irq", 2_000_000, 700, True),
    ]
    return pd.DataFrame(
        rows, columns=["lane", "cpu", "kind", "start_ns", "duration_ns", "left"]
    ).assign(source="x")


def test_the_subtraction_shows_the_cpu_with_the_longest_event_that_is_left(lanes):
    figure = figure_subtraction(lanes)
    assert "CPU 0" in figure.axes[0].get_title(loc="left") and [
        label.get_text() for label in figure.axes[0].get_yticklabels()
    ] == ["worst", "left"]
    spans = [
        path.vertices[:, 0]
        for collection in figure.axes[0].collections
        for path in collection.get_paths()
    ]
    assert any(np.isclose(span.min(), 9.0) and np.isclose(span.max(), 9.39) for span in spans)
    check_inside(figure)
    assert "nothing is left" in said_instead(figure_subtraction(lanes[~lanes["left"]]))


def test_a_sample_has_one_event_of_each_source_in_the_order_of_time(lanes):
    table = trace_sample(lanes)
    assert table["event_type"].tolist() == ["irq_noise", "thread_noise"] and table[
        "start_seconds"
    ].tolist() == [0.001, 0.009]


@pytest.fixture(scope="module")
def config():
    rows = [
        {
            "cpu": cpu,
            "start_ns": 1000 * (i + 1),
            "duration_ns": 100 + i,
            "policy": "SCHED_FIFO" if i % 2 else "SCHED_OTHER",
            "priority": 50 * (i % 2),
            "kind": "irq" if i % 2 else "thread",
            "source": "timer",
        }
        for cpu in range(3)
        for i in range(5)
    ]
    return NoiseConfig.from_events(
        pd.DataFrame(rows).assign(end_ns=lambda t: t["start_ns"] + t["duration_ns"], run=0),
        window_ns=10_000,
    )


def test_the_excerpt_is_what_the_file_says(config, tmp_path):
    kept = json.loads(config.write(tmp_path / "config.json").read_text())
    text = "\n".join(text.get_text() for text in figure_config(config).axes[0].texts)
    assert (
        all(json.dumps(event) in text for event in kept["cpus"]["0"][:3])
        and json.dumps(kept["columns"]) in text
        and "3 CPUs" in text
    )


def test_the_replay_has_a_row_a_cpu_and_urgency(config):
    figure = figure_replay(config)
    text = [text.get_text() for text in figure.axes[0].texts]
    assert (
        "CPU 1, real-time: 2 events, 0.00 ms" in text
        and "CPU 2, ordinary: 3 events, 0.00 ms" in text
    )
    check_inside(figure)
