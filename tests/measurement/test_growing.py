"""A campaign grows: cells come and go, programs are built anew, the harness is killed at any
moment, and nothing is lost.
"""

import itertools
import json
import os
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from nbhelpers.measurement import Attachment, Campaign, Cell, finished, recorded_runs
from nbhelpers.records import read_records
from nbhelpers.statistics import same_epochs
from nbhelpers.workloads import program, stream

pytestmark = pytest.mark.usefixtures("binaries", "nothing_left")


def letter(name: str, *words: str, **options) -> Cell:
    return Cell(name, program(["true", name, *words]), **options)


def quick(folder, cells, runs=2, **options) -> Campaign:
    return Campaign(folder, cells, runs, **options)


def rounds(table, *names: str) -> set[int]:
    """Rounds that hold all of these cells."""
    found = [set(table.loc[table["cell"] == name, "round"]) for name in names]
    return set.intersection(*found)


def everything(folder) -> list[dict]:
    """All runs ever recorded, those put aside too."""
    return [
        row
        for path in [folder / "runs.jsonl", *sorted(folder.glob("aside/[!.]*/runs.jsonl"))]
        for row in read_records(path)
    ]


def test_a_cell_that_appears_is_measured_beside_the_others_and_their_runs_are_kept(tmp_path):
    cells = [letter("a"), letter("b"), letter("new")]
    first = quick(tmp_path, cells[:2]).run()
    table = quick(tmp_path, cells).run()
    assert table.iloc[:4].reset_index(drop=True).equals(first.reset_index(drop=True))
    assert rounds(table, "a", "b", "new") == {2, 3} and rounds(table, "a", "b") == {0, 1, 2, 3}
    assert table["epoch"].tolist() == [0] * 4 + [1] * 6 and not list(tmp_path.glob("aside"))
    common = same_epochs(table[table.cell == "a"], table[table.cell == "new"])
    assert [len(one) for one in common] == [2, 2]
    (note,) = table.attrs["notes"]
    assert "'new' added" in note and len(quick(tmp_path, cells).run()) == 10


def test_only_what_it_is_compared_with_is_measured_again(tmp_path):
    others = [letter(name, compared_with=("base",)) for name in ("old", "new")]
    cells = [letter("base"), *others]
    quick(tmp_path, cells[:2]).run()
    table = quick(tmp_path, cells).run()
    assert Counter(table["cell"]) == {"base": 4, "old": 2, "new": 2}
    assert rounds(table, "base", "new") == {2, 3}
    more = quick(tmp_path, cells, runs=3).run()
    assert len(rounds(more, "base", "old")) == len(rounds(more, "base", "new")) == 3
    assert len(more) == 11


def test_a_cell_that_disappears_keeps_its_runs_and_comes_back_to_them(tmp_path):
    both = [letter("a"), letter("b")]
    quick(tmp_path, both).run()
    assert set(quick(tmp_path, both[:1]).run()["cell"]) == {"a"}
    assert set(recorded_runs(tmp_path)["cell"]) == {"a", "b"}
    table = quick(tmp_path, both[:1], runs=3).run()
    assert len(table) == 3 and "'b' no longer in the campaign" in table.attrs["notes"][0]
    table = quick(tmp_path, both, runs=3).run()
    assert len(rounds(table, "a", "b")) == 3
    assert Counter(table["cell"]) == {"a": 4, "b": 3}, "one round was missing"
    assert not list(tmp_path.glob("aside"))


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "program"
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)
    return path


def aside(folder) -> list[Path]:
    return sorted(folder.glob("aside/*"))


def _changed(cell: Cell, **fields) -> Cell:
    return replace(cell, workload=replace(cell.workload, **fields))


def _rebuilt(cell: Cell) -> Cell:
    Path(cell.workload.command[0]).write_text("#!/bin/sh\nexit 0 # rebuilt\n")
    return cell


CHANGES = {
    "another command": lambda cell: _changed(cell, command=(*cell.workload.command, "x")),
    "another environment": lambda cell: _changed(cell, env={"A": "1"}),
    "another set of CPUs": lambda cell: _changed(cell, cpus=(0,)),
    "another noise": lambda cell: replace(cell, noise="abc"),
    "another build of the program": _rebuilt,
}


@pytest.mark.parametrize("why", CHANGES)
def test_runs_of_something_else_are_put_aside_and_measured_anew(tmp_path, script, why):
    cell, other, folder = Cell("p", program(str(script))), letter("other"), tmp_path / "c"
    before = quick(folder, [cell, other]).run()
    table = quick(folder, [CHANGES[why](cell), other]).run()
    assert Counter(table["cell"]) == {"p": 2, "other": 4} and table["run"].is_unique
    assert rounds(table, "p", "other") == {2, 3}
    (home,) = aside(folder)
    gone = [row["run"] for row in read_records(home / "runs.jsonl")]
    assert gone == before.loc[before.cell == "p", "run"].tolist()
    (note,) = table.attrs["notes"]
    assert f"2 runs of 'p' were put aside (c/aside/{home.name})" in note and why in note
    assert json.loads((home / "campaign.json").read_text())["aside"] == {"p": why}


def test_what_an_attachment_does_is_part_of_what_the_runs_are_of(tmp_path):
    def accompanied(identity):
        attachment = Attachment()
        attachment.identity = identity
        return [attachment]

    def run(hog, **options):
        cells = [letter("a", attachments=accompanied(hog)), letter("b")]
        return quick(tmp_path, cells, **options).run()

    assert len(run("hog 1")) == 4
    table = run("hog 2")
    assert Counter(table["cell"]) == {"a": 2, "b": 4}
    assert "another disturbance" in table.attrs["notes"][0]
    table = run("hog 2", attachments=accompanied("all"))
    assert Counter(table["cell"]) == {"a": 2, "b": 2} and len(everything(tmp_path)) == 12


class Files(Attachment):
    """Keeps a file a run, as tracers do."""

    def __init__(self, folder):
        self.folder = folder

    def after(self, run):
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"run-{run['run']:06d}.txt").write_text(str(run["run"]))
        return {}


def test_series_and_files_of_runs_go_with_them(tmp_path):
    def campaign(times):
        cells = [Cell("s", stream(times, 100)), letter("a")]
        return quick(tmp_path, cells, attachments=[Files(tmp_path / "logs")])

    old, again = campaign(3).run(), campaign(4)
    table, gone = again.run(), set(old.loc[old.cell == "s", "run"])
    (home,) = aside(tmp_path)
    assert logs(home) == files_of(gone) and logs(tmp_path) == files_of(table["run"])
    assert set(again.series()["run"]) == set(table.loc[table.cell == "s", "run"])
    assert {one["run"] for one in read_records(home / "series.jsonl")} == gone


def logs(folder) -> set[str]:
    return {path.name for path in (folder / "logs").iterdir()}


def files_of(runs) -> set[str]:
    return {f"run-{run:06d}.txt" for run in runs}


class Crash(BaseException):
    """What the harness does not survive."""


def crash_at(monkeypatch, countdown: int) -> None:
    """The disk is written so many times; then comes a crash, before or after the next writing takes
    effect.
    """
    real, left = os.replace, [countdown]

    def replace_file(source, target, **options):
        left[0] -= 1
        if left[0] == -1:
            raise Crash
        real(source, target, **options)
        if left[0] == 0:
            raise Crash

    monkeypatch.setattr(os, "replace", replace_file)


@pytest.mark.parametrize("countdown", range(9))
def test_a_crash_in_the_midst_of_putting_aside_loses_nothing(tmp_path, monkeypatch, countdown):
    files = [Files(tmp_path / "logs")]
    old = quick(tmp_path, [letter("p"), letter("other")], attachments=files).run()
    changed = [letter("p", "x"), letter("other")]
    with monkeypatch.context() as patch:
        crash_at(patch, countdown)
        try:
            quick(tmp_path, changed, attachments=files).run()
        except Crash:
            pass
    assert {row["run"] for row in everything(tmp_path)} >= set(old["run"])
    table = quick(tmp_path, changed, attachments=files).run()
    assert Counter(table["cell"]) == {"p": 2, "other": 4} and len(rounds(table, "p", "other")) == 2
    assert min(rounds(table, "p")) >= 2, "not with runs of another time"
    assert Counter(row["run"] for row in everything(tmp_path)).most_common(1)[0][1] == 1
    assert sum("put aside" in note for note in table.attrs["notes"]) == 1
    (home,) = aside(tmp_path)
    assert logs(home) == files_of(row["run"] for row in read_records(home / "runs.jsonl"))


def _well_formed(folder, table, cells, runs):
    """No cell twice in a round; each comparison has its rounds, within epochs, interleaved."""
    assert not table.duplicated(["round", "cell"]).any() and table["run"].is_unique
    assert (table.groupby("round")["epoch"].nunique() == 1).all()
    in_one_go = table.sort_values("began_unix_s")["round"].is_monotonic_increasing
    assert in_one_go, "a round was measured in one go"
    for one, other in itertools.product(cells, cells):
        if one is other or (one.is_compared_with(other) and other.is_compared_with(one)):
            assert len(rounds(table, one.name, other.name)) >= runs, (one.name, other.name)
    keys = [(row["run"], row["began_unix_s"]) for row in everything(folder)]
    assert len(keys) == len(set(keys))


NAMES = "abcd"
STEPS = st.tuples(
    st.sets(st.sampled_from(NAMES), min_size=1),
    st.integers(1, 3),
    st.sampled_from(["", "x"]),
    st.one_of(st.none(), st.integers(0, 25)),
    st.booleans(),
)


@pytest.mark.long
@settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(STEPS, min_size=1, max_size=5))
@example(
    [({"b"}, 2, "x", 21, False), ({*"abcd"}, 1, "", 5, True), ({*"abcd"}, 3, "x", None, True)]
)  # crashed in the midst of putting aside
def test_whatever_is_added_removed_changed_and_interrupted(binaries, steps):
    """Random histories: cells come and go, more or fewer runs, another command, a crash at some
    writing to disk.
    """
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        folder, acknowledged = Path(place), set()
        for names, runs, version, crash, paired in steps:
            cells = [
                letter(
                    name,
                    version if name in "ab" else "",
                    compared_with=("a",) if paired and name != "a" and "a" in names else None,
                )
                for name in sorted(names)
            ]
            with patch.context() as crashing:
                if crash is not None:
                    crash_at(crashing, crash)
                try:
                    quick(folder, cells, runs, attachments=[Files(folder / "logs")]).run()
                except Crash:
                    pass
            recorded = {(row["run"], row["began_unix_s"]) for row in everything(folder)}
            assert acknowledged <= recorded
            acknowledged |= recorded
        table = finished(quick(folder, cells, runs, attachments=[Files(folder / "logs")]).run())
        assert acknowledged <= {(row["run"], row["began_unix_s"]) for row in everything(folder)}
        _well_formed(folder, table, cells, runs)
        assert files_of(recorded_runs(folder)["run"]) <= logs(folder)
