"""Where the time of an MPI program went, by function, and how large its collectives are.

The tables behind Figures 4 to 7 of Ferreira, Bridges and Brightwell 2008.
"""

import numpy as np
import pandas as pd

from ._calls import Calls

_OUTSIDE = ("MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Abort")
_QUANTILES = {"p50_us": 0.5, "p90_us": 0.9, "p99_us": 0.99, "max_us": 1.0}


def time_shares(calls: Calls) -> pd.DataFrame:
    """How much of each rank's time was communication (Figures 4(a) and 5).

    Parameters
    ----------
    calls
        Of all ranks, each rank with one thread that calls.

    Returns
    -------
    pandas.DataFrame
        One row a rank: `rank`, `seconds` (from the end of MPI_Init to the begin of MPI_Finalize; of
        a rank that died to the end of its last call), `communication_seconds` (within MPI calls)
        and `communication_share`.
    """
    rows = []
    for rank, own in calls.table.groupby("rank"):
        within = _within(own)
        begin = own.loc[own["call"].isin(_OUTSIDE[:2]), "end_ns"].min()
        end = own.loc[own["call"] == "MPI_Finalize", "start_ns"].min()
        end = within["end_ns"].max() if np.isnan(end) else end
        seconds = (end - begin) * 1e-9 if len(within) else 0.0
        spent = (within["end_ns"] - within["start_ns"]).sum() * 1e-9
        rows.append((rank, seconds, spent, spent / seconds if seconds > 0 else np.nan))
    columns = ["rank", "seconds", "communication_seconds", "communication_share"]
    return pd.DataFrame(rows, columns=columns)


def call_times(calls: Calls) -> pd.DataFrame:
    """Time by MPI function, and how long its calls take (Figures 4(b) and 6).

    Parameters
    ----------
    calls
        Of all ranks.

    Returns
    -------
    pandas.DataFrame
        One row a function, the one that takes the most time first: `call`, `calls` and `seconds` of
        all ranks, `share_of_communication`, `share_of_time` (of all ranks' time), `mean_us`, and
        quantiles of its calls: `p50_us`, `p90_us`, `p99_us`, `max_us`.
    """
    within = _within(calls.table)
    lengths = (within["end_ns"] - within["start_ns"]) * 1e-3
    by_call = lengths.groupby(within["call"])
    table = pd.DataFrame({"calls": by_call.size(), "seconds": by_call.sum() * 1e-6})
    table["share_of_communication"] = table["seconds"] / table["seconds"].sum()
    table["share_of_time"] = table["seconds"] / time_shares(calls)["seconds"].sum()
    table["mean_us"] = by_call.mean()
    for name, quantile in _QUANTILES.items():
        table[name] = by_call.quantile(quantile)
    return table.sort_values("seconds", ascending=False).rename_axis("call").reset_index()


def collective_sizes(calls: Calls) -> pd.DataFrame:
    """How often each collective moves how many bytes (Figure 7).

    Parameters
    ----------
    calls
        Of all ranks.

    Returns
    -------
    pandas.DataFrame
        One row a function, number of ranks and size: `call`, `ranks` (of the communicator), `bytes`
        (the most that a rank gives or gets in the operation), `operations` (one that all ranks take
        part in counts as one), `share` (of the function's operations), and `mean_us` and `max_us`
        of its calls.
    """
    found = calls.table[calls.table["kind"] == "collective"].copy()
    found["nth"] = found.groupby(["comm", "rank"]).cumcount()
    found["us"] = (found["end_ns"] - found["start_ns"]) * 1e-3
    found["size"] = found[["bytes", "received_bytes"]].max(axis=1)
    found["ranks"] = found["comm"].map({comm: len(all_) for comm, all_ in calls.comms.items()})
    operations = found.groupby(["comm", "nth", "call", "ranks"], as_index=False).agg(
        bytes=("size", "max"), mean_us=("us", "mean"), max_us=("us", "max")
    )
    sizes = operations.groupby(["call", "ranks", "bytes"], as_index=False).agg(
        operations=("nth", "size"), mean_us=("mean_us", "mean"), max_us=("max_us", "max")
    )
    sizes["share"] = sizes["operations"] / sizes.groupby("call")["operations"].transform("sum")
    columns = ["call", "ranks", "bytes", "operations", "share", "mean_us", "max_us"]
    return sizes[columns]


def _within(table: pd.DataFrame) -> pd.DataFrame:
    """Calls between MPI_Init and MPI_Finalize."""
    return table[~table["call"].isin(_OUTSIDE)]
