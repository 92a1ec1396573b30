"""The detour loop beside the trace: is what the hypervisor took, by the trace, what a program in user space was without?

Owns that small campaign and its table; `hypervisor.py` finds the gaps, `_steal.py` shares the loop's gaps out.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from ..measure import Campaign, Cell, finished, metrics
from .detours import DetourTracer, detour_workload, read_detours_run
from .hypervisor import stolen_time
from .tracepoints import read_tracepoints
from .tracer import Tracer
from ._steal import gap_account

COLUMNS = ["run", "loop_s", "gaps", "gaps_ms", "kernel_ms", "stolen_ms", "edges_ms", "unexplained_ms", "steal_ms"]


def loop_beside_trace(folder: str | Path, runs: int, seconds: float, measure: bool = True) -> pd.DataFrame:
    """Run the detour loop on every CPU with the kernel's tracepoints recorded beside it, and share out what the loop was without.

    Parameters
    ----------
    folder : where runs, gaps and traces are kept. runs : of the loop. seconds : undisturbed time that a loop needs.
    measure : False: read what was recorded.

    Returns
    -------
    One row a run: `run`, `loop_s` (all CPUs together), `gaps`, `gaps_ms`, `kernel_ms`, `stolen_ms`, `edges_ms`, `unexplained_ms` (see `gap_account`; summed over CPUs) and
    `steal_ms` (/proc/stat). No row where tracepoints cannot be recorded.

    Raises
    ------
    InputError : not measured yet, and `measure` is False. LostEvents : a trace or the loop had no room.
    """
    folder = Path(folder)
    cell = Cell("loop", detour_workload(seconds, folder))
    if measure:
        tracer = Tracer(folder / "traces")
        if tracer.source != "tracepoints":
            return pd.DataFrame(columns=COLUMNS)
        cell = Cell("loop", cell.workload, attachments=(tracer, DetourTracer(folder, prefix="loop"), *metrics("kernel")))
    table = finished(Campaign(folder, [cell], runs=runs, frozen=not measure).run())
    return pd.DataFrame([_row(folder, run) for run in table.to_dict("records")], columns=COLUMNS)


def _row(folder: Path, run: dict) -> dict:
    name = f"run-{int(run['run']):06d}"
    detours, trace = read_detours_run(folder / f"{name}.detours.gz"), folder / "traces" / f"{name}.tracepoints.gz"
    account = gap_account(detours, read_tracepoints(trace), stolen_time(trace)).drop(columns="cpu").sum()
    looked_ns = sum(last - first for first, last in detours.attrs["watched"].values())
    return {"run": int(run["run"]), "loop_s": looked_ns / 1e9, "gaps": int(account.pop("gaps")), "steal_ms": run["steal_s"] * 1e3} | account.to_dict()


def loop_findings(table: pd.DataFrame, seed: int = 0) -> list[str]:
    """What `loop_beside_trace` says, in a sentence; the interval is a bootstrap of runs."""
    if not len(table) or not table["gaps_ms"].sum():
        return ["No loop ran beside a recording of tracepoints here: how much the trace misses of what a program is without is not known."]
    draws = np.random.default_rng(seed).integers(len(table), size=(2000, len(table)))
    total, unexplained, stolen = (table[name].to_numpy() for name in ("gaps_ms", "unexplained_ms", "stolen_ms"))
    low, high = np.quantile(unexplained[draws].sum(1) / total[draws].sum(1), [0.025, 0.975])
    return [f"A loop beside the trace was without its CPU for {total.sum():.1f} ms of {table['loop_s'].sum():.1f} s ({len(table)} runs): {table['kernel_ms'].sum() / total.sum():.0%} "
            f"of it kernel events, {stolen.sum() / total.sum():.0%} the hypervisor's by the scheduler's account, {table['edges_ms'].sum() / total.sum():.0%} ways in and out; "
            f"no record explains {unexplained.sum() / total.sum():.1%} ({low:.1%} to {high:.1%})."]
