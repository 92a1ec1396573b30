"""The widgets, driven by their traits: each choice reaches the session, each step follows."""

import base64
import re

import numpy as np
import pandas as pd
import pytest

from nbhelpers.statistics.intervals import shortest_interval
from nbhelpers.workbench import Session, Workbench
from nbhelpers.workbench.session import Limit
from nbhelpers.workbench.views import runs_html


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


def chosen(dropdown, part: str) -> None:
    """Choose the option whose text holds this."""
    dropdown.value = next(value for text, value in dropdown.options if part in text)


def test_a_recorded_campaign_is_picked_from_the_list(bench):
    bench.choices.excluded.value = ("page_faults_per_s",)
    chosen(bench.choices.campaign, "recorded: 52-known-causes/slow-path")
    assert bench.session == Session("data/recorded/52-known-causes/slow-path")
    assert bench.tabs.selected_index == 1 and "60 runs of 4 cells" in bench.shown["runs"].value
    assert "Opened data/recorded/52-known-causes/slow-path" in bench.shown["opened"].value
    cell = bench.session.cells()[0]
    bench.choices.cell.value = cell
    assert bench.session.cell == cell and "n = 15" in bench.shown["runs"].value
    bench.settle()


def test_a_wrong_path_leaves_what_was_open_and_says_what_to_do(bench, tmp_path):
    before = bench.session
    for path in ("", "/nowhere", str(tmp_path)):
        bench.choices.path.value = path
        bench.choices.buttons["open"].click()
        assert "what to do" in bench.shown["opened"].value and bench.session == before


def test_a_table_is_opened_by_its_path(bench, tmp_path):
    random = np.random.default_rng(3)
    slow = random.random(60) < 0.3
    faults, latency = 10 + 90 * slow, 5 + 3 * slow + random.normal(0, 0.1, 60)
    path = tmp_path / "a <b>.csv"
    pd.DataFrame({"latency <ms>": latency, "faults": faults}).to_csv(path, index=False)
    bench.choices.path.value = str(path)
    bench.choices.buttons["open"].click()
    bench.settle()
    assert bench.explanation.found and "faults" in bench.shown["claim"].value
    assert "latency &lt;ms&gt;" in bench.bars.scale.value
    assert "<ms>" not in "".join(one.value for one in bench.shown.values())


def test_most_runs_lie_in_the_shortest_interval(bench):
    low, high = shortest_interval(bench.session.values)
    words = f"95 % of the runs lie between {low:.4g} and {high:.4g} s"
    for shown in (bench.bars.scale.value, bench.shown["runs"].value or runs_html(bench.session)):
        assert words in shown and "n = 130" in shown
    bench.tabs.selected_index = 4
    bench.choices.mitigation.value = "mimalloc"
    assert bench.shown["trial"].value.count("95 % of the runs lie between") == 2


def drawn(bench) -> list:
    """The nodes that are shown."""
    widgets, nodes = [bench.tree.widget], []
    while widgets:
        one = widgets.pop()
        widgets += getattr(one, "children", ())
        nodes += [one] if "what is" in (getattr(one, "tooltip", "") or "") else []
    return nodes


def test_where_the_null_finds_nothing_the_tree_is_shown_on_a_click_only():
    bench = Workbench(Session("data/recorded/55-mitigate-and-compare/matrix-product"))
    bench.widget()
    found = bench.settle().explanation
    assert not found.found and not drawn(bench)
    why, anyway = bench.tree.widget.children
    chance = bench.session.chance(found)
    for number in (f"{found.accuracy:.2f}", f"{chance.high:.2f}", f"p = {found.p_value:.3f}"):
        assert number in why.value
    anyway.click()
    assert drawn(bench) and {node.style.button_color for node in drawn(bench)} == {"#dddddd"}
    assert why.value in [one.value for one in bench.tree.widget.children if hasattr(one, "value")]
    bench.tabs.selected_index = 3
    assert "there is no factor to explain" in bench.shown["factor"].value
    bench.tabs.selected_index = 4
    assert "no mitigation is suggested" in bench.shown["mitigation"].value
    metric = drawn(bench)[0].description.split(" ≤ ")[0]
    drawn(bench)[0].click()
    assert metric in bench.shown["factor"].value and "No claim" in bench.shown["claim"].value


def test_a_claimed_tree_has_colours_and_its_preview_has_none(bench):
    assert "#dddddd" not in {node.style.button_color for node in drawn(bench)}
    with bench._lock:  # the null cannot come meanwhile
        bench.choices.cutoff.value = 0.03
        assert {node.style.button_color for node in drawn(bench)} == {"#dddddd"}
        assert "claims nothing" in bench.tree.widget.children[0].value
    bench.settle()


def test_limits_that_leave_no_run_leave_nothing_of_the_runs_before(bench):
    bench._change(limits=(Limit("seconds", -2, -1),))
    bench.settle()
    assert "no run lies within the limits" in bench.shown["claim"].value
    assert not drawn(bench) and not bench.bars.box.children
    bench.choices.buttons["unlimit"].click()
    assert bench.settle().explanation.found and drawn(bench)


def test_a_command_that_is_none_is_refused_before_anything_starts(bench):
    bench.choices.command.value = "sh -c 'sleep"
    bench.choices.buttons["start"].click()
    assert "not a command line" in bench.choices.progress.value and bench.measuring is None


def test_a_folder_without_runs_says_so(tmp_path):
    bench = Workbench(Session(str(tmp_path), "sleep 0.01"))
    bench.widget()
    assert "There are no runs yet" in bench.shown["runs"].value
