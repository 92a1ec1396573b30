"""From real ranks to simulated ones: traced runs of the programs, their simulated time beside the
measured one, and what noise does to them on more ranks than there are here.

Owns the campaign of traced runs and the tables, which lie as CSV beside it: a recorded campaign
shows them, and runs that are there are neither traced nor simulated again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...empty import because, why_empty
from ...files import digest, digest_files, to_json, write_atomically
from ...measurement import Campaign, Cell, finished
from ...mpi import Calls, CallTrace, installation, read_calls
from ...mpi.pingpong import measure_pingpong
from ...places import PACKAGE
from ...progress import each
from ...reading import read_csv
from ...simulation import simulate
from ...simulation.loggops import LogGOPS
from ...simulation.loggops_fit import fit_loggops
from ...simulation.signatures import signature_on_ranks
from ...simulation.traces import schedule_of_calls
from ...simulation.traces.calls import TracedCalls
from .call_times import function_shares, program_sizes
from .ranks_at_work import SIGNATURES, rank_program, why_not

_TABLES = {
    "network": ("parameter", "value", "low", "high", "unit", "n"),
    "shares": ("program", "function", "share", "of_communication", "calls"),
    "sizes": ("program", "function", "operations", "mean_bytes", "most_bytes", "per_second"),
    "predicted": ("program", "ranks", "round", "measured_ms", "simulated_ms", "waited_ms"),
    "beyond": ("program", "ranks", "noise", "seed", "quiet_ms", "noisy_ms", "injected_share"),
}
SIMULATION = PACKAGE / "simulation"
_QUICK_SIZES = (1, 64, 1024, 8192, 65536, 262144)  # of ping-pongs, bytes
_UNPUBLISHED = ".calls"  # folder of the traces themselves: large, and not part of a recording


@dataclass(frozen=True)
class Traced:
    """What was found by traces of real ranks, a table each; all are empty, with the reason, where
    no rank was traced.

    Attributes
    ----------
    network
        LogGOPS parameters of the two ranks, with intervals.
    shares, sizes
        See `function_shares` and `program_sizes`; all programs.
    predicted
        `program`, `ranks`, `round`, `measured_ms`, `simulated_ms`: of each traced run; `waited_ms`:
        how long its ranks were ready and had no CPU, summed over them (the kernel's account).
    beyond
        `program`, `ranks`, `noise`, `seed`, `quiet_ms`, `noisy_ms`, `injected_share`.
    """

    network: pd.DataFrame
    shares: pd.DataFrame
    sizes: pd.DataFrame
    predicted: pd.DataFrame
    beyond: pd.DataFrame


def trace_and_simulate(
    folder: str | Path,
    programs: Sequence[str],
    signatures: Sequence[str],
    *,
    rounds: int = 6,
    length: float = 0.2,
    times: Sequence[int] = (1, 4, 16, 64),
    seeds: int = 5,
    recorded_only: bool = False,
) -> Traced:
    """Trace programs on two ranks, simulate what they did, and extrapolate it.

    Parameters
    ----------
    folder
        Of the campaign of traced runs, and of the tables.
    programs, signatures
        Names of `APPLICATIONS` and of `SIGNATURES`.
    rounds
        Of traced runs; each round has all programs.
    length
        Of a run, see `rank_program`.
    times
        By which the ranks are multiplied: messages are copied, collectives made anew (Hoefler et
        al. 2010).
    seeds
        Of the phases, at each size.
    recorded_only
        Measure nothing; what the folder has.
    """
    folder, why = Path(folder), "" if recorded_only else why_not()
    if recorded_only or why:
        return _read(folder, why or "no traced run was recorded")
    runs = _traced_runs(folder, programs, rounds, length)
    pingpong = _pingpong(folder / _UNPUBLISHED)
    made_from = to_json(
        {
            "runs": runs[["cell", "run", "round", "t0_ns"]].to_dict("records"),
            "pingpong": digest(pingpong.to_csv()),
            "simulated": [list(signatures), list(times), seeds],
            "code": digest_files([*SIMULATION.rglob("*.py"), *SIMULATION.glob("*.so")], SIMULATION),
        }
    )
    made = folder / _UNPUBLISHED / "made-from.json"
    if not made.exists() or made.read_text() != made_from:
        tables = _tables(folder, runs, pingpong, signatures, times, seeds)
        for name, table in tables.items():
            write_atomically(folder / f"{name}.csv", table.to_csv(index=False))
        write_atomically(made, made_from)
    return _read(folder, "no traced run was recorded")


def _traced_runs(folder: Path, programs: Sequence[str], rounds: int, length: float) -> pd.DataFrame:
    """The finished runs of a campaign whose rounds have a traced run of each program."""
    trace = CallTrace(folder / _UNPUBLISHED)
    cells = [Cell(name, rank_program(name, 2, length), compared_with=()) for name in programs]
    return finished(Campaign(folder, cells, rounds, attachments=(trace,)).run())


def _pingpong(folder: Path) -> pd.DataFrame:
    """Ping-pongs between two ranks of the MPI that is here; measured one time."""
    path = folder / f"pingpong-{digest(str(installation()))[:12]}.csv"
    if not path.exists():
        write_atomically(path, measure_pingpong(_QUICK_SIZES, rounds=4).to_csv(index=False))
    return read_csv(path)


def _tables(
    folder: Path,
    runs: pd.DataFrame,
    pingpong: pd.DataFrame,
    signatures: Sequence[str],
    times: Sequence[int],
    seeds: int,
) -> dict[str, pd.DataFrame]:
    """All that follows from traced runs; shares and sizes are those of each program's first."""
    fit = fit_loggops(pingpong)
    parts: dict[str, list[pd.DataFrame]] = {"shares": [], "sizes": [], "predicted": []}
    last: dict[str, Calls] = {}
    for run in each(runs.to_dict("records"), "simulating traced runs"):
        calls = read_calls(folder / _UNPUBLISHED / f"run-{run['run']:06d}")
        name = run["cell"]
        if name not in last:
            parts["shares"].append(function_shares(calls, name))
            parts["sizes"].append(program_sizes(calls, name))
        parts["predicted"].append(_predicted(run, calls, fit.network))
        last[name] = calls
    return {
        **{name: pd.concat(rows, ignore_index=True) for name, rows in parts.items()},
        "network": fit.table.reset_index(),
        "beyond": _beyond(last, signatures, times, seeds, fit.network),
    }


def _read(folder: Path, why: str) -> Traced:
    def read(name: str) -> pd.DataFrame:
        path = folder / f"{name}.csv"
        empty = because(pd.DataFrame(columns=list(_TABLES[name])), why)
        return read_csv(path) if path.exists() else empty

    return Traced(**{name: read(name) for name in _TABLES})


def span_ms(calls: Calls) -> float:
    """From the first end of MPI_Init to the last call of a rank but MPI_Finalize: what a schedule
    of these calls takes.
    """
    inner = calls.table[calls.table["call"] != "MPI_Finalize"]
    return float(inner["end_ns"].max()) / 1e6


def _predicted(run: Mapping[str, Any], calls: Calls, network: LogGOPS) -> pd.DataFrame:
    schedule = schedule_of_calls(without_end(calls), name=run["cell"])
    row = {
        "program": run["cell"],
        "ranks": calls.ranks,
        "round": run["round"],
        "measured_ms": span_ms(calls),
        "simulated_ms": simulate(schedule, network).makespan_ns / 1e6,
        "waited_ms": run["runqueue_wait_ns"] / 1e6,
    }
    return pd.DataFrame([row])


def without_end(calls: Calls) -> TracedCalls:
    """The calls less MPI_Finalize, whose length is the launcher's."""
    kept = calls.table["call"] != "MPI_Finalize"
    places = np.cumsum(kept.to_numpy()) - 1
    waits = calls.waits.assign(row=places[calls.waits["row"].to_numpy(int)])
    return TracedCalls(calls.table[kept].reset_index(drop=True), waits, calls.comms, calls.ranks)


def _beyond(
    calls: Mapping[str, Calls],
    signatures: Sequence[str],
    times: Sequence[int],
    seeds: int,
    network: LogGOPS,
) -> pd.DataFrame:
    """Each program's last trace on more ranks, with and without noise."""
    rows = []
    cases = [(name, factor) for name in calls for factor in times]
    for name, factor in each(cases, "simulating more ranks"):
        schedule = schedule_of_calls(without_end(calls[name]), times=factor, name=name)
        quiet_ms = simulate(schedule, network).makespan_ns / 1e6
        for noise in signatures:
            for seed in range(seeds):
                struck = signature_on_ranks(SIGNATURES[noise], schedule.ranks, seed)
                row = {
                    "program": name,
                    "ranks": schedule.ranks,
                    "noise": noise,
                    "seed": seed,
                    "quiet_ms": quiet_ms,
                    "noisy_ms": simulate(schedule, network, struck).makespan_ns / 1e6,
                    "injected_share": SIGNATURES[noise].share,
                }
                rows.append(row)
    return pd.DataFrame(rows)


def beyond_table(beyond: pd.DataFrame) -> pd.DataFrame:
    """Accumulated slow-down on simulated ranks.

    Returns
    -------
    DataFrame
        `program`, `ranks`, `noise`, `seeds`, `accumulated` (median over seeds of the phases: the
        slow-down less the share that a lone CPU loses) and its range `accumulated_low`,
        `accumulated_high` over all seeds.
    """
    columns = ["program", "ranks", "noise", "seeds", "accumulated"]
    if beyond.empty:
        empty = pd.DataFrame(columns=[*columns, "accumulated_low", "accumulated_high"])
        return because(empty, why_empty(beyond))
    local = 1 / (1 - beyond["injected_share"]) - 1
    beyond = beyond.assign(accumulated=beyond["noisy_ms"] / beyond["quiet_ms"] - 1 - local)
    found = beyond.groupby(["program", "ranks", "noise"], sort=False)["accumulated"]
    table = found.agg(seeds="size", accumulated="median", low="min", high="max").reset_index()
    names = {"low": "accumulated_low", "high": "accumulated_high"}
    return table.rename(columns=names)
