"""Round the loop without a hand on it: measure, label, attribute, explain, try what may help,
compare, tell.

Owns the order of the steps and how the budget is divided; every measurement is a campaign in a
folder, so that the same call goes on where it stopped.
"""

import math
import shlex
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..attribution import explain, layer_effect
from ..errors import InputError, NoisebookError, RunError, SettingError, Unavailable
from ..files import read_json, write_json
from ..measurement import Campaign, Cell, consequences, finished, rates, recorded_runs, run_once
from ..measurement import metrics as metric_layers
from ..measurement.layers import layer_cells
from ..outcomes import COST, with_cost
from ..progress import task
from ..statistics import Comparison, compare_costs, stopping
from ..workloads import Workload, as_workload
from .knowledge import Mitigation, check_risk, explain_factor, mitigations
from .report import Report, as_table, confirmed_table, found_factors, tried_table
from .treatment import treatment_cells

METRICS = ("software", "kernel", "interrupts", "softirqs", "pressure")
BASELINE_SHARE, LAYERS_SHARE, CONFIRM_SHARE = 0.35, 0.1, 0.2  # of the budget
# of the first measurement; the rule is asked after each step
FEWEST_RUNS = 30
MOST_RUNS = 200
STEP = 10
# of a trial, and of the test whether the counters change the runs
FEWEST_ROUNDS = 12
MOST_ROUNDS = 100
_SEVERAL_CPUS = 1.3  # CPU time over run time from which a program counts as parallel


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
    **described: object,
) -> Report:
    """Find out why runs differ and what helps.

    Parameters
    ----------
    command
        a `Workload`, or what `workloads.program` makes one of. Runs are judged by its outcome.
    budget_seconds
        For measuring, all calls into the same folder together; at least for 30 runs. Analysing
        takes some seconds more. A mitigation that can be done only since an earlier call is tried
        in the fewest rounds on top of it.
    folder
        Keeps everything, so that the same call goes on after an interruption; None: a temporary
        one.
    metrics
        Layers, see `measure.metrics`.
    candidates
        Ids of mitigations to try in any case and in this order, instead of those of the factors
        found.
    general
        Try the general ones if nothing is found.
    risk
        The highest that is tried: "none", "low" or "high".
    rule
        When the first measurement has enough runs; default: the one made for tails, at most 200.
    seed
        Of orders, and of the analysis.
    progress
        Called with a sentence at each step; None: shown as progress.
    recorded_only
        True: nothing is run, the report is made anew of what `folder` holds, on any machine.
    described
        Keywords of `workloads.program`: region, seconds, reports, outcome, ….

    Returns
    -------
    Report; a cause that is not found, or a mitigation that does not help, is a result like any
    other.

    Raises
    ------
    InputError
        The budget is too small, a mitigation does not exist, or the folder holds nothing where
        `recorded_only` is True.
    RunError
        The program fails.
    """
    workload = as_workload(command, **described)
    _check(budget_seconds, risk, candidates)
    with ExitStack() as stack:
        place = (
            Path(folder)
            if folder is not None
            else Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="noisebook-")))
        )
        name = workload.name if workload is command else shlex.join(workload.command)
        shown = stack.enter_context(task("autopilot"))
        say = progress or (lambda sentence: shown.at(0, title=sentence))
        pilot = _Pilot(
            workload,
            float(budget_seconds),
            place,
            tuple(metrics),
            risk,
            int(seed),
            say,
            name,
            recorded_only,
        )
        return pilot.fly(
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
            fix="see what there is: mitigation.available_mitigations()",
        )


@dataclass
class _Pilot:
    workload: Workload
    budget_s: float
    folder: Path
    metrics: tuple[str, ...]
    risk: str
    seed: int
    say: Callable[[str], object]
    name: str = ""
    recorded_only: bool = False
    not_tried: list[dict] = field(default_factory=list)

    def fly(self, candidates: list[str] | None, general: bool, rule: stopping.Rule) -> Report:
        runs, stopped = self._first_measurement(rule)
        layers = self._effect_of_layers(runs)
        explanation = explain(rates(runs), seed=self.seed, consequences=consequences())
        self.say(explanation.summary)
        factors = found_factors(explanation)
        wanted = self._wanted(candidates, factors, general)
        chosen = self._choose(wanted, runs)
        compared, trials = self._trials(chosen, runs)
        tried = tried_table(compared, wanted)
        report = Report(
            self.name,
            runs,
            explanation,
            stopped,
            factors,
            tried,
            as_table(self.not_tried, ["name", "reason", "fix"]),
            compared,
            trials,
            None,
            self._spent(),
            layers,
        )
        return self._confirmed(report)

    # ---- measuring ----

    def _first_measurement(self, rule: stopping.Rule) -> tuple[pd.DataFrame, str]:
        """Runs until the rule or the budget says stop; what was decided is kept, so that a later
        call does not measure more.
        """
        path = self.folder / "first.json"
        if self._kept(path):
            kept = read_json(path)
            return self._first_runs(kept["runs"]), kept["stopped"]
        count, began = 5, time.monotonic()
        while True:
            runs = self._first_runs(count)
            spent, a_run = self._spent(), float(runs["elapsed_seconds"].median())
            decision = rule.decide(with_cost(runs)[COST].to_numpy(), time.monotonic() - began)
            affordable = int(BASELINE_SHARE * self.budget_s / a_run)
            if affordable < FEWEST_RUNS:
                affordable = self._fewest(a_run)
            if count >= FEWEST_RUNS and (
                decision.stop or spent > BASELINE_SHARE * self.budget_s or count >= affordable
            ):
                stopped = (
                    decision.reason
                    if decision.stop
                    else f"the budget for it was spent ({decision.reason})"
                )
                write_json(path, {"runs": count, "stopped": stopped})
                return runs, stopped
            count = min(max(FEWEST_RUNS, count + STEP), max(FEWEST_RUNS, affordable))
            self.say(f"measuring: {count} runs of {a_run:.3g} s each ({decision.reason})")

    def _fewest(self, a_run_s: float) -> int:
        needed = FEWEST_RUNS * a_run_s
        if needed > 0.8 * self.budget_s:
            raise InputError(
                f"a budget of {self.budget_s:g} s is too small: {FEWEST_RUNS} runs take"
                f" {needed:.0f} s",
                where=shlex.join(self.workload.command),
                why="fewer runs show nothing of how they vary",
                fix=f"give at least {math.ceil(3 * needed)} s, or a smaller problem",
            )
        return FEWEST_RUNS

    def _effect_of_layers(self, runs: pd.DataFrame) -> str:
        """Whether the counters change what they measure, from runs with and without them in turn;
        in words. The trials do without them.
        """
        if not self.metrics:
            return ""
        path = self.folder / "layers.json"
        if not self._kept(path):
            rounds = int(
                min(
                    LAYERS_SHARE * self.budget_s / (2 * float(runs["elapsed_seconds"].median())),
                    MOST_ROUNDS,
                )
            )
            write_json(path, {"rounds": rounds if rounds >= FEWEST_ROUNDS else 0})
        rounds = read_json(path)["rounds"]
        if not rounds:
            return (
                "Whether the counters change the run time was not tested: the budget is too small."
            )
        self.say(f"testing in {rounds} rounds whether the counters change the run time")
        table = self._runs(
            "layers", lambda: list(layer_cells(self.workload, *self.metrics)), rounds
        )
        return layer_effect(
            table[table["cell"] == "without"],
            table[table["cell"] == "with"],
            "the set of counters",
            seed=self.seed,
        ).sentence

    def _first_runs(self, count: int) -> pd.DataFrame:
        return self._runs("first", lambda: [Cell("baseline", self.workload)], count, layers=True)

    def _runs(
        self, name: str, configurations: Callable[[], list[Cell]], count: int, layers: bool = False
    ) -> pd.DataFrame:
        """A campaign's finished runs; as recorded they need neither the program nor what its
        mitigations need.
        """
        if self.recorded_only:
            return self._recorded(name, count)
        try:
            asked = configurations()
        except Unavailable:  # any more: what was measured of it stays
            if not (self.folder / name / "runs.jsonl").exists():
                raise
            return self._recorded(name, count)
        attachments = metric_layers(*self.metrics) if layers else ()
        return finished(
            Campaign(
                self.folder / name, asked, count, self.seed, attachments=attachments, max_failures=3
            ).run()
        )

    def _recorded(self, name: str, count: int) -> pd.DataFrame:
        runs = (
            finished(recorded_runs(self.folder / name))
            if list((self.folder / name).glob("runs.jsonl*"))
            else pd.DataFrame(columns=["cell"])
        )
        if runs.empty or runs["cell"].value_counts().min() < count:
            raise RunError(
                f"fewer than {count} runs of each kind were recorded",
                where=self.folder / name,
                why="the campaign did not come to its end",
            )
        return runs

    def _kept(self, path: Path) -> bool:
        """Whether a decision was made already; where nothing is measured it must have been."""
        if self.recorded_only and not path.exists():
            raise InputError(
                "no round of the loop was recorded here",
                where=path,
                fix="run the stage that measures it: make paper",
            )
        return path.exists()

    def _spent(self) -> float:
        """Seconds measured so far in this folder, by this call and earlier ones."""
        logs = [
            path
            for path in sorted(self.folder.glob("**/runs.jsonl*"))
            if "aside" not in path.relative_to(self.folder).parts
        ]
        return float(sum(recorded_runs(path.parent)["elapsed_seconds"].sum() for path in logs))

    # ---- choosing ----

    def _wanted(
        self, candidates: list[str] | None, factors: pd.DataFrame, general: bool
    ) -> dict[str, str]:
        """Mitigations to try and the factor each is against, by the rank of the factor, then cheap
        and safe ones first.
        """
        if candidates is not None:
            return dict.fromkeys(candidates, "")
        wanted: dict[str, str] = {}
        for factor in factors.index:
            for name in sorted(
                explain_factor(factor).mitigations, key=lambda name: mitigations()[name].cost
            ):
                if mitigations()[name].automated:
                    wanted.setdefault(name, factor)
        if not wanted and general:
            wanted = {name: "" for name, mitigation in mitigations().items() if mitigation.general}
        return wanted

    def _choose(self, wanted: dict[str, str], runs: pd.DataFrame) -> list[str]:
        """Those that can be done here and, in a run for the proof, are in effect. The choice is
        kept for a later call.
        """
        path = self.folder / "choice.json"
        kept = read_json(path) if self._kept(path) else {}
        fresh = self._fresh(kept, wanted) if kept else list(wanted)
        if kept and (self.recorded_only or not fresh):
            everything = not set(wanted) <= set(
                kept["wanted"]
            )  # recorded for factors that are not found in its runs any more
            self.not_tried = [
                row for row in kept["left_out"] if everything or row["mitigation"] in wanted
            ]
            return [name for name in kept["chosen"] if everything or name in wanted]
        self.not_tried = [
            row
            for row in kept.get("left_out", [])
            if row["mitigation"] in wanted and row["mitigation"] not in fresh
        ]
        chosen = self._choose_of(
            fresh, [name for name in kept.get("chosen", []) if name in wanted], runs, bool(kept)
        )
        everything = {
            "wanted": list(dict.fromkeys([*kept.get("wanted", []), *wanted])),
            "chosen": list(dict.fromkeys([*kept.get("chosen", []), *chosen])),
            "left_out": self.not_tried,
        }
        write_json(path, everything)
        return chosen

    def _fresh(self, kept: dict, wanted: dict[str, str]) -> list[str]:
        """What was not asked for before, and what was not possible then and is now; nothing where
        nothing is measured.
        """
        if self.recorded_only:
            return []
        before = {row["mitigation"]: row for row in kept["left_out"]}
        return [
            name
            for name in wanted
            if name not in kept["wanted"]
            or (
                name in before
                and not before[name].get("possible", True)
                and mitigations()[name].possible(self.workload)
            )
        ]

    def _choose_of(
        self, names: list[str], chosen: list[str], runs: pd.DataFrame, later: bool
    ) -> list[str]:
        """Add to the choice what can be done; what comes later does so on top of the budget."""
        parallel = (
            float((runs["user_s"] + runs["system_s"]).median() / runs["wall_seconds"].median())
            > _SEVERAL_CPUS
        )
        most = math.inf if later else self._most(runs)
        for name in names:
            item = mitigations()[name]
            reason, fix = (
                ("the budget does not reach so far", "a larger budget")
                if len(chosen) >= most
                else self._objection(item, parallel)
            )
            if reason:
                self.not_tried.append(
                    {
                        "mitigation": name,
                        "name": item.name,
                        "reason": reason,
                        "fix": fix,
                        "possible": bool(item.possible(self.workload)),
                    }
                )
            else:
                chosen.append(name)
        return chosen

    def _most(self, runs: pd.DataFrame) -> int:
        """How many trials of the fewest rounds the budget allows."""
        left = (1 - CONFIRM_SHARE) * self.budget_s - self._spent()
        return max(1, int(left / (2 * FEWEST_ROUNDS * float(runs["elapsed_seconds"].median()))))

    def _objection(self, mitigation: Mitigation, parallel: bool) -> tuple[str, str]:
        """Why a mitigation is not tried, and what would fix it; the last question is asked of a
        real run.
        """
        if too_risky := mitigation.too_risky(self.risk):
            return too_risky, f"risk={mitigation.risk!r}"
        if mitigation.serial and parallel or mitigation.parallel and not parallel:
            return f"the program is {'parallel' if parallel else 'serial'}", ""
        if not (answer := mitigation.possible(self.workload)):
            return answer.reason, answer.fix
        try:
            treated = treatment_cells(self.workload, [mitigation])[1]
            self.say(f"proving that “{mitigation.name}” takes effect")
            with ExitStack() as stack:
                for attachment in treated.attachments:
                    stack.callback(attachment.close)
                row = run_once(treated.workload, treated.attachments)
        except NoisebookError as error:
            return error.what, error.fix or ""
        return ("", "") if row["status"] == "ok" else (row["message"] or row["status"], "")

    # ---- trying ----

    def _trials(
        self, chosen: list[str], runs: pd.DataFrame
    ) -> tuple[dict[str, Comparison], pd.DataFrame]:
        compared, tables = {}, []
        for number, name in enumerate(chosen):
            rounds = self._rounds(name, len(chosen) - number, runs)
            self.say(
                f"trying “{mitigations()[name].name}” in {rounds} rounds ({number + 1} of"
                f" {len(chosen)})"
            )
            try:
                table = self._runs(
                    f"trial-{name}", lambda: treatment_cells(self.workload, [name]), rounds
                )
            except (RunError, SettingError, Unavailable) as error:
                self.not_tried.append(
                    {
                        "mitigation": name,
                        "name": mitigations()[name].name,
                        "reason": f"{error.what}: {error.why}",
                        "fix": error.fix or "",
                    }
                )
                continue
            compared[name] = compare_costs(
                table[table["cell"] == "baseline"], table[table["cell"] == name], seed=self.seed
            )
            tables.append(table.assign(trial=name))
        return compared, (
            pd.concat(tables, ignore_index=True)
            if tables
            else pd.DataFrame(columns=["trial", "cell", "seconds"])
        )

    def _rounds(self, name: str, trials_left: int, runs: pd.DataFrame) -> int:
        """An even part of what is left of the budget; kept, since a later call must ask for as
        many.
        """
        path = self.folder / f"trial-{name}.json"
        if self._kept(path):
            return int(read_json(path)["rounds"])
        left = (1 - CONFIRM_SHARE) * self.budget_s - self._spent()
        a_round = 2 * float(runs["elapsed_seconds"].median())
        rounds = int(np.clip(left / trials_left / a_round, FEWEST_ROUNDS, MOST_ROUNDS))
        write_json(path, {"rounds": rounds})
        return rounds

    def _confirmed(self, report: Report) -> Report:
        """The best measured again, as the one that looks best of several looks better than it is."""
        if not report.helped:
            return report
        name, best = report.helped[0], self.folder / "confirm.json"
        trial = report.trials[report.trials["trial"] == name]
        if not best.exists():
            if self.recorded_only:
                return report
            rounds = int(
                np.clip(
                    (self.budget_s - self._spent()) / (2 * float(trial["elapsed_seconds"].mean())),
                    0,
                    MOST_ROUNDS,
                )
            )
            if rounds < FEWEST_ROUNDS:
                return report
            write_json(best, {"mitigation": name, "rounds": rounds})
        kept = read_json(best)
        self.say(
            f"measuring “{mitigations()[kept['mitigation']].name}” again in {kept['rounds']} rounds"
        )
        table = self._runs(
            "confirm", lambda: treatment_cells(self.workload, [kept["mitigation"]]), kept["rounds"]
        )
        again = compare_costs(
            table[table["cell"] == "baseline"],
            table[table["cell"] == kept["mitigation"]],
            seed=self.seed,
        )
        return replace(
            report,
            tried=confirmed_table(report.tried, kept["mitigation"], again),
            confirmed=again,
            seconds=self._spent(),
        )
