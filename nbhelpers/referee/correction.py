"""Run times without what the machine took from them, where that is proven to help.

Owns the rule by which corrected times may be used. They are never used in silence.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..account import Account, measure_edges
from ..errors import NoisebookError
from ..measurement import Attachment
from ..outcomes import outcome_of
from ..speed import SpeedProbe, read_speed, read_waits
from ..statistics import percentile_interval
from ..tracing import Tracer, read_traces, stolen_times
from .duel import quads_of
from .sides import NEW, OLD

FEWEST_QUADS = 8
_DRAWS = 2000


def recorders(folder: str | Path) -> tuple[Attachment, ...]:
    """What must accompany the runs whose times may be corrected: trace and speed of the CPUs."""
    return Tracer(Path(folder) / "traces"), SpeedProbe(Path(folder) / "speed")


@dataclass(frozen=True, eq=False)
class Correction:
    """Whether the corrected times of a duel may be used.

    Attributes
    ----------
    helps
        Whether they may.
    why
        The numbers, or the reason, in a sentence.
    runs
        The runs with the corrected times in `seconds`; without rows where there are none.
    """

    helps: bool
    why: str
    runs: pd.DataFrame


def correction_of(folder: str | Path, runs: pd.DataFrame, seed: int = 0) -> Correction:
    """Correct run times by the account, and say whether that may be used.

    The rule: two runs of one side in one quad are equal but for noise. Corrected, they must be
    nearer to each other than raw (95 % bootstrap interval over quads). And what is taken off must
    not differ between the sides (90 % interval; a tenth of the harmless ones is refused, too): else
    the change itself may be in it.

    Parameters
    ----------
    folder
        Where `recorders` recorded.
    runs
        Finished runs of a `Duel`.
    seed
        Of the bootstrap.
    """
    none = runs.iloc[:0]
    if outcome_of(runs).name != "seconds":
        return Correction(
            False, "Only run times are corrected, and another number is judged.", none
        )
    try:
        corrected = _corrected(Path(folder), runs.reset_index(drop=True))
    except NoisebookError as error:
        return Correction(False, f"Run times could not be corrected: {error.what}.", none)
    both = corrected.merge(runs[["run", "seconds"]], on="run", suffixes=("", "_raw"))
    return judged_correction(both, seed)


def judged_correction(runs: pd.DataFrame, seed: int = 0) -> Correction:
    """The rule of `correction_of`, on runs that have corrected times.

    Parameters
    ----------
    runs
        Finished runs of a `Duel`: corrected `seconds`, and `seconds_raw`.
    seed
        Of the bootstrap.
    """
    raw, new = _logs(runs, "seconds_raw"), _logs(runs, "seconds")
    if len(raw) < FEWEST_QUADS:
        few = f"Of {len(raw)} quads all runs are in the account; {FEWEST_QUADS} are needed."
        return Correction(False, few, runs)
    apart = [
        np.abs(logs[OLD].diff(axis=1)[1]) + np.abs(logs[NEW].diff(axis=1)[1]) for logs in (raw, new)
    ]
    drawn = np.random.default_rng(seed).integers(len(raw), size=(_DRAWS, len(raw)))
    before, after = (part.to_numpy() for part in apart)
    low, high = percentile_interval(after[drawn].mean(axis=1) / before[drawn].mean(axis=1))
    off = new - raw
    shift = (off[NEW].mean(axis=1) - off[OLD].mean(axis=1)).to_numpy()
    bound = _half_width(shift)
    numbers = (
        f"Two runs of one side are ×{after.mean() / before.mean():.2f} as far apart ({low:.2f} to"
        f" {high:.2f}, 95 %, n = {len(raw)} quads) when corrected by the account; what is taken off"
        f" differs by {shift.mean():+.2%} ± {bound:.2%} between the sides."
    )
    helps = bool(high < 1 and abs(shift.mean()) <= bound)
    used = "Corrected times are used." if helps else "Raw times are used."
    return Correction(helps, f"{numbers} {used}", runs)


def _corrected(folder: Path, runs: pd.DataFrame) -> pd.DataFrame:
    """By one account for both sides, which does not know them."""
    speed, waits = (read(folder / "speed", runs) for read in (read_speed, read_waits))
    runs = runs[runs["run"].isin(speed["run"])].reset_index(drop=True)
    traces = folder / "traces"
    events, stolen = read_traces(traces, runs), stolen_times(traces, runs)
    account = Account.of_events(runs, events, stolen, measure_edges(), speed, waits)
    return runs.assign(seconds=runs["run"].map(account.corrected())).dropna(subset="seconds")


def _logs(runs: pd.DataFrame, column: str) -> pd.DataFrame:
    """Logarithms of whole quads: index quad, columns side and place (0, 1)."""
    whole = quads_of(runs).index
    table = runs.assign(
        log=np.log(runs[column]), quad=runs["round"] // 2, place=runs["round"] % 2
    ).pivot_table(index="quad", columns=["cell", "place"], values="log")
    return table.loc[whole]


def _half_width(values: np.ndarray) -> float:
    """Of Student's 90 % interval of the mean."""
    from scipy.stats import t

    return float(t.ppf(0.95, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size))
