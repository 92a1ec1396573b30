"""What the figures of variability draw, read back from the drawing."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribution import classify, explain
from nbhelpers.errors import InputError
from nbhelpers.report import figure_attribution, figure_quantile_shift, figure_stopping
from nbhelpers.report.appearance import ROLES
from nbhelpers.report.curves import figure_factor
from nbhelpers.report.distributions import figure_classes
from nbhelpers.statistics import compare, evaluate_rules, quantile_effect, running_statistic

from .test_figures import check_inside, points, said_instead


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def campaign():
    random = np.random.default_rng(0)
    slow = random.random(150) < 0.2
    seconds = random.normal(0.4, 0.006, 150) + 0.1 * slow
    return pd.DataFrame(
        {
            "seconds": seconds,
            "faults_per_s": (random.poisson(100, 150) + 250 * slow) / seconds,
            "status": "ok",
        }
    )


def test_classes_show_every_run_in_value_and_in_time():
    runs = campaign()
    classes = classify(runs["seconds"], "modes")
    figure = figure_classes(runs["seconds"], classes)
    assert np.allclose(np.sort(points(figure.axes[1])[:, 0]), np.sort(runs["seconds"]))
    drawn = points(figure.axes[2])
    assert np.allclose(drawn[np.argsort(drawn[:, 1]), 0], runs["seconds"])
    assert any(np.allclose(line.get_xdata(), classes.bounds[0]) for line in figure.axes[0].lines)
    check_inside(figure)
    with pytest.raises(InputError, match="149 values"):
        figure_classes(runs["seconds"].head(149), classes)


@pytest.mark.parametrize("how", ["median", "quartiles", "outliers", "warm-up"])
def test_any_rule_can_be_drawn(how):
    runs = campaign()
    check_inside(figure_classes(runs["seconds"], classify(runs["seconds"], how)))


def test_the_quantile_shift_is_the_comparisons():
    before = campaign()["seconds"].to_numpy()
    comparison = compare(before, before * 0.9)
    figure = figure_quantile_shift(comparison)
    line = next(
        line for line in figure.axes[1].lines if len(line.get_xdata()) == len(comparison.shift)
    )
    assert np.allclose(line.get_ydata(), comparison.shift["shift"])
    check_inside(figure)


def test_a_factor_has_its_lines():
    runs = campaign()
    explanation = explain(runs)
    figure = figure_factor(runs, "faults_per_s", slow=explanation.labels)
    assert len(points(figure.axes[0])) == 150
    median = next(line for line in figure.axes[0].lines if line.get_label() == "median")
    rise = np.diff(median.get_ydata()) / np.diff(median.get_xdata())
    assert rise == pytest.approx(
        quantile_effect(runs, "faults_per_s", quantiles=[0.5]).loc[0.5, "slope"]
    )
    check_inside(figure)


def test_an_attribution_where_higher_is_better():
    runs = campaign().assign(rate=lambda runs: 1 / runs["seconds"]).drop(columns="seconds")
    explanation = explain(runs, "rate", higher_is_better=True)
    figure = figure_attribution(explanation, runs)
    slow = next(part for part in figure.axes[0].collections if part.get_label().startswith("slow"))
    assert slow.get_offsets()[:, 0].max() < explanation.threshold
    assert tuple(slow.get_facecolor()[0][:3]) == plt.matplotlib.colors.to_rgb(ROLES["slow"].colour)
    check_inside(figure)


def test_stopping_rules_are_drawn_where_they_stop_hollow_where_they_did_not():
    values = np.random.default_rng(5).normal(1, 0.05, 60)
    stops, course = evaluate_rules(values), running_statistic(values, every=5)
    figure = figure_stopping(course, stops, "CV")
    upper, lower = figure.axes
    assert [text.get_text() for text in lower.get_yticklabels()] == stops["rule"].tolist()
    drawn = {line.get_label(): line for line in lower.lines}
    assert (
        drawn["the rule stops"].get_xdata().tolist() == stops.loc[stops["stopped"], "runs"].tolist()
    )
    assert (
        drawn["the record ended first"].get_markerfacecolor() == "white"
        and (drawn["the record ended first"].get_xdata() == 60).all()
    )
    assert np.allclose(upper.lines[0].get_ydata(), course["value"]) and upper.get_ylabel() == "CV"
    plt.close(figure)
    assert "nothing to draw" in said_instead(figure_stopping(course, stops.iloc[:0]))
