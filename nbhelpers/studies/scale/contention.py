"""What the plain model leaves out where messages share links: beside a packet simulator's cases.

Owns the cases' flows and their simulation, plain and on a fat tree.
"""

import numpy as np
import pandas as pd

from ...errors import InputError
from ...progress import each
from ...simulation import LogGOPS, Schedule, simulate
from ...simulation.topology import FatTree
from ...simulation.traffic import messages, permutation

WIRE = 4150 / 4086  # bytes on the wire for a byte of payload, as in the cases
GAP_NS = 8 / 100 * WIRE  # of a byte at 100 Gb/s
OVERSUBSCRIPTION = {"oversubscribed": 4.0}


def contention_table(cases: pd.DataFrame, seeds: int = 9) -> pd.DataFrame:
    """The plain model and shared links beside the packet simulator, case by case.

    Parameters
    ----------
    cases
        `published_table("olteanu2022-flows1")`, or rows of it; `one` gives the latency.
    seeds
        Of permutations, and of the ways of "hash".

    Returns
    -------
    DataFrame
        A row a case: `case`, `flows`, `published_us` (the median of its runs), `published_low_us`,
        `published_high_us`, `bound_us` (the target of the simulator's own validation), `plain_us`,
        `shared_us` (median over seeds), `low_us`, `high_us` (least and most), `seeds`,
        `plain_error` and `error` (shares: ours over the published, less 1).

    Raises
    ------
    InputError
        The case `one` is missing, or a pattern that is not known.

    Notes
    -----
    A receiver takes each message on a CPU and NIC of its own. All flows begin at once, and those of
    a node share its NIC. Overheads are 0; the latency makes the case `one` right.
    """
    if "one" not in set(cases["case"]):
        raise InputError("the case `one` is missing", where="contention_table")
    one = cases.set_index("case").loc["one"]
    network = LogGOPS(
        L=float(one["middle_us"]) * 1e3 - (int(one["bytes"]) - 1) * GAP_NS,
        o=0,
        g=0,
        G=GAP_NS,
        S=2**40,
    )
    rows = list(cases.itertuples())
    return pd.DataFrame(
        [_row(case, network, seeds) for case in each(rows, "flows that share links", "cases")]
    )


def _row(case: "pd.Series", network: LogGOPS, seeds: int) -> dict:
    drawn = case.pattern == "permutation"
    found = [_both(case, network, seed) for seed in range(seeds if drawn else 1)]
    plain_us, shared_us = np.array(found).T / 1e3
    published_us, middle_us = float(case.middle_us), float(np.median(shared_us))
    return {
        "case": case.case,
        "flows": int(case.flows),
        "published_us": published_us,
        "published_low_us": float(case.low_us),
        "published_high_us": float(case.high_us),
        "bound_us": float(case.bound_us),
        "plain_us": float(np.median(plain_us)),
        "shared_us": middle_us,
        "low_us": float(shared_us.min()),
        "high_us": float(shared_us.max()),
        "seeds": len(found),
        "plain_error": float(np.median(plain_us)) / published_us - 1,
        "error": middle_us / published_us - 1,
    }


def _both(case: "pd.Series", network: LogGOPS, seed: int) -> tuple[float, float]:
    """Makespans, ns: in the plain model, and with shared links."""
    schedule = flows_of(case, seed)
    pods = None if np.isnan(case.leaves_per_pod) else int(case.leaves_per_pod)
    tree = FatTree(
        network=network,
        nodes_per_leaf=int(case.nodes_per_leaf),
        leaves_per_pod=pods,
        oversubscription=OVERSUBSCRIPTION.get(case.case, 1.0),
        routing=case.routing,
        nic="together",
        seed=seed,
    )
    return simulate(schedule, network).makespan_ns, simulate(schedule, tree).makespan_ns


def flows_of(case: "pd.Series", seed: int = 0) -> Schedule:
    """The messages of a case.

    Parameters
    ----------
    case
        A row of the published table.
    seed
        Of a permutation.

    Raises
    ------
    InputError
        An unknown pattern.
    """
    nodes, flows, size = int(case.nodes), int(case.flows), int(case.bytes)
    if case.pattern == "permutation":
        return permutation(nodes, size, seed)
    others = np.arange(1, flows + 1)
    pairs: dict[str, tuple] = {
        "single": ([0], [nodes - 1]),
        "bidirectional": ([0, nodes - 1], [nodes - 1, 0]),
        "incast": (others % nodes, np.zeros(flows, int)),
        "shift": (np.arange(nodes), (np.arange(nodes) + int(case.nodes_per_leaf)) % nodes),
        "outcast-incast": (
            [1, *[2] * 10, *[3] * 10],
            [0, 0, *range(4, 13), 0, *range(13, 22)],
        ),
    }
    if case.pattern not in pairs:
        raise InputError(f"no pattern {case.pattern!r}", where="flows_of", fix=", ".join(pairs))
    source, target = pairs[case.pattern]
    return messages(nodes, source, target, size, name=case.case, apart=True)


def incast_sentence(table: pd.DataFrame) -> str:
    """How far off both are on incasts and on all other cases.

    Parameters
    ----------
    table
        Of `contention_table`.
    """
    is_incast = table["case"].str.startswith("incast")
    incasts, others = table[is_incast], table[~is_incast]
    worst = incasts.loc[incasts["flows"].idxmax()]
    return (
        f"With a NIC a message the plain model ends an incast of {worst['flows']} nodes"
        f" {worst['published_us'] / worst['plain_us']:.0f} times too early. With shared links the"
        f" {len(incasts)} incasts are {_span(incasts['error'])} off, and the {len(others)} other"
        f" cases {_span(others['error'])}."
    )


def _span(errors: pd.Series) -> str:
    return f"{errors.min():+.1%} to {errors.max():+.1%}".replace("-", "−")
