"""The workbench in a real JupyterLab in a real browser, by clicks only."""

import re
from pathlib import Path

import nbformat
import pytest

from ..workbench.test_saved import results_of
from .clicks import Page

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
STAGE = "02-workbench"
FOUND = "52-known-causes/returned-memory"
TRIED = "55-mitigate-and-compare/autopilot"
NOTHING = "52-known-causes/memory-bandwidth"
COMMAND = "sh -c 'sleep 0.0$(($$ % 5 + 1))'"
CLAIM = re.compile(r"Slow are (\d+) of (\d+) runs above (\d+\.?\d*)")


@pytest.fixture(scope="module", autouse=True)
def state(tmp_path_factory):
    """A measuring lock of these tests' own, before the server starts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOISEBOOK_STATE", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="module")
def page(state, opened, server):
    found = Page(opened, server, STAGE)
    ran = found.run_all()
    assert not ran["errors"] and ran["run"] == ran["cells"]
    yield found
    found.close()


@pytest.fixture(autouse=True)
def without_errors(page):
    """Neither a traceback nor a message in the browser's console."""
    yield
    assert not page.errors()


def test_recorded_runs_are_gone_through_by_clicks(page, server):
    pick(page, FOUND)
    count = chooses_what_is_judged(page)
    limits_the_runs(page, count)
    first = cuts_and_reads_the_tree(page, count)
    metric = excludes_a_metric(page, first)
    reads_the_factor(page, metric)
    reads_a_mitigation(page)
    saves(page, server[2])


def pick(page, name: str) -> None:
    """Choose recorded runs from the list."""
    page.tab("1 Begin")
    page.choose("recorded", f"recorded: {name}")
    page.wait_for("95 % of the runs lie between")
    page.picture("runs")


def chooses_what_is_judged(page) -> int:
    count = int(re.search(r"(\d+) runs of 4 cells together", page.text())[1])
    assert f"(highest-density interval; n = {count})" in page.text()
    page.choose("outcome", "wall_seconds")
    page.wait_for_picture("Distribution of wall_seconds")
    page.choose("outcome", "seconds")
    page.wait_for_picture("Distribution of seconds")
    return count


def limits_the_runs(page, count: int) -> None:
    """By the lower end of a metric; the upper end, which nobody moved, loses no run."""
    page.choose("metric", "wall_seconds")
    page.wait_for("of seconds with wall_seconds")
    handle = page.shown.locator(".noUi-handle").first
    for _ in range(10):
        handle.press("ArrowRight")
    page.click("limit the runs to this range")
    text = page.wait_for("within the limits")
    left, low = re.search(rf"(\d+) runs of {count} within the limits \(([\d.]+) ≤", text).groups()
    assert 0 < int(left) < count and f"n = {left}" in text, (left, low)
    page.picture("limited")
    page.click("remove all limits")
    page.wait_until(lambda text: "within the limits" not in text and f"n = {count}" in text)


def cuts_and_reads_the_tree(page, count: int) -> str:
    """The slider moves; then the claim with its null and factors. The metric at the root."""
    page.tab("3 Cutoff and tree")
    before = CLAIM.search(page.claim())[3]
    page.picture("cutoff-found")
    page.shown.locator(".noUi-handle").first.press("PageUp")
    text = page.claim(lambda text: (claim := CLAIM.search(text)) and claim[3] != before)
    value = float(page.shown.locator(".widget-readout").first.inner_text())
    slow, runs, above = CLAIM.search(text).groups()
    assert int(runs) == count and 0 < int(slow) < count
    assert float(above) == pytest.approx(value, rel=1e-3)
    assert "p = 0.0" in text and "p_value" in text and "accuracy on unseen runs" in text
    page.picture("cutoff-clicked")
    return page.root()


def excludes_a_metric(page, metric: str) -> str:
    """And what the study varied: the tree is another one. The metric at its root."""
    page.input("exclude").select_option([metric, "dose"])
    text = page.claim(lambda text: page.nodes().count() and metric != page.root())
    assert "They are associated with" in text and "associated with dose" not in text
    page.picture("excluded")
    return page.root()


def reads_the_factor(page, metric: str) -> None:
    page.nodes().first.click()
    text = page.wait_for("R² ")
    assert metric in text and re.search(r"R² [\d.]+ \([\d.]+ to [\d.]+, n = \d+ runs\)", text)
    assert page.shown.locator(f"img[alt='{metric} against seconds']").is_visible()
    page.picture("factor")


def reads_a_mitigation(page) -> None:
    page.tab("5 Mitigation")
    text = page.wait_for("Risk")
    assert "References" in text and "By hand" in text and "undone after each run" in text
    page.picture("mitigation")
    page.click("try it")
    assert "are only read" in page.wait_for("recorded runs are only read")


def saves(page, folder: Path) -> None:
    page.tab("6 Save")
    page.click("save as an executed notebook")
    text = page.wait_for("Saved and run", 180)
    page.picture("saved")
    path = folder / "build/lab" / re.search(r"Saved and run: (\S+\.ipynb)\.", text)[1]
    assert any("Explanation(" in one for one in results_of(nbformat.read(path, as_version=4)))


def test_what_was_tried_is_seen_before_and_after(page):
    pick(page, TRIED)
    page.tab("5 Mitigation")
    page.choose("mitigation", "Allocator mimalloc")
    text = page.wait_for("helps")
    assert text.count("highest-density interval") == 2 and "mean_ratio" in text
    page.wait_for_picture("Before and after: Allocator mimalloc")
    page.picture("before-and-after")


def test_where_the_null_finds_nothing_no_tree_is_shown(page):
    pick(page, NOTHING)
    page.tab("3 Cutoff and tree")
    text = page.wait_for("Nothing among")
    numbers = r"p = 0\.\d+, accuracy on unseen runs 0\.\d\d, 95 % interval"
    assert "No claim" in text and re.search(numbers, text) and not page.nodes().count()
    page.picture("nothing")
    page.tab("5 Mitigation")
    assert "no mitigation is suggested" in page.wait_for("The null finds no factor")


def test_a_wrong_path_says_what_to_do_and_a_table_opens(page, server):
    page.tab("1 Begin")
    page.type("or a path", "nowhere.csv")
    page.click("open this path")
    text = page.wait_for("there is no such folder or file")
    assert "what to do" in text and "Traceback" not in text
    page.picture("wrong-path")
    table = server[2] / "build" / "some runs.csv"
    table.write_text("latency,faults\n" + "".join(f"{5 + n % 3},{n % 7}\n" for n in range(40)))
    page.type("or a path", str(table))
    page.click("open this path")
    assert "n = 40" in page.wait_for("40 runs")
    page.wait_for_picture("Distribution of latency")
    page.picture("table")


def test_a_command_is_measured_stopped_and_gone_on_with(page):
    page.tab("1 Begin")
    page.type("command", COMMAND)
    page.type("runs", "400")
    page.input("metrics").select_option("software")
    page.click("measure, or go on")
    page.wait_until(lambda text: re.search(r"measuring: \d+ of at most 400 runs", text))
    page.picture("measuring")
    page.click("stop")
    text = page.wait_for("ended: ")
    done = int(re.search(r"ended: (\d+) of at most 400 runs; stopped", text)[1])
    assert 1 <= done < 400
    page.type("runs", str(done + 10))
    page.click("measure, or go on")
    page.wait_for(f"ended: {done + 10} of at most {done + 10} runs")
    page.picture("measured")
    page.tab("2 Runs")
    assert f"n = {done + 10}" in page.wait_for(f"{done + 10} runs")
    page.picture("measured-runs")
