"""A campaign of traced MPI runs that is interrupted goes on where it was: real ranks, real signals,
at the harness and at a rank.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nbhelpers.measurement import recorded_runs
from nbhelpers.mpi import read_calls

from ..processes import REPOSITORY
from . import built_program, needs_mpi

pytestmark = needs_mpi
CAMPAIGN = """
import sys
from nbhelpers import program
from nbhelpers.measurement import Campaign, Cell
from nbhelpers.mpi import CallTrace, installation
from nbhelpers.workloads import Region

folder, runs, *words = sys.argv[1:]
command = [*installation().command(2), *words]
talks = program(command, name="talks", region=Region("mpi"), timeout_s=60)
trace = CallTrace(f"{folder}/traces", mib=1)
Campaign(folder, [Cell("traced", talks, attachments=(trace,))], int(runs)).run()
"""
RUNS, STOPS_AT = 3, 2


@pytest.fixture(scope="module")
def waits(tmp_path_factory) -> Path:
    return built_program("waits", tmp_path_factory.mktemp("programs"))


def start(folder: Path, waits: Path) -> subprocess.Popen:
    words = [folder, RUNS, waits, folder.parent / "starts", STOPS_AT]
    return subprocess.Popen(
        [sys.executable, "-c", CAMPAIGN, *map(str, words)],
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        start_new_session=True,
    )


def eventually(true: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def ranks_of(waits: Path) -> list[int]:
    found = subprocess.run(["pgrep", "-f", f"^{waits}"], capture_output=True, text=True)
    return list(map(int, found.stdout.split()))


def written_by(harness: subprocess.Popen, ranks: list[int]) -> Path:
    """Where the ranks write their calls."""
    (folder,) = {
        word.partition("=")[2]
        for rank in ranks
        for word in Path(f"/proc/{rank}/environ").read_text().split("\0")
        if word.startswith("NBTRACE=")
    }
    assert harness.poll() is None and len(list(Path(folder).glob("calls.*"))) == 2
    return Path(folder)


@pytest.fixture
def stopped(tmp_path, waits):
    """A campaign in the middle of its second run: the harness, its ranks, where these write."""
    harness = start(tmp_path / "campaign", waits)
    starts = tmp_path / "starts"
    eventually(lambda: starts.exists() and starts.stat().st_size == STOPS_AT)
    ranks = ranks_of(waits)
    assert len(ranks) == 2
    yield harness, ranks, written_by(harness, ranks)
    for rank in set(ranks) & set(ranks_of(waits)):
        os.kill(rank, signal.SIGKILL)  # only the campaign itself would, when it goes on
    harness.kill()
    harness.wait()
    harness.stderr.close()


def ends_whole(folder: Path, waits: Path, failed: int) -> None:
    """All good runs are there, each with its whole trace; no rank is left."""
    runs = recorded_runs(folder)
    good = runs[runs["status"] == "ok"]
    assert len(good) == RUNS and len(runs) == RUNS + failed
    assert sorted(good["round"]) == list(range(RUNS))
    for run, calls in zip(good["run"], good["mpi_calls"]):
        traced = read_calls(folder / "traces" / f"run-{run:06d}")
        assert len(traced.table) == calls and traced.cut == () and not traced.notes
        assert (traced.table["call"] == "MPI_Allreduce").sum() == 200
    assert ranks_of(waits) == []


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_harness_that_dies_goes_on_where_it_was(number, stopped, tmp_path, waits):
    harness, ranks, written = stopped
    os.killpg(harness.pid, number)
    harness.communicate(timeout=30)
    assert harness.returncode == -number
    killed = number == signal.SIGKILL
    assert written.exists() == killed and len(recorded_runs(tmp_path / "campaign")) == STOPS_AT - 1
    again = start(tmp_path / "campaign", waits)
    _, errors = again.communicate(timeout=60)
    assert again.returncode == 0, errors
    assert not written.exists() and (tmp_path / "starts").stat().st_size == RUNS + 1
    ends_whole(tmp_path / "campaign", waits, failed=0)


@pytest.mark.long
def test_a_rank_that_dies_costs_one_run(stopped, tmp_path, waits):
    harness, ranks, written = stopped
    os.kill(ranks[1], signal.SIGKILL)
    _, errors = harness.communicate(timeout=60)
    assert harness.returncode == 0, errors
    assert not written.exists()
    folder = tmp_path / "campaign"
    ends_whole(folder, waits, failed=1)
    (failed,) = recorded_runs(folder).query("status != 'ok'")["run"]
    assert read_calls(folder / "traces" / f"run-{failed:06d}").cut == (0, 1)
