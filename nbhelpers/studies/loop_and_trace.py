"""The detour loop and the trace of the same runs: does a program in user space lose the time that
the hypervisor took, by the trace?

Owns its table; `account/loop.py` runs the loop, `hypervisor.py` finds the gaps.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from ..account.loop import NO_TRACEPOINTS, LoopRun, run_traced_loop
from ..empty import because
from ..statistics.intervals import ratio_of_sums_interval
from ..tracing.hypervisor import PERIODS_NS
from ..tracing.stolen_shares import LONG_NS, explained_gaps, gap_causes

# of `rhythm`: ten gaps at random reach it in one case of twelve, twenty in one of 150
IN_STEP = 0.5
COLUMNS = [
    "run",
    "loop_s",
    "gaps",
    "gaps_ms",
    "kernel_ms",
    "stolen_ms",
    "edges_ms",
    "unexplained_ms",
    "unexplained_long_ms",
    "rhythm_ms",
    "rhythm",
    "steal_ms",
]


def compare_loop_with_trace(
    folder: str | Path, runs: int, seconds: float, recorded_only: bool = False
) -> pd.DataFrame:
    """Run the detour loop on every CPU with the kernel's tracepoints recorded, and share out the
    time that the loop lost.

    Parameters
    ----------
    folder
        Of runs, gaps and traces.
    runs
        Of the loop.
    seconds
        Undisturbed time that a loop needs.
    recorded_only
        True: read what was recorded.

    Returns
    -------
    One row a run: `run`, `loop_s` (all CPUs together), `gaps`, `gaps_ms`, `kernel_ms`, `stolen_ms`,
    `edges_ms`, `unexplained_ms`, `unexplained_long_ms` (see `gap_causes`; summed over CPUs);
    `rhythm_ms`: of the periods that ticks have (1, 3.3, 4, 10 ms) the one that unexplained gaps of
    30 µs and longer follow best, and `rhythm`, how well (0: not at all, 1: they all come in step;
    `rhythm_of`); `steal_ms` (/proc/stat). No row where tracepoints cannot be recorded.

    Raises
    ------
    InputError
        Not measured yet, and `recorded_only` is True.
    LostEvents
        A trace or the loop had no room.
    """
    table = run_traced_loop(folder, runs, seconds, recorded_only)
    if not len(table):
        return because(pd.DataFrame(columns=COLUMNS), NO_TRACEPOINTS)
    rows = [_row(LoopRun(int(run["run"]), Path(folder)), run) for run in table.to_dict("records")]
    return pd.DataFrame(rows, columns=COLUMNS)


def _row(loop: LoopRun, run: dict) -> dict:
    gaps = explained_gaps(loop.detours, loop.events, loop.stolen)
    account = gap_causes(gaps).drop(columns="cpu").sum()
    rhythm_ms, rhythm = rhythm_of(
        gaps[(gaps["kernel_ns"] + gaps["stolen_ns"] == 0) & (gaps["duration_ns"] >= LONG_NS)]
    )
    return {
        "run": loop.run,
        "loop_s": loop.loop_ns / 1e9,
        "gaps": int(account.pop("gaps")),
        "rhythm_ms": rhythm_ms,
        "rhythm": rhythm,
        "steal_ms": run["steal_s"] * 1e3,
    } | account.to_dict()


def rhythm_of(gaps: pd.DataFrame) -> tuple[float, float]:
    """Which period of a tick gaps follow, in ms, and how well: length of the mean of their phases
    as unit vectors, the mean over CPUs.

    Parameters
    ----------
    gaps
        `cpu`, `start_ns`; fewer than ten on each CPU: NaN, 0. What follows 10 ms follows 1 ms as
        well: the longest period within 0.05 of the best counts.
    """
    groups = [
        starts.to_numpy(float) for _, starts in gaps.groupby("cpu")["start_ns"] if len(starts) >= 10
    ]
    if not groups:
        return float("nan"), 0.0
    strength = {
        period: float(np.mean([_concentration(starts, period) for starts in groups]))
        for period in PERIODS_NS
    }
    best = max(period for period in PERIODS_NS if strength[period] >= max(strength.values()) - 0.05)
    return best / 1e6, strength[best]


def _concentration(starts_ns: np.ndarray, period_ns: float) -> float:
    """How well moments follow a period: 0 not at all, 1 all in step."""
    return float(abs(np.exp(2j * np.pi * starts_ns / period_ns).mean()))


def loop_sentences(table: pd.DataFrame, seed: int = 0) -> list[str]:
    """What `compare_loop_with_trace` found, in a sentence; the interval is a bootstrap of runs.

    Parameters
    ----------
    table
        Of `compare_loop_with_trace`.
    seed
        Of the bootstrap.
    """
    if not len(table) or not table["gaps_ms"].sum():
        return [
            "No loop ran while tracepoints were recorded here: how much of a program's lost time"
            " the trace misses is not known."
        ]
    total, unexplained, stolen = (
        table[name].to_numpy() for name in ("gaps_ms", "unexplained_ms", "stolen_ms")
    )
    low, high = ratio_of_sums_interval(unexplained, total, seed)
    return [
        f"A traced loop lost its CPU for {total.sum():.1f} ms of"
        f" {table['loop_s'].sum():.1f} s (n = {len(table)} runs):"
        f" {table['kernel_ms'].sum() / total.sum():.0%} of it kernel events,"
        f" {stolen.sum() / total.sum():.0%} the hypervisor's by the scheduler's account,"
        f" {table['edges_ms'].sum() / total.sum():.0%} ways in and out; no record explains"
        f" {unexplained.sum() / total.sum():.1%} ({low:.1%} to {high:.1%}),"
        f" {table['unexplained_long_ms'].sum() / total.sum():.1%} in gaps of 30 µs and"
        f" longer{_in_words(table)}."
    ]


def _in_words(table: pd.DataFrame) -> str:
    in_step = table[table["rhythm"] > IN_STEP]
    if 2 * len(in_step) < len(table):
        return ""
    return (
        f", which in {len(in_step)} of {len(table)} runs come in step, most often every"
        f" {in_step['rhythm_ms'].mode()[0]:.3g} ms: a tick of the host or of the firmware"
    )
