"""What of the study of Cui et al. 2023 is no matter of its page: how two configurations are
compared in our runs of the same round. The claims are data.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ...statistics.claims import Evidence
from ...statistics.variation import variation_evidence
from ..design import Design
from ..findings import NOT_PRINTED, Finding, claim_of, other_housekeeping

_STRATA = ["benchmark", "compiler"]


def compare(
    claim: Any, values: pd.DataFrame, design: Design, printed: Mapping[str, Evidence]
) -> Finding:
    """A claim about two configurations, to be judged together with others.

    Parameters
    ----------
    claim
        A row of the published claims.
    values
        What is compared, by benchmark, compiler and round (index), a column a configuration.
    design
        What was measured, and what this machine lacks.
    printed
        Evidence of the printed table, by quantity.
    """
    sides = values.reindex(columns=[claim.first, claim.second])
    pairs = sides.set_axis(["first", "second"], axis=1)
    pairs = pairs.where(pairs > 0).dropna().reset_index()
    why = why_not(design, claim.first, claim.second)
    if claim.quantity == "between":
        here = variation_evidence(pairs, _STRATA, unmeasurable=why)
    else:
        strata = pairs["benchmark"] + " " + pairs["compiler"]
        logs = np.log(pairs["first"]) - np.log(pairs["second"])
        here = Evidence(logs.to_numpy(), pairs["round"].to_numpy(), strata.to_numpy(), why)
    threads = {one.name: one.threads for one in design.listed}
    counts = " to ".join(str(threads.get(name, "?")) for name in (claim.first, claim.second))
    dose = claim.dose.format(threads=counts) if isinstance(claim.dose, str) else ""
    has_numbers = claim.printed == "yes"
    paper = printed[claim.quantity] if has_numbers else Evidence(unmeasurable=NOT_PRINTED)
    return Finding(claim_of(claim), here, paper=paper, dose=dose)


def why_not(design: Design, *names: str) -> str:
    """Why configurations cannot be compared: the machine lacks one, it was not measured, or it is
    another treatment than the paper's; empty if they can.

    Parameters
    ----------
    design
        What was measured, and what this machine lacks.
    names
        Names of configurations; ST and MT: the pair of `smt_pair`, where there is none.
    """
    missing = {one.name: one.missing for one in design.listed}
    if "MT" in names:
        has_smt = any(name.startswith("TP-MT") and not why for name, why in missing.items())
        return "no such pair was measured" if has_smt else "each core runs one thread"
    if "RmHK" in names and (dose := other_housekeeping(design, "RmHK")):
        return dose
    for name in names:
        if name not in missing:
            return f"this machine has no {name}"
        if missing[name] or name not in design.chosen:
            return missing[name] or f"{name} was not measured"
    return ""


def smt_pair(design: Design) -> tuple[str, str]:
    """The measured configurations of most threads of which there is one with a thread a core and
    one with two; ``("ST", "MT")`` where there is no such pair.
    """
    numbers = [
        int(name.removeprefix("TP-MT"))
        for name in design.chosen
        if name.startswith("TP-MT") and name.replace("MT", "ST") in design.chosen
    ]
    return (f"TP-ST{max(numbers)}", f"TP-MT{max(numbers)}") if numbers else ("ST", "MT")
