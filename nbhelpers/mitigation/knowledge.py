"""Factors and mitigations as data: what makes runs slow, its signs, what may help, with
references.

Owns reading and checking of data/knowledge; the folder lies in the repository, or where
$NOISEBOOK_KNOWLEDGE says.
"""

import fnmatch
import html
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import InputError, check_choice
from ..places import knowledge, shipped
from ..reading import read_yaml
from ..schemas import schema_error
from ..workloads import Workload
from ._kinds import action_of, refuse_variables
from .action import YES, Action, Possible

RISKS = ("none", "low", "high")
_MAN_PAGES, _NOT_LINUX = "https://man7.org/linux/man-pages", ("jemalloc", "nvidia-smi")


@dataclass(frozen=True)
class Reference:
    """Where a statement comes from: a kernel document, a man page, a paper or a manual."""

    id: str
    kind: str
    title: str
    authors: str = ""
    year: int | None = None
    doi: str = ""

    def __str__(self) -> str:
        parts = (self.authors, str(self.year or ""), self.title, self.doi and f"doi:{self.doi}")
        return ", ".join(part for part in parts if part)

    def _repr_html_(self) -> str:
        """Its text; what has an address is a link: a DOI, a kernel document, a man page."""
        text, page = html.escape(str(self)), self.title.removeprefix("Documentation/")
        address = f"https://doi.org/{self.doi}" if self.doi else ""
        if self.kind == "kernel" and page.endswith(".rst"):
            address = f"https://docs.kernel.org/{page.removesuffix('.rst')}.html"
        name, _, section = page.rstrip(")").partition("(")
        if self.kind == "man" and section and name not in _NOT_LINUX:
            address = f"{_MAN_PAGES}/man{section}/{name}.{section}.html"
        return f'<a href="{html.escape(address)}">{text}</a>' if address else text


@dataclass(frozen=True)
class Factor:
    """Something that makes runs slow.

    Attributes
    ----------
    id, name
        For tables; for people.
    what, how, signs
        What it is, how it makes runs slow, the signs that distinguish it from its neighbours.
    programs
        The kinds that it concerns: cpu, memory, io, gpu, mpi, openmp.
    metrics
        Columns that show it, with * for any text.
    neighbours, mitigations, references
        Ids.
    inject
        How it is injected, with its doses from the least to the most harm; empty: it is not.
    not_injected
        Why nothing that can be injected is this factor; empty: nobody knows yet.
    """

    id: str
    name: str
    what: str
    how: str
    signs: str
    programs: tuple[str, ...]
    metrics: tuple[str, ...]
    neighbours: tuple[str, ...]
    mitigations: tuple[str, ...]
    references: tuple[str, ...]
    inject: dict[str, Any] = field(default_factory=dict, repr=False)
    not_injected: str = field(default="", repr=False)

    def __repr__(self) -> str:
        return f"Factor({self.id}: {self.name}; {len(self.mitigations)} mitigations)"

    def _repr_html_(self) -> str:
        texts = "".join(f"<p>{html.escape(text)}</p>" for text in (self.what, self.how, self.signs))
        items = [
            f"{mitigations()[name].name}: {mitigations()[name].what}" for name in self.mitigations
        ]
        listed = "".join(f"<li>{html.escape(item)}</li>" for item in items)
        cited = "; ".join(references()[name]._repr_html_() for name in self.references)
        return (
            f"<p><b>{html.escape(self.name)}</b></p>{texts}<ul>{listed}</ul>"
            f"<p><small>{cited}</small></p>"
        )


@dataclass(frozen=True)
class Mitigation:
    """Something that may help.

    Attributes
    ----------
    id, name, what
        For tables; for people; what it does.
    actions
        What is done, in order; empty: it can't be automated, and `by_hand` says what to do.
    by_hand
        The commands, or what to change.
    slow
        It takes seconds a run.
    general
        Worth a try where no factor was found.
    serial, parallel
        For programs with one thread, with several.
    references
        Ids.
    """

    id: str
    name: str
    what: str
    by_hand: tuple[str, ...]
    references: tuple[str, ...]
    actions: tuple[Action, ...] = ()
    slow: bool = False
    general: bool = False
    serial: bool = False
    parallel: bool = False
    programs: tuple[str, ...] = ()
    kinds: tuple[str, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        return f"Mitigation({self.id}: {', '.join(self.kinds) or 'by hand'})"

    @property
    def automated(self) -> bool:
        """Whether it acts by itself."""
        return bool(self.actions)

    @property
    def risk(self) -> str:
        """The highest of its actions' risks: "none" (touches the program only), "low" (changes the
        machine for the length of a run), "high" (may make it unresponsive).
        """
        return max((action.risk for action in self.actions), key=RISKS.index, default="none")

    def possible(self, workload: Workload | None = None) -> Possible:
        """Whether it can be done here, to this workload; if not, why, and what would fix it."""
        if not self.automated:
            return Possible(False, "it can't be automated", "; ".join(self.by_hand))
        answers = (action.possible(workload) for action in self.actions)
        return next((answer for answer in answers if not answer), YES)

    def too_risky(self, allowed: str) -> str:
        """Why it is not tried where no more than this risk is allowed; "" if it may be."""
        if RISKS.index(self.risk) <= RISKS.index(allowed):
            return ""
        return f"its risk is {self.risk}; allowed: {allowed}"

    @property
    def cost(self) -> tuple[int, bool]:
        """Sorts cheap and safe ones first."""
        return RISKS.index(self.risk), self.slow


def folder() -> Path:
    """Where the knowledge lies.

    Raises
    ------
    InputError
        It is not there: NOISEBOOK_KNOWLEDGE names another folder.
    """
    place = knowledge()
    if not (place / "factors").is_dir():
        raise InputError("the knowledge is not here", where=place, fix="unset NOISEBOOK_KNOWLEDGE")
    return place


def factors() -> dict[str, Factor]:
    """All factors by id.

    Raises
    ------
    InputError
        A file is damaged, against its schema, or has an id twice.
    """
    return _read(folder())[0]


def mitigations() -> dict[str, Mitigation]:
    """All mitigations by id; errors as those of `factors`."""
    return _read(folder())[1]


def named_mitigation(name: str) -> Mitigation:
    """The mitigation of an id.

    Raises
    ------
    InputError
        There is none.
    """
    check_choice("mitigation", name, mitigations())
    return mitigations()[name]


def references() -> dict[str, Reference]:
    """All references by id."""
    return _read(folder())[2]


def explain_factor(name: str) -> Factor:
    """The factor of an id, or that a column of the runs table shows.

    The most exact of the patterns of metric layers and factors decides.

    Parameters
    ----------
    name
        Id of a factor, or a column, which may be a rate (`page_faults_per_s`).

    Returns
    -------
    Factor, which shows as a page.

    Raises
    ------
    InputError
        Nothing is known of it.

    Examples
    --------
    >>> explain_factor("minor_faults_per_s").id
    'page-faults'
    """
    found = factor_of(name)
    if found is None:
        raise InputError(
            f"no factor is known for {name!r}",
            why="a column of the program itself says more to those who know the program",
            fix="see what there is: list(mitigation.factors())",
        )
    return found


def factor_of(name: str) -> Factor | None:
    """The factor as `explain_factor` gives it, or None where nothing is known."""
    column = name.removesuffix("_per_s")
    if name in factors():
        return factors()[name]
    patterns = [*_metric_factors(folder())]
    for factor in factors().values():
        patterns += [(pattern, factor.id) for pattern in factor.metrics]
    matches = [pair for pair in patterns if fnmatch.fnmatchcase(column, pair[0])]
    if not matches:
        return None
    _, best = max(matches, key=lambda pair: ("*" not in pair[0], len(pair[0])))
    return factors().get(best)


# ---- reading -------------------------------------------------------------------------------------


@cache
def _read(place: Path) -> tuple[dict[str, Factor], dict[str, Mitigation], dict[str, Reference]]:
    found = {row["id"]: _factor(row, file) for file, row in _entries(place, "factors")}
    ours = _our_actions(place)
    known = {
        row["id"]: _mitigation(row, file, ours) for file, row in _entries(place, "mitigations")
    }
    cited = {name: Reference(name, **row) for name, row in _load(place / "references.yml").items()}
    return found, known, cited


def _factor(row: dict, file: Path) -> Factor:
    """Its injection may set a variable of the program, of the list only."""
    variable = row.get("inject", {}).get("variable")
    refuse_variables([] if variable is None else [variable], f"{file}, {row['id']}")
    return Factor(**_tupled(row))


def _our_actions(place: Path) -> list[dict] | None:
    """The actions of the knowledge that comes with Noisebook; None: `place` is that one."""
    own = shipped() / "data" / "knowledge"
    if place.resolve() == own.resolve():
        return None
    return [action for _, row in _entries(own, "mitigations") for action in row.get("actions", [])]


def _mitigation(row: dict, file: Path, ours: list[dict] | None) -> Mitigation:
    """What is not ours word for word comes from elsewhere."""
    specified = row.get("actions", [])
    actions = tuple(
        action_of(action, f"{file}, {row['id']}", ours is not None and action not in ours)
        for action in specified
    )
    kinds = tuple(action["kind"] for action in specified)
    return Mitigation(**_tupled(row) | {"actions": actions}, kinds=kinds)


def _tupled(row: dict) -> dict:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


def _entries(place: Path, part: str) -> list[tuple[Path, dict]]:
    """The entries of all files of a part, checked, each with its file."""
    # ours: knowledge from elsewhere is not judged by a schema of its own
    schema = json.loads((shipped() / "data" / "knowledge" / f"{part}.schema.json").read_text())
    rows: list[tuple[Path, dict]] = []
    seen: dict[str, Path] = {}
    for path in sorted((place / part).glob("*.yml")):
        for row in _load(path):
            if error := schema_error(schema, row):
                raise InputError(
                    f"an entry is not as its schema wants it: {error.message}",
                    where=f"{path}, {row.get('id', row) if isinstance(row, dict) else row}",
                )
            if row["id"] in seen:
                raise InputError(
                    f"the id {row['id']!r} is there twice", where=f"{seen[row['id']]} and {path}"
                )
            seen[row["id"]] = path
            rows.append((path, row))
    return rows


def _load(path: Path) -> Any:
    return read_yaml(path, "file of knowledge", fast=True)


@cache
def _metric_factors(place: Path) -> tuple[tuple[str, str], ...]:
    """Columns, or patterns of columns, and their factors, of the files that describe the metric
    layers.
    """
    return tuple(
        (metric["id"], metric["factor"])
        for path in sorted((place / "metrics").glob("*.yml"))
        for source in _load(path)["sources"]
        for metric in source["metrics"]
        if metric.get("factor")
    )
