"""Work in a fixed time (FTQ) and time of a fixed work (FWQ): the loop `workloads/ftq.c` and
Netgauge's files of them.

Owns the loop's file format. The detour loop records each interruption; these record what is left
for a program.
"""

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError
from ..files import write_atomically
from ._files import read_trace
from .detours import LOOP_HEADER, run_loop

_MAGIC = b"nbquanta"
_HEADER = np.dtype([*LOOP_HEADER, ("fixed_work", "i8")])
_THREAD = np.dtype(
    [
        ("cpu", "i4"),
        ("finished", "i4"),
        ("count", "i8"),
        ("begin_ns", "i8"),
        ("end_ns", "i8"),
        ("units", "i8"),
        ("unit_ns", "f8"),
        ("resolution_ns", "f8"),
    ]
)
_SAMPLE = np.dtype([("start_ns", "i8"), ("value", "i8")])


def record_ftq(
    seconds: float, quantum_us: float = 1000, cpus: Collection[int] | None = None
) -> pd.DataFrame:
    """How much work fits into each fixed quantum of time, on each CPU (fixed time quantum; Sottile
    and Minnich 2004, Cluster).

    Parameters
    ----------
    seconds
        How long it takes.
    quantum_us
        Length of a quantum, 10 µs to 1 s. Quanta lie on a grid: one that an interruption covers
        whole counts 0.
    cpus
        Where to look; None: all that this process may use.

    Returns
    -------
    samples : `cpu`, `sample`, `start_ns` (from the loop's start), `count` (units of some 100 ns);
    attrs `kind` ("ftq"), `quantum_ns`, `unit_ns`
        (of the first CPU, undisturbed), `resolution_ns`, `overhead`: share of the work that was not
        done, compared with the best tenth of the quanta.

    Raises
    ------
    RunError
        The program is not built, or failed.
    """
    return _record("ftq", seconds, quantum_us, cpus)


def record_fwq(
    seconds: float, quantum_us: float = 1000, cpus: Collection[int] | None = None
) -> pd.DataFrame:
    """How long each portion of a fixed work takes, on each CPU (fixed work quantum).

    Parameters
    ----------
    seconds
        Length of an undisturbed run, so it takes that and the noise.
    quantum_us
        How long a portion takes undisturbed.
    cpus
        As in `record_ftq`, which raises the same errors.

    Returns
    -------
    samples : `cpu`, `sample`, `start_ns`, `duration_ns`; attrs as in `record_ftq`, but `overhead`
    is the share of the time beyond the fastest portion.
    """
    return _record("fwq", seconds, quantum_us, cpus)


def _record(
    kind: str, seconds: float, quantum_us: float, cpus: Collection[int] | None
) -> pd.DataFrame:
    content, _ = run_loop(
        "ftq", seconds, cpus, ["--mode", kind, "--quantum", repr(float(quantum_us))]
    )
    return _parse(content)


def _damaged(what: str) -> InputError:
    return InputError(what, why="the file is damaged or truncated", fix="record it again")


def _parse(content: bytes) -> pd.DataFrame:
    if len(content) < _HEADER.itemsize or content[:8] != _MAGIC:
        raise _damaged("not a file of the loop ftq")
    header = np.frombuffer(content, _HEADER, 1)[0]
    begin = _HEADER.itemsize + int(header["threads"]) * _THREAD.itemsize
    if header["version"] != 1 or len(content) < begin:
        raise _damaged("a header that makes no sense")
    threads = np.frombuffer(content, _THREAD, int(header["threads"]), _HEADER.itemsize)
    if len(content) - begin != int(threads["count"].sum()) * _SAMPLE.itemsize:
        raise _damaged("the samples are not as many as the header says")
    samples = np.frombuffer(content, _SAMPLE, -1, begin)
    kind = "fwq" if header["fixed_work"] else "ftq"
    table = _table(
        kind,
        np.repeat(threads["cpu"], threads["count"]),
        np.concatenate([np.arange(count) for count in threads["count"]]),
        samples["start_ns"],
        samples["value"],
    )
    table.attrs |= {
        "quantum_ns": int(header["quantum_ns"]),
        "unit_ns": float(threads["unit_ns"][0]),
        "resolution_ns": float(threads["resolution_ns"].max()),
    }
    return table


def _table(
    kind: str, cpu: np.ndarray, sample: np.ndarray, start_ns: np.ndarray, value: np.ndarray
) -> pd.DataFrame:
    name = {"ftq": "count", "fwq": "duration_ns"}[kind]
    table = pd.DataFrame(
        {
            "cpu": cpu.astype(np.int64),
            "sample": sample.astype(np.int64),
            "start_ns": start_ns.astype(np.int64),
            name: value.astype(np.int64),
        }
    )
    table.attrs = {"kind": kind, "overhead": _overhead(table, name)}
    return table


def _overhead(table: pd.DataFrame, name: str) -> float:
    """Mean over the CPUs, each against its undisturbed samples, for CPUs differ in speed.

    A count may exceed what fits into a quantum, for the unit that reaches over its end counts in
    it: so not the greatest but the best tenth.
    """
    shares = []
    for _, values in table.groupby("cpu")[name]:
        mean = float(values.mean())
        best = float(np.quantile(values, 0.9)) if name == "count" else float(values.min())
        shares.append(
            1 - (mean / best if name == "count" else best / mean) if mean > 0 and best > 0 else 1.0
        )
    return max(0.0, float(np.mean(shares))) if shares else 0.0


def write_quanta(samples: pd.DataFrame, path: str | Path, cpu: int | None = None) -> Path:
    """Write the samples of a CPU as Netgauge's `-e ftq` and `-e fwq` do: sample number, tab, count
    or whole microseconds.

    Parameters
    ----------
    samples
        Of `record_ftq`, `record_fwq` or `read_quanta`.
    cpu
        Whose; None: the only one.

    Raises
    ------
    InputError
        Several CPUs and none chosen, or no sample of that CPU.
    """
    chosen = one_cpu(samples, cpu)
    kind, noun = ("fwq", "us") if "duration_ns" in chosen else ("ftq", "count")
    values = (
        np.rint(chosen["duration_ns"] / 1e3).astype(np.int64) if kind == "fwq" else chosen["count"]
    )
    head = f"# {kind}: sample, {noun}\n# quantum: {samples.attrs.get('quantum_ns', 0) / 1e3:g} us\n"
    return write_atomically(
        path,
        head + "".join(f"{sample}\t{value}\n" for sample, value in zip(chosen["sample"], values)),
    )


def one_cpu(table: pd.DataFrame, cpu: int | None) -> pd.DataFrame:
    """The rows of one CPU.

    Raises
    ------
    InputError
        Several CPUs and none chosen, or no row of that CPU.
    """
    there = sorted(int(each) for each in table["cpu"].unique())
    if cpu is None and len(there) > 1:
        raise InputError(
            f"measurements of {len(there)} CPUs",
            why="the format holds one",
            fix=f"choose one: cpu={there[0]}",
        )
    if not there or (cpu is not None and cpu not in there):
        raise InputError(
            f"nothing was measured on CPU {cpu}" if cpu is not None else "there is no measurement",
            fix=f"choose of {there}" if there else "record for longer",
        )
    return table[table["cpu"] == (there[0] if cpu is None else cpu)]


def read_quanta(
    path: str | Path, kind: str, quantum_us: float = 1000, cpu: int = 0
) -> pd.DataFrame:
    """Read the two columns that Netgauge's `-e ftq` or `-e fwq`, or `write_quanta`, wrote; plain or
    .gz.

    Parameters
    ----------
    kind
        "ftq" (counts) or "fwq" (microseconds); the files do not say it.
    quantum_us
        As it was recorded. Start times are not in the file: those of FTQ follow from it, those of
        FWQ from the durations.

    Returns
    -------
    samples : as of `record_ftq` or `record_fwq`.

    Raises
    ------
    InputError
        Unreadable, or not two columns of whole numbers.
    """
    if kind not in ("ftq", "fwq"):
        raise InputError(f"kind={kind!r}", fix='choose "ftq" or "fwq"')
    sample, value = _two_columns(path)
    value = value * 1000 if kind == "fwq" else value
    start_ns = (
        np.concatenate([[0], np.cumsum(value)[:-1]])
        if kind == "fwq"
        else sample * int(quantum_us * 1e3)
    )
    table = _table(kind, np.full(sample.size, cpu), sample, start_ns, value)
    table.attrs["quantum_ns"] = int(quantum_us * 1e3)
    return table


def _two_columns(path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    rows = []
    for number, line in enumerate(read_trace(path).decode(errors="replace").splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split()
        if len(words) != 2 or not all(word.isdigit() for word in words):
            raise InputError(
                f"expected two whole numbers, found {line[:60]!r}", where=f"{path}, line {number}"
            )
        rows.append((int(words[0]), int(words[1])))
    if not rows:
        raise InputError("no sample", where=path)
    columns = np.array(rows, dtype=np.int64)
    return columns[:, 0], columns[:, 1]
