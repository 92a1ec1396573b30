"""The account of a real campaign, and of one whose speed was not recorded."""

import numpy as np
import pytest

from nbhelpers.account.table import PARTS
from nbhelpers.answers import CANNOT_TELL
from nbhelpers.empty import why_empty
from nbhelpers.injection import Overheads
from nbhelpers.measurement import Campaign, Cell
from nbhelpers.places import shipped
from nbhelpers.reading import read_json
from nbhelpers.speed import SpeedProbe
from nbhelpers.studies.account_study import NOT_RECORDED, SAMPLED, AccountStudy
from nbhelpers.studies.answers_slow_runs import lost_time_answer
from nbhelpers.studies.baseline import Baseline
from nbhelpers.workloads import nbody

RUNS = 8
RECORDED = shipped() / "data" / "recorded"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Real runs of N-body without a trace."""
    data = tmp_path_factory.mktemp("account")
    folder = data / "baseline"
    cell = Cell(SAMPLED, nbody(4000, 20, threads=2), attachments=[SpeedProbe(folder / "speed")])
    Campaign(folder, [cell], runs=RUNS).run()
    return AccountStudy(Baseline(data, recorded_only=True))


def test_the_parts_of_real_runs_sum_to_their_regions(study):
    by_run = study.account.by_run
    regions = study.runs.set_index("run")["region_seconds"].reindex(by_run.index)
    assert len(by_run) >= RUNS - 1
    assert by_run[list(PARTS)].sum(axis=1).to_numpy() / 1e9 == pytest.approx(regions, rel=1e-6)
    assert (by_run["useful"] > 0).all() and (by_run["waiting"] >= 0).all()


def test_the_tables_of_the_page(study):
    assert study.sampled()["work"].tolist() == ["latency", "throughput", "memory"]
    bars = study.bars(2)
    assert bars["label"].str.startswith(("ordinary", "run ")).all() and len(bars) == 3
    assert bars[list(PARTS)].sum(axis=1).to_numpy() / 1e3 == pytest.approx(bars["seconds"])
    excess = study.excess(2)
    assert excess["share"].sum() == pytest.approx(1.0)
    assert (excess["low"] <= excess["high"]).all()
    corrected = study.corrected().set_index("time")
    ratio = corrected.loc["corrected", "cv"] / corrected.loc["raw", "cv"]
    assert corrected.loc["corrected / raw", "cv"] == pytest.approx(ratio)
    assert lost_time_answer(study, 2).n and len(study.sentences(2)) == 2


def test_without_a_trace_nothing_is_said_to_be_replayable(study):
    assert study.beyond_ordinary is None and study.gate() == {}
    assert not len(study.replayable(2))


def test_recorded_runs_are_replayed_as_far_as_the_recording_machine_could(monkeypatch, tmp_path):
    """Another machine's injector, or a user without its privilege, plans the same replays."""
    recorded = AccountStudy(Baseline(RECORDED / "10-trace-collection", recorded_only=True))
    limits = recorded.gate()
    assert limits == read_json(RECORDED / "10-trace-collection" / "replay-limits.json")
    assert limits["realtime"] and limits["shortest_ns"] != round(Overheads().shortest_us * 1e3)
    monkeypatch.setattr("nbhelpers.studies.account_study.may_realtime", lambda priority: False)
    assert recorded.gate() == limits
    measured = AccountStudy(Baseline(tmp_path))
    measured.__dict__["beyond_ordinary"] = recorded.beyond_ordinary.head(1)
    assert measured.gate() == read_json(tmp_path / "replay-limits.json")
    assert measured.gate()["realtime"] is False


def test_runs_whose_speed_was_not_recorded_say_so(tmp_path):
    Campaign(tmp_path / "baseline", [Cell("traced", nbody(400, 5, threads=1))], runs=3).run()
    study = AccountStudy(Baseline(tmp_path, recorded_only=True))
    tables = (study.sampled(), study.bars(2), study.excess(1), study.losses(), study.corrected())
    for table in (*tables, study.replayable(1)):
        assert why_empty(table) == NOT_RECORDED
    assert lost_time_answer(study, 2).answer == CANNOT_TELL and study.sentences(2) == []
    assert np.isnan(study.excess(1)["ms"].sum()) or not len(study.excess(1))
