"""The bench of known causes on the command line: blind tables for any attribution, and its score.

    python benchmarks/known_causes/score.py export FOLDER [--half HALF]
    python benchmarks/known_causes/score.py answer ANSWERS.csv [--half HALF]
    python benchmarks/known_causes/score.py score ANSWERS.csv [--half HALF]

`export` writes one CSV a table, without the truth; `answer` writes this library's own answers;
`score` says how good answers are: the leader right, the factor right, and what is found where there
is nothing. HALF is development (the default), held-out, sealed-1 or sealed-2.
"""

import argparse
import math
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from noisebook_known_causes.catalogue import known_cause
from noisebook_known_causes.scores import any_shows, explained_cause, shows
from noisebook_known_causes.tables import (
    ALONE,
    DEVELOPMENT,
    HELD_OUT,
    PLANTED,
    SEALED,
    SHUFFLED,
    BenchTable,
    bench_folder,
    bench_tables,
    is_giveaway,
    split,
)
from statsmodels.stats.proportion import proportion_confint

from nbhelpers.errors import InputError, NoisebookError
from nbhelpers.measurement import describe_columns
from nbhelpers.mitigation.knowledge import factor_of
from nbhelpers.progress import each
from nbhelpers.reading import read_csv

ANSWERS = ("table", "leaders", "factor")
PROGRAM = "program-paths"  # the factor of a program's own counters
LEADER, FACTOR, BOTH, FALSE = "leader right", "factor right", "both causes", "false findings"
SCORE = ["half", "measure", "tables", "of", "count", "share", "low", "high"]


def named_by_explain(runs: pd.DataFrame) -> list[str]:
    """The leaders of the groups that `explain` finds in blind runs, in order."""
    explanation = explained_cause(runs)
    return [str(name) for name in explanation.factors["factor"]] if explanation.found else []


def answer(table: str, leaders: Sequence[str]) -> dict[str, str]:
    """A row of answers.

    Parameters
    ----------
    table
        Id of the table.
    leaders
        Columns that were named, the first first; none: nothing was found.

    Returns
    -------
    `table`; `leaders` with blanks between; `factor` of the first one: what is known of it, or
    program-paths for a counter that only the program knows.

    Examples
    --------
    >>> answer("T001", ["probes", "minor_faults"])
    {'table': 'T001', 'leaders': 'probes minor_faults', 'factor': 'program-paths'}
    """
    factor = _factor(leaders[0]) if leaders else ""
    return {"table": table, "leaders": " ".join(leaders), "factor": factor}


def _factor(leader: str) -> str:
    known = factor_of(leader)
    if known:
        return known.id
    own = leader.removesuffix("_per_s") not in describe_columns().index
    return PROGRAM if own else ""


def answers_of(
    attribute: Callable[[pd.DataFrame], Sequence[str]] = named_by_explain,
    half: str = DEVELOPMENT,
    folder: str | Path | None = None,
) -> pd.DataFrame:
    """The answers of an attribution to all tables of a half.

    Parameters
    ----------
    attribute
        Takes blind runs, returns the columns that it names; default: `explain`.
    half, folder
        Half of the bench, and its folder; see `bench_tables`.

    Returns
    -------
    DataFrame with the columns of `answer`.
    """
    tables = list(bench_tables(half, folder))
    rows = [
        answer(one.id, attribute(one.blind))
        for one in each(tables, "explaining the bench of known causes", "tables")
    ]
    return pd.DataFrame(rows, columns=list(ANSWERS))


def score(
    answers: pd.DataFrame, half: str = DEVELOPMENT, folder: str | Path | None = None
) -> pd.DataFrame:
    """Score the answers of any attribution.

    Parameters
    ----------
    answers
        A row a table: `table` (its id), `leaders` (columns named, the first first, with blanks
        between; empty: nothing was found; a rate may be named by its counter), `factor` (an id of
        data/knowledge/factors, or empty). A table without a row counts as "nothing found".
    half, folder
        Half of the bench, and its folder; see `bench_tables`.

    Returns
    -------
    DataFrame, a row a measure and set of tables. Columns: half; measure ("leader right", "factor
    right", "both causes", "false findings"); tables (a dose, "all doses", "shuffled",
    "undisturbed"); of (how many tables there are); count; share, with its 95 % Wilson interval low
    and high.

    Raises
    ------
    InputError
        A column is missing, a table is answered twice, or its id is none of this half.

    Notes
    -----
    A leader is right if it shows what happened to the victim; where the table has no such column, a
    column of the culprit's trail is right. Of a planted table whose effect cannot be told from none
    (its 95 % interval holds 1) nothing is asked. Where two causes were planted, either is right,
    and "both causes" asks for one of each among the first two leaders.
    """
    named = _checked(answers, half, folder)
    rows = [_judged(one, named.get(one.id, ("", ""))) for one in bench_tables(half, folder)]
    effects = split(folder or bench_folder(half)).set_index("planted")
    told = [row for row in rows if row["kind"] != PLANTED or _has_effect(effects.loc[row["table"]])]
    return _summary(half, pd.DataFrame(told))


def _checked(
    answers: pd.DataFrame, half: str, folder: str | Path | None
) -> dict[str, tuple[str, str]]:
    """Table -> leaders and factor."""
    if missing := [name for name in ANSWERS if name not in answers]:
        raise InputError(
            f"the answers have no column '{missing[0]}'", fix=f"columns {', '.join(ANSWERS)}"
        )
    filled = answers.fillna("").astype(str)
    known = {one for kind in (PLANTED, SHUFFLED, ALONE) for one in _ids(half, folder)[kind]}
    for name in filled["table"]:
        if name not in known:
            raise InputError(f"no table '{name}' in the half '{half}'", fix="see its tables.csv")
    if filled["table"].duplicated().any():
        raise InputError("a table is answered twice", where=filled["table"].mode()[0])
    return {row.table: (row.leaders, row.factor) for row in filled.itertuples()}


def _ids(half: str, folder: str | Path | None) -> pd.DataFrame:
    table = split(folder or bench_folder(half))
    return table[table["half"] == half].astype(str)


def _has_effect(row: pd.Series) -> bool:
    return row["low"] > 1 or row["high"] < 1


def _judged(one: BenchTable, named: tuple[str, str]) -> dict[str, Any]:
    """What is right in the answer to a table."""
    leaders, factor = named[0].split(), named[1]
    row = {"table": one.id, "kind": one.kind, "dose": one.dose, "found": bool(leaders)}
    if one.kind != PLANTED:
        return row
    right = right_columns(one)
    parts = [_part_patterns(one, name) for name in one.cause.parts]
    first_two = leaders[:2]
    return row | {
        LEADER: bool(leaders) and shows(leaders[0], right) and not is_giveaway(leaders[0]),
        FACTOR: factor in one.cause.factors,
        BOTH: all(any_shows(first_two, patterns) for patterns in parts) if len(parts) > 1 else None,
    }


def right_columns(one: BenchTable) -> tuple[str, ...]:
    """Patterns of the columns that are right as the leader of a planted table."""
    seen = one.blind.columns
    return one.cause.on_victim if any_shows(seen, one.cause.on_victim) else one.cause.trail


def _part_patterns(one: BenchTable, part: str) -> tuple[str, ...]:
    """Patterns of the columns that show one of two causes; where there is none, of its trail."""
    cause = known_cause(part)
    return cause.on_victim if any_shows(one.blind.columns, cause.on_victim) else cause.trail


def _summary(half: str, rows: pd.DataFrame) -> pd.DataFrame:
    planted = rows[rows["kind"] == PLANTED]
    counts = []
    for measure in (LEADER, FACTOR):
        counts.append((measure, "all doses", planted[measure]))
        counts += [
            (measure, dose, planted.loc[planted["dose"] == dose, measure])
            for dose in ("weak", "medium", "strong")
        ]
    counts.append((BOTH, "all doses", planted[BOTH].dropna()))
    for kind in (SHUFFLED, ALONE):
        counts.append((FALSE, kind, rows.loc[rows["kind"] == kind, "found"]))
    return pd.DataFrame([_share(half, *one) for one in counts], columns=SCORE)


def _share(half: str, measure: str, tables: str, values: pd.Series) -> dict[str, Any]:
    of, count = len(values), int(values.astype(bool).sum())
    low, high = proportion_confint(count, of, method="wilson") if of else (math.nan, math.nan)
    share = count / of if of else math.nan
    return dict(zip(SCORE, (half, measure, tables, of, count, share, low, high)))


def score_in_words(scores: pd.DataFrame) -> list[str]:
    """A sentence a row of `score`."""
    return [
        f"{row.measure}, {row.tables}: {row.count_} of {row.of}"
        f" ({row.share:.0%}, 95 % interval {row.low:.0%} to {row.high:.0%})."
        for row in scores.rename(columns={"count": "count_"}).itertuples()
        if row.of
    ]


def _export(place: Path, half: str) -> str:
    place.mkdir(parents=True, exist_ok=True)
    tables = list(bench_tables(half))
    for one in tables:
        one.blind.to_csv(place / f"{one.id}.csv", index=False)
    return f"{len(tables)} tables in {place}"


def _answer(place: Path, half: str) -> str:
    answers = answers_of(half=half)
    answers.to_csv(place, index=False)
    return f"{len(answers)} answers in {place}"


def _score(place: Path, half: str) -> str:
    answers = read_csv(place, keep_default_na=False, dtype=str)
    return "\n".join(score_in_words(score(answers, half)))


def main(words: list[str] | None = None) -> int:
    """Run one of the commands; the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=("export", "answer", "score"))
    parser.add_argument("place", type=Path, metavar="FOLDER|ANSWERS.csv")
    parser.add_argument("--half", choices=(DEVELOPMENT, HELD_OUT, *SEALED), default=DEVELOPMENT)
    options = parser.parse_args(words)
    commands = {"export": _export, "answer": _answer, "score": _score}
    warnings.simplefilter("ignore")
    try:
        print(commands[options.command](options.place, options.half))
    except (NoisebookError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
