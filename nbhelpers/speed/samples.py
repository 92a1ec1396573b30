"""The samples of a run: how long known work took, and the shares of full speed that follow.

Owns the format of the file of a run, which also has the marks of its threads.
"""

import gzip
import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError
from ..files import write_atomically
from ..reading import in_child, parsed_json, read_bytes

FORMAT = "noisebook speed 3"
KINDS = ("latency", "throughput", "memory")
PLACES = ("program", "openmp", "mpi", "beside", "ended")
SAMPLE = np.dtype(
    [
        ("wall_ns", "i8"),
        ("cpu_ns", "i8"),
        ("thread", "i4"),
        ("cpu", "i4"),
        *((f"{kind}_ns", "i4") for kind in KINDS),
        ("place", "i4"),
    ]
)
# workloads/marks.h: what ended at a moment; what each thread did last
MARK = np.dtype(
    [
        ("wall_ns", "i8"),
        ("ticks", "i8"),
        ("since", "i8"),
        ("busy", "i8"),
        ("thread", "i4"),
        ("state", "i4"),
        ("function", "i8"),
        ("calls", "i8"),
    ]
)
REGION = 2  # the state of a mark that counts calls of a function
THREAD = np.dtype(
    [
        ("thread", "i4"),
        ("process", "i4"),
        ("since", "i8"),
        ("busy", "i8"),
        ("marked", "i8"),
        ("ended", "i8"),
        ("state", "i4"),
        ("line", "V20"),
    ]
)
# of the samples of all runs, the share that is faster than what counts as full speed: the fastest
# ones are luck of the clock's reading
FULL_SPEED_QUANTILE = 0.05


def write_samples(
    folder: Path, run: dict, samples: np.ndarray, marks: np.ndarray, threads: np.ndarray
) -> Path:
    """Write a run's samples and marks, whole or not at all; the clock is CLOCK_MONOTONIC."""
    header = {"format": FORMAT, "run": int(run["run"])}
    header |= {"marks": len(marks), "threads": len(threads)}
    header |= {name: run.get(name) for name in ("start_ns", "end_ns")}
    body = samples.tobytes() + marks.tobytes() + threads.tobytes()
    content = json.dumps(header, sort_keys=True).encode() + b"\n" + body
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"run-{int(run['run']):06d}.speed.gz"
    return write_atomically(path, gzip.compress(content, compresslevel=6, mtime=0))


def read_speed(folder: str | Path, runs: pd.DataFrame) -> pd.DataFrame:
    """How fast the CPUs were during the timed regions of runs.

    Parameters
    ----------
    folder
        Folder in which `SpeedProbe` stored its files.
    runs
        Finished runs.

    Returns
    -------
    One row a sample: `run`, `thread`, `cpu`, `start_ns` (from the begin of the timed region),
    `wall_ns` and `cpu_ns` (time since the thread's sample before, all of it and on a CPU),
    `latency`, `throughput`, `memory` (share of full speed, at most 1), `place` (what the sample
    interrupted: program, openmp or mpi; ended: no work was done, the thread ended then; or it is of
    the probe beside the program), `late_ns` (how
    late the probe beside it woke). A sample beside the program has no `cpu_ns` (NaN in its table),
    and `thread` is −1 − CPU.

    Raises
    ------
    InputError
        A file is missing or damaged.
    """
    tables = [_read(Path(folder) / f"run-{int(run):06d}.speed.gz") for run in runs["run"]]
    table = pd.concat(tables, ignore_index=True)
    for kind in KINDS:
        taken_ns = table.pop(f"{kind}_ns").replace(0, np.nan)  # 0: not measured here
        table[kind] = np.minimum(1.0, taken_ns.quantile(FULL_SPEED_QUANTILE) / taken_ns)
    return table


def _read(path: Path) -> pd.DataFrame:
    header, samples, _, _ = content_of(path)
    start_ns, end_ns = header["start_ns"], header["end_ns"]
    table = pd.DataFrame({name: samples[name] for name in SAMPLE.names or ()})
    table = table.sort_values(["thread", "wall_ns"], kind="stable", ignore_index=True)
    beside = table["place"] == PLACES.index("beside")
    table["late_ns"] = (table["wall_ns"] - table["cpu_ns"]).where(beside)
    before = table.groupby("thread")[["wall_ns", "cpu_ns"]].shift()
    inside = (table["wall_ns"] >= start_ns) & (table["wall_ns"] < end_ns)
    first_ns = before["wall_ns"].fillna(start_ns).clip(lower=start_ns)
    table["since_ns"] = table["wall_ns"] - first_ns
    # before its first sample a thread has had the CPU for as long as its clock says
    table["cpu_ns"] = table["cpu_ns"] - before["cpu_ns"].fillna(0)
    table["cpu_ns"] = np.minimum(table["cpu_ns"], table["since_ns"])  # of what lies in the region
    if beside.any():
        table["cpu_ns"] = table["cpu_ns"].where(~beside)
    table.insert(0, "run", header["run"])
    table["place"] = pd.Categorical.from_codes(table["place"].to_numpy(), list(PLACES))
    table["start_ns"] = table.pop("wall_ns") - start_ns
    return table[inside].rename(columns={"since_ns": "wall_ns"}).reset_index(drop=True)


def content_of(path: Path) -> tuple[dict, np.ndarray, np.ndarray, np.ndarray]:
    """The header of a run's file, its samples, marks and threads.

    Raises
    ------
    InputError
        The file is missing or damaged.
    """
    content = read_bytes(path, "samples of speed")
    return in_child(partial(_parts, content, path), path, "samples of speed", len(content))


def _parts(content: bytes, path: Path) -> tuple[dict, np.ndarray, np.ndarray, np.ndarray]:
    line, _, body = content.partition(b"\n")
    header = parsed_json(line, path, "samples of speed")
    try:
        if header["format"] != FORMAT:
            raise ValueError(f"format {header['format']!r}")
        marks, threads = header["marks"], header["threads"]
        threads_at = len(body) - threads * THREAD.itemsize
        marks_at = threads_at - marks * MARK.itemsize
        return (
            header,
            np.frombuffer(body[:marks_at], SAMPLE),
            np.frombuffer(body, MARK, marks, marks_at),
            np.frombuffer(body, THREAD, threads, threads_at),
        )
    except (ValueError, LookupError, TypeError, OverflowError) as error:
        raise InputError(
            f"damaged samples of speed: {error}", where=path, fix="measure the run again"
        ) from None
