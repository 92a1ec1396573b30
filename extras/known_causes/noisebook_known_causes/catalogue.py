"""The catalogue of known causes: what can be planted, in which program, how much of it, and which
columns and factors show it.

Owns the reading of causes.yml; how a kind of cause is made is in `kinds`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from nbhelpers.errors import InputError, check_choice
from nbhelpers.reading import read_yaml
from nbhelpers.schemas import place_of, schema_error

UNDISTURBED = "none"
AND = "+"  # between two causes in one run
BLOCK, BLOCK_OF_TWO = 4, 6  # runs of a block; in each one of every kind is disturbed
# columns that show a culprit's CPU time and its memory
CULPRIT = (
    "others_busy_s",
    "machine_busy_s",
    "anon_huge_machine_kb",
    "memory_free_kb",
    "memory_available_kb",
)
_LISTS = ("shown_by", "trail", "factors")


@dataclass(frozen=True)
class Victim:
    """A program that suffers from a cause.

    Attributes
    ----------
    id, what
        For tables; for people.
    command
        Its words, with {bin}, {python}, {script}, {cc1plus}, {file}, {size} and {extra} to be
        filled in.
    size, extra
        How much it does, unless a dose says otherwise.
    file
        What it needs in the scratch folder: map, disk, text or source.
    start
        Where the program waits for the common start: "mark", "main" or "exec", as in
        `nbhelpers.workloads.Workload`.
    threads
        Number of OpenMP threads; two threads get two CPUs. 0: the program does not use OpenMP.
    """

    id: str
    what: str
    command: tuple[str, ...]
    size: int = 1
    extra: int = 0
    file: str = ""
    start: str = "mark"
    threads: int = 0


@dataclass(frozen=True)
class Dose:
    """How much of a cause is planted: an amount for each of its parts, and the victim's size."""

    name: str
    amounts: tuple[float, ...]
    victim: Victim
    size: int
    extra: int


@dataclass(frozen=True)
class Cause:
    """Something that can be planted, and a program that suffers from it.

    Attributes
    ----------
    id, what
        For tables; for people.
    parts
        Ids of the causes that are planted; two where they come together.
    plants
        One mapping a part: its kind, and the parameters of that kind.
    doses
        Doses by name (weak, medium, strong), the strongest last.
    unit
        Unit of the doses' amounts.
    shown_by
        Columns that show the cause itself, with * for any text. An attribution is right if its
        first factor has one of them.
    trail
        Columns that show only that another program was active. They count as right on a machine
        without a counter of the cause itself, and never in the strict score.
    factors
        Ids of the factors of data/knowledge/factors that name it.
    needs, graded
        What a machine must have for it; why a dose is missing.
    """

    id: str
    what: str
    parts: tuple[str, ...]
    plants: tuple[Mapping[str, Any], ...] = field(repr=False)
    doses: Mapping[str, Dose] = field(repr=False)
    unit: str = ""
    shown_by: tuple[str, ...] = ()
    trail: tuple[str, ...] = ()
    factors: tuple[str, ...] = ()
    needs: str = ""
    graded: str = ""

    def __repr__(self) -> str:
        return f"Cause({self.id}: {self.what})"

    @property
    def on_victim(self) -> tuple[str, ...]:
        """Columns that show what happened to the victim, and not what the culprit did meanwhile;
        the strict score needs one of them.
        """
        return tuple(pattern for pattern in self.shown_by if pattern not in CULPRIT)

    @property
    def strongest(self) -> str:
        """The name of the last dose."""
        return list(self.doses)[-1]

    @property
    def block(self) -> int:
        """Runs of a block: three undisturbed ones, and one of each kind of disturbed ones."""
        return BLOCK if len(self.parts) == 1 else BLOCK_OF_TWO

    @property
    def truths(self) -> tuple[str, ...]:
        """Values of the column `truth` in disturbed runs."""
        return self.parts if len(self.parts) == 1 else (*self.parts, AND.join(self.parts))


def causes() -> dict[str, Cause]:
    """All causes by id.

    Examples
    --------
    >>> causes()["slow-path"].shown_by
    ('retries',)
    """
    return _read(Path(__file__).parent)


def known_cause(name: str) -> Cause:
    """The cause of an id.

    Raises
    ------
    InputError
        There is no such cause.
    """
    check_choice("cause", name, causes())
    return causes()[name]


def describe_causes(names: Sequence[str] | None = None) -> pd.DataFrame:
    """What each cause is.

    Parameters
    ----------
    names
        Ids; None: all causes.

    Returns
    -------
    DataFrame, a row a cause; columns cause, what, victim, doses, shown_by (columns), trail.
    """
    chosen = list(causes()) if names is None else names
    rows = [
        {
            "cause": cause.id,
            "what": cause.what,
            "victim": cause.doses[cause.strongest].victim.id,
            "doses": _doses_in_words(cause),
            "shown_by": " ".join(cause.shown_by),
            "trail": " ".join(cause.trail),
        }
        for cause in map(known_cause, chosen)
    ]
    return pd.DataFrame(rows)


def _doses_in_words(cause: Cause) -> str:
    amounts = [AND.join(f"{one:g}" for one in dose.amounts) for dose in cause.doses.values()]
    return f"{', '.join(amounts)} {cause.unit}".strip()


# ---- reading -------------------------------------------------------------------------------------


@cache
def _read(folder: Path) -> dict[str, Cause]:
    path = folder / "causes.yml"
    content = read_yaml(path, "catalogue of causes", fast=True)
    schema = json.loads((folder / "causes.schema.json").read_text())
    if error := schema_error(schema, content):
        raise InputError(error.message, where=f"{path}, {place_of(error)}", fix=f"see {folder}")
    victims = {name: _victim(name, row) for name, row in content["victims"].items()}
    found: dict[str, Cause] = {}
    for row in content["causes"]:
        found[row["id"]] = _of_two(row, found, victims) if "both" in row else _of_one(row, victims)
    return found


def _victim(name: str, row: dict) -> Victim:
    return Victim(name, **{**row, "command": tuple(row["command"])})


def _of_one(row: dict, victims: Mapping[str, Victim]) -> Cause:
    more: dict[str, Any] = {key: tuple(row.get(key, ())) for key in _LISTS}
    more |= {key: row.get(key, "") for key in ("unit", "needs", "graded")}
    name, doses = row["id"], _doses(row, victims)
    return Cause(name, row["what"], (name,), (row["plant"],), doses, **more)


def _of_two(row: dict, known: Mapping[str, Cause], victims: Mapping[str, Victim]) -> Cause:
    """Two causes at once: what shows either of them shows it."""
    parts = [known[name] for name in row["both"]]
    more: dict[str, Any] = {
        key: tuple(dict.fromkeys(value for part in parts for value in getattr(part, key)))
        for key in _LISTS
    }
    more["unit"] = AND.join(part.unit for part in parts)
    more["needs"] = "; ".join(part.needs for part in parts if part.needs)
    more["graded"] = row.get("graded", "")
    plants = tuple(plant for part in parts for plant in part.plants)
    doses = _doses(row, victims)
    return Cause(row["id"], row["what"], tuple(row["both"]), plants, doses, **more)


def _doses(row: dict, victims: Mapping[str, Victim]) -> dict[str, Dose]:
    doses = {}
    for name, one in row["doses"].items():
        victim = victims[one.get("victim", row["victim"])]
        amounts = tuple(one.get("amounts", [one.get("amount")]))
        size, extra = one.get("size", victim.size), one.get("extra", victim.extra)
        doses[name] = Dose(name, amounts, victim, size, extra)
    return doses
