"""Mitigations tried on a program: those known against a factor, their runs interleaved with
untreated ones, and their effects.

Owns the choice, the campaign and the table; the same by hand as the autopilot does within a budget.
Also two examples: a large matrix product, and a program that takes a slow path in half of its runs.
"""

import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from ..attribution import Explanation
from ..errors import InputError
from ..files import write_atomically
from ..measurement import Attachment, Campaign, finished, metrics, recorded_runs
from ..mitigation.knowledge import check_risk, explain_factor, factor_of, mitigations
from ..mitigation.report import tried_table
from ..mitigation.treatment import BASELINE, treatment_cells, why_unproven
from ..mitigation.trials import HELPS, SEEMS, Trial, judge_trials, open_verdict
from ..reading import read_csv
from ..workloads import Workload, program
from .known_causes.campaigns import disturbed_victim

TRIAL_COLUMNS = [
    "mitigation",
    "runs",
    "rounds",
    "mean_ratio",
    "mean_low",
    "mean_high",
    "cv_ratio",
    "cv_low",
    "cv_high",
    "p_corrected",
    "needed",
    "verdict",
]
_PRODUCT = """import sys, time, numpy
side = int(sys.argv[1])
matrix = numpy.random.default_rng(1).random((side, side))
start = time.perf_counter()
product = matrix @ matrix
print("seconds=%.9f" % (time.perf_counter() - start))"""
# mallopt(-3): M_MMAP_THRESHOLD. From then on large blocks go back to the kernel at once.
_SLOW_PATH = """import ctypes, os, sys, time
if os.urandom(1)[0] < 128:
    ctypes.CDLL(None).mallopt(-3, 65536)
start = time.perf_counter()
for number in range(int(sys.argv[1])):
    block = b"x" * 262144
    del block
    sum(range(10_000))
print("seconds=%.9f" % (time.perf_counter() - start))"""


def matrix_product(elements: int, timeout_s: float = 120.0) -> Workload:
    """A square matrix times itself in NumPy: the example of Frachtenberg et al. 2026, section 1 (25
    million elements).

    Parameters
    ----------
    elements
        Of the matrix; rounded down to a square.
    timeout_s
        See `Workload`.
    """
    if elements < 4:
        raise InputError(
            f"a matrix of {elements} elements", fix="at least 4; the paper's has 25 million"
        )
    return program(
        [sys.executable, "-c", _PRODUCT, str(math.isqrt(elements))],
        seconds=r"seconds=(?P<seconds>[\d.]+)",
        name="matrix product",
        timeout_s=timeout_s,
    )


def program_with_slow_path(blocks: int = 100, timeout_s: float = 60.0) -> Workload:
    """A program that takes a slow path in half of its runs, at random, and does not report it.

    Blocks of 256 KiB are filled and freed one after the other, with some computing between. On the
    slow path glibc's threshold is lowered (mallopt(3)): each block comes from the kernel, and every
    page of it faults anew.

    Parameters
    ----------
    blocks
        How many.
    timeout_s
        See `Workload`.
    """
    if blocks < 1:
        raise InputError(f"{blocks} blocks", fix="at least one; 100 take some 20 ms")
    return program(
        [sys.executable, "-S", "-c", _SLOW_PATH, str(blocks)],
        seconds=r"seconds=(?P<seconds>[\d.]+)",
        name="hidden slow path",
        timeout_s=timeout_s,
    )


def mitigations_against(factor: str, workload: Workload, risk: str = "low") -> pd.DataFrame:
    """The mitigations that are known for a factor, cheap and safe ones first.

    Parameters
    ----------
    factor
        Its id, or a column of the runs table that shows it.
    workload
        What is to be mitigated.
    risk
        The highest that is tried: "none", "low" or "high".

    Returns
    -------
    DataFrame, a row a mitigation; columns mitigation, name, tried (whether it acts by itself, and
    can be done here), reason (why not).
    """
    check_risk(risk)
    known = [mitigations()[name] for name in explain_factor(factor).mitigations]
    rows = []
    for item in sorted(known, key=lambda item: item.cost):
        threads = "for programs with several threads" if item.parallel else ""
        reason = item.possible(workload).reason or item.too_risky(risk) or threads
        rows.append((item.id, item.name, not reason, reason))
    return pd.DataFrame(rows, columns=["mitigation", "name", "tried", "reason"])


def choose_mitigations(
    path: str | os.PathLike,
    explanation: Explanation,
    cause: str,
    otherwise: str,
    risk: str = "low",
    recorded_only: bool = False,
) -> pd.DataFrame:
    """The mitigations against the first factor of an explanation that can be mitigated here.

    The factor is stored with the data by the first call. What can be tried against it is found out
    at each call, since a library may have been installed or removed meanwhile.

    Parameters
    ----------
    path
        Of the CSV file in which the choice is stored.
    explanation
        Of `explain`.
    cause
        Known cause whose victim is to be mitigated.
    otherwise
        The factor to take if nothing was found, or nothing can be done about what was found.
    risk
        As of `mitigations_against`.
    recorded_only
        True: use the stored choice.

    Returns
    -------
    The table of `mitigations_against`, with a first column factor (its id).

    Raises
    ------
    InputError
        Nothing is stored.
    """
    path = Path(path)
    if recorded_only and not path.exists():
        raise InputError(
            "no mitigations were chosen yet",
            where=path,
            fix="run the stage that measures: make paper",
        )
    if not recorded_only:
        workload, _ = disturbed_victim(cause)
        text = _current_choice(path, workload, explanation, otherwise, risk).to_csv(index=False)
        if not path.exists() or path.read_text() != text:
            write_atomically(path, text)
    return read_csv(path, keep_default_na=False)


def _current_choice(
    path: Path, workload: Workload, explanation: Explanation, otherwise: str, risk: str
) -> pd.DataFrame:
    if not path.exists():
        return _shown(_against_first_factor(explanation, workload, otherwise, risk), workload)
    factor = str(read_csv(path, keep_default_na=False)["factor"].iloc[0])
    table = mitigations_against(factor, workload, risk).assign(factor=factor)
    return _shown(table[["factor", "mitigation", "name", "tried", "reason"]], workload)


def _shown(table: pd.DataFrame, workload: Workload) -> pd.DataFrame:
    """What a run shows to act on the program is tried; the others have the reason."""
    reasons = [
        why_unproven(str(name), workload) if tried else str(reason)
        for name, tried, reason in table[["mitigation", "tried", "reason"]].itertuples(index=False)
    ]
    return table.assign(tried=[not reason for reason in reasons], reason=reasons)


def _against_first_factor(
    explanation: Explanation, workload: Workload, otherwise: str, risk: str
) -> pd.DataFrame:
    known: dict[str, None] = {}  # ordered, each factor only at its first place
    for members in explanation.factors["members"] if explanation.found else ():
        factors = [factor_of(member) for member in members]
        known |= {factor.id: None for factor in factors if factor}
    known |= {explain_factor(otherwise).id: None}
    tables = [mitigations_against(factor, workload, risk).assign(factor=factor) for factor in known]
    table = next((table for table in tables if table["tried"].any()), tables[0])
    return table[["factor", "mitigation", "name", "tried", "reason"]]


def trial_sentence(table: pd.DataFrame, what: str) -> str:
    """The table of `trial_table` in a sentence.

    Parameters
    ----------
    table
        Of `trial_table`.
    what
        Was run.
    """
    if table.empty:
        return f"{what}: no mitigation was tried."
    helping = table[table["verdict"] == HELPS]
    if helping.empty:
        told = open_verdict(table)
        return f"{what}: {told[0].lower()}{told[1:]}"
    best = helping.iloc[0]
    return (
        f"{what}: {len(helping)} of {len(table)} mitigations help, each shown twice; the best,"
        f" {best.mitigation}, changes the mean by {best.mean_ratio - 1:+.1%} (95 % interval"
        f" {best.mean_low - 1:+.1%} to {best.mean_high - 1:+.1%}, {best.runs} rounds)."
    )


def untried_sentence(
    names: Iterable[str], judged: Mapping[str, Trial], workload: Workload | None = None
) -> str:
    """Which mitigations were not tried, why, and the fix; "" if all were tried.

    Parameters
    ----------
    names
        Of mitigations, as passed to `trial_runs`.
    judged
        Of `judge_runs`.
    workload
        What was run.

    Examples
    --------
    >>> untried_sentence(["jemalloc"], {"jemalloc": None})
    ''
    """
    return "; ".join(
        f"{name} was not tried: {_objection(name, workload)}"
        for name in names
        if name not in judged
    )


def _objection(name: str, workload: Workload | None) -> str:
    if name not in mitigations():
        return "there is no such mitigation"
    answer = mitigations()[name].possible(workload)
    if answer.fix:
        return f"{answer.reason} ({answer.fix})"
    return answer.reason or "it was not available when the runs were measured"


def trial_runs(
    folder: str | os.PathLike,
    workload: Workload | str,
    names: Iterable[str],
    rounds: int,
    seed: int = 1,
    recorded_only: bool = False,
    layers: Sequence[str] = (),
) -> pd.DataFrame:
    """Runs without and with each mitigation, one of each in a round, in random order.

    Parameters
    ----------
    folder
        Of the campaign.
    workload
        What is run; or the id of a known cause, whose victim is then always disturbed.
    names
        Of mitigations; those that cannot be done here are excluded. One that was not measured yet
        is measured in further rounds, in turn with the untreated program.
    rounds, seed
        Of the campaign.
    recorded_only
        True: use recorded data, measure nothing.
    layers
        Metric layers that accompany every run.

    Returns
    -------
    The finished runs, also those of mitigations that cannot be done here any more; column
    `mitigation` ("none" or its id).
    """
    if recorded_only:
        return finished(recorded_runs(Path(folder)))
    attachments: tuple[Attachment, ...] = ()
    if isinstance(workload, str):
        workload, attachments = disturbed_victim(workload)
    known = [name for name in names if name in mitigations()]
    possible = [name for name in known if mitigations()[name].possible(workload)]
    cells = treatment_cells(workload, possible)
    attached = (*attachments, *metrics(*layers))
    Campaign(folder, cells, rounds, seed, attachments=attached).run()
    return finished(recorded_runs(Path(folder)))


def judge_runs(runs: pd.DataFrame, seed: int = 0) -> dict[str, Trial]:
    """Each mitigation's runs against the untreated ones of the same rounds, all judged together.

    Parameters
    ----------
    runs
        Of `trial_runs`.
    seed
        Of the intervals.

    Returns
    -------
    Mitigation id -> trial.
    """
    untreated = runs[runs["cell"] == BASELINE]
    treated = runs[runs["cell"] != BASELINE].groupby("cell", sort=True)
    return judge_trials({str(name): (untreated, table) for name, table in treated}, seed)


def measured_again(
    folder: str | os.PathLike,
    workload: Workload | str,
    judged: Mapping[str, Trial],
    rounds: int,
    seed: int = 1,
    recorded_only: bool = False,
) -> dict[str, Trial]:
    """What seems to help, in runs that had no part in choosing it.

    Parameters
    ----------
    folder
        Of the second campaign.
    workload, rounds, seed, recorded_only
        As of `trial_runs`.
    judged
        Of the first campaign.

    Returns
    -------
    Mitigation id -> trial; nothing where nothing seems to help, or nothing was recorded.
    """
    names = [name for name, trial in judged.items() if trial.verdict == SEEMS]
    if not names or (recorded_only and not Path(folder).exists()):
        return {}
    again = judge_runs(trial_runs(folder, workload, names, rounds, seed + 1, recorded_only), seed)
    return {name: again[name] for name in names if name in again}


def trial_table(
    judged: Mapping[str, Trial], again: Mapping[str, Trial] | None = None
) -> pd.DataFrame:
    """The effect of each mitigation, the best first.

    Parameters
    ----------
    judged
        Of `judge_runs`.
    again
        Of `measured_again`; without it nothing is said to help.

    Returns
    -------
    DataFrame, a row a mitigation. Columns: mitigation; runs (rounds); rounds (their numbers in the
    campaign); mean_ratio and cv_ratio (treated over untreated) with 95 % intervals; p_corrected
    (for all mitigations judged together); needed (rounds that would settle an open verdict);
    verdict, one of `nbhelpers.mitigation.report.VERDICTS`.
    """
    table = tried_table(judged, {}, again).reset_index()
    places = [trial.comparison.measured_in for trial in judged.values()]
    return table.assign(rounds=places)[TRIAL_COLUMNS].sort_values("mean_ratio", ignore_index=True)


def trial_statistics(
    judged: Mapping[str, Trial], statistics: Sequence[str] = ("median", "p95", "cv")
) -> pd.DataFrame:
    """How each mitigation changes the usual run, the slow runs and the variation.

    Parameters
    ----------
    judged
        Of `judge_runs`.
    statistics
        Rows of `Comparison.table`.

    Returns
    -------
    DataFrame, a row a mitigation and statistic; columns mitigation, statistic, runs (of each side),
    ratio (treated over untreated) with its 95 % interval low and high.
    """
    rows = [
        {
            "mitigation": name,
            "statistic": statistic,
            "runs": trial.comparison.rounds,
            **trial.comparison.table.loc[statistic, ["ratio", "low", "high"]],
        }
        for name, trial in judged.items()
        for statistic in statistics
    ]
    return pd.DataFrame(rows, columns=["mitigation", "statistic", "runs", "ratio", "low", "high"])


def published_product() -> pd.DataFrame:
    """The matrix product with TC malloc over malloc, by Frachtenberg et al. 2026, section 1.

    Returns
    -------
    DataFrame; columns mitigation, statistic, ratio. They measured 200 runs on 48 logical CPUs, 0.65
    s each in the mean, and give neither intervals nor a number for the usual run.
    """
    return pd.DataFrame(
        {"mitigation": ["tcmalloc"] * 2, "statistic": ["p95", "cv"], "ratio": [0.79, 0.53]}
    )
