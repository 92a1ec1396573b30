"""The answers of a study of one program: a question, its answer, the number, and why.

Owns the questions and the rule by which each is answered from the study's steps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ... import places
from ...attribution.replication import (
    ENOUGH,
    again_in_words,
    fresh_category_evidence,
    fresh_evidence,
)
from ...attribution.search import CATEGORY
from ...attribution.who import NOT_OF_TRACE
from ...errors import NoisebookError, Unavailable, check_choice
from ...measurement import rates, region_seconds
from ...mitigation import explain_factor, mitigations
from ...mitigation.trials import open_verdict
from ...statistics import Comparison, bootstrap_interval, cell_statistics, compare
from ...statistics.claims import NONE
from ..cause_proof import CAUSE
from ..known import Known, Replay, remedy_answer
from .steps import Steps

CANNOT = "cannot tell here"


@dataclass(frozen=True)
class Verdict:
    """The answer to one question.

    Parameters
    ----------
    question
        In full.
    answer
        Yes, no, "cannot tell here", or a part; empty where the answer is a number.
    sentence
        The answer in words; where it cannot be given, why.
    value, low, high
        The number and its 95 % interval; None: there is none.
    unit
        Unit of the number and of its interval.
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

    @property
    def reply(self) -> str:
        """Answer and sentence in one."""
        return f"{self.answer}: {self.sentence}" if self.answer else self.sentence


def find_verdict(steps: Steps, about: str) -> Verdict:
    """The answer to one question; a step that cannot be done on this machine is an answer, too.

    Parameters
    ----------
    steps
        Steps of the study; what is missing is measured.
    about
        One of `QUESTIONS`.

    Raises
    ------
    InputError
        There is no such question.
    """
    check_choice("question about", about, QUESTIONS)
    question, rule = QUESTIONS[about]
    try:
        return replace(rule(steps), question=question)
    except NoisebookError as error:
        fix = f" What to do: {error.fix}." if error.fix else ""
        return Verdict(question, CANNOT, f"because {error.what}.{fix}")


def percent(share: float) -> str:
    """A share as text.

    Examples
    --------
    >>> percent(0.0123), percent(0.5)
    ('1.23 %', '50 %')
    """
    return f"{100 * share:.3g} %"


def _found(
    answer: str, sentence: str, numbers: Sequence[float] = (), unit: str = "", n: int = 0
) -> Verdict:
    """The answer to a question that `find_verdict` knows; the numbers are value, low and high."""
    known = dict(zip(("value", "low", "high"), numbers))
    return Verdict("", answer, sentence, **known, unit=unit, n=n)


def _spread(steps: Steps) -> Verdict:
    """The spread of the program itself: where a loop was traced in its place, that of the runs
    without replayed noise.
    """
    runs = steps.undisturbed
    row = cell_statistics(runs.assign(cell="all")).iloc[0]
    values = runs[steps.outcome.name]
    middle, least, most = (
        f"{value:.4g} {steps.outcome.unit}".strip()
        for value in (values.median(), values.min(), values.max())
    )
    interval = f"95 % interval {percent(row.cv_low)} to {percent(row.cv_high)}"
    known = interval if np.isfinite([row.cv_low, row.cv_high]).all() else "too few for an interval"
    sentence = (
        f"by {percent(row.cv)} of the mean (standard deviation), {known}, n = {len(values)}. Median"
        f" {middle}, from {least} to {most}."
    )
    numbers = (row.cv, row.cv_low, row.cv_high) if known == interval else (row.cv,)
    return _found("", sentence, numbers, "of the mean", len(values))


def _who(steps: Steps) -> Verdict:
    """The name that had most of what the slow runs took longer; a counter where there is none."""
    took, chance = steps.took, steps.thresholds.chance
    runs, said = len(took.slow.slow), took.slow.sentence()
    if took.table.empty:
        return _found("no", said, n=runs)
    best = took.best
    if best is None:
        least = took.table["p_value"].min()
        rest = "Nothing that was recorded separates them beyond chance."
        p_value = f"p = {least:.3f}, " if least > chance else ""
        return _found("no", f"{said} {rest} {p_value}n = {runs}.{took.printed}", n=runs)
    p_value = f"p = {best['p_value']:.3f}, " if best["p_value"] <= chance else ""
    sentence = f"{said} {took.words()} {p_value}n = {runs}. {took.later or ''}".strip()
    if best["part"] in NOT_OF_TRACE:
        return _found("yes", sentence, n=runs)
    share = float(best["explained_share"])
    return Verdict("", "yes", sentence, value=share, unit="of what they took longer", n=runs)


def _noise(steps: Steps) -> Verdict:
    found = steps.traced
    shares = _lost_shares(found.events, found.runs.query("cell == 'traced'"))
    mean, (low, high) = float(shares.mean()), bootstrap_interval(shares, "mean", steps.seed)
    note = ""
    if not found.is_program:
        note = (
            " Measured by a loop in place of your program, which cannot be traced here: see"
            f" {places.how_to('doctor')}."
        )
    elif len(found.noise):
        kind, source = found.noise.index[0]
        note = f" Most is {source} ({kind})."
    sentence = (
        f"{percent(mean)}, 95 % interval {percent(low)} to {percent(high)}, n = {len(shares)}"
        f" runs.{note}"
    )
    return _found("", sentence, (mean, low, high), "of CPU time", len(shares))


def _tracing(steps: Steps) -> Verdict:
    if not steps.traced.is_program:
        raise _untraceable()
    return _change(steps, steps.traced.tracing, "it", steps.plan.traced)


def _untraceable() -> Unavailable:
    what = "a program cannot be traced on this machine by this user"
    return Unavailable(what, fix=places.how_to("doctor"))


def _replay(steps: Steps) -> Verdict:
    runs = steps.replayed
    note = "" if steps.traced.is_program else " The noise is that of the loop's worst run."
    baseline, injected = (runs[runs["cell"] == name] for name in ("baseline", "injected"))
    comparison = compare(baseline, injected, seed=steps.seed)
    return _change(steps, comparison, "the replay", len(injected), note)


def _anomaly(steps: Steps) -> Verdict:
    slowest = steps.slowest_value
    if slowest is None:
        raise _untraceable()
    worst = float(steps.outcome.costs([slowest])[0])
    runs = steps.replayed
    runs = runs.assign(cost=steps.outcome.costs(runs[steps.outcome.name]))
    rounds = runs.pivot_table("cost", "round", "cell").dropna()
    return _came_back(rounds, worst, steps.seed)


def _came_back(rounds: pd.DataFrame, worst: float, seed: int) -> Verdict:
    """How much of what the slowest run took longer came back in its replays.

    Parameters
    ----------
    rounds
        One row a round: costs without (`baseline`) and with the replay (`injected`).
    worst
        What the slowest run cost.
    seed
        Seed of the bootstrap over the rounds.
    """
    n = len(rounds)
    drawn = np.random.default_rng(seed).integers(n, size=(2000, n))
    usual, replayed = rounds[["baseline", "injected"]].to_numpy()[drawn].mean(axis=1).T
    low, high = np.quantile((replayed - usual) / (worst - usual), [0.025, 0.975])
    usual, replayed = rounds["baseline"].mean(), rounds["injected"].mean()
    back = float((replayed - usual) / (worst - usual)), float(low), float(high)
    known = Known(replay=Replay(back, replayed / worst, usual / worst, n))
    sentence = (
        f"{known.sentence} 95 % interval {100 * low:.0f} to {100 * high:.0f} %, n = {n} rounds."
    )
    return _found(known.replayed, sentence, back, "of what it took longer", n)


def _cause(steps: Steps) -> Verdict:
    """A claim of the runs that were measured last, which counts if it comes back in the first."""
    report = steps.treatments
    found, n = report.explanation, len(report.baseline)
    if not found.found:
        return _found("no", f"{found.summary} n = {n}.", n=n)
    names = [explain_factor(name).name for name in report.factors.index[:2]]
    factors = f" Suspected, not proven: {', '.join(names)}." if names else ""
    numbers = (found.accuracy, *found.accuracy_interval)
    leader = found.factors.iloc[0]
    sentence = f"{found.summary}{factors} n = {n}."
    if not steps.traced.is_program:  # a loop ran in its place there
        return _found("yes", sentence, numbers, "balanced accuracy", n)
    fresh = rates(steps.traced.runs.query("cell == 'untraced'"))
    about = fresh, steps.outcome, leader["factor"]
    evidence = (
        fresh_category_evidence(*about, report.baseline)
        if leader["kind"] == CATEGORY
        else fresh_evidence(*about, leader["correlation"])
    )
    sentence = f"{sentence} In {len(fresh)} other runs {again_in_words(evidence)}"
    answer = "yes" if evidence >= ENOUGH else "seen once"
    return _found(answer, sentence, numbers, "balanced accuracy", n)


def _remedy(steps: Steps) -> Verdict:
    report = steps.treatments
    if report.tried.empty:
        left = [f"{row['name']}: {row['reason']}" for _, row in report.not_tried.head(3).iterrows()]
        reasons = "; ".join(left) or "nothing is known to help"
        raise Unavailable(f"nothing could be tried ({reasons})")
    if report.helped:
        return _helpful(steps, report.helped[0])
    known, told = remedy_answer(report.tried), open_verdict(report.tried)
    if known.answer in ("none", CANNOT):
        return _found("no" if known.answer == "none" else CANNOT, told, n=known.n)
    ratios = [1 + end / 100 for end in (known.value, known.low, known.high)]
    return _found("shown once", known.sentence, ratios, "of the mean", known.n)


def _helpful(steps: Steps, name: str) -> Verdict:
    """The confirmed mitigation, and how to use it without us."""
    report = steps.treatments
    again = report.again[name]
    mean = again.comparison.table.loc["mean"]
    commands = "; ".join(mitigations()[name].by_hand)
    by_hand = f" By hand: {commands}" if commands else ""
    sentence = (
        f"“{report.tried.loc[name, 'name']}”, shown twice. In the second measurement the mean is ×"
        f" {mean.ratio:.3f}, 95 % interval {mean.low:.3f} to {mean.high:.3f}: {again.sentence}."
        f"{by_hand}"
    )
    numbers = (float(mean.ratio), float(mean.low), float(mean.high))
    return _found("yes", sentence, numbers, "of the mean", again.faster.units)


def _proof(steps: Steps) -> Verdict:
    """Whether the suspected factor is the cause: injected, and taken away."""
    proof = steps.proof
    if not proof.factor:
        return _found(CANNOT, "nothing is suspected.")
    answer = "yes" if proof.verdict == CAUSE else CANNOT
    if proof.response is None:
        return _found(answer, proof.sentence)
    found = proof.response.slower
    numbers, unit = (found.effect, found.low, found.high), "more cost by the largest dose"
    return _found(answer, proof.sentence, numbers, unit, found.units)


QUESTIONS: dict[str, tuple[str, Callable[[Steps], Verdict]]] = {
    "spread": ("How much do the runs differ?", _spread),
    "who": ("What did the slow runs lose, and to whom?", _who),
    "noise": ("How much CPU time does the system take from it?", _noise),
    "tracing": ("Does tracing disturb it?", _tracing),
    "replay": ("Does the slowest run's noise, replayed, slow it down?", _replay),
    "anomaly": ("Is that noise what made the slowest run slow?", _anomaly),
    "cause": ("Does anything that was counted separate the slow runs?", _cause),
    "remedy": ("Is there a remedy?", _remedy),
    "proof": ("Is that the cause?", _proof),
}


def _change(steps: Steps, comparison: Comparison, what: str, n: int, more: str = "") -> Verdict:
    """Whether something changes the mean, from a comparison of runs without and with it."""
    mean = comparison.table.loc["mean"]
    judged = comparison.judged["mean"]
    unchanged = "no" if judged.verdict == NONE else CANNOT
    answer = {"worse": "yes", "better": "no, the contrary"}.get(comparison.better, unchanged)
    why = judged.why or "no change is shown by so many runs"
    reason = f" {why[0].upper()}{why[1:]}." if answer == CANNOT else ""
    by_trimmed = f" {comparison.by_trimmed}" if comparison.by_trimmed else ""
    sentence = (
        f"with {what} the mean {steps.outcome.name} is × {mean.ratio:.4f}, 95 % interval"
        f" {mean.low:.4f} to {mean.high:.4f}, n = {n} runs each.{reason}{by_trimmed}{more}"
    )
    return _found(answer, sentence, (mean.ratio, mean.low, mean.high), "of the mean", n)


def _lost_shares(events: pd.DataFrame, runs: pd.DataFrame) -> np.ndarray:
    """The share of all CPUs' time that events took, of each traced run."""
    cpus = len(events.attrs.get("cpus", ())) or max(events["cpu"].nunique(), 1)
    lost_s = events.groupby("run")["duration_ns"].sum() / 1e9
    length_s = region_seconds(runs).set_axis(runs["run"])
    return (lost_s.reindex(length_s.index).fillna(0) / (length_s * cpus)).to_numpy()
