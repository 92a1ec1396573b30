"""What random phases of the noise cost beyond the same noise on all CPUs at once.

Owns the pairs of runs at random phases and co-scheduled, the table, and its sentence. Both are
injected alike, so what injection takes beyond its own time (wake-ups, emptied caches) is in both;
only waiting for noise of other ranks is not in the co-scheduled one (Ferreira et al. 2008,
section 4).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from ...empty import because, why_empty
from ...statistics.claims import Claim
from ...statistics.evidence import Evidence
from .accumulated import effects_of, paired

COSCHEDULED = ", co-scheduled"
ALL = "all"
COLUMNS = (
    *("program", "ranks", "noise", "rounds"),
    *("extra", "extra_low", "extra_high", "injected_share", "effect"),
)
_MORE = Claim("random phases cost more than the same noise on all CPUs at once", "above")


def phases_table(runs: pd.DataFrame) -> pd.DataFrame:
    """How much longer runs take at random phases than when all CPUs are struck at once.

    Parameters
    ----------
    runs
        Of `rank_runs`.

    Returns
    -------
    DataFrame
        One row a program, number of ranks and signature that was injected both ways, and one for
        all of a number of ranks (program and noise "all", each case weighted equally): `rounds`,
        `extra` (time less injected noise, at random phases over co-scheduled, less 1) with its
        95 % interval over rounds (`extra_low`, `extra_high`), `injected_share` (of the run time,
        at random phases), `effect` (as in `accumulated_table`), all rows judged together with a
        margin of 1 %.
    """
    pairs, rows, evidence = _both_ways(paired(runs)), [], []
    for (program, ranks, noise), group in _groups(pairs):
        cases = group["program"].astype(str) + ", " + group["noise"].astype(str)
        evidence.append(
            Evidence(
                group["log_ratio"].to_numpy(float), group["round"].to_numpy(), cases.to_numpy()
            )
        )
        estimate = evidence[-1].estimate
        low, high = np.expm1(estimate.interval())
        rows.append(
            {
                "program": program,
                "ranks": ranks,
                "noise": noise,
                "rounds": estimate.units,
                "extra": np.expm1(estimate.mean),
                "extra_low": low,
                "extra_high": high,
                "injected_share": float((group["injected_s"] / group["quiet_seconds"]).mean()),
            }
        )
    effects = effects_of(_MORE, evidence)
    table = pd.DataFrame(rows, columns=list(COLUMNS[:-1])).assign(effect=effects)
    why = why_empty(runs) or "no signature was injected both at random phases and co-scheduled"
    return because(table, why)


def _groups(pairs: pd.DataFrame) -> Iterator[tuple[tuple[str, int, str], pd.DataFrame]]:
    """Each case, then all cases of each number of ranks that has several."""
    yield from pairs.groupby(["program", "ranks", "noise"])
    for ranks, group in pairs.groupby("ranks"):
        if len(group[["program", "noise"]].drop_duplicates()) > 1:
            yield (ALL, ranks, ALL), group


def _both_ways(pairs: pd.DataFrame) -> pd.DataFrame:
    """Pairs at random phases; `log_ratio` is to the co-scheduled one of the same round."""
    keys = ["program", "ranks", "noise", "round"]
    is_coscheduled = pairs["noise"].astype(str).str.endswith(COSCHEDULED)
    at_once = pairs.loc[is_coscheduled, [*keys, "log_ratio"]]
    at_once = at_once.assign(noise=at_once["noise"].astype(str).str.removesuffix(COSCHEDULED))
    both = pairs[~is_coscheduled].merge(at_once, on=keys, suffixes=("", "_at_once"))
    return both.assign(log_ratio=both["log_ratio"] - both["log_ratio_at_once"])


def phases_sentence(table: pd.DataFrame) -> str:
    """In how many cases random phases cost more, and the largest case.

    Parameters
    ----------
    table
        Of `phases_table`.
    """
    if table.empty:
        return f"What waiting for other ranks' noise costs is not shown: {why_empty(table)}."
    pooled = table["program"] == ALL
    cases = table[~pooled]
    counts = cases["effect"].value_counts()
    top = cases.loc[cases["extra"].idxmax()]
    together = "".join(
        f" On {row.ranks} ranks, all cases together: {_more(row)}, {row.effect}."
        for row in table[pooled].itertuples()
    )
    return (
        f"Against the same noise on all CPUs at once, random phases cost more in"
        f" {counts.get('amplified', 0)} of {len(cases)} cases, less in"
        f" {counts.get('absorbed', 0)}, neither in {counts.get('neither', 0)};"
        f" {counts.get('open', 0)} are open.{together} The largest single difference is"
        f" {_more(top)}: {top['program']} on {top['ranks']} ranks, {top['noise']}."
    )


def _more(row: Any) -> str:
    return (
        f"{row.extra:+.1%} ({row.extra_low:+.1%} to {row.extra_high:+.1%}, n = {row.rounds} rounds)"
    )
