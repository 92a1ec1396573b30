"""How the claims of Persson et al. 2025 are weighed: two configurations or models against each
other, in our runs of the same round and in the printed tables.

Owns the pairs, their units and strata; the claims themselves stand on the page.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ...statistics.claims import Evidence
from ...statistics.variation import variation_evidence
from ..findings import Finding, claim_of

Sides = tuple[str, str, str]  # a level of the table, and two of its values
NO_SPREAD = "table 2 prints standard deviations averaged over programs, without their spread"
STRATA = ["program", "model", "trace", "epoch"]  # of runs whose variation is compared
_TRACE = ["platform", "program", "noise_config"]  # a worst-case trace: what was chosen anew
_PLATFORM = ["platform", "program"]


def difference(values: pd.DataFrame, sides: Sides) -> pd.DataFrame:
    """First less second of all pairs that agree in everything else.

    Parameters
    ----------
    values
        Logarithms of run times in the column `log`, with what they are of in the index.
    sides
        The level of the index, and which two of its values are compared.

    Examples
    --------
    >>> index = pd.MultiIndex.from_product([["Rm", "TP"], [0, 1]], names=["config", "round"])
    >>> difference(pd.DataFrame({"log": [1, 2, 4, 6]}, index), ("config", "TP", "Rm"))[
    ...     "log"
    ... ].tolist()
    [3, 4]
    """
    level, first, second = sides
    if not {first, second} <= set(values.index.get_level_values(level)):
        return values.iloc[:0]
    return (values.xs(first, level=level) - values.xs(second, level=level)).dropna(subset="log")


def by_round(pairs: pd.DataFrame, unmeasurable: str = "") -> Evidence:
    """Log ratios as evidence: the pairs of a round are one unit, all else in the index a stratum.

    Parameters
    ----------
    pairs
        A column `log`; an index with the level `round`.
    unmeasurable
        Why nothing follows from them; empty if something does.
    """
    strata = pairs.index.droplevel("round").to_numpy()
    rounds = pairs.index.get_level_values("round").to_numpy()
    return Evidence(pairs["log"].to_numpy(), rounds, strata, unmeasurable)


def compare(
    claim: Any,
    values: pd.DataFrame,
    why_not: Mapping[str, str],
    printed: pd.DataFrame,
    **more: Any,
) -> Finding:
    """A claim about two configurations or models, to be judged together with others.

    Parameters
    ----------
    claim
        A row of the published claims: `claim`, `direction`, `margin`, `source`; `quantity`, and
        what of it is compared (`level`, `first`, `second`, `program` where it is about one).
    values
        Logarithms (`log`) and stolen time (`steal_s`), indexed by program, model, config and round;
        where the claim is about slow-downs, also of the disturbed run times (`log_time`); where it
        is about variation, pairs of run times (`first`, `second`) with the columns `STRATA` and
        `round`.
    why_not
        Why a configuration or model cannot be judged, by its name.
    printed
        The paper's own means as logarithms: `slowdown` under noise, and `undisturbed`; with
        platform, program, noise_config, smt, model and config. Each is a mean of 200 runs that
        were measured one after the other, without their spread.
    more
        Further fields of `Finding`.
    """
    sides = claim.level, claim.first, claim.second
    why = "; ".join(why_not[name] for name in sides if name in why_not)
    if claim.quantity == "variation":
        here = variation_evidence(values, STRATA, unmeasurable=why)
        return Finding(claim_of(claim), here, paper=Evidence(unmeasurable=NO_SPREAD))
    pairs = difference(of_program(values, claim.program), sides)
    steal = pairs["steal_s"].to_numpy() if pairs["steal_s"].notna().all() else None
    times = pairs.assign(log=pairs["log_time"]) if "log_time" in pairs else None
    return Finding(
        claim_of(claim),
        by_round(pairs, why),
        paper=printed_pairs(printed, claim.quantity, sides, claim.program),
        steal=steal,
        run_times=None if times is None else by_round(times),
        **more,
    )


def of_program(values: pd.DataFrame, program: object) -> pd.DataFrame:
    """The rows of one program; all, where none is named."""
    named = isinstance(program, str) and program
    return values[values.index.get_level_values("program") == program] if named else values


def printed_pairs(
    logs: pd.DataFrame, quantity: str, sides: Sides, program: object = ""
) -> Evidence:
    """The paper's own evidence of two configurations or models.

    What differs by chance between printed means is the trace, or without noise the platform.

    Parameters
    ----------
    logs
        The argument `printed` of `compare`.
    quantity
        Name of the column that is compared.
    sides
        What is compared, as in `difference`.
    program
        Whose rows count; empty: all.
    """
    values = logs.set_index([*_TRACE, "smt", "model", "config"])[[quantity]]
    chosen = of_program(values.set_axis(["log"], axis=1), program)
    pairs = difference(chosen, sides).reset_index()
    of_traces = quantity == "slowdown"
    units = pairs[_TRACE if of_traces else _PLATFORM].astype(str).agg(" ".join, axis=1)
    unit = "traces" if of_traces else "programs on platforms"
    return Evidence(pairs["log"].to_numpy(), units, pairs["program"], unit=unit)
