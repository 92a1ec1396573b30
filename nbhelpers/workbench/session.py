"""A session of the workbench: what was chosen, and what the library computes from it.

Owns the choices, where their runs lie, and which call of the library answers which step. A session
shows nothing: `views` draws it, `widgets` changes it.
"""

import shlex
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ..files import digest, write_json
from ..measurement import Campaign, Cell, consequences, finished
from ..measurement import metrics as metric_layers
from ..mitigation import BASELINE, treatment_cells
from ..mitigation.knowledge import Mitigation, factor_of, mitigations
from ..outcomes import COST, OUTCOME, outcome_of, with_cost
from ..places import results, shipped
from ..reading import read_json
from ..statistics import stopping
from ..workloads import Workload, as_workload
from .recorded import FIRST, RUNS, is_campaign, is_table, place_of, runs_of, with_rates

if TYPE_CHECKING:
    from ..attribution import Explanation
    from ..mitigation.trials import Trial

LAYERS = ("software", "kernel", "scheduler", "interrupts", "softirqs", "pressure", "throttling")
RECORDED = "data/recorded/55-mitigate-and-compare/autopilot"
TRIAL, AGAIN = "trial-", "confirm-"
FEWEST_RUNS = 5
COUNT = "count"
STATE = "workbench.json"
# identify a run or its order: to limit or explain by them says nothing
_NO_METRICS = ("run", "round", "epoch", "t0_ns", "pid", "began_unix_s")
OnRun = Callable[[int, int, str], object]


@dataclass(frozen=True)
class Limit:
    """Only runs whose metric lies in a range count.

    Examples
    --------
    >>> str(Limit("seconds", 0.5, 1.0))
    '0.5 ≤ seconds ≤ 1'
    """

    metric: str
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.4g} ≤ {self.metric} ≤ {self.high:.4g}"


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
        Ranges of metrics outside of which runs do not count.
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
    rule: str = COUNT
    runs: int = 30
    layers: tuple[str, ...] = LAYERS
    outcome: str = ""
    cell: str = ""
    limits: tuple[Limit, ...] = ()
    excluded: tuple[str, ...] = ()
    cutoff: float | None = None
    node: str = ""
    mitigation: str = ""
    rounds: int = 20
    seed: int = 1

    def __post_init__(self):
        if self.rule not in stopping.RULES:
            raise InputError(
                f"there is no stopping rule {self.rule!r}",
                fix=f"choose from {', '.join(stopping.RULES)}",
            )
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
    def one_campaign(self) -> bool:
        """Whether the folder is that of a campaign, and not of a session."""
        return is_campaign(self.place)

    @property
    def is_table(self) -> bool:
        """Whether the runs are those of one file."""
        return is_table(self.place)

    @property
    def save_folder(self) -> Path:
        """Where the session itself is saved: beside its runs; of recorded runs, with the
        results.
        """
        if not self.is_recorded:
            return self.place
        return results() / "workbench" / f"{self.place.name}-{digest(self.folder)[:8]}"

    def save(self) -> Path:
        """Write the choices, for `Session.load` and for the process that measures."""
        return write_json(self.save_folder / STATE, asdict(self))

    @classmethod
    def load(cls, path: Path) -> "Session":
        """What `save` wrote; a folder that begins with ./ lies beside the file."""
        found = read_json(path)
        if found["folder"].startswith("./"):
            found["folder"] = str(Path(path).resolve().parent / found["folder"])
        found["limits"] = tuple(Limit(**limit) for limit in found["limits"])
        lists = {name: tuple(found[name]) for name in ("layers", "excluded")}
        known = {field.name for field in fields(cls)}
        return cls(**{name: found[name] for name in known & set(found)} | lists)

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
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise InputError(
                f"not a command line: {error}", where=command, fix="close every quotation"
            ) from None
        name = Path(words[0]).name if words else "nothing"
        folder = results() / "workbench" / f"{name}-{digest(command)[:8]}"
        return cls(**{"folder": str(folder), "command": command} | choices)

    @classmethod
    def begin(
        cls, command: str = "", folder: str = RECORDED, saved: str = "", **choices: Any
    ) -> "Session":
        """A saved session, else one of a command, else of recorded runs.

        Parameters
        ----------
        command
            A command line, measured in a folder of its own; or empty.
        folder
            Of recorded runs.
        saved
            File of a session that was saved; nothing else counts then.
        choices
            Other attributes.
        """
        if saved:
            return cls.load(Path(saved))
        return cls.of_command(command, **choices) if command else cls(folder, **choices)

    @classmethod
    def of_recorded(cls, text: str, **choices: Any) -> "Session":
        """A session of what a person named: a campaign's folder, or a table of runs.

        Parameters
        ----------
        text
            Its path, from the current folder or from the checkout.
        choices
            Other attributes.

        Raises
        ------
        InputError
            Nothing is there, it holds no finished run, or it cannot be read.
        """
        place, ours = place_of(text), shipped().resolve()
        inside = place.relative_to(ours) if place.is_relative_to(ours) else place
        session = cls(inside.as_posix(), **choices)
        if session.measured().empty:
            raise InputError(
                "no run was finished here", where=place, fix="choose a campaign with runs"
            )
        return session

    # ---- 1: measure ----

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
        return as_workload(self.command)

    def measure(self, on_run: OnRun = lambda *_: None) -> pd.DataFrame:
        """Run the program until the stopping rule is content; go on where an earlier call stopped.

        Parameters
        ----------
        on_run
            Called after each run with the finished runs, the most there can be, and what the rule
            says.

        Returns
        -------
        The finished runs.
        """
        done = len(self._recorded(FIRST))
        least = self.runs if self.rule == COUNT else min(self.runs, max(FEWEST_RUNS, done))
        says = ""

        def enough(runs: pd.DataFrame) -> bool:
            nonlocal says
            decision = _decision(self, runs)
            says = decision.reason
            return decision.stop

        Campaign(
            self.place / FIRST,
            [Cell(BASELINE, self.workload)],
            least,
            self.seed,
            attachments=metric_layers(*self.layers),
        ).run(lambda done, *_: on_run(done, self.runs, says), enough, self.runs)
        return self.measured()

    def measured(self) -> pd.DataFrame:
        """The finished runs of the chosen cell, else those without a mitigation; empty before the
        first.
        """
        table = self._first()
        cell = self.cell or (BASELINE if BASELINE in self.cells() else "")
        return table[table["cell"] == cell] if cell and len(table) else table

    def cells(self) -> list[str]:
        """The cells of the measured runs, in their order; of a table without cells none."""
        table = self._first()
        return list(table["cell"].unique()) if "cell" in table.columns else []

    def _first(self) -> pd.DataFrame:
        return self._recorded("" if self.one_campaign or self.is_table else FIRST)

    def rule_says(self) -> stopping.Decision:
        """What the stopping rule says of the runs so far."""
        return _decision(self, self.measured())

    def _recorded(self, step: str) -> pd.DataFrame:
        """The finished runs of a campaign; do not change them, they are cached."""
        folder = self.place / step
        records = [folder] if self.is_table else folder.glob(f"{RUNS}*")
        files = tuple((path, path.stat().st_mtime_ns) for path in records)
        return _finished_runs(folder, files) if files else pd.DataFrame()

    @property
    def state(self) -> tuple:
        """What results depend on that lies on disk: changes with every run."""
        files = [*self.place.glob(f"{RUNS}*"), *self.place.glob(f"*/{RUNS}*")]
        files += [self.place] if self.is_table else []
        return tuple(sorted((str(path), path.stat().st_mtime_ns) for path in files))

    # ---- 2: outcome and limits ----

    @cached_property
    def table(self) -> pd.DataFrame:
        """The runs that count, with rates; `limits` applied.

        Raises
        ------
        InputError
            Nothing was measured, or no run is left.
        """
        runs = self.measured()
        if runs.empty:
            raise InputError(
                "there are no runs yet", where=self.folder, fix="measure: step 1 of the workbench"
            )
        runs = _judged_by(with_rates(runs), self.outcome)
        for limit in self.limits:
            if limit.metric not in runs.columns:
                raise InputError(f"no metric {limit.metric!r} to limit by", where=self.folder)
            runs = runs[runs[limit.metric].between(limit.low, limit.high)]
        if runs.empty:
            raise InputError("no run lies within the limits", fix="widen or remove a limit")
        return runs

    @cached_property
    def judged(self) -> str:
        """The column that is judged; of a table from elsewhere at first that of `outcomes`."""
        if self.outcome:
            return self.outcome
        first = outcome_of(self.table).name
        return first if first in self.table.columns else self.outcomes()[0]

    @property
    def values(self) -> np.ndarray:
        """The outcomes of the runs that count."""
        return self.table[self.judged].to_numpy(float)

    def limited(self, limit: Limit) -> "Session":
        """With a limit, in place of that of the same metric."""
        others = tuple(one for one in self.limits if one.metric != limit.metric)
        return replace(self, limits=(*others, limit))

    def metrics(self) -> list[str]:
        """Columns of numbers that vary, in alphabetical order; the outcome is among them."""
        runs = with_rates(self.measured())
        numbers = runs.select_dtypes("number").drop(columns=list(_NO_METRICS), errors="ignore")
        varies = numbers.nunique() > 1
        return sorted(varies[varies].index)

    def may_explain(self) -> list[str]:
        """Columns that can be excluded: the metrics, and columns of names that are categories."""
        from ..attribution.categories import Category, category_of

        runs = with_rates(self.measured())
        texts = runs.select_dtypes(exclude="number")
        names = [name for name in texts if isinstance(category_of(texts[name]), Category)]
        return sorted([*self.metrics(), *names])

    def outcomes(self) -> list[str]:
        """Metrics that every run has, so that runs can be judged by them; the program's first, or,
        of a table from elsewhere, the first column.
        """
        runs = with_rates(self.measured())
        whole = [name for name in self.metrics() if np.isfinite(runs[name].to_numpy(float)).all()]
        first = outcome_of(runs).name
        if first not in runs.columns:
            first = next(name for name in runs.columns if name in whole)
        return [first, *(name for name in whole if name != first)]

    # ---- 3: cutoff, tree, factors ----

    def explanation(self, permutations: int = 1000) -> "Explanation":
        """What separates the slow runs; without permutations a preview that claims nothing.

        Parameters
        ----------
        permutations
            Of the null distribution.
        """
        from ..attribution import explain

        return explain(
            self.table,
            self.judged,
            self.cutoff,
            self.excluded,
            self.seed,
            permutations,
            consequences=consequences(),
        )

    # ---- 4: a factor ----

    def chosen(self, explanation: "Explanation") -> str:
        """The metric that is looked at: the chosen node, else the first factor, else none."""
        if self.node:
            return self.node
        if explanation.factors.empty:
            return ""
        return str(explanation.factors["factor"].iloc[0])

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

    def try_mitigation(self, on_run: OnRun = lambda *_: None, again: bool = False) -> pd.DataFrame:
        """Measure with and without the mitigation, in turn; undone after each run.

        Parameters
        ----------
        on_run
            As in `measure`.
        again
            In runs that had no part in choosing it: only these can confirm it.

        Returns
        -------
        The finished runs of both.

        Raises
        ------
        InputError, Unavailable
            No mitigation is chosen, or it can't be done here; the message says why.
        """
        if self.mitigation not in mitigations():
            raise InputError(f"there is no mitigation {self.mitigation!r}", fix="choose one")
        step = f"{AGAIN if again else TRIAL}{self.mitigation}"
        cells = treatment_cells(self.workload, [self.mitigation])
        campaign = Campaign(self.place / step, cells, self.rounds, self.seed, max_failures=3)
        return finished(
            campaign.run(lambda done, total, s: on_run(done, total, f"about {s:.0f} s left"))
        )

    def pairs(self, prefix: str = TRIAL) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
        """Untreated and treated runs of each mitigation that was tried, by its id."""
        if self.one_campaign or self.is_table:  # cells that are named by mitigations
            tried = set(self.cells()) & set(mitigations()) if prefix == TRIAL else set()
            tables = {name: self._first() for name in sorted(tried)}
        else:
            folders = sorted(self.place.glob(f"{prefix}*"))
            tables = {one.name.removeprefix(prefix): self._recorded(one.name) for one in folders}
        found = {}
        for name, table in tables.items():
            if len(table) and {BASELINE, name} <= set(table["cell"]):
                judged = _judged_by(table, self.judged if self.is_table else self.outcome)
                cells = judged["cell"]
                found[name] = judged[cells == BASELINE], judged[cells == name]
        return found

    def trials(self, prefix: str = TRIAL) -> "dict[str, Trial]":
        """All mitigations that were tried, judged together: each further one costs the others."""
        start = Session(self.folder, outcome=self.outcome, seed=self.seed)
        return _trials(start, prefix, self.state)

    def tried(self) -> pd.DataFrame:
        """The verdicts; see `mitigation.Report.tried`."""
        from ..mitigation.report import tried_table

        trials = self.trials()
        return tried_table(trials, dict.fromkeys(trials, ""), self.trials(AGAIN))


@lru_cache(maxsize=32)
def _finished_runs(folder: Path, files: tuple) -> pd.DataFrame:
    return runs_of(folder)


@lru_cache(maxsize=32)
def _trials(session: Session, prefix: str, state: tuple) -> "dict[str, Trial]":
    from ..mitigation.trials import judge_trials

    whole = {
        name: pair
        for name, pair in session.pairs(prefix).items()
        if min(map(len, pair)) >= 2 and session.judged in pair[1].columns
    }
    return judge_trials(whole, session.seed)


def _decision(session: Session, runs: pd.DataFrame) -> stopping.Decision:
    if session.rule == COUNT:
        return stopping.Count(session.runs).decide(range(len(runs)))
    if runs.empty:
        return stopping.Decision(False, "no runs yet")
    costs = with_cost(_judged_by(runs, session.outcome))[COST].to_numpy()
    return stopping.RULES[session.rule].decide(costs)


def _judged_by(runs: pd.DataFrame, outcome: str) -> pd.DataFrame:
    """The runs, judged by another column than the program's own."""
    if not outcome or outcome not in runs.columns or outcome == outcome_of(runs).name:
        return runs
    return runs.copy().assign(**{OUTCOME: outcome})
