"""Why a program of the user's does not take the same time twice: measured, traced, replayed,
explained, treated.

Owns the study as a whole: its steps are in `steps`, its answers in `verdicts`.
"""

from collections.abc import Callable
from dataclasses import asdict
from functools import cached_property
from typing import Any

import pandas as pd

from ...answers import CANNOT_TELL, LONGEST, Answer
from ...attribution.replication import ENOUGH, fresh_evidence
from ...attribution.who import CHANCE
from ...errors import NoisebookError
from ...files import write_json
from ...measurement import rates
from ...mitigation import explain_factor
from ...mitigation.knowledge import factor_of
from ..known import is_shown
from .steps import Steps
from .summary import AGAIN, DOSE, REMOVED, REPLAYED, SEEN, next_command
from .took import Thresholds
from .verdicts import CANNOT, QUESTIONS, Verdict, find_verdict, percent

OF_CPUS = ("cpu-contention", "real-time-tasks")  # factors whose doses take CPUs
MUCH = 0.1  # of the CPU time: others that have more of it are said first


class ProgramStudy(Steps):
    """A study of one program: each step is measured when its result is first used.

    Parameters
    ----------
    workload
        The program.
    folder
        Where everything is cached; None: see `study_folder`.
    seconds
        Seconds that measuring may take; 0: three minutes, or nine runs where they are long.
    runs
        Rounds of the first two steps; 0: what the time allows.
    risk
        The highest risk of a mitigation that is tried: none, low or high.
    seed
        Seed of random orders and of resampling.

    Examples
    --------
    >>> from nbhelpers.studies.program_study import program_from_options
    >>> study = ProgramStudy(program_from_options("sleep 0.01"), "folder")  # nothing is run yet
    >>> study
    ProgramStudy(sleep: folder)
    """

    def __repr__(self) -> str:
        return f"ProgramStudy({self.workload.name}: {self.folder})"

    def verdicts(self, each: Callable[[Verdict], object] | None = None) -> list[Verdict]:
        """The answers; what is missing is measured. They are also written to ``verdicts.json``.

        Parameters
        ----------
        each
            Called with each of them as soon as it is there.
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
            Spread, who, noise, tracing, replay, anomaly, cause, remedy or proof.

        Raises
        ------
        InputError
            There is no such question.
        """
        if about not in self._found:
            self._found[about] = find_verdict(self, about)
        return self._found[about]

    def sentences(self, *about: str) -> list[str]:
        """Answers as sentences; see `verdict`."""
        return [
            f"{verdict.question} **{verdict.answer or 'Measured'}**: {verdict.sentence}"
            for verdict in map(self.verdict, about)
        ]

    def judge_by(self, **thresholds: float) -> None:
        """Judge who took the time by other `Thresholds`."""
        self.thresholds = Thresholds(**thresholds)
        for name, known in (("took", vars(self)), ("who", self._found)):
            known.pop(name, None)

    def missing(self, step: str) -> str:
        """Why a step cannot be done here; empty: it can, and its data are there now.

        Parameters
        ----------
        step
            Traced, config, replayed, treatments or proof.
        """
        try:
            getattr(self, step)
        except NoisebookError as error:
            return f"{CANNOT}, because {error.what}"
        return ""

    def answer(self) -> Answer:
        """The answer to the title of the page: who took the time; else the proven cause."""
        spread = self.verdict("spread")
        numbers = {"value": spread.value, "low": spread.low, "high": spread.high}
        known: dict[str, Any] = {
            name: 100 * number for name, number in numbers.items() if number is not None
        }
        reason = self._reason()
        who = self.took.name if self.verdict("who").answer == "yes" else ""
        return Answer(
            (who or self._proven())[:LONGEST] or CANNOT_TELL,
            f"{reason[0].upper()}{reason[1:]}.",
            "how much the runs differ",
            unit="%" if known else "",
            n=spread.n,
            figure="runs",
            **known,
        )

    def headline(self) -> str:
        """The cause, its size, its grade, and one command."""
        spread, who = self.verdict("spread"), self.verdict("who")
        differ = (
            "How much the runs differ is not known"
            if spread.value is None
            else f"The runs differ by {percent(spread.value)} (n = {spread.n})"
        )
        if who.answer == "yes":
            said = (
                f"{self.took.slow.sentence()} {self.took.words()} {self.took.later or ''}".strip()
            )
            return f"{said} ({self.grade()}) {next_command(self.took, self.command)}".strip()
        said = f"{differ}; {self._reason()}."
        if who.answer == "no":
            said += self.took.printed
        others = self.verdict("noise")
        if (others.value or 0.0) > MUCH:
            said += f" CPU time that others had: {others.sentence}"
        return said

    def grade(self) -> str:
        """How well the cause is shown; a step that was not done lowers nothing."""
        if self.verdict("remedy").answer == "yes":
            return REMOVED
        if self._proven() and self._is_of_best(self.proof.factor):
            return DOSE
        replay = self.verdict("anomaly")
        if is_shown(replay.answer, replay.low):
            return REPLAYED
        return AGAIN if self._comes_back() else SEEN

    def _comes_back(self) -> bool:
        """Whether the best is seen in other runs: a name in later traced ones, a counter in those
        without tracing.
        """
        best, later = self.took.best, self.took.later
        if later is not None:
            return later.p_value <= CHANCE
        if best is None or best["part"] != "counter" or self.missing("treatments"):
            return False
        fresh = rates(self.treatments.baseline)
        found = fresh_evidence(fresh, self.outcome, str(best["name"]), best["spearman"])
        return found >= ENOUGH

    def _is_of_best(self, factor: str) -> bool:
        """Whether a factor is what who took the time did: its counter, or having the CPU."""
        best = self.took.best
        if best is None:
            return True
        if best["part"] != "counter":
            return best["part"] == "runnable" and factor in OF_CPUS
        known = factor_of(str(best["name"]))
        return known is not None and known.id == factor

    def _proven(self) -> str:
        """The name of the proven cause; empty: there is none."""
        is_proven = self.verdict("proof").answer == "yes"
        return explain_factor(self.proof.factor).name if is_proven else ""

    def _reason(self) -> str:
        """What is known of the cause, in a clause."""
        if self.verdict("who").answer == "yes":
            return f"{self.took.words().rstrip('.')} ({self.grade()})"
        if self._proven():
            return f"a cause is proven: {self._proven()}"
        return {
            "yes": "what was counted and separates the slow ones is not proven to be the cause",
            "seen once": "what separated the slow ones was not seen again in other runs",
            "no": "nothing that was counted separates the slow ones",
        }.get(self.verdict("cause").answer, "why is not known here")

    @cached_property
    def _found(self) -> dict[str, Verdict]:
        return {}
