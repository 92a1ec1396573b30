"""Is it the cause? The suspect is injected at graded doses, and taken away by a mitigation.

Owns the two halves of the proof and its verdict: "cause" where both hold, or one where the other
cannot be done here; "associated with" elsewhere. What the doses do is judged in `dose_response`.

The plain way is page 57's design, small doses of all factors at once. In 51 runs it shows what 5 %
of the CPU costs in 10 of 37 programs (benchmarks/cause_proof.py sensitivity). So the suspect alone
is injected here, at larger doses.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..empty import because
from ..errors import NoisebookError, Unavailable
from ..measurement import Attachment, Campaign, finished, metrics, recorded_runs
from ..mitigation._autopilot import LARGER_BUDGET
from ..mitigation.knowledge import Factor, explain_factor, mitigations
from ..mitigation.loop import METRICS
from ..mitigation.report import Report
from ..mitigation.trials import HARMS, NO_EFFECT, NOT_AGAIN, Trial
from ..statistics.claims import REPRODUCED
from ..workloads import Workload
from .dose_response import DOSE_COLUMNS, WAITING, Response, judge_doses, waiting_share
from .graded_injection import dose_cells, dose_names, has_helper

CAUSE = "cause"
ASSOCIATED = "associated with"
FEWEST_ROUNDS, MOST_ROUNDS = 8, 60
MOST_WAITING = 0.5  # of what a dose costs; more of it is a competitor's work
_SLOWER = 3  # times the longest run so far: how long a disturbed one may take
_START_S = 0.02  # of a run, beyond its time


@dataclass(frozen=True, eq=False)
class CauseProof:
    """Whether a factor is the cause.

    Attributes
    ----------
    factor
        Its id; empty: none is suspected.
    verdict
        `CAUSE` or `ASSOCIATED`.
    response
        What injecting it does; None: it was not injected.
    not_injected
        Why not.
    removed
        The confirmed mitigation against it, with the trial that confirmed it; None: there is none.
    not_removed
        Why not.
    """

    factor: str
    verdict: str
    response: Response | None = None
    not_injected: str = ""
    removed: tuple[str, Trial] | None = None
    not_removed: str = ""

    def __repr__(self) -> str:
        return f"CauseProof({self.factor}: {self.verdict})"

    @property
    def sentence(self) -> str:
        """The verdict with both halves of the proof, or that nothing is suspected."""
        if not self.factor:
            return "Nothing is suspected, so nothing was injected."
        name = explain_factor(self.factor).name
        parts = [self.response.sentence if self.response else f"not injected: {self.not_injected}"]
        if self.removed:
            mitigation, trial = self.removed
            parts.append(f"{mitigations()[mitigation].name} takes it away: {trial.sentence}")
        else:
            parts.append(f"not taken away: {self.not_removed}")
        head = f"{name} is a cause" if self.verdict == CAUSE else f"{name} is associated with it"
        if self.verdict == CAUSE and not self.removed:
            head += ", by its doses alone"
        return f"{head}: {'; '.join(parts)}."

    @property
    def doses(self) -> pd.DataFrame:
        """What each dose does; see `Response.doses`. Without rows where nothing was injected."""
        if self.response:
            return self.response.doses
        return because(pd.DataFrame(columns=DOSE_COLUMNS), self.sentence)


def prove_cause(
    report: Report,
    workload: Workload,
    folder: str | Path,
    seconds: float = 60.0,
    seed: int = 1,
    recorded_only: bool = False,
    attachments: Sequence[Attachment] = (),
) -> CauseProof:
    """Prove that the factor that the autopilot suspects is a cause, or say why not.

    Parameters
    ----------
    report
        Report of the autopilot.
    workload
        The program.
    folder
        The campaign's folder; the same call goes on there.
    seconds
        Seconds that injecting may take.
    seed
        Seed of the random order.
    recorded_only
        True: measure nothing.
    attachments
        Accompany every run, as in the autopilot.

    Returns
    -------
    CauseProof of the factor of a confirmed mitigation, else of the first that was found; of none
    where none was found.

    Notes
    -----
    A round has a run of the sham and one of each dose, in random order. The evidence is a slope a
    round, of the log cost over the doses' ranks (as in Page's trend test), scaled to the step from
    none to the most. The counter that shows the factor is judged together with it.

    What disturbs must not compete with the program, unless the factor is a competitor. Where the
    program waited for a CPU for half of what the doses cost, the factor counts as not injected.
    """
    name = suspect(report)
    if name is None:
        return CauseProof("", ASSOCIATED)
    factor = explain_factor(name)
    taken_away, removed, not_removed = removal(report, name)
    response, not_injected, cannot = None, "", False
    try:
        if recorded_only and factor.inject:
            runs = finished(recorded_runs(Path(folder) / factor.id))
        else:
            campaign = _campaign(report, factor, workload, Path(folder), seconds, seed, attachments)
            runs = finished(campaign.run())
        response = _fair_response(runs, factor, report.factors.loc[name, "columns"])
    except NoisebookError as error:
        not_injected, cannot = error.what, isinstance(error, Unavailable)
    injected = None if cannot else response is not None and response.holds
    verdict = verdict_of(injected, taken_away)
    return CauseProof(name, verdict, response, not_injected, removed, not_removed)


def _fair_response(runs: pd.DataFrame, factor: Factor, columns: Sequence[str]) -> Response:
    """What the doses do, if it is not done by competing with the program."""
    names = dose_names(factor)
    response = judge_doses(runs, names, columns)
    if response.slower.verdict != REPRODUCED or not has_helper(factor):
        return response
    if WAITING not in runs:
        raise Unavailable(
            "nobody counts here for how long a program waits for a CPU, so that whatever was"
            " injected may have competed with it"
        )
    if (share := waiting_share(runs, names[-1])) > MOST_WAITING:
        raise Unavailable(
            f"what was injected competed with the program, which waited for a CPU for {share:.0%}"
            " of what it cost"
        )
    return response


def suspect(report: Report) -> str | None:
    """The factor of a confirmed mitigation, else the first that was found."""
    confirmed = [report.tried.loc[name, "factor"] for name in report.helped]
    known = [name for name in confirmed if name in report.factors.index]
    return next(iter([*known, *report.factors.index]), None)


CANNOT_BE_REMOVED = "no mitigation against it can be done here"


def removal(report: Report, factor: str) -> tuple[bool | None, tuple[str, Trial] | None, str]:
    """Whether a mitigation takes a factor away, the confirmed one with its second trial, or why
    there is none. Unknown (None) while trials are open, and where nothing could be tried.

    Parameters
    ----------
    report
        Report of the autopilot.
    factor
        Id.
    """
    against = set(explain_factor(factor).mitigations)
    tried = report.tried[report.tried.index.isin(against)]
    for name in report.helped:
        if name in tried.index:
            return True, (name, report.again[name]), ""
    if tried.empty:
        return None, None, _untried(report.not_tried, against) or CANNOT_BE_REMOVED
    if tried["verdict"].isin([NO_EFFECT, HARMS, NOT_AGAIN]).all():
        return False, None, f"none of the {len(tried)} mitigations against it helps"
    return None, None, f"of {len(tried)} mitigations against it none is confirmed yet"


def _untried(not_tried: pd.DataFrame, against: set[str]) -> str:
    """What could have been tried with a larger budget or at a higher risk; empty: nothing."""
    left = not_tried[not_tried.index.isin(against)]
    left = left[left["fix"].astype(str).str.startswith((LARGER_BUDGET, "risk="))]
    return "; ".join(f"{row['name']} was not tried ({row['fix']})" for _, row in left.iterrows())


def verdict_of(injected: bool | None, removed: bool | None) -> str:
    """`CAUSE` where both halves hold, or one where the other cannot be done here.

    Parameters
    ----------
    injected
        Whether runs get slower with the dose; None: it cannot be injected here.
    removed
        Whether a mitigation against it is confirmed; None: unknown, see `removal`.

    Examples
    --------
    >>> verdict_of(True, True), verdict_of(True, None), verdict_of(True, False)
    ('cause', 'cause', 'associated with')
    """
    halves = {injected, removed}
    return CAUSE if True in halves and False not in halves else ASSOCIATED


def _campaign(
    report: Report,
    factor: Factor,
    workload: Workload,
    folder: Path,
    seconds: float,
    seed: int,
    attachments: Sequence[Attachment],
) -> Campaign:
    """The sham and each dose, in as many rounds as the time allows."""
    if not factor.inject:
        raise Unavailable(factor.not_injected or "nobody knows yet how to inject it")
    first = report.baseline
    busy = float(((first["user_s"] + first["system_s"]) / first["wall_seconds"]).median())
    window_s = _SLOWER * float(first["wall_seconds"].max()) + 1.0
    cells = dose_cells(factor, workload, window_s, busy)
    round_s = len(cells) * (1.3 * float(first["elapsed_seconds"].mean()) + _START_S)
    rounds = int(np.clip(seconds / round_s, FEWEST_ROUNDS, MOST_ROUNDS))
    attached = (*metrics(*METRICS), *attachments)
    return Campaign(folder / factor.id, cells, rounds, seed, attachments=attached)
