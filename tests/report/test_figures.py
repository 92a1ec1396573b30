"""What the figures draw, read back from the drawing; how they look is for eyes."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribution import explain
from nbhelpers.errors import InputError
from nbhelpers.report import (
    figure_attribution,
    figure_compare,
    figure_excess,
    figure_noise,
    figure_observed_loss,
    figure_planted,
    figure_timeline,
)
from nbhelpers.report.appearance import ROLES, roles_of, use_style
from nbhelpers.report.distributions import figure_distribution
from nbhelpers.tracing import noise_summary


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def points(axes):
    return np.concatenate(
        [
            np.asarray(collection.get_offsets())
            for collection in axes.collections
            if len(collection.get_offsets())
        ]
    )


def words(figure):
    figure.draw_without_rendering()
    return [
        text for text in figure.findobj(plt.Text) if text.get_visible() and text.get_text().strip()
    ]


def said_instead(figure) -> str:
    """What a figure says for which there was nothing to draw."""
    assert not figure.axes
    return " ".join(" ".join(text.get_text() for text in figure.texts).split())


def check_inside(figure):
    """Everything that is drawn lies on the paper (within half a point)."""
    figure.canvas.draw()
    drawn, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert (
        min(drawn.x0, drawn.y0) > -0.007 and drawn.x1 < width + 0.007 and drawn.y1 < height + 0.007
    ), drawn


def test_the_distribution_shows_every_finished_run(runs):
    figure = figure_distribution(runs, cutoff=0.45)
    drawn = np.sort(points(figure.axes[1])[:, 0])
    assert np.allclose(drawn, np.sort(runs.loc[runs["status"] == "ok", "seconds"]))
    check_inside(figure)


def test_the_distribution_by_cell(runs):
    figure = figure_distribution(runs, by="cell")
    assert [label.get_text() for label in figure.axes[1].get_yticklabels()] == [
        "baseline",
        "traced",
        "injected",
    ]
    check_inside(figure)


def test_the_comparison_shows_every_run_and_the_anomaly(runs):
    figure = figure_compare(runs, anomaly_seconds=0.53)
    axes = figure.axes[0]
    assert np.isin(
        np.round(runs.loc[runs["status"] == "ok", "seconds"], 9), np.round(points(axes)[:, 1], 9)
    ).all()
    assert any(np.allclose(line.get_ydata(), 0.53) for line in axes.lines)
    assert "n = 29" in "".join(text.get_text() for text in words(figure))
    check_inside(figure)


def explained(slow_rate):
    random = np.random.default_rng(3)
    slow = random.random(120) < 0.25
    table = {
        "seconds": random.normal(0.4, 0.005, 120) + 0.1 * slow,
        "nonvoluntary_context_switches_per_s": random.poisson(100 + slow_rate * slow),
        "other_per_s": random.poisson(50, 120),
    }
    runs = pd.DataFrame(table)
    return explain(runs), runs


def test_the_tree_counts_the_runs():
    explanation, runs = explained(300)
    figure = figure_attribution(explanation, runs)
    nodes = [
        text.get_text()
        for text in words(figure)
        if " slow" in text.get_text() and " fast" in text.get_text()
    ]
    slow = int(explanation.labels.sum())
    assert f"{120 - slow} fast\n{slow} slow" in nodes[0] and "nonvoluntary_" in nodes[0]
    leaves = [node.split() for node in nodes if "?" not in node]
    assert (
        sum(int(leaf[0]) for leaf in leaves) == 120 - slow
        and sum(int(leaf[2]) for leaf in leaves) == slow
    )
    check_inside(figure)


def test_no_tree_is_drawn_where_nothing_was_found():
    explanation, runs = explained(0)
    figure = figure_attribution(explanation, runs)
    assert "Nothing among these" in "".join(text.get_text() for text in words(figure)).replace(
        "\n", " "
    )
    check_inside(figure)


def summed(events):
    runs = events.groupby("run")["end_ns"].max().rename("seconds").div(1e9).reset_index()
    return noise_summary(events, runs)


def test_the_noise_figure_has_a_bar_a_source(events):
    noise = summed(events)
    figure = figure_noise(noise, "a run")
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    assert widths == pytest.approx(list(100 * noise["cpu_share"]))
    check_inside(figure)


def test_many_sources_are_summed_up(events):
    noise = summed(events.assign(source=[f"source{number % 30}" for number in range(200)]))
    figure = figure_noise(noise)
    assert len(figure.axes[0].get_yticklabels()) == 13
    assert sum(bar.get_width() for bar in figure.axes[0].patches) == pytest.approx(
        100 * noise["cpu_share"].sum()
    )


def test_the_time_line_draws_each_event_where_it_is(events):
    one = events[events["run"] == 0]
    figure = figure_timeline(one)
    starts = np.sort(
        np.concatenate(
            [
                [path.vertices[:, 0].min() for path in collection.get_paths()]
                for collection in figure.axes[0].collections
            ]
        )
    )
    assert np.allclose(starts, np.sort(one["start_ns"] / 1e6))
    check_inside(figure)


def test_the_time_line_of_a_config_and_its_log(events):
    class Config:
        window_ns = 500_000_000

        def events(self):
            return events[events["run"] == 0].drop(columns="end_ns")

    log = Config().events().assign(outcome="injected")
    log = log.assign(end_ns=log["start_ns"] + log["duration_ns"])
    log.loc[log.index[:5], "outcome"] = "not reached"
    figure = figure_timeline(Config(), log)
    drawn = sum(len(collection.get_paths()) for collection in figure.axes[0].collections)
    assert drawn == 2 * len(log) - 5
    assert figure.axes[0].get_xlim() == (0, 500)
    check_inside(figure)


def test_planted_cases():
    random = np.random.default_rng(4)
    cases = pd.DataFrame({"case": range(1, 11)})
    for kind, mean in (("baseline", 0.4), ("disturbed", 0.6), ("replayed", 0.61)):
        cases[kind] = mean + random.normal(0, 0.005, 10)
        cases[f"{kind}_low"], cases[f"{kind}_high"] = cases[kind] - 0.01, cases[kind] + 0.01
    figure = figure_planted(cases)
    heights = [bar.get_height() for bar in figure.axes[1].patches]
    assert heights == pytest.approx(list(100 * (cases["replayed"] / cases["disturbed"] - 1)))
    check_inside(figure)
    with pytest.raises(InputError, match="'replayed_low'"):
        figure_planted(cases.drop(columns="replayed_low"))


def test_what_cannot_be_drawn_is_named(runs, events):
    with pytest.raises(InputError, match="no column 'sconds'"):
        figure_compare(runs, outcome="sconds")
    assert "no run to draw" in said_instead(figure_distribution(runs.assign(status="timeout")))
    assert "no noise event" in said_instead(figure_noise(summed(events).head(0)))
    with pytest.raises(InputError, match="no column 'p50_us'"):
        figure_noise(summed(events).drop(columns="p50_us"))


def test_drawing_leaves_the_style_of_the_process_alone(runs):
    before = dict(plt.rcParams)
    figure_compare(runs)
    assert dict(plt.rcParams) == before


def test_use_style_is_explicit():
    with plt.rc_context():
        use_style()
        assert plt.rcParams["font.size"] == 8


def test_roles_are_fixed_and_differ_in_more_than_colour():
    roles = roles_of(["x", "injected", "baseline", "y"])
    assert roles["injected"] is ROLES["injected"] and roles["baseline"] is ROLES["baseline"]
    assert len({role.colour for role in roles.values()}) == 4
    seconds = {(role.marker, str(role.dash), role.hatch) for role in ROLES.values()}
    assert len(seconds) == len(ROLES)


def observed_log():
    """Two events of 2 and 1 ms on CPU 0, one on CPU 1; each took as long as planned."""
    log = pd.DataFrame(
        {
            "ran_on": [0, 0, 1],
            "policy": "SCHED_FIFO",
            "replay_start_ns": [5e6, 20e6, 7e6],
            "replayed_ns": [2e6, 1e6, 5e5],
            "outcome": "injected",
        }
    )
    log = log.assign(
        taken_ns=log["replay_start_ns"],
        end_ns=log["replay_start_ns"] + log["replayed_ns"],
        took_ns=log["replayed_ns"],
    )
    gaps = pd.DataFrame(
        {
            "cpu": [0, 0, 0, 1],
            "start_ns": [4.99e6, 12e6, 19.99e6, 7e6],
            "duration_ns": [2.02e6, 3e6, 1.02e6, 5e5],
        }
    )
    return log, gaps


def test_the_figure_of_the_observed_loss_adds_up_what_met_an_injected_event_only():
    figure = figure_observed_loss(*observed_log())
    lost = {line.get_label(): line.get_ydata()[-1] for line in figure.axes[2].lines}
    assert (
        lost["planned"] == pytest.approx(3)
        and lost["injected"] == pytest.approx(3)
        and lost["observed"] == pytest.approx(3.04)
    )
    bars = [len(collection.get_paths()) for collection in figure.axes[0].collections]
    assert bars == [1, 2, 2, 2], "the gap that met no event is pale"
    assert "CPU 0" in figure.axes[0].get_title(loc="left")
    check_inside(figure)


def test_of_another_cpu_on_request_and_nothing_of_a_log_without_an_injected_event():
    log, gaps = observed_log()
    figure = figure_observed_loss(log, gaps, cpu=1, around_ms=(6.5, 8))
    assert figure.axes[3].get_xlim() == (6.5, 8) and "CPU 1" in figure.axes[0].get_title(loc="left")
    assert "no event was injected" in said_instead(
        figure_observed_loss(log.assign(outcome="not reached"), gaps)
    )


def test_the_excess_of_slow_runs_is_drawn_part_by_part():
    values = {
        "excess_ms": [12.0, 9.0],
        "kernel_ms": [5.0, 0.0],
        "hypervisor_ms": [6.0, 8.0],
        "unexplained_ms": [1.0, 1.0],
    }
    table = pd.DataFrame(
        {"case": [1, 2], "anomaly_seconds": [0.42, 0.41], **values}
        | {
            f"{name}_{end}": np.array(own) + shift
            for name, own in values.items()
            for end, shift in (("low", -1), ("high", 1))
        }
    )
    figure = figure_excess(table)
    heights = [bar.get_height() for bar in figure.axes[0].patches]
    assert heights == [height for own in values.values() for height in own]
    assert "case 2\n0.410 s" in [text.get_text() for text in words(figure)]
    check_inside(figure)
    assert "no slow run" in said_instead(figure_excess(table.iloc[:0]))
