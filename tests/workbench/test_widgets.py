"""The widgets, driven by their traits: each choice reaches the session, each step follows."""

import base64
import re

import pytest

from nbhelpers.workbench import Session, Workbench
from nbhelpers.workbench.session import Limit


@pytest.fixture
def bench():
    found = Workbench()
    found.widget()
    return found.settle()


def test_a_click_on_a_bar_puts_the_cutoff_at_its_edge(bench):
    bar = bench.bars.box.children[12]
    low = float(re.search(r"from ([\d.]+)", bar.tooltip)[1])
    bar.click()
    assert bench.session.cutoff == pytest.approx(low, rel=1e-3)
    assert "being computed" in bench.shown["claim"].value
    assert "p_value" not in bench.shown["factors"].value
    bench.settle()
    slow = int((bench.session.values > bench.session.cutoff).sum())
    assert f"Slow are {slow} of 130 runs" in bench.shown["claim"].value
    assert bench.explanation.p_value <= 0.01 and "p_value" in bench.shown["factors"].value


def test_the_slider_the_search_and_the_candidates_place_it_too(bench):
    bench.choices.cutoff.value = 0.03
    assert bench.session.cutoff == pytest.approx(0.03, abs=1e-4)
    bench.choices.buttons["search"].click()
    assert bench.session.cutoff == "search" and bench.settle().explanation.found
    median = next(one for one in bench.choices.candidates.children if "median" in one.description)
    median.click()
    assert bench.session.cutoff == pytest.approx(bench.session.candidates()["median"], abs=1e-4)
    bench.choices.buttons["find"].click()
    assert bench.settle().session.cutoff is None


def test_of_fast_clicks_the_last_wins(bench):
    for bar in bench.bars.box.children[8:11]:
        bar.click()
    bench.settle()
    assert bench.explanation.threshold == bench.session.cutoff
    assert f"{bench.session.cutoff:.4g}" in bench.shown["claim"].value


def test_a_click_on_a_node_explains_its_metric_with_references_and_r2(bench):
    node = bench.tree.widget.children[0].children[0]
    node.click()
    metric = node.description.split(" ≤ ")[0]
    assert bench.session.node == metric and bench.tabs.selected_index == 3
    text = bench.shown["factor"].value
    assert metric in text and "R² " in text and "n = 130 runs" in text
    assert base64.b64decode(re.search(r"base64,([^\"]+)", text)[1])[:4] == b"\x89PNG"
    known = bench.session.factor(metric)
    assert known.name in text and "doi:" in text


def test_limits_and_excluded_metrics_follow(bench):
    choices = bench.choices
    bench.tabs.selected_index = 1
    choices.metric.value = "page_faults"
    choices.range.value = (choices.range.min, 2000.0)
    choices.buttons["limit"].click()
    assert bench.session.limits == (
        Limit("page_faults", choices.range.min, choices.range.value[1]),
    )
    assert f"{len(bench.session.table)} runs of 130" in bench.shown["runs"].value
    choices.buttons["unlimit"].click()
    assert not bench.session.limits
    choices.excluded.value = ("page_faults_per_s",)
    assert bench.session.excluded == ("page_faults_per_s",)
    bench.settle()
    assert bench.tree.widget.children[0].children[0].description.split(" ≤ ")[0] != (
        "page_faults_per_s"
    )


def test_another_outcome_draws_another_distribution(bench):
    bench.choices.outcome.value = "user_s"
    assert bench.session.judged == "user_s" and "user_s" in bench.bars.scale.value


def test_a_recorded_mitigation_shows_what_it_does_and_what_it_changed(bench):
    bench.tabs.selected_index = 4
    bench.choices.mitigation.value = "mimalloc"
    known, tried = bench.shown["mitigation"].value, bench.shown["trial"].value
    assert "Risk" in known and "References" in known
    assert "helps" in tried and "untreated" not in known
    bench.choices.mitigation.value = "numa-balancing-off"
    assert "not tried" in bench.shown["trial"].value


def test_recorded_runs_are_not_measured(bench):
    bench.tabs.selected_index = 4
    bench.choices.buttons["try"].click()
    bench.settle()
    assert "only read" in bench.choices.progress.value


def test_without_a_model_nothing_is_asked(bench, monkeypatch):
    monkeypatch.delenv("NOISEBOOK_MODEL_URL", raising=False)
    bench.choices.buttons["ask"].click()
    assert "no language model is configured" in bench.choices.answer.value


def test_a_page_without_a_kernel_has_every_step(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    monkeypatch.setenv("NOISEBOOK_STATIC", "1")
    Workbench()._ipython_display_()
    text = shown[0].data
    assert text.count("<h3>") == 4 and "page_faults_per_s ≤" in text
    assert "<script" not in text and "http" not in re.sub(r"base64,[^\"]+", "", text)


def test_a_folder_without_runs_says_so(tmp_path):
    bench = Workbench(Session(str(tmp_path), "sleep 0.01"))
    bench.widget()
    assert "There are no runs yet" in bench.shown["runs"].value
