"""Which mitigations the autopilot tries: those of the factors found that can be done here.

Owns the choice, the reasons against the others, and the run that proves that a mitigation takes
effect.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import pandas as pd

from ..errors import NoisebookError
from ..measurement import Attachment, run_once
from ..workloads import Workload
from .knowledge import Mitigation, explain_factor, mitigations
from .steps import Decision, Steps
from .treatment import treatment_cells

LARGER_BUDGET = "a larger budget"
SEVERAL_CPUS = 1.3  # CPU time over run time from which a program counts as parallel


def wanted_mitigations(
    candidates: list[str] | None, factors: list[str], general: bool
) -> dict[str, str]:
    """Mitigations to try, and the factor each is against.

    Parameters
    ----------
    candidates
        These and no others; None: those of the factors.
    factors
        Ids, the most important first. Of each, the cheapest and safest mitigation comes first; then
        the second of each, and so on.
    general
        Take the general ones if there are none.

    Returns
    -------
    Mitigation id -> factor id, or "".
    """
    against = {factor: _cheapest_first(factor) for factor in factors}
    if candidates is not None:
        known = {name: factor for factor in reversed(factors) for name in against[factor]}
        return {name: known.get(name, "") for name in candidates}
    wanted: dict[str, str] = {}
    for place in range(max(map(len, against.values()), default=0)):
        for factor, names in against.items():
            if place < len(names):
                wanted.setdefault(names[place], factor)
    if not wanted and general:
        wanted = {name: "" for name, mitigation in mitigations().items() if mitigation.general}
    return wanted


def _cheapest_first(factor: str) -> list[str]:
    """The mitigations of a factor that act by themselves."""
    known = [mitigations()[name] for name in explain_factor(factor).mitigations]
    return [item.id for item in sorted(known, key=lambda item: item.cost) if item.automated]


class Choice:
    """The choice of mitigations, stored for later calls.

    Parameters
    ----------
    workload
        The untreated one.
    steps
        Where the choice is stored, as the step "choice".
    risk
        The highest that is tried.
    notify
        Called with a sentence before each proof.
    attachments
        Accompany the proof, as every run.

    Attributes
    ----------
    not_tried
        Rows with mitigation, name, reason, fix, and possible (whether it could be done then).
    """

    def __init__(
        self,
        workload: Workload,
        steps: Steps,
        risk: str,
        notify: Callable[[str], object],
        attachments: Sequence[Attachment] = (),
    ):
        self.attachments = tuple(attachments)
        self.workload = workload
        self.steps = steps
        self.risk = risk
        self.notify = notify
        self.not_tried: list[dict[str, Any]] = []

    def of(self, wanted: dict[str, str], runs: pd.DataFrame, affordable: int) -> list[str]:
        """Those that can be done here and, in a run for the proof, take effect.

        Parameters
        ----------
        wanted
            Of `wanted_mitigations`.
        runs
            Of the first measurement.
        affordable
            How many trials the budget allows; what is chosen in a later call is tried beyond it.

        Raises
        ------
        InputError
            Nothing was chosen, and only recorded data may be used.
        """
        stored = self.steps.required("choice")
        if stored is None:
            return self._extend(
                {"wanted": [], "chosen": [], "not_tried": []}, wanted, runs, affordable
            )
        if not self._new(stored, wanted):
            return self._chosen_before(stored, wanted)
        return self._extend(stored, wanted, runs, math.inf)

    def _new(self, stored: Decision, wanted: dict[str, str]) -> list[str]:
        """What was not wanted before, and what was not possible then and is now."""
        if self.steps.recorded_only:
            return []
        impossible = [
            row["mitigation"] for row in stored["not_tried"] if not row.get("possible", True)
        ]
        return [
            name
            for name in wanted
            if name not in stored["wanted"]
            or (name in impossible and mitigations()[name].possible(self.workload))
        ]

    def _chosen_before(self, stored: Decision, wanted: dict[str, str]) -> list[str]:
        # recorded for factors that this version does not find in its runs: then everything counts
        everything = not set(wanted) <= set(stored["wanted"])
        self.not_tried = [
            row for row in stored["not_tried"] if everything or row["mitigation"] in wanted
        ]
        return [name for name in stored["chosen"] if everything or name in wanted]

    def _extend(
        self, stored: Decision, wanted: dict[str, str], runs: pd.DataFrame, affordable: float
    ) -> list[str]:
        """Add to the choice what is new and can be done, and store it."""
        new = self._new(stored, wanted)
        self.not_tried = [
            row
            for row in stored["not_tried"]
            if row["mitigation"] in wanted and row["mitigation"] not in new
        ]
        chosen = [name for name in stored["chosen"] if name in wanted]
        parallel = _is_parallel(runs)
        for name in new:
            reason, fix = self._objection(mitigations()[name], parallel)
            if not reason and len(chosen) >= affordable:
                reason = "the budget does not reach so far: fewer with enough rounds show more"
                fix = LARGER_BUDGET
            elif not reason:
                reason, fix = self._proof(mitigations()[name])
            if reason:
                self.not_tried.append(self._row(mitigations()[name], reason, fix))
            else:
                chosen.append(name)
        self.steps.store(
            "choice",
            {
                "wanted": list(dict.fromkeys([*stored["wanted"], *wanted])),
                "chosen": list(dict.fromkeys([*stored["chosen"], *chosen])),
                "not_tried": self.not_tried,
            },
        )
        return chosen

    def _row(self, mitigation: Mitigation, reason: str, fix: str) -> dict[str, Any]:
        return {
            "mitigation": mitigation.id,
            "name": mitigation.name,
            "reason": reason,
            "fix": fix,
            "possible": bool(mitigation.possible(self.workload)),
        }

    def _objection(self, mitigation: Mitigation, parallel: bool) -> tuple[str, str]:
        """Why a mitigation cannot be tried, and the fix; "" if it can."""
        if too_risky := mitigation.too_risky(self.risk):
            return too_risky, f"risk={mitigation.risk!r}"
        if mitigation.serial and parallel or mitigation.parallel and not parallel:
            return f"the program is {'parallel' if parallel else 'serial'}", ""
        answer = mitigation.possible(self.workload)
        return ("", "") if answer else (answer.reason, answer.fix)

    def _proof(self, mitigation: Mitigation) -> tuple[str, str]:
        """Why a run shows that the mitigation does not take effect, and the fix; "" if it does."""
        try:
            treated = treatment_cells(self.workload, [mitigation])[1]
            self.notify(f"proving that “{mitigation.name}” takes effect")
            with ExitStack() as stack:
                attachments = (*treated.attachments, *self.attachments)
                for attachment in attachments:
                    stack.callback(attachment.close)
                row = run_once(treated.workload, attachments)
        except NoisebookError as error:
            return error.what, error.fix or ""
        return ("", "") if row["status"] == "ok" else (row["message"] or row["status"], "")


def _is_parallel(runs: pd.DataFrame) -> bool:
    cpu_s = float((runs["user_s"] + runs["system_s"]).median())
    return cpu_s / float(runs["wall_seconds"].median()) > SEVERAL_CPUS
