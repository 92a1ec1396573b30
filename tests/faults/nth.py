"""The n-th write, fsync, rename, open, malloc or fork of a small campaign fails, as with SQLite.

    python -m tests.faults.nth [KIND] [--most N] [--seed S]

Every n is tried, or N of them at equal distances, from one that is drawn. The campaign changes a
setting of the machine, and goes on afterwards without a failure.
"""

import argparse
import ctypes
import gc
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from nbhelpers.errors import NoisebookError
from nbhelpers.files import shortage
from nbhelpers.measurement import Campaign, Cell
from nbhelpers.records import read
from nbhelpers.workloads import program

from ..processes import REPOSITORY
from .__main__ import COLUMNS
from .child import WORKLOADS, Holds
from .matrix import Outcome, Place, count, place_of, settings_now

KINDS = ("write", "fsync", "rename", "open", "malloc", "fork")
RUNS, PATIENCE_S = 2, 20.0
PRELOADED = "NTH_PRELOADED"


def preloaded(folder: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    """This program with its words, under the library that lets calls fail."""
    library = folder / "nth.so"
    source = Path(__file__).with_name("nth.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
    return subprocess.run(
        [sys.executable, "-m", "tests.faults.nth", *words],
        env=os.environ | {"LD_PRELOAD": str(library), PRELOADED: "1"},
        cwd=REPOSITORY,
        text=True,
        capture_output=True,
    )


def tried(kind: str, most: int, draw: random.Random) -> Iterator[tuple[int, Outcome]]:
    """n of each trial, and what came of it; first 0: nothing fails."""
    outcome, calls = trial(kind, 0, draw)
    yield 0, outcome
    step = max(1, calls // most) if most else 1
    for n in range(1 + draw.randrange(step), calls + 1, step):
        yield n, trial(kind, n, draw)[0]


def trial(kind: str, n: int, draw: random.Random) -> tuple[Outcome, int]:
    """What came of a campaign whose n-th call failed, and how many calls there were."""
    outcome, before = Outcome(), settings_now()
    with place_of(draw) as place:
        acknowledged, calls, words = _forked(place, kind, n)
        outcome.acknowledged = acknowledged
        kept = read(place.folder / "data/runs.jsonl")
        fine = sum(row.get("status") == "ok" for row in kept.rows)
        outcome.lost = max(0, acknowledged - fine) + len(kept.damage)
        # a library in C++ ends the process then, as SIGKILL would; all else is counted
        hung = calls < 0 and "std::bad_alloc" not in words
        if "Traceback" in words or hung:
            outcome.tracebacks = 1
            outcome.remarks.append(words[-1500:] or "it did not end")
        *_, words = _forked(place, "", 0)
        rows = read(place.folder / "data/runs.jsonl").rows
        fine = [row["run"] for row in rows if row["status"] == "ok"]
        if len(fine) != RUNS or len({row["run"] for row in rows}) != len(rows):
            outcome.not_resumed = 1
            outcome.remarks.append(f"{fine} ok of {len(rows)}: {words[-300:]}")
        count(place, outcome, before)
    return outcome, calls


def _forked(place: Place, kind: str, n: int) -> tuple[int, int, str]:
    """Runs acknowledged by a campaign in a process of its own, calls made, and its last words."""
    reader, writer = os.pipe()
    with open(place.folder / f"errors-{kind}", "w+") as errors:
        pid = os.fork()
        if not pid:
            os.dup2(errors.fileno(), 2)
            _campaign(place, writer, kind, n)
        os.close(writer)
        until = time.monotonic() + PATIENCE_S
        said = b""
        while ready := select.select([reader], [], [], max(0, until - time.monotonic()))[0]:
            if not (part := os.read(ready[0], 4096)):
                break
            said += part
        os.close(reader)
        if not ready:
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        errors.seek(0)
        calls = said.rpartition(b"calls ")[2].strip() if b"calls " in said else b"-1"
        return said.count(b"done\n"), int(calls), errors.read()


def _campaign(place: Place, writer: int, kind: str, n: int) -> None:
    """Measure, end as a program does, and say how many calls there were."""
    library = ctypes.CDLL(None)
    os.environ |= {
        name: place.environment[name] for name in ("PYTHONPATH", "NOISEBOOK_STATE", "TMPDIR")
    }
    tempfile.tempdir = None
    try:
        library.nth_arm(KINDS.index(kind) + 1 if kind else 0, ctypes.c_long(n))
        cell = Cell("a", program(WORKLOADS["daemon"].format(place.token)), attachments=[Holds()])
        campaign = Campaign(place.folder / "data", [cell], RUNS)
        campaign.run(lambda done, total, left: os.write(writer, b"done\n"))
        del cell, campaign
    except NoisebookError as error:
        print(f"refused: {error}", file=sys.stderr)
    except (OSError, MemoryError, RuntimeError) as error:
        if not (found := shortage(error)):
            traceback.print_exc()
        print(f"refused: {found}", file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    calls = ctypes.c_long.in_dll(library, "nth_calls").value
    library.nth_arm(0, ctypes.c_long(0))
    gc.collect()
    sys.stderr.flush()
    os.write(writer, f"calls {calls}\n".encode())
    os._exit(0)


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m tests.faults.nth", description=__doc__)
    words.add_argument("kind", nargs="?", choices=KINDS)
    words.add_argument("--most", type=int, default=0)
    words.add_argument("--seed", type=int, default=1)
    asked = words.parse_args()
    if not os.environ.pop(PRELOADED, ""):
        with tempfile.TemporaryDirectory() as folder:
            done = preloaded(Path(folder), sys.argv[1:])
        print(done.stdout, done.stderr, sep="", end="")
        return done.returncode
    os.environ.pop("LD_PRELOAD")  # what is started from here on makes its calls in peace
    wrong = 0
    for kind in [asked.kind] if asked.kind else KINDS:
        total = Outcome(tried=0)
        for n, outcome in tried(kind, asked.most, random.Random(f"{asked.seed} {kind}")):
            outcome.tried = int(bool(n))
            for column in COLUMNS:
                setattr(total, column, getattr(total, column) + getattr(outcome, column))
            for remark in outcome.remarks if outcome.bad else ():
                print(f"{kind} {n}: {remark}", flush=True)
            if outcome.bad:
                print(f"{kind} {n}: {outcome}", flush=True)
        counts = (f"{getattr(total, column)} {column}" for column in COLUMNS)
        print(f"{kind}: {', '.join(counts)}", flush=True)
        wrong += total.bad
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
