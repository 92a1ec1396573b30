"""The autopilot: measure, classify, attribute, explain, try what may help, compare, report.

Owns the order of the steps and how the budget is divided; what was decided and measured is in
`steps`, which mitigations are tried in `choice`.
"""

import math
import shlex
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..attribution import explain, layer_effect
from ..errors import InputError, RunError, SettingError, Unavailable
from ..measurement import Cell, consequences, rates
from ..measurement import metrics as metric_layers
from ..measurement.layers import layer_cells
from ..outcomes import COST, with_cost
from ..progress import task
from ..statistics import Comparison, compare_costs, stopping
from ..workloads import Workload, as_workload
from .choice import Choice, wanted_mitigations
from .knowledge import check_risk, mitigations
from .report import Report, as_table, confirmed_table, found_factors, tried_table
from .steps import Decision, Steps
from .treatment import BASELINE, treatment_cells

METRICS = ("software", "kernel", "interrupts", "softirqs", "pressure")
# shares of the budget
FIRST_SHARE = 0.35
LAYERS_SHARE = 0.1
CONFIRM_SHARE = 0.2
# runs of the first measurement; the stopping rule is applied every so many runs
FEWEST_RUNS = 30
MOST_RUNS = 200
RUNS_A_TIME = 10
# of a trial, and of the test whether the counters change the runs
FEWEST_ROUNDS = 12
MOST_ROUNDS = 100


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
    **described: Any,
) -> Report:
    """Find out why runs differ and what helps.

    Parameters
    ----------
    command
        A `Workload`, or a command for `workloads.program`. Runs are judged by its outcome.
    budget_seconds
        For measuring, in all calls with the same folder together; at least for 30 runs. The
        analysis takes some seconds more. A mitigation that became possible after an earlier call is
        tried beyond the budget, in the fewest rounds.
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
        When the first measurement has enough runs; None: `stopping.for_tails`, at most 200 runs.
    seed
        Of orders, and of the analysis.
    progress
        Called with a sentence at each step; None: shown as progress.
    recorded_only
        True: measure nothing; the report is made from what `folder` holds, on any machine.
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
    The mitigation that looks best of several looks better than it is; so it is measured again, in
    runs that had no part in choosing it.

    Examples
    --------
    >>> report = autopilot("sleep 0.002", 4, metrics=(), rule=stopping.Count(30))
    >>> len(report.baseline)
    30
    """
    workload = as_workload(command, **described)
    _check(budget_seconds, risk, candidates)
    with ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="noisebook-"))
        shown = stack.enter_context(task("autopilot"))
        loop = _Loop(
            workload=workload,
            name=workload.name if workload is command else shlex.join(workload.command),
            budget_s=float(budget_seconds),
            steps=Steps(Path(folder), int(seed), recorded_only),
            metrics=tuple(metrics),
            risk=risk,
            seed=int(seed),
            notify=progress or (lambda sentence: shown.at(0, title=sentence)),
        )
        return loop.run(
            None if candidates is None else list(candidates),
            general,
            rule or stopping.for_tails(most=MOST_RUNS),
        )


def _check(budget_seconds: float, risk: str, candidates: Iterable[str] | None) -> None:
    if not 0 < budget_seconds < 1e7:
        raise InputError(
            f"a budget of {budget_seconds} s",
            fix="give the seconds that measuring may take, such as 300",
        )
    check_risk(risk)
    unknown = [name for name in candidates or () if name not in mitigations()]
    if unknown:
        raise InputError(
            f"there is no mitigation '{unknown[0]}'",
            fix="list them: mitigation.available_mitigations()",
        )


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
        self.notify(explanation.summary)
        factors = found_factors(explanation)
        wanted = wanted_mitigations(candidates, list(factors.index), general)
        choice = Choice(self.workload, self.steps, self.risk, self.notify)
        chosen = choice.of(wanted, runs, self._affordable_trials(runs))
        compared, trials, failed = self._trials(chosen, runs)
        report = Report(
            command=self.name,
            baseline=runs,
            explanation=explanation,
            stopped=stopped,
            factors=factors,
            tried=tried_table(compared, wanted),
            not_tried=as_table([*choice.not_tried, *failed], ["name", "reason", "fix"]),
            comparisons=compared,
            trials=trials,
            confirmed=None,
            seconds=self.steps.spent_s(),
            layers=layers,
        )
        return self._confirmed(report)

    # ---- the first measurement ----

    def _first(self, rule: stopping.Rule) -> tuple[pd.DataFrame, str]:
        """Runs until the rule or the budget stops; and why it stopped."""
        decision = self.steps.decide("first", lambda: self._enough_runs(rule))
        return self._first_runs(decision["runs"]), decision["stopped"]

    def _enough_runs(self, rule: stopping.Rule) -> Decision:
        count, began = 5, time.monotonic()
        limit_s = FIRST_SHARE * self.budget_s
        while True:
            runs = self._first_runs(count)
            run_s = float(runs["elapsed_seconds"].median())
            verdict = rule.decide(with_cost(runs)[COST].to_numpy(), time.monotonic() - began)
            affordable = max(int(limit_s / run_s), self._fewest_runs(run_s))
            spent = self.steps.spent_s() > limit_s or count >= affordable
            if count >= FEWEST_RUNS and (verdict.stop or spent):
                reason = verdict.reason
                if not verdict.stop:
                    reason = f"the budget for it was spent ({verdict.reason})"
                return {"runs": count, "stopped": reason}
            count = min(max(FEWEST_RUNS, count + RUNS_A_TIME), affordable)
            self.notify(f"measuring: {count} runs of {run_s:.3g} s each ({verdict.reason})")

    def _fewest_runs(self, run_s: float) -> int:
        needed_s = FEWEST_RUNS * run_s
        if needed_s > 0.8 * self.budget_s:
            raise InputError(
                f"a budget of {self.budget_s:g} s is too small: {FEWEST_RUNS} runs take"
                f" {needed_s:.0f} s",
                where=shlex.join(self.workload.command),
                why="fewer runs show nothing of how they vary",
                fix=f"give at least {math.ceil(3 * needed_s)} s, or a smaller problem",
            )
        return FEWEST_RUNS

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
        rounds = self.steps.decide("layers", lambda: self._layer_rounds(runs))["rounds"]
        if not rounds:
            return (
                "Whether the counters change the run time was not tested: the budget is too small."
            )
        self.notify(f"testing in {rounds} rounds whether the counters change the run time")
        table = self.steps.runs(
            "layers", lambda: list(layer_cells(self.workload, *self.metrics)), rounds
        )
        without, with_layers = (table[table["cell"] == name] for name in ("without", "with"))
        effect = layer_effect(without, with_layers, "the set of counters", seed=self.seed)
        return effect.sentence

    def _layer_rounds(self, runs: pd.DataFrame) -> Decision:
        affordable = int(min(LAYERS_SHARE * self.budget_s / _round_s(runs), MOST_ROUNDS))
        return {"rounds": affordable if affordable >= FEWEST_ROUNDS else 0}

    # ---- the trials ----

    def _affordable_trials(self, runs: pd.DataFrame) -> int:
        """How many trials of the fewest rounds the budget allows."""
        return max(1, int(self._left_s() / (FEWEST_ROUNDS * _round_s(runs))))

    def _left_s(self) -> float:
        """What is left of the budget for trials."""
        return (1 - CONFIRM_SHARE) * self.budget_s - self.steps.spent_s()

    def _trials(
        self, chosen: list[str], runs: pd.DataFrame
    ) -> tuple[dict[str, Comparison], pd.DataFrame, list[dict[str, str]]]:
        """The comparison of each mitigation, the runs of all trials, and the trials that failed."""
        compared, failed = {}, []
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
            compared[name] = self._compared(table, name)
            tables.append(table.assign(trial=name))
        return compared, pd.concat(tables[1:] or tables, ignore_index=True), failed

    def _trial_rounds(self, name: str, trials_left: int, runs: pd.DataFrame) -> int:
        """An even part of what is left of the budget."""

        def even_part() -> Decision:
            rounds = self._left_s() / trials_left / _round_s(runs)
            return {"rounds": int(np.clip(rounds, FEWEST_ROUNDS, MOST_ROUNDS))}

        return int(self.steps.decide(f"trial-{name}", even_part)["rounds"])

    def _treated_runs(self, step: str, name: str, rounds: int) -> pd.DataFrame:
        return self.steps.runs(step, lambda: treatment_cells(self.workload, [name]), rounds)

    def _compared(self, table: pd.DataFrame, name: str) -> Comparison:
        untreated, treated = (table[table["cell"] == cell] for cell in (BASELINE, name))
        return compare_costs(untreated, treated, seed=self.seed)

    # ---- the confirmation ----

    def _confirmed(self, report: Report) -> Report:
        """The best measured again, since the best of several looks better than it is."""
        if not report.helped:
            return report
        decision = self.steps.decided("confirm") or self._confirmation(report)
        if decision is None:
            return report
        name, rounds = decision["mitigation"], decision["rounds"]
        self.notify(f"measuring “{mitigations()[name].name}” again in {rounds} rounds")
        again = self._compared(self._treated_runs("confirm", name, rounds), name)
        return replace(
            report,
            tried=confirmed_table(report.tried, name, again),
            confirmed=again,
            seconds=self.steps.spent_s(),
        )

    def _confirmation(self, report: Report) -> Decision | None:
        """The best mitigation and the rounds that the rest of the budget allows; None: too few."""
        if self.steps.recorded_only:
            return None
        name = report.helped[0]
        trial = report.trials[report.trials["trial"] == name]
        round_s = 2 * float(trial["elapsed_seconds"].mean())
        rounds = int(np.clip((self.budget_s - self.steps.spent_s()) / round_s, 0, MOST_ROUNDS))
        if rounds < FEWEST_ROUNDS:
            return None
        return self.steps.store("confirm", {"mitigation": name, "rounds": rounds})


def _round_s(runs: pd.DataFrame) -> float:
    """Seconds that a round of two runs takes."""
    return 2 * float(runs["elapsed_seconds"].median())
