"""Page 15: the account of a real campaign, and of one whose speed was not recorded."""

from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from nbhelpers.answers import CANNOT_TELL
from nbhelpers.empty import why_empty
from nbhelpers.injection import Overheads
from nbhelpers.measurement import Campaign, Cell
from nbhelpers.measurement.seal import sha256
from nbhelpers.outcomes import worst_first
from nbhelpers.places import shipped
from nbhelpers.reading import read_json
from nbhelpers.speed import SpeedProbe
from nbhelpers.stages import is_hidden
from nbhelpers.studies.baseline import NOT_RECORDED, SAMPLED, Baseline, replay_limits
from nbhelpers.studies.known import FILE, Known
from nbhelpers.workloads import nbody
from tests.cells import run_cells
from tests.shown import Shown

RUNS = 8
RECORDED = shipped() / "data" / "recorded"


@pytest.fixture(scope="module")
def stage10(tmp_path_factory):
    """Real runs of N-body without a trace."""
    data = tmp_path_factory.mktemp("account")
    folder = data / "baseline"
    cell = Cell(SAMPLED, nbody(4000, 20, threads=2), attachments=[SpeedProbe(folder / "speed")])
    Campaign(folder, [cell], runs=RUNS).run()
    return Baseline(data, recorded_only=True)


def page(stage10: Baseline) -> dict:
    with TemporaryDirectory() as results:
        shown = Shown(results=Path(results))
        known = {"stage10": stage10, "slowest": 2, "study": shown, "found": shown}
        found = run_cells("15-account", "account", **known)
        again = found["slow_runs"].write(shown.results / "again.json")
        assert Known.read(shown.results / FILE) == Known.read(again)
        assert Known.read(again).took == found["slow_runs"].took
    return found


@pytest.fixture(scope="module")
def shown(stage10):
    return page(stage10)


def test_the_parts_of_real_runs_sum_to_their_regions(stage10):
    owned = stage10.owned_ms
    regions = stage10.accounted.set_index("run")["region_seconds"]
    assert len(owned) == RUNS and (owned >= 0).all(axis=None)
    assert (owned.sum(axis=1) / 1e3).tolist() == pytest.approx(regions.tolist())
    assert ("waiting", "barrier") in owned and ("computing", "the program") in owned


def test_the_tables_of_the_page(stage10, shown):
    bars = shown["bars"]
    assert bars["label"].str.startswith(("ordinary", "run ")).all() and len(bars) == 3
    assert bars[[*shown["by_part"]]].sum(axis=1).to_numpy() / 1e3 == pytest.approx(bars["seconds"])
    owners = shown["owners"]
    assert (owners["low_ms"] <= owners["high_ms"]).all()
    assert shown["total_ms"] == pytest.approx(
        sum(shown["bars"]["seconds"][1:] * 500) - 1e3 * bars["seconds"].iloc[0]
    )
    spread = shown["spread"].set_index("time")
    ratio = spread.loc["without others", "cv"] / spread.loc["raw", "cv"]
    assert spread.loc["without others / raw", "cv"] == pytest.approx(ratio)
    assert shown["found"].answer.n == RUNS and len(shown["found"].sentences) == 2


@pytest.mark.parametrize("same", [True, False])
def test_where_no_owner_stands_clear_the_answer_says_who_had_most(stage10, same):
    """The front page's card said "of the time lost: : 0 % (0 to 0)"."""
    owned, lost = stage10._account
    owned = owned.copy()
    first, second = worst_first(stage10.accounted)["run"].head(2)
    owned[("taken", "python")], owned[("taken", "backup")] = 0.0, 0.0
    owned.loc[[first, second] if same else first, [("taken", "python")]] = 5e4
    owned.loc[second, [("taken", "backup")]] = 3e4
    shared = copy(stage10)
    slow = stage10.accounted["run"].isin([first, second])
    longer = stage10.accounted["seconds"].where(~slow, stage10.accounted["seconds"] + 0.05)
    shared.__dict__["accounted"] = stage10.accounted.assign(seconds=longer)
    shared.__dict__["_account"] = owned, lost
    answer = page(shared)["found"].answer
    assert answer.answer == ("python" if same else CANNOT_TELL)
    assert answer.low <= answer.value <= answer.high and answer.value > 50
    assert answer.quantity.startswith("of the time lost: python")
    both = "ms to python and" in answer.sentence and "ms to backup: none" in answer.sentence
    assert both is not same and ("not clear" in answer.quantity) is not same


def test_without_a_trace_nothing_is_said_to_be_replayable(stage10, shown):
    assert not len(stage10.losses) and not len(shown["table"])


def test_runs_of_which_nothing_was_recorded_say_so(tmp_path):
    Campaign(tmp_path / "baseline", [Cell("traced", nbody(400, 5, threads=1))], runs=3).run()
    stage10 = Baseline(tmp_path, recorded_only=True)
    assert {why_empty(table) for table in (stage10.speed, stage10.losses)} == {NOT_RECORDED}
    found = page(stage10)
    assert found["found"].answer.answer == CANNOT_TELL and not found["found"].sentences
    tables = (found[name] for name in ("owners", "losses", "table", "spread"))
    assert not any(len(table) for table in tables)


def test_recorded_runs_are_replayed_as_far_as_the_recording_machine_could(monkeypatch):
    """Another machine's injector, or a user without its privilege, plans the same replays."""
    limits = replay_limits(RECORDED / "10-trace-collection")
    assert limits == read_json(RECORDED / "10-trace-collection" / "replay-limits.json")
    assert limits["realtime"] and limits["shortest_ns"] != round(Overheads().shortest_us * 1e3)
    monkeypatch.setattr("nbhelpers.studies.baseline.may_realtime", lambda priority: False)
    assert replay_limits(RECORDED / "10-trace-collection") == limits


def digests(data: Path) -> dict[str, str]:
    """What a later stage rests on: caches are not in it."""
    paths = {path.relative_to(data): path for path in data.rglob("*") if path.is_file()}
    return {str(name): sha256(path) for name, path in paths.items() if not is_hidden(name)}


@pytest.mark.long
def test_a_later_stage_writes_nothing_into_the_data_of_stage_10(monkeypatch, tmp_path):
    """`noisebook verify` called a study damaged, since stage 15 wrote there."""
    data = tmp_path / "10-trace-collection"
    Campaign(data / "baseline", [Cell("traced", nbody(400, 5, threads=1))], runs=3).run()
    limits = replay_limits(data, measure=True)
    before = digests(data)
    monkeypatch.setattr("nbhelpers.studies.baseline.may_realtime", lambda priority: False)
    page(Baseline(data))
    assert replay_limits(data) == limits == read_json(data / "replay-limits.json")
    (data / ".events").mkdir()
    (data / ".events" / "run-000000.parquet").write_text("a cache may be written by any stage")
    assert digests(data) == before
    (data / "replay-limits.json").unlink()
    without = digests(data)
    page(Baseline(data))
    assert replay_limits(data)["realtime"] is False
    assert digests(data) == without != before
