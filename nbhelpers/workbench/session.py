"""A session of the workbench: what was chosen, and what the library computes from it.

Owns the choices, where their runs lie, and which call of the library answers which step. A session
shows nothing: `views` draws it, `widgets` changes it.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..errors import InputError, check_choice
from ..files import digest, write_json
from ..measurement import Campaign, Cell, consequences
from ..measurement import metrics as metric_layers
from ..mitigation import BASELINE, treatment_cells
from ..mitigation.knowledge import Mitigation, factor_of, mitigations
from ..outcomes import COST, OUTCOME, outcome_of, with_cost
from ..places import results, shipped
from ..reading import read_json
from ..statistics import stopping
from ..workloads import Workload, as_workload
from .by_hand import BEFORE, joined
from .recorded import FIRST, RUNS, TABLES, is_table, runs_of

if TYPE_CHECKING:
    from ..attribution import Explanation
    from ..mitigation.trials import Trial

LAYERS = ("software", "kernel", "scheduler", "interrupts", "softirqs", "pressure", "throttling")
RECORDED = "data/recorded/55-mitigate-and-compare/autopilot"
TRIAL, AGAIN = "trial", "confirm"  # steps that measure, as is FIRST
FEWEST_RUNS = 5
COUNT = "count"
# identify a run or its order: to limit or explain by them says nothing
_NO_METRICS = ("run", "round", "epoch", "t0_ns", "pid", "began_unix_s")
OnRun = Callable[[int, int, str], object]


@dataclass(frozen=True)
class Session:
    """Everything that a person chose on the way.

    Attributes
    ----------
    folder
        Holds the campaigns `first`, `trial-MITIGATION` and `confirm-MITIGATION`; or is the folder
        of one campaign, or a table of runs (.csv, .csv.gz, .parquet). Relative: below the checkout
        or the installed package's shipped files.
    command
        What is measured; empty: the folder is only read.
    run
        How it is started: `ssh node {command}`; empty: here, by itself.
    rule
        When there are enough runs: a name in `statistics.stopping.RULES`.
    runs
        How many with the rule "count"; at most so many with another.
    layers
        Metric layers of the first measurement.
    outcome
        Column that is judged; empty: what the program is judged by.
    cell
        Cell of the campaign whose runs count; empty: the untreated ones if there are such, else
        all.
    limits
        Metric → range [low, high] outside of which runs do not count.
    excluded
        Metrics that may not explain.
    cutoff
        A value; None: as `find_cutoff` finds it.
    node
        Metric of the tree that is looked at; empty: the first factor.
    mitigation
        Id of what is tried.
    rounds
        Of a trial: runs with and runs without the mitigation.
    seed
        Of orders, and of the analysis.

    Examples
    --------
    >>> Session(RECORDED).is_recorded
    True
    """

    folder: str = RECORDED
    command: str = ""
    run: str = ""
    rule: str = COUNT
    runs: int = 30
    layers: tuple[str, ...] = LAYERS
    outcome: str = ""
    cell: str = ""
    limits: dict[str, list[float]] = field(default_factory=dict, hash=False)
    excluded: tuple[str, ...] = ()
    cutoff: float | None = None
    node: str = ""
    mitigation: str = ""
    rounds: int = 20
    seed: int = 1

    def __post_init__(self):
        check_choice("stopping rule", self.rule, stopping.RULES)
        if min(self.runs, self.rounds) < 1 or self.seed < 0:
            raise InputError("runs and rounds are at least 1, the seed at least 0")

    # ---- where it lies ----

    @property
    def place(self) -> Path:
        """The folder, absolute."""
        return shipped() / self.folder

    @property
    def is_recorded(self) -> bool:
        """Whether it only reads what was measured before."""
        return not self.command

    @property
    def is_one_campaign(self) -> bool:
        """Whether all runs are those of one campaign or table, with a cell a mitigation."""
        return is_table(self.place) or any(self.place.glob(f"{RUNS}*"))

    def save(self) -> Path:
        """Write the choices, for `Session.load` and for the process that measures: beside the runs;
        of recorded runs, with the results.
        """
        place = self.place
        if self.is_recorded:
            place = results() / "workbench" / f"{self.place.name}-{digest(self.folder)[:8]}"
        return write_json(place / "workbench.json", asdict(self))

    @classmethod
    def load(cls, path: str | Path) -> "Session":
        """What `save` wrote."""
        found = read_json(path)
        known = {name: found[name] for name in {one.name for one in fields(cls)} & set(found)}
        lists = {name: tuple(known[name]) for name in ("layers", "excluded")}
        return cls(**known | lists)

    @classmethod
    def of_command(cls, command: str, **choices: Any) -> "Session":
        """A session that measures a command, in a folder of its own.

        Parameters
        ----------
        command
            A command line.
        choices
            Other attributes.
        """
        name = Path(command.split()[0]).name if command.strip() else "nothing"
        known = digest(command + choices.get("run", ""))[:8]
        folder = results() / "workbench" / f"{name}-{known}"
        return cls(**{"folder": str(folder), "command": command} | choices)

    @classmethod
    def of_recorded(cls, text: str, **choices: Any) -> "Session":
        """A session of what a person named: a campaign's folder, or a table of runs.

        Parameters
        ----------
        text
            Its path, from the current folder or from the checkout; "~" is the home folder.
        choices
            Other attributes.

        Raises
        ------
        InputError
            Nothing is there, it holds no finished run, or it cannot be read.
        """
        ours, written = shipped().resolve(), Path(text.strip()).expanduser()
        places = [path for path in (Path.cwd() / written, ours / written) if path.exists()]
        fix = f"give a campaign's folder, which has {RUNS}, or a table ({', '.join(TABLES)})"
        if not text.strip() or not places:
            where = text or "an empty path"
            raise InputError("there is no such folder or file", where=where, fix=fix)
        place = places[0].resolve()
        inside = place.relative_to(ours) if place.is_relative_to(ours) else place
        session = cls(inside.as_posix(), **choices)
        if session.measured().empty:
            raise InputError("no finished run is recorded here", where=place, fix=fix)
        return session

    # ---- 1: measure, and read what was measured ----

    @cached_property
    def workload(self) -> Workload:
        """What is measured.

        Raises
        ------
        InputError, RunError
            There is no command, or no such program.
        """
        if self.is_recorded:
            raise InputError(
                "recorded runs are only read",
                why="their program need not be here",
                fix="give a command, which is measured into a folder of its own",
            )
        return as_workload(self.command, run=self.run or None)

    def measure(self, step: str = FIRST, on_run: OnRun = lambda *_: None) -> pd.DataFrame:
        """Measure a step; go on where an earlier call stopped.

        Parameters
        ----------
        step
            FIRST: run the program until the stopping rule is content. TRIAL: with and without the
            mitigation, in turn; undone after each run. AGAIN: the same in runs that had no part in
            choosing it, since only these can confirm it. Of a mitigation by hand: "trial.before"
            and "trial.after", one side each, as the machine is then; AGAIN likewise.
        on_run
            Called after each run with the finished runs, the most there can be, and what the rule
            says, or how long it will take.

        Returns
        -------
        The finished runs of the step.

        Raises
        ------
        InputError, Unavailable
            No mitigation is chosen, or it can't be done here; the message says why.
        """
        if step == FIRST:
            self._measure_first(on_run)
        elif self.mitigation not in mitigations():
            raise InputError(f"there is no mitigation {self.mitigation!r}", fix="choose one")
        else:
            cells = self._cells_of(step)
            place = self.place / self.name_of(step)
            seed = self.seed + step.startswith(AGAIN)  # its order is another one
            campaign = Campaign(place, cells, self.rounds, seed, max_failures=3)
            campaign.run(lambda done, most, s: on_run(done, most, f"about {s:.0f} s left"))
        return self.recorded(self.name_of(step))

    def _measure_first(self, on_run: OnRun) -> None:
        done, says = len(self.recorded(FIRST)), ""
        least = self.runs if self.rule == COUNT else min(self.runs, max(FEWEST_RUNS, done))

        def enough(runs: pd.DataFrame) -> bool:
            nonlocal says
            decision = self.rule_says(runs)
            says = decision.reason
            return decision.stop

        cells, layers = [Cell(BASELINE, self.workload)], metric_layers(*self.layers)
        campaign = Campaign(self.place / FIRST, cells, least, self.seed, attachments=layers)
        campaign.run(lambda done, *_: on_run(done, self.runs, says), enough, self.runs)

    def _cells_of(self, step: str) -> list[Cell]:
        side = step.partition(".")[2]
        if side:
            return [Cell(BASELINE if side == BEFORE else self.mitigation, self.workload)]
        if self.is_by_hand:
            fix = "measure without it, do it, measure with it"
            raise InputError(f"'{self.mitigation}' is done by hand", fix=fix)
        return treatment_cells(self.workload, [self.mitigation])

    def name_of(self, step: str) -> str:
        """The folder of a step that measures."""
        step, dot, side = step.partition(".")
        return FIRST if step == FIRST else f"{step}-{self.mitigation}{dot}{side}"

    def most_runs(self, step: str) -> int:
        """How many runs a step has at most."""
        return self.runs if step == FIRST else self.rounds * (1 if "." in step else 2)

    def next_step(self) -> str:
        """Of a mitigation that is measured before and after: TRIAL until both sides have their
        runs, then AGAIN.
        """
        untreated, treated = self.pairs().get(self.mitigation, ((), ()))
        return AGAIN if min(len(untreated), len(treated)) >= self.rounds else TRIAL

    def rule_says(self, runs: pd.DataFrame | None = None) -> stopping.Decision:
        """What the stopping rule says of runs; None: of those so far."""
        runs = self.measured() if runs is None else runs
        rule = {**stopping.RULES, COUNT: stopping.Count(self.runs)}[self.rule]
        outcome = self.outcome if self.outcome in runs.columns else None
        return rule.decide(with_cost(runs, outcome)[COST].to_numpy() if len(runs) else [])

    @property
    def records(self) -> list[Path]:
        """The files that hold runs: the table, or those of each campaign."""
        if is_table(self.place):
            return [self.place]
        return sorted([*self.place.glob(f"{RUNS}*"), *self.place.glob(f"*/{RUNS}*")])

    @property
    def state(self) -> tuple:
        """What results depend on that lies on disk: changes with every run."""
        return tuple((path, path.stat().st_mtime_ns) for path in self.records)

    def recorded(self, name: str = "") -> pd.DataFrame:
        """The finished runs of a campaign in the folder; do not change them, they are cached."""
        place = self.place / name
        files = tuple(file for file in self.state if place in (file[0], file[0].parent))
        return _finished_runs(place, files) if files else pd.DataFrame()

    def _first(self) -> pd.DataFrame:
        return self.recorded("" if self.is_one_campaign else FIRST)

    def cells(self) -> list[str]:
        """The cells of the measured runs, in their order; of a table without cells none."""
        table = self._first()
        return list(table["cell"].unique()) if "cell" in table.columns else []

    def measured(self) -> pd.DataFrame:
        """The finished runs of the chosen cell, else those without a mitigation; empty before the
        first.
        """
        table = self._first()
        cell = self.cell or (BASELINE if BASELINE in self.cells() else "")
        return table[table["cell"] == cell] if cell and len(table) else table

    # ---- 2: outcome and limits ----

    @cached_property
    def table(self) -> pd.DataFrame:
        """The runs that count: `limits` applied.

        Raises
        ------
        InputError
            Nothing was measured, or no run is left.
        """
        runs = self.measured()
        if runs.empty:
            fix = "measure: step 1 of the workbench"
            raise InputError("there are no runs yet", where=self.folder, fix=fix)
        for metric, (low, high) in self.limits.items():
            if metric not in runs.columns:
                raise InputError(f"no metric {metric!r} to limit by", where=self.folder)
            runs = runs[runs[metric].between(low, high)]
        if runs.empty:
            raise InputError("no run lies within the limits", fix="widen or remove a limit")
        return runs

    @cached_property
    def judged(self) -> str:
        """The column that is judged."""
        return self.outcome or self.outcomes()[0]

    @property
    def values(self) -> np.ndarray:
        """The outcomes of the runs that count."""
        return self.table[self.judged].to_numpy(float)

    def metrics(self) -> list[str]:
        """Columns of numbers that vary, in alphabetical order; the outcome is among them."""
        return list(_varying(Session(self.folder, cell=self.cell), self.state))

    def may_explain(self) -> list[str]:
        """Columns that can be excluded: the metrics, and columns of names that are categories."""
        from ..attribution.categories import Category, category_of

        texts = self.measured().select_dtypes(exclude="number")
        names = [name for name in texts if isinstance(category_of(texts[name]), Category)]
        return sorted([*self.metrics(), *names])

    def outcomes(self) -> list[str]:
        """Metrics that every run has, so that runs can be judged by them; the program's first, or,
        of a table from elsewhere, the first column.
        """
        runs = self.measured()
        whole = [name for name in self.metrics() if np.isfinite(runs[name].to_numpy(float)).all()]
        first = outcome_of(runs).name
        if first not in runs.columns:
            first = next(name for name in runs.columns if name in whole)
        return [first, *(name for name in whole if name != first)]

    # ---- 3 and 4: cutoff, tree, factors ----

    def explanation(self, permutations: int = 1000) -> "Explanation":
        """What separates the slow runs; without permutations a preview that claims nothing.

        Parameters
        ----------
        permutations
            Of the null distribution.
        """
        return _explained(self, permutations, self.state)

    def chosen(self, explanation: "Explanation") -> str:
        """The metric that is looked at: the chosen node, else the first factor, else none."""
        return self.node or next(iter(explanation.factors["factor"]), "")

    # ---- 5: a mitigation ----

    def options(self, metric: str) -> list[Mitigation]:
        """Mitigations of the factor behind a metric, the cheapest and safest first, and those that
        were tried; none without a metric.
        """
        factor = factor_of(metric) if metric else None
        names = [*factor.mitigations] if factor else []
        names += [name for name in self.pairs() if metric and name in mitigations()]
        known = [mitigations()[name] for name in dict.fromkeys(names)]
        return sorted(known, key=lambda one: (not one.automated, *one.cost))

    def suggested(self, metric: str) -> str:
        """The chosen mitigation if it is one of the options, else the first that was tried, else
        the first; empty: there is none.
        """
        names = [one.id for one in self.options(metric)]
        tried = [name for name in names if name in self.pairs()]
        return next((name for name in [self.mitigation, *tried, *names] if name in names), "")

    def pairs(self, step: str = TRIAL) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
        """Untreated and treated runs, two or more, of each mitigation that was tried, by its id."""
        if self.is_one_campaign:
            tried = set(self.cells()) & set(mitigations()) if step == TRIAL else set()
            tables = {name: self._first() for name in sorted(tried)}
        else:
            tables = self._tried(step)
        found = {}
        for name, table in tables.items():
            if len(table) and self.judged in table.columns:
                runs = table.assign(**{OUTCOME: self.judged})
                found[name] = runs[runs["cell"] == BASELINE], runs[runs["cell"] == name]
        return {name: pair for name, pair in found.items() if min(map(len, pair)) >= 2}

    def _tried(self, step: str) -> dict[str, pd.DataFrame]:
        """The runs of each mitigation's trial, by its id."""
        parts: dict[str, dict[str, pd.DataFrame]] = {}
        for folder in sorted(path.name for path in self.place.glob(f"{step}-*")):
            name, _, side = folder.removeprefix(f"{step}-").partition(".")
            runs = self.recorded(folder)
            parts.setdefault(name, {}).update({side: runs} if len(runs) else {})
        return {name: joined(sides) for name, sides in parts.items() if sides}

    @property
    def is_by_hand(self) -> bool:
        """Whether nothing here can do the mitigation for the user."""
        return bool(self.mitigation) and not mitigations()[self.mitigation].automated

    def trials(self, step: str = TRIAL) -> "dict[str, Trial]":
        """All mitigations that were tried, judged together: each further one costs the others."""
        return _trials(self, step, self.state)

    def tried(self) -> pd.DataFrame:
        """The verdicts; see `mitigation.Report.tried`."""
        from ..mitigation.report import tried_table

        trials = self.trials()
        return tried_table(trials, dict.fromkeys(trials, ""), self.trials(AGAIN))


@lru_cache(maxsize=32)
def _finished_runs(folder: Path, files: tuple) -> pd.DataFrame:
    return runs_of(folder)


@lru_cache(maxsize=32)
def _varying(session: Session, state: tuple) -> list[str]:
    numbers = session.measured().select_dtypes("number")
    varies = numbers.drop(columns=list(_NO_METRICS), errors="ignore").nunique() > 1
    return sorted(varies[varies].index)


@lru_cache(maxsize=32)
def _explained(session: Session, permutations: int, state: tuple) -> "Explanation":
    from ..attribution import explain

    chosen = (session.cutoff, session.excluded, session.seed, permutations)
    return explain(session.table, session.judged, *chosen, consequences=consequences())


@lru_cache(maxsize=32)
def _trials(session: Session, step: str, state: tuple) -> "dict[str, Trial]":
    from ..mitigation.trials import judge_trials

    return judge_trials(session.pairs(step), session.seed)
