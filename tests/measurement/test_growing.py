"""A campaign grows: cells come and go, programs are built anew, the harness is killed at any
moment, and nothing is lost.
"""

import json
import os
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.measurement import Attachment, Campaign, Cell, finished, recorded_runs
from nbhelpers.measurement._plan import missing_runs
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
    first = quick(tmp_path, [letter("a"), letter("b")]).run()
    table = quick(tmp_path, [letter("a"), letter("b"), letter("new")]).run()
    assert table.iloc[:4].reset_index(drop=True).equals(first.reset_index(drop=True))
    assert rounds(table, "a", "b", "new") == {2, 3} and rounds(table, "a", "b") == {0, 1, 2, 3}
    assert table["epoch"].tolist() == [0] * 4 + [1] * 6 and not list(tmp_path.glob("aside"))
    assert [
        len(one) for one in same_epochs(table[table.cell == "a"], table[table.cell == "new"])
    ] == [2, 2]
    assert "'new' added" in table.attrs["notes"][0] and len(table.attrs["notes"]) == 1
    assert len(quick(tmp_path, [letter("a"), letter("b"), letter("new")]).run()) == 10


def test_only_what_it_is_compared_with_is_measured_again(tmp_path):
    cells = [
        letter("base"),
        letter("old", compared_with=("base",)),
        letter("new", compared_with=("base",)),
    ]
    quick(tmp_path, cells[:2]).run()
    table = quick(tmp_path, cells).run()
    assert Counter(table["cell"]) == {"base": 4, "old": 2, "new": 2} and rounds(
        table, "base", "new"
    ) == {2, 3}
    more = quick(tmp_path, cells, runs=3).run()
    assert (
        len(rounds(more, "base", "old")) == len(rounds(more, "base", "new")) == 3
        and len(more) == 11
    )


def test_a_cell_that_disappears_keeps_its_runs_and_comes_back_to_them(tmp_path):
    both = [letter("a"), letter("b")]
    quick(tmp_path, both).run()
    assert set(quick(tmp_path, both[:1]).run()["cell"]) == {"a"} and set(
        recorded_runs(tmp_path)["cell"]
    ) == {"a", "b"}
    table = quick(tmp_path, both[:1], runs=3).run()
    assert len(table) == 3 and "'b' no longer in the campaign" in table.attrs["notes"][0]
    table = quick(tmp_path, both, runs=3).run()
    assert len(rounds(table, "a", "b")) == 3 and Counter(table["cell"]) == {
        "a": 4,
        "b": 3,
    }, "one round was missing"
    assert not list(tmp_path.glob("aside"))


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "program"
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)
    return path


def aside(folder) -> list[Path]:
    return sorted(folder.glob("aside/*"))


@pytest.mark.parametrize(
    "change, why",
    [
        (lambda cell, path: replace(cell, workload=program([str(path), "x"])), "another command"),
        (
            lambda cell, path: replace(cell, workload=replace(cell.workload, env={"A": "1"})),
            "another environment",
        ),
        (
            lambda cell, path: replace(cell, workload=replace(cell.workload, cpus=(0,))),
            "another set of CPUs",
        ),
        (lambda cell, path: replace(cell, noise="abc"), "another noise"),
        (
            lambda cell, path: path.write_text("#!/bin/sh\nexit 0 # rebuilt\n") and cell,
            "another build of the program",
        ),
    ],
)
def test_runs_of_something_else_are_put_aside_and_measured_anew(tmp_path, script, change, why):
    cell, other, folder = Cell("p", program(str(script))), letter("other"), tmp_path / "c"
    before = quick(folder, [cell, other]).run()
    table = quick(folder, [change(cell, script), other]).run()
    assert (
        Counter(table["cell"]) == {"p": 2, "other": 4}
        and rounds(table, "p", "other") == {2, 3}
        and table["run"].is_unique
    )
    (home,) = aside(folder)
    assert [row["run"] for row in read_records(home / "runs.jsonl")] == before.loc[
        before.cell == "p", "run"
    ].tolist()
    (note,) = table.attrs["notes"]
    assert (
        why in note
        and f"c/aside/{home.name}" in note
        and "2 runs of 'p' were put aside" in note
        and "\n" not in note
    )
    assert json.loads((home / "campaign.json").read_text())["aside"] == {"p": why}


def test_what_an_attachment_does_is_part_of_what_the_runs_are_of(tmp_path):
    def accompanied(identity):
        attachment = Attachment()
        attachment.identity = identity
        return [attachment]

    quick(tmp_path, [letter("a", attachments=accompanied("hog 1")), letter("b")]).run()
    assert len(everything(tmp_path)) == 4
    table = quick(tmp_path, [letter("a", attachments=accompanied("hog 2")), letter("b")]).run()
    assert (
        Counter(table["cell"]) == {"a": 2, "b": 4}
        and "another disturbance" in table.attrs["notes"][0]
    )
    table = quick(
        tmp_path,
        [letter("a", attachments=accompanied("hog 2")), letter("b")],
        attachments=accompanied("all"),
    ).run()
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
    def cells(times):
        return [Cell("s", stream(times, 100)), letter("a")]

    files = [Files(tmp_path / "logs")]
    old = quick(tmp_path, cells(3), attachments=files).run()
    campaign = quick(tmp_path, cells(4), attachments=files)
    table, gone = campaign.run(), set(old.loc[old.cell == "s", "run"])
    (home,) = aside(tmp_path)
    assert {path.name for path in (home / "logs").iterdir()} == {
        f"run-{run:06d}.txt" for run in gone
    }
    assert {path.name for path in (tmp_path / "logs").iterdir()} == {
        f"run-{run:06d}.txt" for run in table["run"]
    }
    assert set(campaign.series()["run"]) == set(table.loc[table.cell == "s", "run"])
    assert {one["run"] for one in read_records(home / "series.jsonl")} == gone


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
    assert {path.name for path in (home / "logs").iterdir()} == {
        f"run-{row['run']:06d}.txt" for row in read_records(home / "runs.jsonl")
    }


def _well_formed(folder, table, cells, runs):
    """No cell twice in a round; each comparison has its rounds, within epochs, interleaved."""
    assert not table.duplicated(["round", "cell"]).any() and table["run"].is_unique
    assert (table.groupby("round")["epoch"].nunique() == 1).all()
    assert table.sort_values("began_unix_s")["round"].is_monotonic_increasing, (
        "a round was measured in one go"
    )
    for one in cells:
        for other in cells:
            if one is other or (one.is_compared_with(other) and other.is_compared_with(one)):
                assert len(rounds(table, one.name, other.name)) >= runs, (one.name, other.name)
    assert (
        Counter((row["run"], row["began_unix_s"]) for row in everything(folder)).most_common(1)[0][
            1
        ]
        == 1
    )


NAMES = "abcd"
STEPS = st.tuples(
    st.sets(st.sampled_from(NAMES), min_size=1),
    st.integers(1, 3),
    st.sampled_from(["", "x"]),
    st.one_of(st.none(), st.integers(0, 25)),
    st.booleans(),
)


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
        files = {f"run-{run:06d}.txt" for run in recorded_runs(folder)["run"]}
        assert files <= {path.name for path in (folder / "logs").iterdir()}


def test_the_plan_of_a_campaign_that_never_grew_is_every_cell_in_every_round():
    cells = [letter(name) for name in "abc"]
    order = lambda number: cells[number % 3 :] + cells[: number % 3]  # noqa: E731
    plan = missing_runs([], cells, 3, 0, order)
    assert [(number, cell.name) for number, cell in plan] == [
        (n, cell.name) for n in range(3) for cell in order(n)
    ]
    assert [
        (n, cell.name)
        for n, cell in missing_runs([(0, "a"), (0, "c"), (1, "a")], cells, 2, 0, order)
    ] == [(0, "b"), (1, "b"), (1, "c")]


def test_a_recorded_campaign_still_refuses(tmp_path):
    quick(tmp_path, [letter("a")]).run()
    with pytest.raises(InputError, match="never measured again") as caught:
        quick(tmp_path, [replace(letter("a"), noise="other")], recorded_only=True).run()
    assert "mv " not in str(caught.value) and not list(tmp_path.glob("aside"))
