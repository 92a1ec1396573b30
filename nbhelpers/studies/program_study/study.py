"""Why one's own program does not take the same time twice: measured, traced, replayed, explained,
treated.

Owns the order of these steps, how a given time is divided among them, and the verdicts in plain
words. Every step keeps its data in one folder, so that the same call goes on where it stopped.
"""

import math
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from ... import places
from ...errors import InputError, NoisebookError
from ...files import digest, read_json, write_json
from ...injection import injection_campaign
from ...measurement import Campaign, Cell, finished, measure, metrics
from ...mitigation import Report as Treatments
from ...mitigation import autopilot, explain_factor, mitigations
from ...noise import NoiseConfig, average_noise, delta_noise
from ...outcomes import Outcome
from ...progress import readable
from ...statistics import Comparison, bootstrap_interval, cell_statistics, compare, mean_ratio
from ...tracing import Tracer, read_traces, summary
from ...workloads import Report, Workload, program

SECONDS = 300.0  # what a study takes unless it is told otherwise
LEAST_RUNS = 90  # lengths of a run that it needs
TRACED, REPLAYED, TREATED = 0.22, 0.18, 0.6  # shares of the time
ROUNDS = (5, 40)  # of a campaign: at least, at most
CANNOT = "cannot tell here"
QUESTIONS = {
    "spread": "How much do the runs differ?",
    "noise": "How much CPU time does the system take from it?",
    "tracing": "Does tracing disturb it?",
    "replay": "Does the slowest run's noise, replayed, slow it down?",
    "anomaly": "Is that noise what made the slowest run slow?",
    "cause": "Does anything that was counted separate the slow runs?",
    "remedy": "Is there a remedy?",
}
_UNIT = re.compile(r"[^\s()\[\]\\|?+*^$]*")


def program_from_options(
    command: str | Sequence[str] = "",
    *,
    shell: str | bool = "",
    description: str = "",
    region: str = "",
    lines: Sequence[str] = (),
    seconds: str = "",
    reports: Sequence[str] = (),
    outcome: str = "",
    threads: int = 0,
    timeout_s: float = 0,
) -> Workload:
    """`program`, from plain texts and numbers, as a command line or a notebook's parameters give
    them.

    What is empty or 0 counts as not given.

    Parameters
    ----------
    command
        Words, or one string of them.
    shell
        a line for /bin/sh in place of the command; or True: the command is one.
    description
        Name of a known program, or the path of a .yml file.
    region
        Kind of the timed region.
    lines
        The two patterns of printed lines between which it is timed.
    seconds
        Pattern of the time that it prints, with a group `seconds`.
    reports
        Each ``NAME=REGEX[:UNIT[:higher|lower]]``; see `parse_report`.
    outcome
        Name of what runs are judged by.
    threads, timeout_s
        See `program`.

    Raises
    ------
    InputError, RunError
        See `program`.

    Examples
    --------
    >>> program_from_options("sleep 0.01").name
    'sleep'
    """
    if shell and command and not isinstance(shell, bool):
        raise InputError("both a command and a shell line were given", fix="give one of them")
    if lines and len(lines) != 2:
        raise InputError(
            f"{len(lines)} patterns of lines were given; a region has two",
            fix="the line that opens it, and the line that closes it",
        )
    line = shell if isinstance(shell, str) else ""
    given = {
        "description": description,
        "region": tuple(lines) or region,
        "seconds": seconds,
        "reports": tuple(map(parse_report, reports)),
        "outcome": outcome,
        "threads": threads,
        "timeout_s": timeout_s,
        "shell": bool(shell),
    }
    return program(
        line or command or None, **{name: value for name, value in given.items() if value}
    )


def parse_report(text: str) -> Report:
    """A number that a program reports, from ``NAME=REGEX[:UNIT[:higher|lower]]``.

    The pattern may hold colons: the part after the last one is a unit only if it has neither spaces
    nor any of ``()[]\\|?+*^$``.

    Raises
    ------
    InputError
        There is no name or no pattern, or `Report` refuses them.

    Examples
    --------
    >>> parse_report(r"rate=rate: (?P<value>[0-9.]+):MB/s:higher")
    Report(rate (MB/s, higher is better))
    """
    name, equals, rest = text.partition("=")
    if not (name and equals and rest):
        raise InputError(
            f"'{text}' is no report",
            fix=r"NAME=REGEX:UNIT:higher, such as " r"'rate=rate: (?P<value>[0-9.]+):MB/s:higher'",
        )
    pattern, direction = rest, "lower"
    if rest.rpartition(":")[2] in ("higher", "lower"):
        pattern, _, direction = rest.rpartition(":")
    before, colon, unit = pattern.rpartition(":")
    if colon and before and _UNIT.fullmatch(unit):
        return Report(name, before, unit, direction)
    return Report(name, pattern, "", direction)


def study_folder(workload: Workload) -> Path:
    """Where the study of a program is kept unless it is told otherwise: one folder for each
    command.

    Examples
    --------
    >>> study_folder(program_from_options("sleep 0.01")).parent.name
    'programs'
    """
    what = digest(*workload.command, *(f"{name}={value}" for name, value in workload.env))
    return places.results() / "programs" / f"{workload.name}-{what[:6]}"


@dataclass(frozen=True)
class Plan:
    """How a given time is spent.

    Parameters
    ----------
    run_seconds
        One run, with its start and end.
    seconds
        All that is measured.
    traced
        Rounds of a run with tracing and one without.
    replayed
        Rounds of a run with the worst run's noise and one without.
    treated_seconds
        For finding the cause and trying what may help.
    """

    run_seconds: float
    seconds: float
    traced: int
    replayed: int
    treated_seconds: float

    def table(self) -> pd.DataFrame:
        """One row a step: step, runs, seconds (at most)."""
        rows = [
            ("measure and trace", 2 * self.traced, 2 * self.traced * self.run_seconds),
            (
                "replay the worst run's noise",
                2 * self.replayed,
                2 * self.replayed * self.run_seconds,
            ),
            ("look for the cause, try what may help", None, self.treated_seconds),
        ]
        return pd.DataFrame(rows, columns=["step", "runs", "seconds"]).astype({"runs": "Int64"})

    def sentences(self) -> list[str]:
        """What will be done, and how long each part takes."""
        runs = self.run_seconds
        return [
            (
                f"A run takes {readable(runs)}. Measuring takes {readable(self.seconds)} at most, "
                "analysing some seconds more."
            ),
            f"1. measure and trace: 2 × {self.traced} runs, {readable(2 * self.traced * runs)}",
            (
                f"2. replay the worst run's noise: 2 × {self.replayed} runs, "
                f"{readable(2 * self.replayed * runs)}"
            ),
            (
                f"3. look for the cause and try what may help: {readable(self.treated_seconds)} at"
                " most"
            ),
        ]


def plan_study(run_seconds: float, seconds: float = 0, runs: int = 0) -> Plan:
    """Divide a time among the steps.

    Parameters
    ----------
    run_seconds
        Of one run.
    seconds
        In all; 0: five minutes, or more where runs are long.
    runs
        Rounds of the first two steps; 0: what the time allows.

    Raises
    ------
    InputError
        The time is too short for anything to be seen.

    Examples
    --------
    >>> plan_study(1.0).traced, plan_study(1.0).replayed, plan_study(60.0).seconds
    (33, 27, 5400.0)
    """
    least = LEAST_RUNS * run_seconds
    if seconds and seconds < least:
        raise InputError(
            f"{seconds:g} s are too short: a run takes {readable(run_seconds)}",
            why="fewer runs show nothing of how they vary",
            fix=f"give at least {math.ceil(least)} s, or a smaller problem",
        )
    seconds = seconds or max(SECONDS, least)
    traced, replayed = (
        runs or int(min(max(share * seconds / (2 * run_seconds), ROUNDS[0]), ROUNDS[1]))
        for share in (TRACED, REPLAYED)
    )
    return Plan(run_seconds, seconds, traced, replayed, TREATED * seconds)


@dataclass(frozen=True)
class Verdict:
    """The answer to one question.

    Parameters
    ----------
    question
        As it is asked.
    answer
        Yes, no, or "cannot tell here"; empty where the answer is a number.
    sentence
        The answer in words; where it cannot be told, why.
    value, low, high
        The number and its 95 % interval; None: there is none.
    unit
        Of these.
    n
        Runs that it rests on.
    """

    question: str
    answer: str
    sentence: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    n: int = 0

    def __str__(self) -> str:
        return f"{self.question}\n  {self.answer + ': ' if self.answer else ''}{self.sentence}"


class Verdicts(list):
    """Some verdicts; show themselves in a notebook."""

    def _repr_html_(self) -> str:
        return "".join(
            f"<p><strong>{escape(verdict.question)}</strong> "
            f"{escape(verdict.answer + ': ' if verdict.answer else '')}{escape(verdict.sentence)}</p>"
            for verdict in self
        )


@dataclass(frozen=True)
class Traced:
    """The runs with and without tracing, their noise, and the config of the slowest one.

    Parameters
    ----------
    runs
        Finished runs; `cell` is untraced or traced.
    events
        Noise events of the traced ones.
    noise
        By source; see `trace.summary`.
    tracing
        Traced against untraced runs.
    delta
        What the slowest traced run suffered beyond the average.
    config
        `delta` as a noise config; None: nothing was left.
    own
        Whether the program itself was traced, and not a loop in its place.
    """

    runs: pd.DataFrame
    events: pd.DataFrame
    noise: pd.DataFrame
    tracing: Comparison
    delta: pd.DataFrame
    config: NoiseConfig | None
    own: bool


class _Answers(dict):
    """The answers so far, each found when it is first asked for."""

    def __init__(self, own: "ProgramStudy"):
        self._own = own

    def __missing__(self, about: str) -> Verdict:
        self[about] = self._own._answered(about)
        return self[about]


class ProgramStudy:
    """A study of one's own program.

    Parameters
    ----------
    workload
        The program.
    folder
        Keeps everything; None: see `study_folder`.
    seconds
        That measuring may take; 0: five minutes, or more where runs are long.
    runs
        Rounds of the first two steps; 0: what the time allows.
    risk
        The highest of a mitigation that is tried: none, low or high.
    seed
        Of random orders and of resampling.

    Examples
    --------
    >>> study = ProgramStudy(
    ...     program_from_options("sleep 0.01"), "folder"
    ... )  # measures when it is asked
    >>> study
    ProgramStudy(sleep: folder)
    """

    def __init__(
        self,
        workload: Workload,
        folder: str | Path | None = None,
        seconds: float = 0,
        runs: int = 0,
        risk: str = "low",
        seed: int = 1,
    ):
        self.workload, self.folder = workload, Path(folder or study_folder(workload))
        self.seconds, self.runs, self.risk, self.seed = seconds, runs, risk, seed

    def __repr__(self) -> str:
        return f"ProgramStudy({self.workload.name}: {self.folder})"

    @cached_property
    def command(self) -> str:
        """What is run, as one line."""
        return shlex.join(self.workload.command)

    # ---- the steps ----

    @cached_property
    def plan(self) -> Plan:
        """How the time is divided; three runs are made to find out how long one takes."""
        path = self.folder / "plan.json"
        if not path.exists():
            first = measure(self.workload, runs=3, folder=self.folder / "first-look")
            write_json(path, {"run_seconds": float(first["elapsed_seconds"].median())})
        return plan_study(read_json(path)["run_seconds"], self.seconds, self.runs)

    @cached_property
    def traced(self) -> Traced:
        """Step 1: runs with and without tracing, in turn."""
        folder = self.folder / "traced"
        tracer = Tracer(folder / "traces")
        ran = tracer.stand_in(self.workload)
        cells = [Cell("untraced", ran), Cell("traced", ran, attachments=[tracer])]
        runs = finished(
            Campaign(
                folder, cells, runs=self.plan.traced, seed=self.seed, attachments=metrics("all")
            ).run()
        )
        own = runs[runs["cell"] == "traced"]
        events = read_traces(folder / "traces", own)
        delta = delta_noise(events, average_noise(events, own), own) if len(events) else events
        config = NoiseConfig.from_events(delta) if (delta["duration_ns"] > 0).any() else None
        if config is not None:
            config.write(self.folder / "worst-run.json")
        tracing = compare(runs[runs["cell"] == "untraced"], own, seed=self.seed)
        return Traced(
            runs, events, summary(events, own), tracing, delta, config, ran is self.workload
        )

    @cached_property
    def replayed(self) -> pd.DataFrame:
        """Step 2: runs with the slowest run's noise, and without, in turn; `cell` is injected or
        baseline.

        Raises
        ------
        InputError
            Nothing is left to replay.
        """
        config = self.config
        folder = self.folder / "replayed" / config.digest
        return finished(
            injection_campaign(
                folder, self.workload, config, runs=self.plan.replayed, seed=self.seed + 1
            ).run()
        )

    @cached_property
    def treatments(self) -> Treatments:
        """Steps 3 and 4: what separates slow runs, and what helps."""
        return autopilot(
            self.workload,
            self.plan.treated_seconds,
            folder=self.folder / "treated",
            risk=self.risk,
            seed=self.seed,
            general=True,
        )

    # ---- the verdicts ----

    def verdicts(self, each: Callable[[Verdict], object] | None = None) -> list[Verdict]:
        """The answers; what is missing is measured.

        Parameters
        ----------
        each
            Called with each of them as soon as it is known.

        Notes
        -----
        They are kept in ``verdicts.json``.
        """
        _ = self.plan  # a program that does not run is no answer
        found = []
        for about in QUESTIONS:
            found.append(self.verdict(about))
            if each:
                each(found[-1])
        write_json(self.folder / "verdicts.json", [asdict(verdict) for verdict in found])
        return found

    def table(self) -> pd.DataFrame:
        """The answers as a table: question, answer, sentence, value, low, high, unit, n."""
        return pd.DataFrame([asdict(verdict) for verdict in self.verdicts()])

    def verdict(self, about: str) -> Verdict:
        """The answer to one question.

        Parameters
        ----------
        about
            Spread, noise, tracing, replay, anomaly, cause or remedy.
        """
        if about not in QUESTIONS:
            raise InputError(
                f"there is no question about '{about}'", fix=f"one of {', '.join(QUESTIONS)}"
            )
        return self._answers[about]

    def show(self, *about: str) -> "Verdicts":
        """Answers to be shown in a notebook; see `verdict`."""
        return Verdicts([self.verdict(name) for name in about])

    def sentences(self, *about: str) -> list[str]:
        """Answers as sentences; see `verdict`."""
        return [
            f"{verdict.question} **{verdict.answer or 'Measured'}**: {verdict.sentence}"
            for verdict in map(self.verdict, about)
        ]

    @property
    def config(self) -> NoiseConfig:
        """Noise of the slowest run beyond the average.

        Raises
        ------
        InputError
            Nothing is left.
        """
        if self.traced.config is None:
            raise InputError("the slowest run suffered no more than the average")
        return self.traced.config

    @property
    def slowest_value(self) -> float | None:
        """What the slowest traced run is judged by; None where a loop was traced in its place."""
        if not self.traced.own:
            return None
        return float(
            self.traced.runs.set_index("run").loc[self.traced.delta.attrs["run"], self._judged.name]
        )

    def missing(self, step: str) -> str:
        """Why a step cannot be done here; empty: it can, and its data are there now.

        Parameters
        ----------
        step
            Traced, config, replayed or treatments.
        """
        try:
            getattr(self, step)
        except NoisebookError as error:
            return f"{CANNOT}, because {error.what}"
        return ""

    @cached_property
    def _answers(self) -> "_Answers":
        return _Answers(self)

    def _answered(self, about: str) -> Verdict:
        """A step that cannot be done here is an answer."""
        question = QUESTIONS[about]
        try:
            return getattr(self, f"_{about}")(question)
        except NoisebookError as error:
            fix = f" What to do: {error.fix}." if error.fix else ""
            return Verdict(question, CANNOT, f"because {error.what}.{fix}")

    def _spread(self, question: str) -> Verdict:
        """Of the program itself: where a loop was traced in its place, of the runs without replayed
        noise.
        """
        runs = self._undisturbed()
        row = cell_statistics(runs.assign(cell="all")).iloc[0]
        values = runs[self._judged.name]
        return Verdict(
            question,
            "",
            f"by {percent(row.cv)} of the mean (standard deviation), 95 % interval "
            f"{percent(row.cv_low)} to {percent(row.cv_high)}, n = {len(values)}. Median "
            f"{self._number(values.median())}, from {self._number(values.min())} to "
            f"{self._number(values.max())}.",
            row.cv,
            row.cv_low,
            row.cv_high,
            "of the mean",
            len(values),
        )

    def _undisturbed(self) -> pd.DataFrame:
        try:
            if self.traced.own:
                return self.traced.runs.query("cell == 'untraced'")
            return self.replayed.query("cell == 'baseline'")
        except NoisebookError:
            return self.treatments.baseline

    def _noise(self, question: str) -> Verdict:
        own = self.traced.runs.query("cell == 'traced'")
        shares = _shares(self.traced.events, own)
        low, high = bootstrap_interval(shares, "mean", self.seed)
        first = self.traced.noise.index[0] if len(self.traced.noise) else None
        most = f" Most is {first[1]} ({first[0]})." if first and self.traced.own else ""
        instead = (
            ""
            if self.traced.own
            else (
                " Measured by a loop in place of your program, which cannot be "
                f"traced here: see {places.how_to('doctor')}."
            )
        )
        return Verdict(
            question,
            "",
            f"{percent(shares.mean())}, 95 % interval {percent(low)} to {percent(high)}, "
            f"n = {len(shares)} runs.{most}{instead}",
            float(shares.mean()),
            low,
            high,
            "of CPU time",
            len(shares),
        )

    def _tracing(self, question: str) -> Verdict:
        if not self.traced.own:
            return self._untraceable(question)
        return self._change(question, self.traced.tracing, "it", self.plan.traced)

    def _replay(self, question: str) -> Verdict:
        runs = self.replayed
        of_loop = "" if self.traced.own else " The noise is that of the loop's worst run."
        baseline, injected = (runs[runs["cell"] == name] for name in ("baseline", "injected"))
        return self._change(
            question,
            compare(baseline, injected, seed=self.seed),
            "the replay",
            len(injected),
            of_loop,
        )

    def _anomaly(self, question: str) -> Verdict:
        if not self.traced.own:
            return self._untraceable(question)
        worst = float(self._judged.costs([self.slowest_value])[0])
        costs = {
            cell: self._judged.costs(own[self._judged.name])
            for cell, own in self.replayed.groupby("cell")
        }
        ratio = mean_ratio(costs["injected"], worst, seed=self.seed)
        explained = ratio.low <= 1 <= ratio.high
        rest = (
            "" if explained else f" Undisturbed runs take × {costs['baseline'].mean() / worst:.3f}."
        )
        return Verdict(
            question,
            "yes" if explained else "no",
            f"the replay takes × {ratio.value:.3f} of the slowest run"
            f" ({self._number(self.slowest_value)}), 95 % interval {ratio.low:.3f} to"
            f" {ratio.high:.3f}, n = {ratio.size}; × 1 would be as slow.{rest}",
            ratio.value,
            ratio.low,
            ratio.high,
            "of the slowest run",
            ratio.size,
        )

    def _untraceable(self, question: str) -> Verdict:
        return Verdict(
            question,
            CANNOT,
            "because a program cannot be traced on this machine by this user. "
            f"What to do: {places.how_to('doctor')}.",
        )

    def _cause(self, question: str) -> Verdict:
        found = self.treatments.explanation
        n = len(self.treatments.baseline)
        if not found.found:
            return Verdict(question, "no", f"{found.summary} n = {n}.", n=n)
        names = [explain_factor(name).name for name in self.treatments.factors.index[:2]]
        known = f" That points to: {', '.join(names)}." if names else ""
        return Verdict(
            question,
            "yes",
            f"{found.summary}{known} n = {n}.",
            found.accuracy,
            *found.accuracy_interval,
            "balanced accuracy",
            n,
        )

    def _remedy(self, question: str) -> Verdict:
        report = self.treatments
        if report.tried.empty:
            reasons = "; ".join(
                f"{row['name']}: {row['reason']}" for _, row in report.not_tried.head(3).iterrows()
            )
            return Verdict(
                question,
                CANNOT,
                f"because nothing could be tried ({reasons or 'nothing is known to help'}).",
            )
        if not report.helped:
            least, most = report.tried["runs"].min(), report.tried["runs"].max()
            return Verdict(
                question,
                "no",
                f"of {len(report.tried)} tried none is shown to help "
                f"({', '.join(report.tried['name'])}; n = {least} to {most} rounds each).",
                n=int(least),
            )
        best = report.tried.loc[report.helped[0]]
        again = (
            f" Measured again: {report.confirmed.verdict}"
            if report.confirmed
            else " It was not measured again."
        )
        return Verdict(
            question,
            "yes",
            f"“{best['name']}”: the mean is × {best['mean_ratio']:.3f}, 95 % interval "
            f"{best['mean_low']:.3f} to {best['mean_high']:.3f}, the standard deviation × "
            f"{best['sd_ratio']:.3f}, n = {best['runs']}"
            f" rounds.{again}{_by_hand(report.helped[0])}",
            best["mean_ratio"],
            best["mean_low"],
            best["mean_high"],
            "of the mean",
            int(best["runs"]),
        )

    # ---- words ----

    @property
    def _judged(self) -> Outcome:
        return self.workload.judged

    def headline(self) -> str:
        """The answer to the title of the page, in one sentence."""
        spread, cause, remedy = (self.verdict(name) for name in ("spread", "cause", "remedy"))
        differ = (
            f"The runs differ by {percent(spread.value)} (n = {spread.n})"
            if spread.n
            else "How much the runs differ cannot be told"
        )
        named = {
            "yes": "something that was counted separates the slow ones",
            "no": "nothing that was counted separates the slow ones",
        }
        helped = {"yes": "a remedy helps", "no": "no remedy is shown to help"}
        return (
            f"{differ}; {named.get(cause.answer, 'why cannot be told here')};"
            f" {helped.get(remedy.answer, 'what helps cannot be told here')}."
        )

    def _change(
        self, question: str, comparison: Comparison, what: str, n: int, more: str = ""
    ) -> Verdict:
        mean = comparison.table.loc["mean"]
        answer = {"worse": "yes", "better": "no, the contrary"}.get(comparison.better, "no")
        seen = (
            ""
            if answer != "no"
            else " No change is shown by so many runs, which does not prove that there is none."
        )
        return Verdict(
            question,
            answer,
            f"with {what} the mean {self._judged.name} is × {mean.ratio:.4f}, 95 % interval "
            f"{mean.low:.4f} to {mean.high:.4f}, n = {n} runs each.{seen}{more}",
            mean.ratio,
            mean.low,
            mean.high,
            "of the mean",
            n,
        )

    def _number(self, value: float) -> str:
        return f"{value:.4g} {self._judged.unit}".strip()


def _by_hand(name: str) -> str:
    commands = "; ".join(mitigations()[name].by_hand)
    return f" By hand: {commands}" if commands else ""


def _shares(events: pd.DataFrame, runs: pd.DataFrame) -> np.ndarray:
    """Of each traced run, the share of all CPUs' time that events took."""
    cpus = len(events.attrs.get("cpus", ())) or max(events["cpu"].nunique(), 1)
    lost_s = events.groupby("run")["duration_ns"].sum() / 1e9
    length_s = runs.set_index("run")[_length_column(runs)]
    return (lost_s.reindex(length_s.index).fillna(0) / (length_s * cpus)).to_numpy()


def _length_column(runs: pd.DataFrame) -> str:
    """The region's own length, where the program reports another time."""
    return "region_seconds" if "region_seconds" in runs else "seconds"


def percent(share: float) -> str:
    """A share for people.

    Examples
    --------
    >>> percent(0.0123), percent(0.5)
    ('1.23 %', '50 %')
    """
    return f"{100 * share:.3g} %"
