"""Closed forms of collectives in the LogGOPS model, to check the simulation against (Hoefler,
Schneider, Lumsdaine 2010, verification).
"""

from collections.abc import Sequence

import pandas as pd

from ...errors import InputError
from ...simulation.implicit import evaluate
from ...simulation.loggops import LogGOPS
from .collectives import DEFAULT_NETWORK

PATTERNS = ("scatter", "gather", "binomial_bcast", "dissemination")


def closed_forms(
    ranks: Sequence[int],
    bytes: Sequence[int] = (1,),
    network: LogGOPS = DEFAULT_NETWORK,
    patterns: Sequence[str] = PATTERNS,
) -> pd.DataFrame:
    """Simulated and calculated time of linear scatter and gather, binomial tree and dissemination.

    With s bytes, h = 2o + L + (s − 1) max(G, O), sp = max(o + (s − 1)O, g + (s − 1)G) and rp =
    max(o + (s − 1) max(G, O), g + (s − 1)G): scatter (P − 2) sp + h, gather o + L + (P − 2) rp + o
    + (s − 1) max(G, O), binomial tree log2(P) h if h ≥ sp, dissemination ⌈log2 P⌉ h if h ≥ g + (s −
    1)G.

    Parameters
    ----------
    ranks
        At least 2; powers of two for the binomial tree.
    bytes
        At least 1, at most S.
    network
        Its parameters.
    patterns
        Names of collectives.

    Returns
    -------
    `pattern`, `ranks`, `bytes`, `calculated_us`, `simulated_us`, `difference_ns`.

    Raises
    ------
    InputError
        A case that a form does not hold for.
    """
    rows = []
    for pattern in patterns:
        for size in bytes:
            for number in ranks:
                calculated = _calculated(pattern, number, size, network)
                simulated = evaluate(pattern, number, network, bytes=size).makespan_ns
                rows.append(
                    {
                        "pattern": pattern,
                        "ranks": number,
                        "bytes": size,
                        "calculated_us": calculated / 1e3,
                        "simulated_us": simulated / 1e3,
                        "difference_ns": round(simulated - calculated, 3),
                    }
                )
    return pd.DataFrame(rows)


def _calculated(pattern: str, ranks: int, size: int, net: LogGOPS) -> float:
    more, per_byte = size - 1, max(net.G, net.O)
    hop = 2 * net.o + net.L + more * per_byte
    send = max(net.o + more * net.O, net.g + more * net.G)
    receive = max(net.o + more * per_byte, net.g + more * net.G)
    rounds = (ranks - 1).bit_length()
    if (
        ranks < 2
        or size < 1
        or (pattern == "binomial_bcast" and ranks & (ranks - 1))
        or (pattern in ("binomial_bcast", "dissemination") and hop < max(send, receive))
    ):
        raise InputError(
            f"the closed form of {pattern} does not hold on {ranks} ranks with {size} bytes",
            fix="closed_forms' docstring says when it does",
        )
    return {
        "scatter": (ranks - 2) * send + hop,
        "gather": net.o + net.L + (ranks - 2) * receive + net.o + more * per_byte,
        "binomial_bcast": rounds * hop,
        "dissemination": rounds * hop,
    }[pattern]
