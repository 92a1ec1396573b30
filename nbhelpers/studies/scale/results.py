"""The rows of the studies that stand beside published results, by the names that these have in
data/published.

`nbhelpers.report.published_results` puts them there.
"""

import numpy as np
import pandas as pd

from ...statistics.evidence import Evidence
from .collectives import rank_correlation

Row = dict[str, object]
REFERENCE_RANKS = (2, 8, 32, 128, 512, 2048, 32768)  # 8192 has a row of its own
REFERENCE_SYSTEMS = ("alps", "azure-hc", "aws-efa", "daint", "deep-est")
REFERENCE_SPEEDS = (0.1, 1, 10)


def collective_results(
    regular: pd.DataFrame,
    beckman: pd.DataFrame,
    systems: pd.DataFrame,
    speeds: pd.DataFrame,
    messages: pd.DataFrame,
    loops: pd.DataFrame,
    together: pd.DataFrame,
) -> dict[str, Row]:
    """Of single collectives.

    Parameters
    ----------
    regular
        `scaling` of 1000 Hz x 100 µs, co-scheduled and not.
    beckman
        `scaling` of Beckman's noises.
    systems
        `overhead_and_slowdown`.
    speeds
        `bottleneck` of one noise.
    messages
        `scaling` with a column `bytes`.
    loops
        `pipelining`.
    together
        `scaling` of Alps' noise, co-scheduled.
    """
    near = regular[regular["ranks"] == regular.loc[regular["ranks"] <= 8192, "ranks"].max()]
    found = {
        f"{name}-8192": _row(near[near["cosched"] == together].iloc[0])
        for name, together in (("regular", False), ("cosched", True))
    }
    by_noise = {row["noise"]: _row(row) for _, row in beckman.iterrows()}
    return (
        _sizes(regular)
        | found
        | by_noise
        | _systems(systems)
        | _times(speeds)
        | {
            "beckman-32k": by_noise["1000 Hz x 200 us"],
            "overhead-rank": _correlation(systems),
            "network-gain": _gain(speeds),
            "one-mib": _absorbed(messages),
            "cosched-alps": _row(together.iloc[0]),
        }
        | _loops(loops)
    )


def _sizes(regular: pd.DataFrame) -> dict[str, Row]:
    """By number of ranks: those that the reference was run with, and the largest."""
    alone = regular[~regular["cosched"]]
    known = alone[alone["ranks"].isin(REFERENCE_RANKS)]
    return {f"regular-{row['ranks']}": _row(row) for _, row in known.iterrows()} | {
        "regular-largest": _row(alone.sort_values("ranks").iloc[-1])
    }


def _systems(systems: pd.DataFrame) -> dict[str, Row]:
    chosen = systems[systems["noise"].isin(REFERENCE_SYSTEMS)]
    return {
        f"system-{row['noise']}": _row(
            row, f"{row['ranks']} ranks, {100 * row['overhead_share']:.2f} % overhead"
        )
        for _, row in chosen.iterrows()
    }


def _times(speeds: pd.DataFrame) -> dict[str, Row]:
    return {
        f"time-{row['speed']:g}": {
            "median": row["noisy_us"],
            "low": row["noisy_low_us"],
            "high": row["noisy_high_us"],
            "seeds": row["seeds"],
            "case": f"{row['ranks']} ranks; without noise {row['ideal_us']:.1f}",
        }
        for _, row in speeds[speeds["speed"].isin(REFERENCE_SPEEDS)].iterrows()
    }


def _row(row: pd.Series, case: str = "") -> Row:
    return {name: row[name] for name in ("median", "low", "high", "seeds")} | {
        "case": case or f"{row['ranks']} ranks"
    }


def _correlation(systems: pd.DataFrame) -> Row:
    correlation, p_value = rank_correlation(systems)
    return {
        "median": correlation,
        "seeds": int(systems["seeds"].min()),
        "case": f"{len(systems)} systems, p = {p_value:.2g}, {systems['ranks'].max()} ranks",
    }


def _gain(speeds: pd.DataFrame) -> Row:
    fast = speeds.sort_values("speed").iloc[-1]
    return {
        "median": fast["gain_share"],
        "seeds": fast["seeds"],
        "case": (
            f"{fast['noise']}, {fast['ranks']} ranks; without noise {fast['ideal_gain_share']:.0%}"
        ),
    }


def _absorbed(messages: pd.DataFrame) -> Row:
    """Of the system that the small messages suffer most on."""
    small, large = (
        part.set_index(["noise", "ranks"])["median"] for _, part in messages.groupby("bytes")
    )
    worst = small.idxmax()
    return {
        "median": large[worst] / small[worst],
        "seeds": int(messages["seeds"].min()),
        "case": f"{worst[0]}, {worst[1]} ranks",
    }


def _loops(loops: pd.DataFrame) -> dict[str, Row]:
    trees = loops[(loops["pattern"] == "binomial_bcast") & (loops["ranks"] == 128)].set_index(
        "loop"
    )
    return {
        name: {
            "median": trees.loc[loop, "call_us"] / trees.loc[loop, "single_us"],
            "seeds": 1,
            "case": "no noise",
        }
        for name, loop in (("pipelining", "fixed root"), ("rotation", "rotated root"))
    }


def injected_results(calls: dict[str, pd.DataFrame], codes: pd.DataFrame) -> dict[str, Row]:
    """Of loops of collectives and of applications under injected noise (Ferreira et al. 2008).

    Parameters
    ----------
    calls
        `scaling` of the two noises by what was called: allreduce, allreduce-{ranks} (fewer), bcast,
        cosched (all-reduce, co-scheduled).
    codes
        `application_slowdown` of POP, SAGE, CTH; of several rows for a code and a noise the last
        counts. Beside the paper stands what is left after each rank's own overhead is taken off.
    """
    found = {
        f"{what.format(**row)} {row['noise']}": _row(row)
        for what, table in calls.items()
        for _, row in table.iterrows()
    }
    for _, row in codes.iterrows():
        net = row[["median", "low", "high"]] - row["overhead_share"]
        found[f"{row['application']} {row['noise']}"] = net.to_dict() | {
            "seeds": row["seeds"],
            "case": f"skeleton, {row['ranks']} ranks",
        }
    return found | {"ferreira-128": found["allreduce 10 Hz x 2500 us"]}


def application_results(systems: pd.DataFrame, sweep: pd.DataFrame) -> dict[str, Row]:
    """Of applications under published noise.

    Parameters
    ----------
    systems
        `application_slowdown` of POP and AMG under the noise of each published system, on its
        network. The row is the geometric mean of all systems with Student's interval over them.
    sweep
        `traced_sweep`.
    """
    by_mode = sweep.set_index("mode")
    case = f"its trace, 4 ranks, the reference's rule; exact: {by_mode.loc['exact', 'median']:.3f}"
    found = {"sweep3d-serial": _row(by_mode.loc["compat"], case)}
    for name, application in (("pop-scale", "POP"), ("amg-scale", "AMG")):
        rows = systems[systems["application"] == application]
        estimate = Evidence(np.log(rows["median"].to_numpy()), unit="systems").estimate
        low, high = estimate.interval()
        found[name] = {
            "median": np.exp(estimate.mean),
            "low": np.exp(low),
            "high": np.exp(high),
            "seeds": len(rows),
            "case": (
                f"skeleton, {rows['ranks'].iloc[0]} ranks, mean of {len(rows)} published systems"
                f" ({rows['median'].min():.2f} to {rows['median'].max():.2f})"
            ),
        }
    return found
