"""Campaigns: the order, the store, and going on after anything."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError, RunError
from nbhelpers.machine import run_groups
from nbhelpers.measurement import Attachment, Campaign, Cell, calibrate, finished
from nbhelpers.measurement.table import runs_table
from nbhelpers.records import read_records
from nbhelpers.workloads import nbody, program

from ..processes import run_python

pytestmark = pytest.mark.usefixtures("binaries", "nothing_left")
REPOSITORY = Path(__file__).resolve().parents[2]
LETTERS = [Cell(letter, program(["true", letter])) for letter in "abc"]


class Closes(Attachment):
    def __init__(self, columns=None):
        self.closed, self.columns = 0, columns or {}

    def after(self, run):
        return dict(self.columns)

    def close(self):
        self.closed += 1


class FailsToClose(Closes):
    def close(self):
        super().close()
        raise RuntimeError("planted")


def quick(folder, cells=LETTERS, runs=4, **options) -> Campaign:
    return Campaign(folder, cells, runs, **options)


def pairs(table: pd.DataFrame) -> list[tuple[int, str]]:
    return list(zip(table["round"], table["cell"]))


def test_every_round_has_every_cell_in_another_order(tmp_path):
    campaign = quick(tmp_path / "c", runs=20)
    table = campaign.run()
    assert list(table["run"]) == list(range(60)) and (table.status == "ok").all()
    assert table["began_unix_s"].is_monotonic_increasing
    blocks = [tuple(block["cell"]) for _, block in table.groupby("round", sort=False)]
    assert all(sorted(block) == ["a", "b", "c"] for block in blocks) and len(set(blocks)) >= 4
    assert names_in_order(campaign) == blocks != names_in_order(quick(None, seed=2))


def names_in_order(campaign: Campaign) -> list[tuple]:
    return [tuple(cell.name for cell in campaign.order(number)) for number in range(20)]


def test_a_second_call_measures_nothing_and_more_runs_are_added(tmp_path):
    first = quick(tmp_path, runs=2).run()
    again = quick(tmp_path, runs=2).run()
    pd.testing.assert_frame_equal(first, again)
    more = quick(tmp_path, runs=3).run()
    assert len(more) == 9 and list(more["run"]) == list(range(9))
    pd.testing.assert_frame_equal(more.iloc[:6], first)
    assert pairs(quick(tmp_path, runs=2).run()) == pairs(more) and set(more["epoch"]) == {0}


def test_rounds_are_added_until_there_are_enough(tmp_path):
    calls = []

    def enough(runs):
        calls.append(runs.groupby("cell").size().tolist())
        return len(calls) == 3

    def measured(enough, most_runs=9, **options) -> int:
        campaign = quick(tmp_path / "c", runs=2, **options)
        return len(campaign.run(enough=enough, most_runs=most_runs))

    assert measured(enough) == 12 and calls == [[2] * 3, [3] * 3, [4] * 3]
    assert measured(lambda runs: True) == 12, "what is there counts"
    assert measured(lambda runs: False, most_runs=5) == 15
    assert measured(lambda runs: False, recorded_only=True) == 15, "as many as they are"


def test_progress_counts_finished_runs():
    seen = []
    quick(None, runs=2).run(lambda *state: seen.append(state))
    assert [state[:2] for state in seen] == [(n, 6) for n in range(1, 7)]
    assert seen[-1][2] == 0 < seen[0][2]


def test_killed_in_the_middle_it_goes_on_where_it_was(tmp_path):
    """A real SIGKILL of the harness, during a run."""
    marks, runs = tmp_path / "marks", tmp_path / "c" / "runs.jsonl"
    script = f"""
        from nbhelpers.measurement import *
        from nbhelpers.workloads import program
        line = "echo {{}} >> {marks}; setsid sleep 0.15"
        cells = [Cell(name, program(["sh", "-c", line.format(name)])) for name in "ab"]
        campaign = Campaign({str(tmp_path / "c")!r}, cells, 4, seed=5)
        campaign.run(lambda done, total, left: print(done, flush=True))
    """
    words = [sys.executable, "-c", textwrap.dedent(script)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
    while process.stdout.readline() != "3\n":
        pass
    while marks.read_text().count("\n") < 4:
        pass
    process.send_signal(signal.SIGKILL)
    process.communicate()
    recorded = runs.read_bytes()
    assert recorded.count(b"\n") == 3
    runs.write_bytes(recorded + b'{"run": 3, "status": "o')  # what a power cut may leave
    done = run_python(textwrap.dedent(script))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["4", "5", "6", "7", "8"]
    assert marks.read_text().count("\n") == 9  # eight runs and the one that was in flight
    rows = read_records(runs)
    assert [row["run"] for row in rows] == list(range(8))
    assert len({(row["round"], row["cell"]) for row in rows}) == 8


def test_what_dead_processes_left_is_put_back_where_nothing_is_missing(tmp_path, monkeypatch):
    """Harness and guardian were killed after the last run: the next call has nothing to measure."""
    monkeypatch.setenv("NOISEBOOK_STATE", str(tmp_path / "state"))
    setting = tmp_path / "setting"
    setting.write_text("old")
    quick(tmp_path / "c", runs=1).run()
    script = """
        import os, signal, sys
        from nbhelpers.machine import settings
        change = settings.apply({sys.argv[1]: "new"})
        for pid in (change._watched.process.pid, os.getpid()):
            os.kill(pid, signal.SIGKILL)
    """
    killed = run_python(textwrap.dedent(script), setting)
    assert killed.returncode == -signal.SIGKILL and setting.read_text() == "new\n"
    campaign = quick(tmp_path / "c", runs=1)
    campaign.run()
    assert setting.read_text().strip() == "old" and not list(tmp_path.glob("state/*.journal"))
    assert f"put back: {setting}" in campaign.runs().attrs["notes"]


@pytest.mark.skipif(not run_groups.base(), reason="no control group of its own, so nothing to undo")
def test_a_campaign_without_a_guardian_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("NOISEBOOK_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    table = quick(tmp_path / "c", runs=1).run()
    assert set(table["status"]) == {"ok"} and not list(tmp_path.glob("state/*.journal"))
    assert any("guardian process did not start" in note for note in table.attrs["notes"])


def test_an_interrupt_in_the_middle_keeps_what_is_finished(tmp_path):
    class Interrupts(Closes):
        def released(self, t0_ns):
            self.count = getattr(self, "count", 0) + 1
            if self.count == 3:
                signal.raise_signal(signal.SIGINT)

    attachment = Interrupts()
    with pytest.raises(KeyboardInterrupt):
        quick(tmp_path, attachments=[attachment]).run()
    assert len(quick(tmp_path).runs()) == 2 and attachment.closed == 1
    assert len(quick(tmp_path).run()) == 12


def test_recorded_runs_are_not_those_of_noise_that_was_placed_in_another_way(tmp_path):
    def injected(placement, recorded_only):
        beside = Attachment()
        beside.identity = f"injected abc, {placement}, 2 lanes"
        cells = [replace(LETTERS[0], attachments=(beside,))]
        return quick(tmp_path, cells, 2, recorded_only=recorded_only).run()

    measured = injected("roam", False)
    pd.testing.assert_frame_equal(injected("roam", True), measured)
    with pytest.raises(InputError, match="roam.*, now .*origin"):
        injected("origin", True)


def test_frozen_never_measures(tmp_path):
    def frozen(folder=tmp_path, cells=LETTERS, runs=2):
        return quick(folder, cells, runs, recorded_only=True).run()

    for folder in (tmp_path, None):
        with pytest.raises(InputError, match="no campaign is recorded"):
            frozen(folder)
    recorded = quick(tmp_path, runs=2).run()
    elsewhere = [
        replace(cell, workload=replace(cell.workload, command=("/gone/true",))) for cell in LETTERS
    ]
    pd.testing.assert_frame_equal(frozen(cells=elsewhere), recorded)
    with pytest.raises(InputError, match="'a' has 2, 'b' has 2"):
        frozen(runs=3)
    with pytest.raises(InputError, match="'d' is part of this campaign and was not recorded"):
        frozen(cells=[*LETTERS, Cell("d", LETTERS[0].workload)])
    fewer = set(frozen(cells=LETTERS[:2]).cell)
    assert fewer == {"a", "b"}, "what the campaign does not have is in no one's way"
    pinned = replace(LETTERS[0], workload=replace(LETTERS[0].workload, config="TP"))
    for other, field in ((pinned, "config"), (replace(LETTERS[0], noise="other"), "noise")):
        with pytest.raises(InputError, match=field):
            frozen(cells=[other, *LETTERS[1:]])
    assert len(quick(tmp_path).runs()) == 6 and not list(tmp_path.glob("aside"))


def test_failed_runs_are_recorded_and_tried_again(tmp_path):
    flag = tmp_path / "flag"
    cell = Cell("f", program(["sh", "-c", f"test -e {flag} || {{ echo no flag >&2; exit 3; }}"]))
    with pytest.raises(RunError, match="3 times in a row.*exit 3'(.|\n)*no flag"):
        quick(tmp_path / "c", [cell], 2, max_failures=3).run()
    flag.touch()
    table = quick(tmp_path / "c", [cell], 2, max_failures=3).run()
    assert list(table.status) == ["exit 3"] * 3 + ["ok"] * 2
    assert list(table["run"]) == list(range(5))
    assert table.seconds.isna().tolist() == [True] * 3 + [False] * 2
    data = finished(table)
    assert len(data) == 2 and data["start_ns"].dtype == "int64"
    assert (data["end_ns"] > data["start_ns"]).all()


def test_nanoseconds_stay_exact_beside_failed_runs():
    big = 2**60 + 1
    rows = [{"status": "ok", "start_ns": big}, {"status": "timeout", "start_ns": None}]
    assert runs_table(rows)["start_ns"][0] == finished(runs_table(rows))["start_ns"][0] == big


def test_a_second_writer_is_refused(tmp_path):
    class Second(Closes):
        def before(self, workload):
            with pytest.raises(InputError, match="another campaign"):
                quick(tmp_path).run()

    quick(tmp_path, runs=1, attachments=[Second()]).run()
    quick(tmp_path, runs=2).run()


def test_attachments_are_closed_whatever_happens(tmp_path):
    first, bad, last = Closes({"x": np.int64(3), "y": np.float64(0.5)}), FailsToClose(), Closes()
    with pytest.raises(RuntimeError, match="planted"):
        quick(tmp_path, runs=1, attachments=[first, bad, last]).run()
    assert (first.closed, bad.closed, last.closed) == (1, 1, 1)
    assert list(quick(tmp_path, runs=1).runs()["x"]) == [3, 3, 3]
    table = quick(tmp_path, runs=2, attachments=[Closes({"z": 1})]).run()
    assert table["z"].isna().sum() == table["x"].isna().sum() == 3


def test_attachments_of_a_cell_accompany_no_other():
    alone = Closes({"w": 1})
    table = quick(None, [LETTERS[0], replace(LETTERS[1], attachments=(alone,))], 1).run()
    assert table.set_index("cell")["w"].isna().to_dict() == {"a": True, "b": False}
    assert alone.closed == 1


def test_damaged_files_are_named(tmp_path):
    quick(tmp_path, runs=1).run()
    (tmp_path / "campaign.json").write_text('{"format": "something else"}')
    with pytest.raises(InputError, match="campaign.json"):
        quick(tmp_path).run()
    (tmp_path / "campaign.json").write_text('{"format": ')
    with pytest.raises(InputError, match="line 1"):
        quick(tmp_path).run()
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(InputError, match="another folder"):
        quick(blocked / "c").run()


def test_calibrate_finds_the_size():
    """Against a program whose time is known: it sleeps size² microseconds."""
    made = []

    def make(size):
        made.append(size)
        return program(["sleep", str(size**2 * 1e-6)], name=str(size))

    found = calibrate(make, 20, target_seconds=0.04)
    assert 150 <= int(found.name) <= 220 and made[0] == 20
    with pytest.raises(RunError, match="exit 1"):
        calibrate(lambda size: program("false"), 10)
    with pytest.raises(InputError):
        calibrate(make, 20, target_seconds=0)


@pytest.mark.long
def test_calibrate_is_not_led_astray_by_those_who_compete_for_the_cpus(binaries):
    """Beside six busy processes a run takes four times as long; the size found is nearly the same
    as without them.
    """

    def size() -> int:
        found = calibrate(partial(nbody, threads=1), 1000, target_seconds=0.05, exponent=2)
        return int(found.command[found.command.index("--bodies") + 1])

    quiet = size()
    with ExitStack() as stack:
        for _ in range(3 * os.cpu_count()):
            burn = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(burn.wait)
            stack.callback(burn.kill)
        busy = size()
    assert (busy / quiet) ** 2 > 0.6, "the run time would be far below the target"


def test_of_a_recorded_campaign_so_many_rounds_are_taken_as_were_requested(tmp_path):
    short, long = Cell("short", program("true")), Cell("long", program("sleep 0.01"))
    Campaign(tmp_path, [short], runs=3).run()
    Campaign(tmp_path, [short, long], runs=4).run()
    counts = {
        runs: Campaign(tmp_path, [short, long], runs, recorded_only=True).run()["cell"].tolist()
        for runs in (1, 4)
    }
    assert counts[1].count("long") == 1 and counts[4].count("long") == 4
    alone = Campaign(tmp_path, [short], 2, recorded_only=True).run()
    assert len(alone) == 2 and set(alone["epoch"]) == {0}
    with pytest.raises(InputError, match="'long' has 4"):
        Campaign(tmp_path, [short, long], 5, recorded_only=True).run()
