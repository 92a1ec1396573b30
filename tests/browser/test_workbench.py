"""The workbench in a real JupyterLab in a real browser, by clicks only."""

import re

import pytest

from .clicks import Page

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
STAGE = "02-workbench"
FOUND = "52-known-causes/returned-memory"
COMMAND = 'python3 -c "import random; bytearray(random.randrange(1, 9) * 10**6)"'
KEEPS = "glibc malloc that keeps its memory"
BY_HAND = "Memory touched before the timed region"
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
    page.click("save what was chosen")
    page.wait_for("Saved: ")


def test_from_a_command_to_a_mitigation_tried_and_undone_takes_at_most_8_clicks(page):
    """Whether or not the null finds page faults: a person may look at any metric."""
    took = from_a_command_to_a_mitigation(page, COMMAND)
    assert page.clicks == len(took) <= 8


def test_a_mitigation_by_hand_is_measured_before_and_after_by_clicks(page):
    """Nothing is done between the two sides: the comparison says when each was measured."""
    measures_and_reads_page_faults(page)
    page.choose("mitigation", BY_HAND)
    assert "by hand: measure without it" in page.wait_for(BY_HAND)
    page.click("measure without it")
    page.wait_for("Starting")
    page.wait_for("ended: 20 of at most 20 runs", 240)
    assert page.chosen("mitigation") == BY_HAND
    page.click("I have done it: measure with it")
    page.wait_for("Starting")
    text = page.wait_for("ended: 20 of at most 20 runs", 240)
    page.wait_for_picture(f"Before and after: {BY_HAND}")
    assert "Untreated runs: " in text and page.chosen("mitigation") == BY_HAND, text


def from_a_command_to_a_mitigation(page, command: str) -> list[float]:
    """Tried, and undone after each run; seconds that each click took."""
    page.clicks = 0
    took = measures_and_reads_page_faults(page, command)
    page.choose("mitigation", KEEPS)
    took.append(page.latency(KEEPS))
    assert "undone after each run" in page.wait_for("It was not tried")
    page.click("try it")
    took.append(page.latency("Starting", "of at most 40"))
    text = page.wait_for("ended: 40 of at most 40 runs", 240)
    assert "95 % of the treated runs lie" in text
    return took


def measures_and_reads_page_faults(page, command: str = COMMAND) -> list[float]:
    """From a command to the mitigations of a metric; seconds that each click took."""
    page.tab("1 Begin")
    took = [page.latency("command")]
    page.input("command", "input").fill(command)
    page.click("measure, or go on")
    took.append(page.latency("Starting", "of at most"))
    page.wait_for("ended: 30 of at most 30 runs", 180)
    page.tab("2 Runs")
    took.append(page.latency("30 runs."))
    page.choose("metric", "page_faults")
    took.append(page.latency("with page_faults;"))
    page.tab("3 Mitigation")
    took.append(page.latency("Risk"))
    return took


def pick(page, name: str) -> None:
    """Choose recorded runs from the list."""
    page.tab("1 Begin")
    typed = page.input("recorded", "input")
    typed.fill(f"recorded: {name}")
    typed.press("Enter")
    page.wait_for("95 % of the runs lie between")


def chooses_what_is_judged(page) -> int:
    count = int(re.search(r"(\d+) runs of 4 cells together", page.text())[1])
    assert f"(highest-density interval; n = {count})" in page.text()
    page.choose("outcome", "wall_seconds")
    page.wait_for_picture("Runs by wall_seconds, and tree")
    page.choose("outcome", "seconds")
    page.wait_for_picture("Runs by seconds, and tree")
    return count


def limits_the_runs(page, count: int) -> None:
    """By the lower end of a metric; the upper end, which nobody moved, loses no run."""
    page.choose("metric", "wall_seconds")
    page.wait_for("of seconds with wall_seconds")
    for _ in range(10):
        page.input("from", "input").press("ArrowUp")
    page.click("limit the runs to this range")
    text = page.wait_for("within the limits")
    left, low = re.search(rf"(\d+) runs of {count} within the limits \(([\d.]+) ≤", text).groups()
    assert 0 < int(left) < count and f"n = {left}" in text, (left, low)
    page.click("remove all limits")
    page.wait_until(lambda text: "within the limits" not in text and f"n = {count}" in text)


def cuts_and_reads_the_tree(page, count: int) -> str:
    """By a key; then the claim with its null and factors. The metric at the root."""
    before = CLAIM.search(page.claim())[3]
    page.input("cutoff", "input").press("ArrowUp")
    text = page.claim(lambda text: (claim := CLAIM.search(text)) and claim[3] != before)
    value = float(page.input("cutoff", "input").input_value())
    slow, runs, above = CLAIM.search(text).groups()
    assert int(runs) == count and 0 < int(slow) < count
    assert float(above) == pytest.approx(value, rel=1e-3)
    assert "p = 0.0" in text and "p_value" in text and "accuracy on unseen runs" in text
    return page.root()


def excludes_a_metric(page, metric: str) -> str:
    """And what the study varied: the tree is another one. The metric at its root."""
    page.input("exclude").select_option([metric, "dose"])
    text = page.claim(lambda text: page.nodes().count() and metric != page.root())
    assert "They are associated with" in text and "associated with dose" not in text
    return page.root()


def reads_the_factor(page, metric: str) -> None:
    page.nodes().first.click()
    text = page.wait_for("R² ")
    assert metric in text and re.search(r"R² [\d.]+ \([\d.]+ to [\d.]+, n = \d+ runs\)", text)
    assert page.shown.locator(f"img[alt='{metric} against seconds']").is_visible()


def reads_a_mitigation(page) -> None:
    page.tab("3 Mitigation")
    text = page.wait_for("Risk")
    assert "References" in text and "By hand" in text and "undone after each run" in text
    page.click("try it")
    assert "are only read" in page.wait_for("recorded runs are only read")
