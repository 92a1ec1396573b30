"""Tables of the stage on scale as its page shows them, and sentences that read them."""

import pandas as pd

from ...simulation import Result
from .results import Row

_SYSTEM_COLUMNS = [
    "noise",
    "overhead_share",
    "ideal_us",
    "noisy_us",
    "median",
    "low",
    "high",
    "overhead_rank",
    "slowdown_rank",
    "ranks",
    "seeds",
    "detours",
]
_BOTTLENECK_COLUMNS = [
    "speed",
    "ranks",
    "ideal_us",
    "noisy_us",
    "noisy_low_us",
    "noisy_high_us",
    "ideal_gain_share",
    "gain_share",
    "seeds",
]
_EXTRAPOLATION_COLUMNS = [
    "ranks",
    "made",
    "ideal_ms",
    "error_share",
    "median",
    "low",
    "high",
    "seeds",
]


def beckman_table(ours: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Our slow-downs under Beckman's noises, with the published one and the reference simulator's.

    Parameters
    ----------
    ours
        `Simulations.beckman`.
    published
        The published table `beckman2006-text1`.
    """
    names = {"result": "noise", "published_low": "published", "reference_low": "reference"}
    theirs = published.rename(columns=names)[["noise", "published", "reference"]]
    columns = ["noise", "ranks", "median", "low", "high", "seeds"]
    return ours[columns].merge(theirs, on="noise")


def systems_table(systems: pd.DataFrame) -> pd.DataFrame:
    """Systems by overhead and by slow-down, of `Simulations.systems`."""
    return systems[_SYSTEM_COLUMNS]


def bottleneck_table(speeds: pd.DataFrame) -> pd.DataFrame:
    """Times and gains by speed of the network, of `Simulations.bottleneck`."""
    return speeds[_BOTTLENECK_COLUMNS]


def extrapolation_table(extrapolated: pd.DataFrame) -> pd.DataFrame:
    """Extrapolated and generated programs, of `Simulations.extrapolation`."""
    return extrapolated[_EXTRAPOLATION_COLUMNS]


def path_sentence(hits: pd.DataFrame, loop: Result) -> str:
    """How many detours of a run lie on its critical path, and what they cost.

    Parameters
    ----------
    hits
        Of `on_path`.
    loop
        The run.
    """
    delay_us = (loop.makespan_ns - loop.ideal.makespan_ns) / 1e3
    return (
        f"{(hits['path_ns'] > 0).sum()} of {len(hits)} detours lie on the critical path; they"
        f" delay the run by {delay_us:.0f} µs."
    )


def regular_sentence(regular: pd.DataFrame) -> str:
    """How much regular noise slows a collective on the largest number of ranks.

    Parameters
    ----------
    regular
        `Simulations.regular`.
    """
    alone = regular[~regular["cosched"]].iloc[-1]
    together = regular[regular["cosched"]].iloc[-1]
    return (
        f"Regular noise of 10 % slows a single dissemination on {alone['ranks']:,} ranks"
        f" **{alone['median']:.1f}** times ({alone['low']:.1f} to {alone['high']:.1f}, n ="
        f" {alone['seeds']} seeds), co-scheduled {together['median']:.1f} times."
    )


def correlation_sentence(results: dict[str, Row]) -> str:
    """Whether the systems with more overhead are those that slow collectives down more.

    Parameters
    ----------
    results
        `Simulations.results`.
    """
    row = results["overhead-rank"]
    return (
        f"The rank correlation of overhead and slow-down is {row['median']:+.2f} ({row['case']})."
    )


def codes_sentence(codes: pd.DataFrame) -> str:
    """How much the same noise slows programs, from the least to the most affected.

    Parameters
    ----------
    codes
        `Simulations.codes`.
    """
    least, most = (
        codes.loc[place] for place in (codes["median"].idxmin(), codes["median"].idxmax())
    )
    return (
        f"{100 * most['overhead_share']:.3g} % of noise slows programs on {most['ranks']:,} ranks"
        f" **{least['median']:.2f}** to **{most['median']:.3g}** times, by its shape:"
        f" {_case(least)}, {_case(most)}; n = {most['seeds']} seeds."
    )


def _case(row: pd.Series) -> str:
    return (
        f"{row['application']} under {row['noise']} {row['median']:.3g} ({row['low']:.3g} to"
        f" {row['high']:.3g})"
    )


def verdicts_sentence(results: pd.DataFrame) -> str:
    """How many published results are reproduced, and which are not.

    Parameters
    ----------
    results
        Of `report.published_results`.
    """
    judged = results[results["verdict"] != ""]
    counts = judged["verdict"].value_counts()
    numbers = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    failed = judged[judged["verdict"] == "not reproduced"]
    cases = "; ".join(
        f"{row['result']} ({row['ours']:.3g}, published {row['published']})"
        for row in failed.to_dict("records")
    )
    return f"Of {len(judged)} published results judged: {numbers or 'none'}." + (
        f" Not reproduced: {cases}." if cases else ""
    )
