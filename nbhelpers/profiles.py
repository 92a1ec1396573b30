"""Profiles: the values of a study's notebooks. Owns everything that is checked in them.

A profile is YAML, a section a notebook. Which parameters there are, and of which type, the
notebooks' own cells say; which values make sense, `notebooks/stages.yml`. All sections
are checked before the first stage runs.
"""

import ast
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from .errors import InputError, check_choice, nearest
from .extras import with_notebooks
from .files import write_atomically
from .reading import decoded, load_yaml, read_bytes, read_json, refusing
from .schemas import schema_error
from .stage_records import record_of
from .study import NOTEBOOKS, PROFILES, Study, adopted_profile_file, notebook_files, profile_file

MOST_BYTES = 65_536
RESERVED = (*PROFILES, "bin", "lib", "sycl", "mpi", "docs", "lab", "kept")  # folders of build
_TYPES = {"int": (int,), "float": (int, float), "str": (str,), "bool": (bool,)}
_WASTED = "the notebook would stop in the middle of the study"
_PROFILE = re.compile(r"^profile: str\b", re.MULTILINE)  # in the cell that declares parameters
_INJECTED = "# Parameters\n"  # how the cell begins that papermill puts after the declarations


def adopted(profile: str) -> str:
    """The name of a profile, all of it checked; a user's file is copied to build/NAME.

    Parameters
    ----------
    profile
        a name (`smoke`, …), or the path of a file whose name ends in .yml or .yaml.

    Raises
    ------
    InputError
        What `parameters_of` refuses.
    """
    if Path(profile).suffix not in (".yml", ".yaml"):
        parameters_of("00-machine", profile)
        return profile
    name = Path(profile).stem
    if name in RESERVED or not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise InputError(
            f"'{name}' cannot be the name of a profile",
            where=profile,
            fix=f"rename the file: letters, digits, - and _, none of {', '.join(RESERVED)}",
        )
    _sections(Path(profile))
    write_atomically(adopted_profile_file(name), read_bytes(profile, "profile", MOST_BYTES))
    return name


def parameters_of(stage: str, profile: str) -> dict:
    """The values of a profile for one notebook.

    Raises
    ------
    InputError
        Anything in the whole profile that cannot be used: no YAML, a key that is there twice, a
        section that is no notebook, and what `check_parameters` finds.
    """
    sections = _sections(profile_file(Study(stage, profile).profile))
    return {**sections.get(stage, {}), "profile": profile}


def notebook_of(stage: str, where: Path = NOTEBOOKS) -> Path:
    """The file of a stage's notebook; `where` it is named, for the error if there is none."""
    files = notebook_files()
    more = "; make doctor says which extras bring more"
    check_choice("notebook", stage, files, where, more)
    return files[stage]


def declared_parameters(stage: str) -> dict[str, str]:
    """Names that the notebook's cell tagged `parameters` assigns, with their types."""
    lines = ast.parse(_cell(stage)).body
    found = [line for line in lines if isinstance(line, ast.AnnAssign)]
    return {ast.unparse(one.target): ast.unparse(one.annotation) for one in found}


def default_parameters(stage: str) -> dict:
    """What a notebook runs with where the profile says nothing."""
    return _literals(_cell(stage))


@cache
def _cell(stage: str) -> str:
    """The notebook's cell tagged `parameters`."""
    path = notebook_of(stage)
    cells = read_json(path)["cells"]
    tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    if len(tagged) != 1:
        raise InputError(f"{len(tagged)} cells are tagged 'parameters'; one is needed", where=path)
    return "".join(tagged[0]["source"])


def misfit(value: Any, kind: str, limit: dict) -> str | None:
    """What is wrong with a parameter's value, in words; None: nothing.

    Parameters
    ----------
    value
        What the profile says.
    kind
        Its type, as the notebook declares it: 30.0 is no int, and a float is finite.
    limit
        Its limits, as notebooks/stages.yml explains.

    Examples
    --------
    >>> misfit(-3, "int", {"minimum": 1})
    'is -3; -3 is less than the minimum of 1'
    """
    if kind.startswith("list"):
        if type(value) is not list:
            return f"is {value!r}; a list is expected: [{value}]"
        twice = [item for item in value if value.count(item) > 1]
        wrong = [misfit(item, kind[5:-1], limit) for item in value]
        return f"holds {twice[0]!r} twice" if twice else next(filter(None, wrong), None)
    if type(value) not in _TYPES[kind] or (type(value) is float and not math.isfinite(value)):
        return f"is {value!r}; {'a finite ' if kind == 'float' else ''}{kind} is expected"
    words = value.split() if limit.get("words") else [value]
    if not words and not limit.get("empty"):
        return "is empty"
    return next(filter(None, (_misfit_word(word, limit) for word in words)), None)


def _misfit_word(value: Any, limit: dict) -> str | None:
    error = schema_error(limit, value)
    if error is None:
        return None
    known = [name for part in (limit, *limit.get("anyOf", ())) for name in part.get("enum", ())]
    named = known and isinstance(value, str)
    return f"is {value!r}; {nearest(value, known) if named else error.message}"


def check_parameters(stage: str, values: dict, where: object) -> None:
    """Compare the values for a notebook with what it declares and with its limits.

    Raises
    ------
    InputError
        a name that the notebook does not declare (with the nearest that it does), a value of
        another type or out of range.
    """
    declared = declared_parameters(stage)
    declared.pop("profile", None)  # its file's name
    limits = record_of(stage).get("limits", {})
    for name, value in values.items():
        if name not in declared:
            raise InputError(
                f"'{name}' is no parameter of {stage}.ipynb that a profile sets",
                where=where,
                why="it would silently change nothing",
                fix=nearest(name, declared),
            )
        if wrong := misfit(value, declared[name], limits.get(name, {})):
            raise InputError(f"'{name}' {wrong}", where=where, why=_WASTED)


def check_cells(stage: str, cells: Sequence[str]) -> None:
    """Check the parameters of a notebook that is run by itself: plain papermill only warns of a
    name that the notebook does not have.

    Parameters
    ----------
    stage
        Name of the notebook.
    cells
        What its kernel has executed: the last cell that declares parameters counts, with the one
        that papermill puts after it.

    Raises
    ------
    InputError
        What `check_parameters` finds; a copy of the notebook may declare further names.
    """
    last = max((i for i, cell in enumerate(cells) if _PROFILE.search(cell)), default=None)
    if last is None or stage not in notebook_files():
        return
    own, after = _literals(cells[last]), "".join(cells[last + 1 : last + 2])
    given = _literals(after) if after.startswith(_INJECTED) else {}
    added = own.keys() - declared_parameters(stage).keys()
    values = {name: value for name, value in (own | given).items() if name not in added}
    values.pop("profile", None)  # of which the study knows more
    check_parameters(stage, values, f"the first cells of {stage}.ipynb")


def _literals(cell: str) -> dict[str, Any]:
    """The names to which a cell assigns a literal."""
    found = {}
    for line in ast.parse(cell).body:
        if isinstance(line, ast.Assign | ast.AnnAssign) and line.value:
            target = line.targets[0] if isinstance(line, ast.Assign) else line.target
            with suppress(ValueError):  # an expression
                found[ast.unparse(target)] = ast.literal_eval(line.value)
    return found


def _sections(path: Path) -> dict[str, dict]:
    """A profile's sections, read and checked whole."""
    sections = _read(path)
    if path.parent == NOTEBOOKS / "parameters":  # extras have values for our profiles, too
        files = [folder / "parameters" / path.name for folder in with_notebooks()]
        for file in filter(Path.exists, files):
            sections |= _read(file)
    for section, values in sections.items():
        notebook_of(section, path)
        check_parameters(section, values, f"{path}, {section}")
    return sections


class _Strict(yaml.SafeLoader):
    """YAML without keys that are there twice (YAML keeps the last)."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            name = key.value if key.tag == "tag:yaml.org,2002:str" else None
            if name is None or name in seen:
                problem = "a key must be a name" if name is None else f"'{name}' is there twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep=deep)


def _read(path: Path) -> dict[str, dict]:
    """The sections of a profile, each a mapping whose keys are texts."""
    text = decoded(read_bytes(path, "profile", MOST_BYTES), path, "profile", "utf-8-sig")
    form = "a mapping from notebooks to their parameters: 10-trace-collection: {runs: 30}"
    with refusing("the profile is not YAML that can be used", path, form):
        sections = load_yaml(text, _Strict, path, "profile") or {}
        parts: list[Any] = [sections, *sections.values()] if isinstance(sections, dict) else [0]
        if not all(isinstance(part, dict | None) for part in parts):
            raise TypeError("it is no mapping of mappings")
    return {section: values or {} for section, values in sections.items()}
