"""From real ranks to simulated ones: traced runs of the programs, their simulated time beside the
measured one, and what noise does to them on more ranks than there are here.

Owns the campaign of traced runs and the tables, which lie as CSV beside it: a recorded campaign
shows them, and runs that are there are not traced again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...empty import because
from ...files import digest, write_atomically
from ...measurement import Campaign, Cell, finished
from ...mpi import Calls, CallTrace, installation, read_calls
from ...mpi.pingpong import measure_pingpong
from ...progress import each
from ...reading import read_csv
from ...simulation import simulate
from ...simulation.loggops import Network
from ...simulation.loggops_fit import fit_loggops
from ...simulation.schedule import CALC
from ...simulation.signatures import signature_on_ranks
from ...simulation.traces import schedule_of_calls
from .ranks import SIGNATURES, rank_program, why_not

_TABLES = {  # their columns
    name: columns.split()
    for name, columns in {
        "network": "parameter value low high unit n",
        "shares": "program function share of_communication calls mean_us max_us",
        "sizes": "program function operations mean_bytes most_bytes per_second",
        "predicted": (
            "program ranks round measured_ms simulated_ms waited_ms mpi_ms mpi_simulated_ms"
        ),
        "beyond": "program ranks noise seed quiet_ms noisy_ms injected_share",
    }.items()
}
_WORDS = {"program", "function", "noise", "parameter", "unit"}  # columns of text
_OUTSIDE = ("MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Abort")
_UNPUBLISHED = ".calls"  # folder of the traces themselves: large, and not part of a recording


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
) -> dict[str, pd.DataFrame]:
    """Trace programs on two ranks, simulate what they did, and extrapolate it.

    Parameters
    ----------
    folder
        Folder of the campaign of traced runs, and of the tables.
    programs, signatures
        Names of `APPLICATIONS` and of `SIGNATURES`.
    rounds
        Rounds of traced runs; each round has all programs.
    length
        Length of a run, in multiples of about half a second (`rank_program`).
    times
        Factors by which the ranks are multiplied: messages are copied, collectives made anew
        (Hoefler et al. 2010).
    seeds
        Number of draws of the phases, at each size.
    recorded_only
        Measure nothing; what the folder has.

    Returns
    -------
    Tables by name, without rows but with the reason where no rank was traced: ``network`` (LogGOPS
    parameters of the two ranks, with intervals), ``shares`` and ``sizes`` (see `function_shares`
    and `program_sizes`), ``predicted`` (a row a traced run; `waited_ms`: how long its ranks were
    ready and had no CPU, summed over them, by the kernel's account; `mpi_ms` and
    `mpi_simulated_ms`: their time outside of computation, summed, too) and ``beyond`` (a row a
    program, number of simulated ranks, noise and seed).
    """
    folder, why = Path(folder), "" if recorded_only else why_not()
    if recorded_only or why:
        return _read(folder, why or "no traced run was recorded")
    runs = _traced_runs(folder, programs, rounds, length)
    pingpong = _pingpong(folder / _UNPUBLISHED)
    for name, table in _tables(folder, runs, pingpong, signatures, times, seeds).items():
        write_atomically(folder / f"{name}.csv", table.to_csv(index=False))
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
        write_atomically(path, measure_pingpong(rounds=6).to_csv(index=False))
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
        parts["predicted"].append(_predicted(run, calls, fit.piecewise))
        last[name] = calls
    return {
        **{name: pd.concat(rows, ignore_index=True) for name, rows in parts.items()},
        "network": fit.table.reset_index(),
        "beyond": _beyond(last, signatures, times, seeds, fit.piecewise),
    }


def _read(folder: Path, why: str) -> dict[str, pd.DataFrame]:
    def read(name: str, columns: list[str]) -> pd.DataFrame:
        path = folder / f"{name}.csv"
        kinds = dict.fromkeys(set(columns) & _WORDS, str)
        empty = pd.DataFrame(columns=columns, dtype=float).astype(kinds)
        return read_csv(path) if path.exists() else because(empty, why)

    return {name: read(name, columns) for name, columns in _TABLES.items()}


def span_ms(calls: Calls) -> float:
    """From the first end of MPI_Init to the last begin of MPI_Finalize: what a schedule of these
    calls takes.
    """
    return float(without_end(calls).table["end_ns"].max()) / 1e6


def _predicted(run: Mapping[str, Any], calls: Calls, network: Network) -> pd.DataFrame:
    row = {"program": run["cell"], "ranks": calls.ranks, "round": run["round"]}
    row |= {"waited_ms": run["runqueue_wait_ns"] / 1e6} | mpi_times(calls, network)
    return pd.DataFrame([row])[_TABLES["predicted"]]


def mpi_times(calls: Calls, network: Network) -> dict[str, float]:
    """What a traced run took and takes in the simulation: `measured_ms`, `simulated_ms`; outside of
    computation, all ranks together: `mpi_ms`, `mpi_simulated_ms`.
    """
    calls = without_end(calls)
    computed = schedule_of_calls(calls)
    works = np.flatnonzero(computed.kind == CALC)
    work_ns = float(computed.column("size")[works].sum(dtype=np.int64))
    schedule = schedule_of_calls(calls, costs=network.calls)
    ended_ns, finish_ns = (
        calls.table.groupby("rank")["end_ns"].max(),
        simulate(schedule, network).finish_ns,
    )
    return {
        "measured_ms": span_ms(calls),
        "simulated_ms": float(finish_ns.max()) / 1e6,
        "mpi_ms": float(ended_ns.sum() - work_ns) / 1e6,
        "mpi_simulated_ms": float(finish_ns.sum() - work_ns) / 1e6,
    }


def without_end(calls: Calls) -> Calls:
    """The same calls, as if MPI_Finalize took no time: its length is the launcher's."""
    table = calls.table
    ended = table["end_ns"].mask(table["call"] == "MPI_Finalize", table["start_ns"])
    return replace(calls, table=table.assign(end_ns=ended))


def _beyond(
    calls: Mapping[str, Calls],
    signatures: Sequence[str],
    times: Sequence[int],
    seeds: int,
    network: Network,
) -> pd.DataFrame:
    """Each program's last trace on more ranks, with and without noise."""
    rows = []
    cases = [(name, factor) for name in calls for factor in times]
    for name, factor in each(cases, "simulating more ranks"):
        traced = without_end(calls[name])
        schedule = schedule_of_calls(traced, times=factor, name=name, costs=network.calls)
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


def function_shares(calls: Calls, program: str = "") -> pd.DataFrame:
    """How much of the ranks' time each MPI function takes (Ferreira et al. 2008, Figures 4 to 6).

    Parameters
    ----------
    calls
        Calls of a traced run.
    program
        For the column of that name.

    Returns
    -------
    DataFrame
        `program`, `function`, `share` (of all ranks' time), `of_communication`, `calls`, `mean_us`
        and `max_us`; most first.
    """
    within = calls.table[~calls.table["call"].isin(_OUTSIDE)]
    lengths = (within["end_ns"] - within["start_ns"]) * 1e-3
    by_call = lengths.groupby(within["call"])
    seconds = by_call.sum() * 1e-6
    table = pd.DataFrame(
        {
            "program": program,
            "share": seconds / _region_seconds(calls).sum(),
            "of_communication": seconds / seconds.sum(),
            "calls": by_call.size(),
            "mean_us": by_call.mean(),
            "max_us": by_call.max(),
        }
    )
    table = table.loc[seconds.sort_values(ascending=False).index].rename_axis("function")
    return table.reset_index()[_TABLES["shares"]]


def _region_seconds(calls: Calls) -> pd.Series:
    """The seconds of each rank from the end of MPI_Init to the begin of MPI_Finalize; of a rank
    that died to the end of its last call.
    """
    table = calls.table
    begins = table[table["call"].isin(_OUTSIDE[:2])].groupby("rank")["end_ns"].min()
    ends = table[table["call"] == "MPI_Finalize"].groupby("rank")["start_ns"].min()
    last = table[~table["call"].isin(_OUTSIDE)].groupby("rank")["end_ns"].max()
    return (ends.reindex(begins.index).fillna(last) - begins) * 1e-9


def program_sizes(calls: Calls, program: str = "") -> pd.DataFrame:
    """How many collectives a program calls, and of how many bytes (Ferreira et al. 2008, Figure 7).

    Returns
    -------
    DataFrame
        `program`, `function`, `operations` (one that all ranks take part in counts as one),
        `mean_bytes`, `most_bytes` (of an operation: the most that a rank gives or gets), and
        `per_second`.
    """
    found = calls.table[calls.table["kind"] == "collective"]
    found = found.assign(
        nth=found.groupby(["comm", "rank"]).cumcount(),
        size=found[["bytes", "received_bytes"]].max(axis=1),
    )
    sizes = found.groupby(["comm", "nth", "call"], as_index=False)["size"].max()
    table = sizes.groupby("call")["size"].agg(
        operations="size", mean_bytes="mean", most_bytes="max"
    )
    table["per_second"] = table["operations"] / _region_seconds(calls).max()
    table = table.rename_axis("function").reset_index().assign(program=program)
    return table[_TABLES["sizes"]]
