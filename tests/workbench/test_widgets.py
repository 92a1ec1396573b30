"""The widgets, driven by their traits: each choice reaches the session, each step follows."""

import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nbhelpers.statistics.intervals import shortest_interval
from nbhelpers.workbench import Session, Workbench
from nbhelpers.workbench.widgets import MITIGATION, RUNS


@pytest.fixture
def bench():
    return opened()


def opened(*session):
    found = Workbench(*session)
    found.widget()
    return found.settle()


def shown(bench, step: int) -> str:
    """What a step shows when it is seen."""
    bench.tabs.selected_index = step
    return bench.shown[step].value


def click(bench, text: str) -> None:
    """The button with this text, in any step."""
    boxes = [bench.tabs]
    for box in boxes:
        boxes.extend(getattr(box, "children", ()))
    next(one for one in boxes if getattr(one, "description", "") == text).click()


def offered(bench) -> list[str]:
    """The metrics of the tree that can be looked at."""
    texts = [one.description for one in bench.nodes.children]
    return [text.removeprefix("what is ").removesuffix("?") for text in texts]


def test_a_person_puts_the_cutoff_and_the_claim_follows(bench):
    median = float(np.median(bench.session.values))
    bench.cutoff.value = median
    assert bench.session.cutoff == median
    text = shown(bench, RUNS)
    assert "being computed" in text and "opacity:.45" in text
    assert "p_value" not in text
    text = shown(bench.settle(), RUNS)
    slow = int((bench.session.values > median).sum())
    assert f"Slow are {slow} of 130 runs" in text and "opacity" not in text
    assert bench.explanation.p_value <= 0.01 and "p_value" in text


@pytest.mark.long
def test_of_fast_changes_the_last_wins(bench):
    for share in (0.5, 0.7, 0.4):
        bench.cutoff.value = float(np.quantile(bench.session.values, share))
    bench.settle()
    assert bench.explanation.threshold == bench.session.cutoff == bench.cutoff.value
    assert f"{bench.session.cutoff:.4g}" in shown(bench, RUNS)
    click(bench, "find it in the distribution")
    assert bench.settle().session.cutoff is None


@pytest.mark.long
def test_limits_that_leave_no_run_leave_nothing_of_the_runs_before(bench):
    bench.metric.value = "page_faults"
    low, high = bench.least.value, float(bench.session.table["page_faults"].median())
    assert low <= bench.session.table["page_faults"].min()
    bench.most.value = high
    click(bench, "limit the runs to this range")
    assert bench.session.limits == {"page_faults": [low, high]}
    assert f"{len(bench.session.table)} runs of 130" in shown(bench, RUNS)
    bench._change(limits={"seconds": [-2, -1]})
    assert "no run lies within the limits" in shown(bench.settle(), RUNS)
    assert not offered(bench) and "<img" not in bench.shown[RUNS].value
    assert not bench.metric.options
    click(bench, "remove all limits")
    bench.excluded.value = ("page_faults_per_s",)
    shown(bench.settle(), RUNS)
    assert bench.explanation.found and offered(bench)
    assert "page_faults_per_s" not in offered(bench)


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "button", "words"),
    [("", "try it", "only read"), ("sh -c 'sleep", "measure, or go on", "split into words")],
)
def test_what_cannot_be_measured_is_refused_before_anything_starts(bench, command, button, words):
    bench.command.value = command
    click(bench, button)
    assert words in bench.said.value and bench.measuring is None


@pytest.mark.long
def test_a_recorded_mitigation_shows_what_it_does_and_what_it_changed(bench):
    bench.session = replace(bench.session, node="page_faults_per_s")
    shown(bench, MITIGATION)
    bench.mitigation.value = "mimalloc"
    text = bench.shown[MITIGATION].value
    assert "Risk" in text and "References" in text and "helps" in text
    assert text.count("95 % of the") == text.count("Modes of their") == 2
    bench.mitigation.value = "numa-balancing-off"
    assert "not tried" in bench.shown[MITIGATION].value


@pytest.mark.long
def test_a_recorded_campaign_is_picked_from_the_list(bench):
    bench.excluded.value = ("page_faults_per_s",)
    bench.campaign.value = "recorded: 52-known-causes/slow-path"
    assert bench.session == Session("data/recorded/52-known-causes/slow-path")
    low, high = shortest_interval(bench.session.values)
    text = bench.shown[RUNS].value
    assert bench.tabs.selected_index == RUNS and "60 runs of 4 cells" in text
    assert f"95 % of the runs lie between {low:.4g} and {high:.4g} s" in text and "n = 60" in text
    assert "Opened data/recorded/52-known-causes/slow-path" in bench.said.value
    cell = bench.session.cells()[0]
    bench.cell.value = cell
    assert bench.session.cell == cell and "n = 15" in bench.shown[RUNS].value
    bench.settle()


def test_a_wrong_path_leaves_what_was_open_and_says_what_to_do(bench, tmp_path):
    before = bench.session
    for path in ("/nowhere", str(tmp_path)):
        bench.campaign.value = path
        assert "what to do" in bench.said.value and bench.session == before


@pytest.mark.long
def test_a_table_is_opened_by_its_path(bench, tmp_path):
    random = np.random.default_rng(3)
    slow = random.random(60) < 0.3
    faults, latency = 10 + 90 * slow, 5 + 3 * slow + random.normal(0, 0.1, 60)
    path = tmp_path / "a <b>.csv"
    pd.DataFrame({"latency <ms>": latency, "faults": faults}).to_csv(path, index=False)
    bench.campaign.value = str(path)
    bench.settle()
    texts = [shown(bench, step) for step in (RUNS, MITIGATION)]
    assert bench.explanation.found and "faults" in texts[0]
    assert "<ms>" not in "".join([*texts, bench.said.value])


@pytest.mark.long
def test_where_the_null_finds_nothing_its_numbers_stand_there_and_no_tree():
    bench = opened(Session("data/recorded/55-mitigate-and-compare/matrix-product"))
    text, found = shown(bench, RUNS), bench.explanation
    assert not found.found and not offered(bench) and "No claim" in text
    assert f"{found.accuracy:.2f}" in text and f"p = {found.p_value:.3f}" in text
    assert "there is no factor to explain" in text
    assert "no mitigation is suggested" in shown(bench, MITIGATION)
    first = bench.session.explanation(permutations=0).factors["factor"].iloc[0]
    bench.metric.value = first  # which the preview showed
    assert f"{first} against" in shown(bench, RUNS)
    bench._change()
    assert f"{first} against" in shown(bench.settle(), RUNS)


def test_a_mitigation_that_is_chosen_while_the_page_is_refilled_stays(bench, monkeypatch):
    """As JupyterLab hands it over: from a thread of its own, in the midst of the refilling."""
    bench.session = replace(bench.session, node="page_faults_per_s")
    shown(bench, MITIGATION)
    suggested = Session.suggested

    def while_it_is_refilled(session, metric):
        name = suggested(session, metric)
        monkeypatch.undo()
        person = threading.Thread(target=setattr, args=(bench.mitigation, "value", "mimalloc"))
        person.start()
        person.join(1)
        return name

    monkeypatch.setattr(Session, "suggested", while_it_is_refilled)
    assert bench.session.mitigation != "mimalloc"
    bench._draw()
    assert bench.settle().session.mitigation == bench.mitigation.value == "mimalloc"
    assert "mimalloc</h4>" in bench.shown[MITIGATION].value


def test_a_mitigation_of_a_metric_that_the_preview_showed_stays_without_a_claim():
    bench = Workbench(Session("data/recorded/55-mitigate-and-compare/matrix-product"))
    bench.widget()
    bench.tabs.selected_index = MITIGATION
    name = next(one for _, one in bench.mitigation.options if one != bench.mitigation.value)
    bench.mitigation.value = name
    bench.settle()
    assert not bench.explanation.found
    assert bench.session.mitigation == bench.mitigation.value == name
    assert bench.session.node == bench.metric.value
