"""This machine's detours with nothing else running, and while a program computes: the two states
that the talk shows (Hoefler et al. 2010, measurements).

Owns the two recordings and their file, and the load: `workloads/stream.c` at ordinary priority,
where the scheduler puts it.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from ..errors import RunError
from ..measurement.cache import cached_value
from ..workloads import binary_folder, program_path
from .detours import record_detours

# of both states, so that they can be compared, and a second of them stays small
THRESHOLD_NS = 1000
WARM_S = 0.3  # until the load has made its arrays


def quiet_and_loaded(
    path: str | Path, seconds: float = 1.0, recorded_only: bool = False
) -> dict[str, pd.DataFrame]:
    """Detours of every CPU in both states, recorded one after the other, and cached as packed JSON.

    Parameters
    ----------
    path
        Path of the file that caches the recordings.
    seconds
        Length of each recording in seconds.
    recorded_only
        True: the file must be there.

    Returns
    -------
    "quiet" and "loaded", each as of `record_detours` with a threshold of 1 µs and a fixed time. The
    load has a thread less than there are CPUs, one at least.

    Raises
    ------
    InputError
        Nothing was recorded yet and `recorded_only` is True.
    RunError
        The loop failed, or the load did, or it ended too soon.
    """
    recorded = cached_value(
        path,
        lambda: _recorded(seconds),
        "noise of the quiet and of the loaded machine",
        recorded_only,
        indent=None,
    )
    return {state: _table(recorded[state]) for state in ("quiet", "loaded")}


def _recorded(seconds: float) -> dict[str, dict]:
    quiet = record_detours(seconds, threshold_ns=THRESHOLD_NS, fixed="time")
    with cpu_load(max(len(os.sched_getaffinity(0)) - 1, 1)):
        loaded = record_detours(seconds, threshold_ns=THRESHOLD_NS, fixed="time")
    return {"quiet": _columns(quiet), "loaded": _columns(loaded)}


def _columns(detours: pd.DataFrame) -> dict:
    return {"attrs": detours.attrs} | {
        name: detours[name].tolist() for name in ("cpu", "start_ns", "duration_ns")
    }


def _table(columns: dict) -> pd.DataFrame:
    table = pd.DataFrame({name: columns[name] for name in ("cpu", "start_ns", "duration_ns")})
    table["end_ns"] = table["start_ns"] + table["duration_ns"]
    table.attrs = columns["attrs"]
    return table


@contextmanager
def cpu_load(threads: int, longest_s: float = 120) -> Iterator[None]:
    """Run `stream` on so many threads inside a `with` block.

    Should this process die, the load ends after `longest_s`.

    Raises
    ------
    RunError
        It is not built, or it ended by itself.
    """
    command = [
        "timeout",
        str(longest_s),
        str(program_path(binary_folder() / "stream")),
        "--repeats",
        "10000",
    ]
    process = subprocess.Popen(
        command,
        env=os.environ | {"OMP_NUM_THREADS": str(threads)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        time.sleep(WARM_S)
        yield
        if process.poll() is not None:
            errors = process.stderr.read().strip() if process.stderr else ""
            raise RunError(
                "the load ended before the recording did",
                where=" ".join(command),
                why=errors[-300:] or f"status {process.returncode}",
                fix="record for fewer seconds",
            )
    finally:
        process.terminate()
        process.communicate()
