"""Noise signatures in the simulator: what they take of each rank, and what programs lose to them.

Owns the simulated half of stage 70.
"""

from functools import partial

import numpy as np
import pandas as pd

from ...noise.presets import INCREASING_US, increasing_share
from ...noise.signature import Signature
from ...simulation import patterns, signature_on_ranks, simulate
from ...simulation.signatures import signature_detours
from ..scale.applications import application_slowdown, injected_codes


def simulated_share(
    signature: Signature, ranks: int = 8, seconds: float = 20.0, seed: int = 0
) -> np.ndarray:
    """Share of its time that each rank loses to the noise, float64[ranks]."""
    calc = patterns.compute(ranks, round(seconds * 1e9))
    found = simulate(calc, noise=signature_on_ranks(signature, ranks, seed))
    return 1 - seconds * 1e9 / np.asarray(found.finish_ns, float)


def increasing_slowdown(ranks: int, share: float, seeds: int) -> pd.DataFrame:
    """Figure 3 of the paper, simulated: the accumulated slow-down of POP and CTH, by net share.

    Parameters
    ----------
    ranks
        Simulated; the paper does not print those of the figure.
    share
        Of POP's published number of collectives; CTH does a twentieth as many steps.
    seeds
        Replicates of each.

    Returns
    -------
    One row a code, duration and frequency: `application`, `ranks`, `duration`, `net_percent`,
    `local_percent` (what a lone computation accumulates: share / (1 − share) less the share),
    `accumulated_percent` (the slow-down less the net noise, median of the replicates), `low`,
    `high` (95 %) and `seeds`.
    """
    families = {us: increasing_share(us) for us in INCREASING_US}
    signatures = {name: one for family in families.values() for name, one in family.items()}
    noises = {name: signature_detours(one) for name, one in signatures.items()}
    found = application_slowdown(partial(_pop_and_cth, ranks, share), noises, seeds=seeds)
    net = 100 * found["noise"].map({name: one.share for name, one in signatures.items()})
    durations = {name: f"{one.duration_us:g} µs" for name, one in signatures.items()}
    more = {name: 100 * (found[name] - 1) - net for name in ("median", "low", "high")}
    return pd.DataFrame(
        {
            "application": found["application"],
            "ranks": found["ranks"],
            "duration": found["noise"].map(durations),
            "net_percent": net,
            "local_percent": 100 * net / (100 - net) - net,
            "accumulated_percent": more["median"],
            "low": more["low"],
            "high": more["high"],
            "seeds": found["seeds"],
        }
    )


def increasing_sentences(table: pd.DataFrame) -> list[str]:
    """What the longest events do to each code, in a sentence each.

    Parameters
    ----------
    table
        Of `increasing_slowdown`.
    """
    said = []
    for code, rows in table.groupby("application", sort=False):
        longest = rows[rows["duration"] == rows["duration"].iloc[-1]]
        least, most = longest.iloc[0], longest.iloc[-1]
        said.append(
            f"{code} on {most['ranks']:,} ranks: events of {most['duration']} accumulate"
            f" {least['accumulated_percent']:+.1f} % ({least['low']:+.1f} to {least['high']:+.1f})"
            f" at {least['net_percent']:g} % of noise, {most['accumulated_percent']:+.1f} %"
            f" ({most['low']:+.1f} to {most['high']:+.1f}) at {most['net_percent']:g} %, where a"
            f" lone computation accumulates {most['local_percent']:+.1f} % (n = {most['seeds']}"
            " replicates)."
        )
    return said


def _pop_and_cth(ranks: int, share: float) -> dict:
    codes = injected_codes(ranks, share)
    return {name: codes[name] for name in ("POP", "CTH")}
