"""What the linked view says is what an independent computation of the same data says."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.explorers import explore_runs
from nbhelpers.outcomes import ordinary_runs
from nbhelpers.page import write_page


@pytest.fixture
def runs():
    random = np.random.default_rng(3)
    faults = random.poisson(50, 60) + 300 * random.permutation(np.arange(60) % 3 == 0)
    seconds = 0.1 + 1e-4 * faults + 1e-3 * random.standard_normal(60)
    return pd.DataFrame(
        {"run": range(60), "minor_faults": faults, "status": "ok", "seconds": seconds}
    )


@pytest.fixture
def linked(runs):
    """60 runs of which every third is slow: `backupd` had its CPU; time lines of runs 1 and 2."""
    seconds = runs.set_index("run")["seconds"]
    backupd = 1e3 * (seconds - seconds.min())
    owned = pd.DataFrame({("runnable", "backupd"): backupd, ("computing", "the program"): 100.0})
    had = pd.DataFrame({"run": [1, 1, 1, 2], "cpu": 0, "start_ns": [0, 40, 50, 0]})
    had = had.assign(end_ns=[40, 50, 90, 80], name=["work", "backupd", "work", "work"])
    had[["start_ns", "end_ns"]] *= 1_000_000
    runs = runs.assign(wall_seconds=runs["seconds"])
    return explore_runs(runs, owned, had.assign(is_program=had["name"] == "work"))


def test_a_run_is_shown_beside_the_ordinary_ones(linked, runs):
    spec = linked.chart.to_dict()
    tables = [pd.DataFrame(rows) for rows in spec["datasets"].values()]
    account = next(table for table in tables if "owner" in table).set_index(["run", "owner"])["ms"]
    seconds = runs.set_index("run")["seconds"]
    slowest = int(seconds.idxmax())
    usual = seconds[ordinary_runs(runs)["run"]].mean()
    longer = account[slowest, "CPU had by backupd"]
    assert longer == pytest.approx(1e3 * (seconds.max() - usual), abs=1e-3)
    assert (slowest, "computing") not in account
    lines = next(table for table in tables if "from_ms" in table)
    assert lines.query("run == 1")["who"].tolist() == ["the program", "backupd", "the program"]
    counters = next(table for table in tables if "counter" in table)
    assert counters.query("run == @slowest")["counter"].iloc[0] == "minor_faults"


@pytest.mark.long
def test_a_click_on_a_dot_shows_its_run(linked, runs, tmp_path, opened):
    """On a page whose policy forbids `eval` and everything from elsewhere."""
    path = write_page(tmp_path / "view.html", "runs", linked._repr_html_())
    page, said = opened.new_page(viewport={"width": 1280, "height": 800}), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    dots = page.locator("g.mark-symbol.role-mark path")
    chosen, line = page.locator(".linked-view select"), page.locator("[aria-label*='who: backupd']")
    dots.first.wait_for()
    assert dots.count() == len(runs)
    assert chosen.input_value() == str(runs["seconds"].idxmax()) and not line.count()
    dots.nth(1).click(force=True)
    line.wait_for()
    assert chosen.input_value() == "1"
    chosen.select_option("2")
    line.wait_for(state="detached")
    slider, bars = page.locator("input[type=range]"), page.locator("path[aria-label*='from_s']")
    bars.nth(1).click(force=True)
    from_s = float(bars.nth(1).get_attribute("aria-label").split("from_s: ")[1].split(" ")[0])
    assert float(slider.input_value()) == pytest.approx(from_s, abs=1e-3)
    svg, frame = page.locator(".linked-view svg"), page.locator(".linked-view")
    for width in (390, 800, 1920):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_timeout(200)
        share = svg.bounding_box()["width"] / frame.bounding_box()["width"]
        assert 0.9 < share <= 1
    assert not said
    page.close()
