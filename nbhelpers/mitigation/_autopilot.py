"""What the autopilot decides and keeps: its folder, and which mitigations are tried.

Owns the state file, and the reasons against what is not tried. Fewer mitigations with enough rounds
are better than many that show nothing: 30 rounds of each. In 250 simulated campaigns with one
mitigation that helps, this finds it in 178; rounds planned by the spread of the first runs, 120.
The plain order is the catalogue's. Of 22 tables of held-out causes the first mitigation of that is
known against the cause in 6, of this in 13; one of the first five in 16 and 13, since nothing is
tried where no factor is found (benchmarks/rivals.py choice).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pandas as pd

from ..errors import InputError, NoisebookError, RunError, Unavailable
from ..files import write_json
from ..measurement import Attachment, Campaign, Cell, finished, recorded_runs
from ..reading import read_json
from ..workloads import Workload
from .knowledge import Mitigation, explain_factor, mitigations
from .treatment import why_unproven
from .trials import new_order

STATE = "autopilot.json"
FEWEST_ROUNDS = 12
MOST_ROUNDS = 100
ENOUGH_ROUNDS = 30  # of each mitigation, if the budget lets more than one be tried
LARGER_BUDGET = "a larger budget"
SEVERAL_CPUS = 1.3  # CPU time over run time from which a program counts as parallel

Decision = dict[str, Any]


@dataclass(frozen=True)
class Steps:
    """What was decided and measured so far.

    Parameters
    ----------
    folder
        Holds the state file, and a folder a campaign.
    seed
        Seed of the random orders of the campaigns.
    recorded_only
        True: nothing is measured or decided.
    attachments
        Accompany every run.
    """

    folder: Path
    seed: int
    recorded_only: bool
    attachments: tuple[Attachment, ...] = ()

    def decided(self, step: str) -> Decision | None:
        """The decision of a step; None: it was not made yet."""
        return self._state().get(step)

    def required(self, step: str) -> Decision | None:
        """The decision (`decided`) of a step that every loop has.

        Raises
        ------
        InputError
            It was not made, and `recorded_only` is True.
        """
        decision = self.decided(step)
        if decision is None and self.recorded_only:
            raise InputError(
                f"the step '{step}' of the autopilot was not recorded here",
                where=self.folder / STATE,
                fix="run the stage that measures it: make paper",
            )
        return decision

    def decide(self, step: str, make: Callable[[], Decision]) -> Decision:
        """The decision of a step that every loop has; made and stored if there is none.

        Raises
        ------
        InputError
            It was not made, and `recorded_only` is True.
        """
        decision = self.required(step)
        return self.store(step, make()) if decision is None else decision

    def store(self, step: str, decision: Decision) -> Decision:
        """Write a decision into the state file, and return it."""
        write_json(self.folder / STATE, self._state() | {step: decision})
        return decision

    def _state(self) -> dict[str, Decision]:
        path = self.folder / STATE
        return cast(dict[str, Decision], read_json(path)) if path.exists() else {}

    def runs(
        self,
        step: str,
        make_cells: Callable[[], list[Cell]],
        count: int,
        layers: Sequence[Attachment] = (),
    ) -> pd.DataFrame:
        """The finished runs of a step's campaign.

        Parameters
        ----------
        step
            Name of the step, and of the campaign's folder.
        make_cells
            Makes the cells; recorded runs need neither the program nor its mitigations.
        count
            Runs of each cell.
        layers
            Metric layers of every run.

        Raises
        ------
        RunError
            Fewer runs were recorded, or the program fails.
        Unavailable
            A mitigation can't be done here, and nothing was measured of it.
        """
        if self.recorded_only:
            return self._recorded(step, count)
        try:
            cells = make_cells()
        except Unavailable:
            # it could be done earlier: what was measured then still counts
            if not (self.folder / step / "runs.jsonl").exists():
                raise
            return self._recorded(step, count)
        attached = (*layers, *self.attachments)
        seed = new_order(self.seed) if step.startswith("confirm-") else self.seed
        campaign = Campaign(
            self.folder / step, cells, count, seed, attachments=attached, max_failures=3
        )
        return finished(campaign.run())

    def _recorded(self, step: str, count: int) -> pd.DataFrame:
        folder = self.folder / step
        runs = pd.DataFrame(columns=["cell"])
        if list(folder.glob("runs.jsonl*")):
            runs = finished(recorded_runs(folder))
        if runs.empty or runs["cell"].value_counts().min() < count:
            raise RunError(
                f"fewer than {count} runs of each kind were recorded",
                where=folder,
                why="the campaign did not come to its end",
            )
        return runs

    def spent_s(self) -> float:
        """Seconds measured so far in this folder, by this call and earlier ones."""
        logs = [
            path
            for path in sorted(self.folder.glob("**/runs.jsonl*"))
            if "aside" not in path.relative_to(self.folder).parts
        ]
        return float(sum(recorded_runs(path.parent)["elapsed_seconds"].sum() for path in logs))


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


@dataclass
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

    Attributes
    ----------
    not_tried
        Rows with mitigation, name, reason, fix, and possible (whether it could be done then).
    """

    workload: Workload
    steps: Steps
    risk: str
    notify: Callable[[str], object]
    not_tried: list[dict[str, Any]] = field(default_factory=list, init=False)

    def of(self, wanted: dict[str, str], runs: pd.DataFrame, affordable: int) -> list[str]:
        """Those that can be done here and, in a run for the proof, take effect.

        Parameters
        ----------
        wanted
            Mitigation id -> factor that it is against, as `wanted_mitigations` returns it.
        runs
            Runs of the first measurement.
        affordable
            How many trials the budget allows; what is chosen in a later call is tried beyond it.

        Raises
        ------
        InputError
            Nothing was chosen, and only recorded data may be used.
        """
        stored = self.steps.required("choice")
        known = stored or {"wanted": [], "chosen": [], "not_tried": []}
        new = self._new(known, wanted)
        # recorded for factors that this version does not find in its runs: then everything counts
        every = not new and not set(wanted) <= set(known["wanted"])
        self.not_tried = [
            row
            for row in known["not_tried"]
            if (every or row["mitigation"] in wanted) and row["mitigation"] not in new
        ]
        chosen = [name for name in known["chosen"] if every or name in wanted]
        if new or stored is None:
            room = affordable if stored is None else math.inf
            chosen += self._found_good(new, room - len(chosen), _is_parallel(runs))
            decision = {
                "wanted": list(dict.fromkeys([*known["wanted"], *wanted])),
                "chosen": list(dict.fromkeys([*known["chosen"], *chosen])),
                "not_tried": self.not_tried,
            }
            self.steps.store("choice", decision)
        return chosen

    def _new(self, known: Decision, wanted: dict[str, str]) -> list[str]:
        """What was not wanted before, and what was not possible then and is now."""
        if self.steps.recorded_only:
            return []
        rows = known["not_tried"]
        impossible = [row["mitigation"] for row in rows if not row.get("possible", True)]
        return [
            name
            for name in wanted
            if name not in known["wanted"]
            or (name in impossible and mitigations()[name].possible(self.workload))
        ]

    def _found_good(self, names: list[str], room: float, parallel: bool) -> list[str]:
        """Those that are proved to act, as many as there is room for; the others are noted."""
        good: list[str] = []
        for name in names:
            mitigation = mitigations()[name]
            reason, fix = self._objection(mitigation, parallel)
            if not reason and len(good) >= room:
                reason = "the budget does not reach so far: fewer with enough rounds show more"
                fix = LARGER_BUDGET
            elif not reason:
                reason, fix = self._proof(mitigation)
            if reason:
                row = {"mitigation": name, "name": mitigation.name, "reason": reason, "fix": fix}
                possible = bool(mitigation.possible(self.workload))
                self.not_tried.append(row | {"possible": possible})
            else:
                good.append(name)
        return good

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
        self.notify(f"proving that “{mitigation.name}” takes effect")
        attachments = self.steps.attachments
        try:
            return why_unproven(mitigation, self.workload, attachments, tries=1), ""
        except NoisebookError as error:
            return error.what, error.fix or ""


def _is_parallel(runs: pd.DataFrame) -> bool:
    cpu_s = float((runs["user_s"] + runs["system_s"]).median())
    return cpu_s / float(runs["wall_seconds"].median()) > SEVERAL_CPUS
