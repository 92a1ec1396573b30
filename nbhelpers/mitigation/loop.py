"""The autopilot: measure, classify, attribute, explain, try what may help, compare, report.

Owns the order of the steps and how the budget is divided; what was decided, and which mitigations
are tried, is in `_autopilot`.
"""

import math
import shlex
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..attribution import explain
from ..errors import InputError, RunError, SettingError, Unavailable, check_choice
from ..measurement import Attachment, Cell, consequences, rates
from ..measurement import metrics as metric_layers
from ..outcomes import COST, with_cost
from ..progress import task
from ..statistics import compare, stopping
from ..workloads import Workload, as_workload
from ._autopilot import (
    ENOUGH_ROUNDS,
    FEWEST_ROUNDS,
    MOST_ROUNDS,
    Choice,
    Decision,
    Steps,
    wanted_mitigations,
)
from .knowledge import RISKS, mitigations, named_mitigation
from .report import Report, as_table, best_first, found_factors, tried_table
from .treatment import BASELINE, treatment_cells
from .trials import SEEMS, Pair, judge_trials

# "all": every layer but those whose description says `in_all: false`, as they disturb the run:
# tracepoints in every call or event, more hardware counters than there are at a time, a profiler
METRICS = ("all",)
# shares of the budget
FIRST_SHARE = 0.35
LAYERS_SHARE = 0.1
# runs of the first measurement; the stopping rule is applied every so many runs
FEWEST_RUNS = 30
MOST_RUNS = 200
RUNS_A_TIME = 10


def autopilot(
    command: str | Sequence[str] | Workload | None = None,
    budget_seconds: float = 300.0,
    *,
    folder: str | Path | None = None,
    metrics: Sequence[str] = METRICS,
    candidates: Iterable[str] | None = None,
    general: bool = False,
    risk: str = "low",
    rule: stopping.Rule | None = None,
    seed: int = 1,
    progress: Callable[[str], object] | None = None,
    recorded_only: bool = False,
    attachments: Sequence[Attachment] = (),
    **described: Any,
) -> Report:
    """Find out why runs differ and what helps.

    Parameters
    ----------
    command
        A `Workload`, or a command for `workloads.program`. Runs are judged by its outcome.
    budget_seconds
        For measuring, in all calls with the same folder together; at least for 30 runs. The
        analysis takes some seconds more. So many mitigations are tried as can be in 30 rounds each.
        One that became possible after an earlier call is tried beyond the budget, in the fewest
        rounds.
    folder
        For runs and decisions, so that the same call goes on after an interruption; None: a
        temporary one.
    metrics
        Metric layers, see `measurement.metrics`.
    candidates
        Ids of mitigations to try in any case and in this order, instead of those of the factors
        found.
    general
        Try the general ones if nothing is found.
    risk
        The highest that is tried: "none", "low" or "high".
    rule
        When the first measurement has enough runs; None: `stopping.Tails`, at most 200 runs.
    seed
        Seed of random orders, and of the analysis.
    progress
        Called with a sentence at each step; None: shown as progress.
    recorded_only
        True: measure nothing; the report is made from what `folder` holds, on any machine.
    attachments
        Accompany every run, such as a known disturbance.
    described
        Keywords of `workloads.program`: region, seconds, reports, outcome, ….

    Returns
    -------
    Report; a cause that is not found, or a mitigation that does not help, is a result like any
    other.

    Raises
    ------
    InputError
        The budget is too small, a mitigation does not exist, or nothing was recorded and
        `recorded_only` is True.
    RunError
        The program fails.

    Notes
    -----
    The mitigation that looks best of several looks better than it is; so what seems to help is
    measured again, in runs that had no part in choosing it, and only then said to help.

    Examples
    --------
    >>> report = autopilot("sleep 0.002", 4, metrics=(), rule=stopping.Count(30))
    >>> len(report.baseline)
    30
    """
    workload = as_workload(command, **described)
    chosen = None if candidates is None else list(candidates)
    _check(budget_seconds, risk, chosen or [])
    with ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="noisebook-"))
        shown = stack.enter_context(task("looking for the cause and a remedy", urgent=True))
        loop = _Loop(
            workload=workload,
            name=workload.name if workload is command else shlex.join(workload.command),
            budget_s=float(budget_seconds),
            steps=Steps(Path(folder), int(seed), recorded_only, tuple(attachments)),
            metrics=tuple(metrics),
            risk=risk,
            seed=int(seed),
            notify=progress or shown.set_description_str,
        )
        return loop.run(chosen, general, rule or stopping.Tails(most=MOST_RUNS))


def _check(budget_seconds: float, risk: str, candidates: list[str]) -> None:
    if not 0 < budget_seconds < 1e7:
        raise InputError(
            f"a budget of {budget_seconds} s",
            fix="give the seconds that measuring may take, such as 300",
        )
    check_choice("risk", risk, RISKS)
    for name in candidates:
        named_mitigation(name)


@dataclass
class _Loop:
    workload: Workload
    name: str
    budget_s: float
    steps: Steps
    metrics: tuple[str, ...]
    risk: str
    seed: int
    notify: Callable[[str], object]

    def run(self, candidates: list[str] | None, general: bool, rule: stopping.Rule) -> Report:
        runs, stopped = self._first(rule)
        layers = self._layers(runs)
        explanation = explain(rates(runs), seed=self.seed, consequences=consequences())
        self.notify("choosing what to try")
        factors = found_factors(explanation)
        wanted = wanted_mitigations(candidates, list(factors.index), general)
        choice = Choice(self.workload, self.steps, self.risk, self.notify)
        # as many as get rounds enough, with the best measured again; one in any case
        affordable = max(1, int(self._left_s() / (ENOUGH_ROUNDS * _round_s(runs))) - 1)
        pairs, trials, failed = self._trials(choice.of(wanted, runs, affordable), runs)
        judged = judge_trials(pairs, self.seed)
        promising = best_first(tried_table(judged, wanted), SEEMS)
        again = judge_trials(self._measured_again(promising, trials), self.seed)
        return Report(
            command=self.name,
            baseline=runs,
            explanation=explanation,
            stopped=stopped,
            factors=factors,
            tried=tried_table(judged, wanted, again),
            not_tried=as_table([*choice.not_tried, *failed], ["name", "reason", "fix"]),
            judged=judged,
            trials=trials,
            again=again,
            seconds=self.steps.spent_s(),
            layers=layers,
        )

    # ---- the first measurement ----

    def _first(self, rule: stopping.Rule) -> tuple[pd.DataFrame, str]:
        """Runs until the rule or the budget stops; and why it stopped."""
        decision = self.steps.decide("first", lambda: self._enough_runs(rule))
        return self._first_runs(decision["runs"]), decision["stopped"]

    def _enough_runs(self, rule: stopping.Rule) -> Decision:
        count = 5
        limit_s = FIRST_SHARE * self.budget_s
        while True:
            runs = self._first_runs(count)
            run_s = float(runs["elapsed_seconds"].mean())
            verdict = rule.decide(with_cost(runs)[COST].to_numpy())
            self._check_budget(FEWEST_RUNS * run_s)
            affordable = max(int(limit_s / run_s), FEWEST_RUNS)
            spent = self.steps.spent_s() > limit_s or count >= affordable
            if count >= FEWEST_RUNS and (verdict.stop or spent):
                reason = verdict.reason
                if not verdict.stop:
                    reason = f"the budget for it was spent ({verdict.reason})"
                return {"runs": count, "stopped": reason}
            count = min(max(FEWEST_RUNS, count + RUNS_A_TIME), affordable)
            self.notify("measuring until the runs are enough")

    def _check_budget(self, needed_s: float) -> None:
        if needed_s > 0.8 * self.budget_s:
            raise InputError(
                f"a budget of {self.budget_s:.3g} s is too small: {FEWEST_RUNS} runs take"
                f" {needed_s:.0f} s",
                where=shlex.join(self.workload.command),
                why="fewer runs show nothing of how they vary",
                fix=f"give at least {math.ceil(3 * needed_s)} s, or a smaller problem",
            )

    def _first_runs(self, count: int) -> pd.DataFrame:
        # made anew each time: a campaign closes the layers at its end
        layers = () if self.steps.recorded_only else metric_layers(*self.metrics)
        return self.steps.runs("first", lambda: [Cell(BASELINE, self.workload)], count, layers)

    # ---- the counters ----

    def _layers(self, runs: pd.DataFrame) -> str:
        """Whether the counters change what they measure, from runs with and without them in turn;
        in words. The trials do without them.
        """
        if not self.metrics:
            return ""
        affordable = int(min(LAYERS_SHARE * self.budget_s / _round_s(runs), MOST_ROUNDS))
        rounds = self.steps.decide("layers", lambda: {"rounds": affordable})["rounds"]
        if rounds < FEWEST_ROUNDS:
            return (
                "Whether the counters change the run time was not tested: the budget is too small."
            )
        self.notify(f"testing in {rounds} rounds whether the counters change the run time")

        def cells() -> list[Cell]:
            counters = metric_layers(*self.metrics)
            return [
                Cell("without", self.workload),
                Cell("with", self.workload, attachments=counters),
            ]

        by_cell = self.steps.runs("layers", cells, rounds).groupby("cell")
        found = compare(by_cell.get_group("without"), by_cell.get_group("with"), seed=self.seed)
        return f"Without the set of counters and with it: {found.verdict}"

    # ---- the trials ----

    def _left_s(self) -> float:
        """What is left of the budget."""
        return self.budget_s - self.steps.spent_s()

    def _trials(
        self, chosen: list[str], runs: pd.DataFrame
    ) -> tuple[dict[str, Pair], pd.DataFrame, list[dict[str, str]]]:
        """Untreated and treated runs of each mitigation, the runs of all trials, and the trials
        that failed.
        """
        pairs, failed = {}, []
        tables = [pd.DataFrame(columns=["trial", "cell", "seconds"])]
        for number, name in enumerate(chosen):
            title = mitigations()[name].name
            rounds = self._trial_rounds(name, len(chosen) - number, runs)
            self.notify(f"trying “{title}” in {rounds} rounds ({number + 1} of {len(chosen)})")
            try:
                table = self._treated_runs(f"trial-{name}", name, rounds)
            except (RunError, SettingError, Unavailable) as error:
                reason = f"{error.what}: {error.why}"
                row = {"mitigation": name, "name": title, "reason": reason, "fix": error.fix or ""}
                failed.append(row)
                continue
            pairs[name] = _pair(table, name)
            tables.append(table.assign(trial=name))
        return pairs, pd.concat(tables[1:] or tables, ignore_index=True), failed

    def _trial_rounds(self, name: str, trials_left: int, runs: pd.DataFrame) -> int:
        """An even part of what is left of the budget, with one part for the confirmation."""

        def even_part() -> Decision:
            rounds = self._left_s() / (trials_left + 1) / _round_s(runs)
            return {"rounds": int(np.clip(rounds, FEWEST_ROUNDS, MOST_ROUNDS))}

        return int(self.steps.decide(f"trial-{name}", even_part)["rounds"])

    def _treated_runs(self, step: str, name: str, rounds: int) -> pd.DataFrame:
        return self.steps.runs(step, lambda: treatment_cells(self.workload, [name]), rounds)

    # ---- the confirmation ----

    def _measured_again(self, promising: list[str], trials: pd.DataFrame) -> dict[str, Pair]:
        """What seems to help measured again, the best first, since the best of several looks better
        than it is; as much as the budget allows.
        """
        pairs = {}
        for name in promising:
            step, trial = f"confirm-{name}", trials[trials["trial"] == name]
            decision = self.steps.decided(step) or self._confirmation(step, trial)
            if decision is None:
                break
            rounds = int(decision["rounds"])
            self.notify(f"measuring “{mitigations()[name].name}” again in {rounds} rounds")
            pairs[name] = _pair(self._treated_runs(step, name, rounds), name)
        return pairs

    def _confirmation(self, step: str, trial: pd.DataFrame) -> Decision | None:
        """The rounds that it takes, as far as the budget allows; None: too few."""
        if self.steps.recorded_only:
            return None
        # twice as many as showed it: what seems best of several looks better than it is
        rounds = min(int(self._left_s() / _round_s(trial)), len(trial), MOST_ROUNDS)
        return self.steps.store(step, {"rounds": rounds}) if rounds >= FEWEST_ROUNDS else None


def _pair(table: pd.DataFrame, name: str) -> Pair:
    """The untreated and the treated runs of a campaign."""
    return table[table["cell"] == BASELINE], table[table["cell"] == name]


def _round_s(runs: pd.DataFrame) -> float:
    """Seconds that a round of two runs takes: by the mean, since slow runs take their time, too."""
    return 2 * float(runs["elapsed_seconds"].mean())
