"""Recorded runs: which are found, and what a path may be."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.measurement import finished, recorded_runs
from nbhelpers.places import shipped
from nbhelpers.workbench import Session
from nbhelpers.workbench.elsewhere import explain_file
from nbhelpers.workbench.recorded import found_campaigns

RECORDED = shipped() / "data/recorded"
CAMPAIGN = RECORDED / "52-known-causes/slow-path"


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A current folder, and results, of this test's own."""
    monkeypatch.setattr("nbhelpers.workbench.recorded.results", lambda: tmp_path / "build")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def copied(folder):
    """The records of a campaign."""
    folder.mkdir(parents=True)
    shutil.copy(CAMPAIGN / "runs.jsonl.gz", folder)


def a_table(path, rows=40):
    """Latencies, of which some are long and have many faults."""
    random = np.random.default_rng(2)
    slow = random.random(rows) < 0.3
    latency = 5 + 3 * slow + random.normal(0, 0.1, rows)
    table = pd.DataFrame(
        {"host": "a", "latency": latency, "faults": 10 + 90 * slow, "noise": random.random(rows)}
    )
    table.to_parquet(path) if path.suffix == ".parquet" else table.to_csv(path, index=False)
    return table


def test_every_recorded_campaign_is_found_and_a_session_once(elsewhere):
    found = {Path(path): words for path, words in found_campaigns().items()}
    files = [path for path in RECORDED.rglob("runs.jsonl*") if "aside" not in path.parts]
    sessions = {path.parent.parent for path in files if path.parent.name == "first"}
    alone = {path.parent for path in files if path.parent.parent not in sessions}
    assert set(found) == sessions | alone
    autopilot = found[RECORDED / "55-mitigate-and-compare/autopilot"]
    assert autopilot == "recorded: 55-mitigate-and-compare/autopilot"


def test_results_are_looked_through_and_what_was_put_aside_is_not(elsewhere):
    seen = ("build/quick/data/10-x/base", "build/workbench/sleep-1/first")
    for place in (*seen, "build/workbench/sleep-1/trial-x", "build/quick/data/10-x/base/aside/1"):
        copied(elsewhere / place)
    names = [name for name in found_campaigns().values() if not name.startswith("recorded")]
    assert names == ["workbench: sleep-1", "quick: 10-x/base"]


@pytest.mark.parametrize("name", ["runs.csv", "runs.csv.gz", "runs.parquet"])
def test_a_table_is_explained_as_its_rows_are(elsewhere, name):
    table = a_table(elsewhere / "here" / name)
    session = Session.of_recorded(name)
    pd.testing.assert_frame_equal(session.measured(), table, check_exact=False)
    assert session.judged == "latency" and session.outcomes() == ["latency", "faults", "noise"]
    found = session.explanation()
    assert found.found and found.factors["factor"].iloc[0] == "faults"
    assert session.tried().empty and session.cells() == []
    a_table(elsewhere / "here" / name, rows=44)
    os.utime(elsewhere / "here" / name, ns=(1, 1))
    assert len(session.measured()) == 44, "it is read again"


def test_a_campaigns_folder_is_named_from_here_or_from_the_checkout(elsewhere):
    expected = finished(recorded_runs(CAMPAIGN))
    copied(elsewhere / "here/mine")
    for text in ("mine", str(CAMPAIGN), f" {CAMPAIGN.relative_to(shipped())} "):
        assert Session.of_recorded(text).measured()["run"].tolist() == expected["run"].tolist()
    session = Session.of_recorded(str(CAMPAIGN))
    assert session.folder == CAMPAIGN.relative_to(shipped()).as_posix()


def test_what_holds_no_runs_is_refused_with_a_way_out(elsewhere):
    here = elsewhere / "here"
    (here / "empty").mkdir()
    expected = {
        "broken.parquet": ("no table", "not a readable table"),
        "nothing.csv": ("", "not a readable table"),
        "words.csv": ("name,place\na,b\nc,d\n", "no column of numbers"),
        "constant.csv": ("seconds\n1\n1\n", "no column of numbers"),
        "notes.txt": ("text", "recorded here"),
    }
    for name, (content, _) in expected.items():
        (here / name).write_text(content)
    missing = dict.fromkeys(("", "missing.csv"), ("", "no such folder or file"))
    for text, (_, words) in (expected | missing | {"empty": ("", "recorded here")}).items():
        with pytest.raises(InputError, match=words) as raised:
            Session.of_recorded(text)
        assert raised.value.fix or raised.value.where


def test_a_file_of_another_tool_is_explained(elsewhere):
    table = a_table(elsewhere / "here/runs.csv").rename(columns={"latency": "real_time"})
    runs = table.assign(name="sort", cpu_time=1.0).drop(columns="host").to_dict("records")
    (elsewhere / "bench.json").write_text(json.dumps({"context": {}, "benchmarks": runs}))
    said, factors = explain_file(elsewhere / "bench.json")
    assert said[0].startswith("sort: ") and said[0].endswith("n = 40.")
    assert factors["factor"].iloc[0] == "faults" and set(factors.index) == {"sort"}
    text = shipped() / "tests/tracing/data/contended.trace.txt.gz"
    said, noise = explain_file(text)
    assert said[0].startswith("cc1 had most CPU time") and "2 CPUs" in said[0]
    assert ("thread", "detour") in noise.index and 0 < noise["cpu_share"].sum() < 1
    assert explain_file("")[0] == []
    table.drop(columns="status", errors="ignore").to_csv(elsewhere / "bare.csv", index=False)
    assert explain_file(elsewhere / "bare.csv", "real_time")[0][0].endswith("n = 40.")
