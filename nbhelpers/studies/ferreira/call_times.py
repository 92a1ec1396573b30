"""Collectives under noise, call by call, and what an application's time in MPI consists of
(Ferreira et al. 2008, Figures 4 to 8).

Owns the campaign of the benchmark of collectives and the tables of traced calls.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from ...empty import because, why_empty
from ...measurement import finished, recorded_runs
from ...measurement import series as recorded_series
from ...mpi import Calls, collective_sizes, time_shares
from ...mpi import call_times as traced_times
from ...statistics.claims import Evidence
from ...statistics.robust import trimmed_mean
from .ranks_at_work import NONE, labelled, rank_program, run_cells, why_not

# Figure 8, 128 nodes, 10 Hz x 2500 µs (section 6.2.2): factors of slow-down.
PUBLISHED: Mapping[str, str] = MappingProxyType({"allreduce": "12 to 35", "bcast": "2 to 4"})
_OPTIONS = {"operation": "all", "smallest": 8, "largest": 1 << 18, "factor": 32}
_SLOWDOWN = ("slowdown", "slowdown_low", "slowdown_high", "slowdown_median", "slowdown_trimmed")


def collective_times(
    folder: str | Path,
    signatures: Sequence[str],
    rounds: int,
    *,
    ranks: Sequence[int] = (2,),
    calls: int = 2000,
    span_ms: int = 0,
    seed: int = 8,
    recorded_only: bool = False,
) -> pd.DataFrame:
    """Times of all-reduces, broadcasts, barriers and all-to-alls, with and without noise.

    Parameters
    ----------
    folder
        Of the campaign: each round has a run of each number of ranks under each noise, and each
        run all operations and sizes.
    signatures
        Names of `SIGNATURES`.
    rounds, ranks, calls
        Runs of each cell, numbers of ranks, and values of each operation and size in a run.
    span_ms
        0: every call is a value. Else a value is the mean of several calls in a row, and the values
        of an operation and size take about so long: a signature must have time to strike.
    seed, recorded_only
        As of `rank_runs`.

    Returns
    -------
    DataFrame
        `operation`, `ranks`, `bytes`, `noise`, `round`, `rank`, `values`, `mean_us`, `median_us`,
        `p99_us`, `most_us` (of the values): a row an operation, size, rank and run.
    """
    place = Path(folder)
    if recorded_only and (place / "campaign.json").exists():
        return _summarised(labelled(finished(recorded_runs(place))), recorded_series(place))
    if recorded_only or why_not():
        names = ["operation", "ranks", "bytes", "noise", "round", "rank", "mean_us"]
        why = "no calls were recorded" if recorded_only else why_not()
        return because(pd.DataFrame(columns=names), why)
    options: dict[str, Any] = _OPTIONS | {"before": "nothing", "calls": calls, "span": span_ms}
    workloads = {
        ("collectives", number): rank_program("collectives", number, **options) for number in ranks
    }
    campaign = run_cells(place, workloads, signatures, rounds, seed)
    return _summarised(labelled(finished(campaign.runs())), campaign.series())


def _summarised(runs: pd.DataFrame, values: pd.DataFrame) -> pd.DataFrame:
    """From a row a value to a row an operation, size, rank and run."""
    grouped = values.groupby(["run", "name"], sort=False)["value"]
    table = grouped.agg(
        values="size",
        mean_us="mean",
        median_us="median",
        p99_us=lambda one: one.quantile(0.99),
        most_us="max",
    ).reset_index()
    parts = table["name"].str.split("_", expand=True)
    table = table.assign(operation=parts[0], bytes=parts[1].astype(int), rank=parts[2].astype(int))
    return table.drop(columns="name").merge(runs[["run", "ranks", "noise", "round"]], on="run")


def collective_slowdown(times: pd.DataFrame) -> pd.DataFrame:
    """Mean time of a call under noise over that without, in pairs within a round; all ranks' mean.

    Parameters
    ----------
    times
        Of `collective_times`.

    Returns
    -------
    DataFrame
        `operation`, `ranks`, `bytes`, `noise`, `rounds`, `quiet_us` (median), `slowdown` (mean of
        logarithms) with its 95 % interval (Student over rounds), median and trimmed mean of the
        rounds' ratios, and `published` (128 nodes).
    """
    columns = ("operation", "ranks", "bytes", "noise", "rounds", "quiet_us")
    keys = ["operation", "ranks", "bytes", "round"]
    if times.empty:
        empty = pd.DataFrame(columns=[*columns, *_SLOWDOWN, "published"])
        return because(empty, why_empty(times))
    means = times.groupby([*keys, "noise"], sort=False)["mean_us"].mean().reset_index()
    quiet = means[means["noise"] == NONE].rename(columns={"mean_us": "quiet_us"})
    noisy = means[means["noise"] != NONE].merge(quiet[[*keys, "quiet_us"]], on=keys)
    noisy = noisy.assign(log_ratio=np.log(noisy["mean_us"] / noisy["quiet_us"]))
    rows = []
    for (operation, ranks, size, noise), group in noisy.groupby([*keys[:-1], "noise"]):
        estimate = Evidence(group["log_ratio"].to_numpy(), group["round"].to_numpy()).estimate
        low, high = np.exp(estimate.interval())
        rows.append(
            {
                "operation": operation,
                "ranks": ranks,
                "bytes": size,
                "noise": noise,
                "rounds": estimate.units,
                "quiet_us": group["quiet_us"].median(),
                "slowdown": np.exp(estimate.mean),
                "slowdown_low": low,
                "slowdown_high": high,
                "slowdown_median": np.exp(group["log_ratio"].median()),
                "slowdown_trimmed": np.exp(trimmed_mean(group["log_ratio"])),
                "published": PUBLISHED.get(operation, "–"),
            }
        )
    return pd.DataFrame(rows)


def function_shares(calls: Calls, program: str = "") -> pd.DataFrame:
    """How much of the ranks' time each MPI function takes (Figures 4 to 6).

    Parameters
    ----------
    calls
        Of a traced run.
    program
        For the column of that name.

    Returns
    -------
    DataFrame
        `program`, `function`, `share` (of all ranks' time), `of_communication`, and the rest of
        `nbhelpers.mpi.call_times`; most first.
    """
    names = {
        "call": "function",
        "share_of_time": "share",
        "share_of_communication": "of_communication",
    }
    table = traced_times(calls).reset_index().rename(columns=names)
    return table.assign(program=program)[["program", *names.values(), "calls", "mean_us", "max_us"]]


def program_sizes(calls: Calls, program: str = "") -> pd.DataFrame:
    """How many collectives a program calls, and of how many bytes (Figure 7).

    Returns
    -------
    DataFrame
        `program`, `function`, `operations`, `mean_bytes`, `most_bytes`, and `per_second`.
    """
    found = collective_sizes(calls)
    grouped = found.assign(total=found["bytes"] * found["operations"]).groupby("call", sort=False)
    sums = grouped.agg(
        operations=("operations", "sum"), total=("total", "sum"), most_bytes=("bytes", "max")
    )
    seconds = time_shares(calls)["seconds"].max()
    return pd.DataFrame(
        {
            "program": program,
            "function": sums.index,
            "operations": sums["operations"].to_numpy(),
            "mean_bytes": (sums["total"] / sums["operations"]).to_numpy(),
            "most_bytes": sums["most_bytes"].to_numpy(),
            "per_second": (sums["operations"] / seconds).to_numpy(),
        }
    )


def largest_shares(shares: pd.DataFrame, least: float = 0.01) -> pd.DataFrame:
    """The functions that take this share of any program's time, for a figure; no intervals."""
    names = shares.loc[shares["share"] >= least, "function"].unique()
    table = shares[shares["function"].isin(names)].reset_index(drop=True)
    table = table.assign(share_low=table["share"], share_high=table["share"])
    return because(table, why_empty(shares))


# Section 6.2.2 (means) and 6.1; by the program that stands for the application.
_PUBLISHED_BYTES = {
    ("adaptive", "MPI_Allreduce"): 8.0,
    ("halo3d", "MPI_Allreduce"): 32.0,
    ("halo3d", "MPI_Bcast"): 1024.0,
}


def with_published_sizes(sizes: pd.DataFrame) -> pd.DataFrame:
    """`program_sizes` with `published_bytes` (mean), NaN where none was published."""
    pairs = zip(sizes["program"], sizes["function"], strict=True)
    published = [_PUBLISHED_BYTES.get(pair, np.nan) for pair in pairs]
    return because(sizes.assign(published_bytes=published), why_empty(sizes))
