"""How much of what a hypervisor took was found: compared with the kernel's sum, and with what a
loop saw.

Owns these two accounts; `hypervisor.py` finds the gaps. Pure: tables in, tables out.
"""

import numpy as np
import pandas as pd

from ..measurement import region_seconds
from .hypervisor import SHORTEST_US

NOT_RECORDED = "not recorded"  # `method` of `stolen_times`
LONG_NS = round(SHORTEST_US * 1e3)  # shorter gaps are not looked for in a trace


def stolen_time_sentence(table: pd.DataFrame, method: str) -> str:
    """What `stolen_time_table` says, in a sentence; `method`: of `stolen_times`."""
    row = table.iloc[0]
    sentence = (
        f"In {row.runs:.0f} traced runs the hypervisor took {row.steal_ms:.0f} ms by the"
        " kernel's sum"
    )
    if method == NOT_RECORDED:
        return (
            f"{sentence}; how much of it interrupted the program only a recording of tracepoints"
            " shows, and there is none here."
        )
    account = (
        "the threads' accounts were not recorded"
        if np.isnan(row.account_ms)
        else f"the accounts of all threads lack {row.account_ms:.1f} ms"
    )
    return (
        f"{sentence}; {account}, and {row.gaps_ms:.1f} ms in {row.gaps:.0f} gaps interrupted the"
        f" program (method: {method})."
    )


def stolen_time_table(runs: pd.DataFrame, stolen: pd.DataFrame, cpus: int) -> pd.DataFrame:
    """How much of the time that the hypervisor took was found.

    Parameters
    ----------
    runs
        Finished runs with `steal_s` (the metric layer "kernel").
    stolen
        Of `stolen_times`, of the same runs.
    cpus
        How many were traced.

    Returns
    -------
    One row: `runs`, `steal_ms` (/proc/stat, in ticks of 10 ms a CPU, idle CPUs and the time about
    the run included), `account_ms` (what the accounts of all threads lack) and its `account_share`
    of `steal_ms` (NaN where that is 0 or there is no account), `gaps` and `gaps_ms` (those that
    interrupted the workload) and `late_ms` (the same, estimated from the share of ticks that came
    late); all of them but the kernel's sum are unknown (NaN) where no tracepoints were recorded.
    """
    finished = runs[runs["status"] == "ok"] if "status" in runs else runs
    all_ns = stolen.attrs.get("all_ns")
    steal_ms = float(finished["steal_s"].sum()) * 1e3
    account_ms = np.nan if all_ns is None else all_ns / 1e6
    if stolen.attrs.get("method") == NOT_RECORDED:
        unknown = dict.fromkeys(
            ("account_ms", "account_share", "gaps", "gaps_ms", "late_ms"), np.nan
        )
        return pd.DataFrame([{"runs": len(finished), "steal_ms": steal_ms} | unknown])
    late_ms = (
        stolen.attrs.get("away_share", 0.0) * float(region_seconds(finished).sum()) * cpus * 1e3
    )
    return pd.DataFrame(
        [
            {
                "runs": len(finished),
                "steal_ms": steal_ms,
                "account_ms": account_ms,
                "account_share": account_ms / steal_ms if steal_ms else np.nan,
                "gaps": len(stolen),
                "gaps_ms": float(stolen["duration_ns"].sum()) / 1e6,
                "late_ms": late_ms,
            }
        ]
    )


def explained_gaps(
    detours: pd.DataFrame, events: pd.DataFrame, stolen: pd.DataFrame
) -> pd.DataFrame:
    """How much of each gap that the detour loop saw is explained by a recording of the same run.

    Parameters
    ----------
    detours
        Gaps of the detour loop: `cpu`, `start_ns`, `duration_ns`, from the start of the timed
        region.
    events
        Noise events of a recording of the same run (`read_tracepoints`).
    stolen
        What the hypervisor took during that run (`stolen_time`).

    Returns
    -------
    `detours` with `kernel_ns` and `stolen_ns`, the time in each gap that events and the hypervisor
    took; 0 of both: nothing that was recorded explains the gap.
    """
    parts = [
        on_cpu.assign(
            **{
                name: _within(on_cpu, table[table["cpu"] == cpu])
                for name, table in (("kernel_ns", events), ("stolen_ns", stolen))
            }
        )
        for cpu, on_cpu in detours.groupby("cpu")
    ]
    return pd.concat(parts) if parts else detours.assign(kernel_ns=0.0, stolen_ns=0.0)


def gap_causes(gaps: pd.DataFrame) -> pd.DataFrame:
    """What the gaps of the detour loop are made of, CPU by CPU.

    Parameters
    ----------
    gaps
        Of `explained_gaps`.

    Returns
    -------
    One row a CPU: `cpu`, `gaps`, `gaps_ms`; of these `kernel_ms` (noise events), `stolen_ms` (the
    hypervisor), `edges_ms` (the rest of gaps that hold either: the way into the kernel and out of
    it), `unexplained_ms` (gaps that hold neither) and `unexplained_long_ms` (of these, in gaps of
    30 µs and longer).
    """
    return pd.DataFrame([_gap_sums(cpu, on_cpu) for cpu, on_cpu in gaps.groupby("cpu")])


def _gap_sums(cpu: int, gaps: pd.DataFrame) -> dict:
    length_ns, kernel_ns, stolen_ns = (
        gaps[name].to_numpy(float) for name in ("duration_ns", "kernel_ns", "stolen_ns")
    )
    rest_ns = np.maximum(length_ns - kernel_ns - stolen_ns, 0)
    held = kernel_ns + stolen_ns > 0
    sums = {
        "gaps_ms": length_ns,
        "kernel_ms": kernel_ns,
        "stolen_ms": stolen_ns,
        "edges_ms": rest_ns[held],
        "unexplained_ms": rest_ns[~held],
        "unexplained_long_ms": rest_ns[~held & (length_ns >= LONG_NS)],
    }
    return {"cpu": cpu, "gaps": len(gaps)} | {
        name: float(values.sum()) / 1e6 for name, values in sums.items()
    }


def _within(gaps: pd.DataFrame, events: pd.DataFrame) -> np.ndarray:
    """How much of the events' net time lies in each gap, ns; an event may have been placed a little
    outside its gap (slack).
    """
    result = np.zeros(len(gaps))
    starts, ends = gaps["start_ns"].to_numpy(), (gaps["start_ns"] + gaps["duration_ns"]).to_numpy()
    slack = (
        events["slack_ns"].to_numpy() if "slack_ns" in events else np.zeros(len(events), np.int64)
    )
    for start, end, net, reach in zip(
        events["start_ns"].to_numpy(),
        events["end_ns"].to_numpy(),
        events["duration_ns"].to_numpy(),
        slack,
    ):
        low = np.searchsorted(ends, start - reach, side="right")
        high = np.searchsorted(starts, end + reach, side="left")
        if low < high:
            overlap = np.minimum(ends[low:high], end + reach) - np.maximum(
                starts[low:high], start - reach
            )
            if reach:  # the whole of it is in the gap that fits best
                result[low + int(np.argmin(np.abs(ends[low:high] - starts[low:high] - net)))] += net
            else:
                result[low:high] += overlap * (net / max(end - start, 1))
    return result
