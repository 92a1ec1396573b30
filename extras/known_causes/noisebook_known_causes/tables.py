"""The recorded bench of known causes: its tables with and without the truth, its two halves, the
sealed tables, and tables in which there is nothing to be found.

Owns the layout of the folder `bench` (CARD.md there) and what an attribution may not see.
"""

import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from nbhelpers.errors import InputError, check_choice
from nbhelpers.reading import read_csv

from .catalogue import UNDISTURBED, Cause, known_cause

DEVELOPMENT, HELD_OUT = "development", "held-out"
# drawn at random, each in a folder of its own, some hours apart; no method was chosen on the last
SEALED = ("sealed-1", "sealed-2")
PLANTED, SHUFFLED, ALONE = "planted", "shuffled", "undisturbed"
KINDS_OF_TABLE = (PLANTED, SHUFFLED, ALONE)
# what says which runs were disturbed; and what was stored for the campaign's own sake
TRUTH = ("truth", "dose", "cell")
_SPLIT = "tables.csv"
_SEED = 20140  # of the shuffles


@dataclass(frozen=True)
class BenchTable:
    """One table of the bench.

    Attributes
    ----------
    id
        Says nothing of what is in it: what an attribution is given.
    kind
        "planted"; "undisturbed": the runs without the cause alone; "shuffled": all of them with the
        run times in random order.
    cause, dose
        Cause and dose of the planted table that it was made from.
    half
        "development", "held-out" or one of `SEALED`.
    runs
        With the truth.
    victim
        The program, in sealed tables.
    """

    id: str
    kind: str
    cause: Cause
    dose: str
    half: str
    runs: pd.DataFrame
    victim: str = ""

    def __repr__(self) -> str:
        return f"BenchTable({self.id}: {len(self.runs)} runs, {self.kind}, {self.half})"

    @property
    def blind(self) -> pd.DataFrame:
        """The runs as an attribution sees them."""
        return blinded(self.runs)


def bench_folder(half: str = DEVELOPMENT) -> Path:
    """Where the recorded bench lies: extras/known_causes/bench of a checkout; the sealed tables lie
    in a folder in it.
    """
    place = Path(__file__).parents[1] / "bench"
    return place / half if half in SEALED else place


def bench_tables(
    half: str = DEVELOPMENT,
    folder: str | Path | None = None,
    kinds: tuple[str, ...] = KINDS_OF_TABLE,
) -> Iterator[BenchTable]:
    """The tables of one half of the bench.

    Parameters
    ----------
    half
        "development"; or "held-out" or one of `SEALED`: only for a final score, never for choosing
        between methods.
    folder
        Folder of the bench; None: `bench_folder`.
    kinds
        "planted", "shuffled", "undisturbed".

    Yields
    ------
    BenchTable

    Raises
    ------
    InputError
        No such half, or no bench in the folder.

    Examples
    --------
    >>> first = next(bench_tables(kinds=("planted",)))
    >>> first.half, "truth" in first.runs, "truth" in first.blind
    ('development', True, False)
    """
    check_choice("half", half, (DEVELOPMENT, HELD_OUT, *SEALED))
    place = Path(folder) if folder else bench_folder(half)
    for row in split(place)[lambda rows: rows["half"] == half].itertuples():
        runs = _recorded(place, row.cause, getattr(row, "table", row.dose))
        cause, victim = known_cause(row.cause), getattr(row, "victim", "")
        for kind in kinds:
            name = str(getattr(row, kind))
            yield BenchTable(name, kind, cause, row.dose, half, _of(kind, runs), victim)


def split(folder: str | Path | None = None) -> pd.DataFrame:
    """Which table belongs to which half; it was drawn once, by cause, and never changes.

    Returns
    -------
    DataFrame, a row a cause and dose: cause, dose, half, runs, effect (median of the disturbed over
    the undisturbed) with its 95 % interval low and high, and the ids of the three tables (planted,
    shuffled, undisturbed).
    """
    path = (Path(folder) if folder else bench_folder()) / _SPLIT
    if not path.exists():
        raise InputError(
            "there is no bench of known causes",
            where=path.parent,
            why="it is part of the repository, not of an installed package",
            fix="use a checkout of the repository",
        )
    return read_csv(path, keep_default_na=False, dtype={"planted": str})


def _of(kind: str, runs: pd.DataFrame) -> pd.DataFrame:
    if kind == ALONE:
        return runs[runs["truth"] == UNDISTURBED].reset_index(drop=True)
    if kind == SHUFFLED:
        order = np.random.default_rng([_SEED, len(runs)]).permutation(len(runs))
        return runs.assign(seconds=runs["seconds"].to_numpy()[order], truth=UNDISTURBED, dose="")
    return runs


@cache
def giveaways() -> tuple[str, ...]:
    """Columns that give the injector itself away, with * for any text: giveaways.csv has the
    reasons and what was measured.
    """
    table = read_csv(Path(__file__).with_name("giveaways.csv"))
    return tuple(table["column"])


def is_giveaway(column: object) -> bool:
    """Whether a column, or the counter that it is the rate of, gives the injector away."""
    name = str(column).removesuffix("_per_s")
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in giveaways())


def blinded(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs without the truth, and without what gives the injector away."""
    hidden = [name for name in runs if name in TRUTH or is_giveaway(name)]
    return runs.drop(columns=hidden)


# ---- files ---------------------------------------------------------------------------------------


def path_of(folder: Path, cause: str) -> Path:
    return folder / "runs" / f"{cause}.csv.gz"


def _recorded(folder: Path, cause: str, dose: str) -> pd.DataFrame:
    runs = _read(path_of(folder, cause))
    return (
        runs[runs["table"] == dose]
        .drop(columns="table")
        .dropna(axis=1, how="all")
        .reset_index(drop=True)
    )


@cache
def _read(path: Path) -> pd.DataFrame:
    text = read_csv(path, keep_default_na=False, na_values={}, low_memory=False)
    return text.apply(_numbers)


def _numbers(column: pd.Series) -> pd.Series:
    """A column as numbers where all of its cells are numbers or empty."""
    if pd.api.types.is_numeric_dtype(column) or column.name in TRUTH:
        return column
    filled = column.astype(str).replace("", np.nan)
    try:
        return pd.to_numeric(filled)
    except (TypeError, ValueError):
        return column
