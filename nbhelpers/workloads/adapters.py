"""Other people's programs, unmodified, as workloads: what data/knowledge/programs/*.yml says of each.

Owns the reading of these files; what a pattern finds in an output is found by `nbhelpers.measure`.
"""

import difflib
import os
import shlex
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import InputError
from ..files import read_json
from ..schemas import place_of, schema_error
from .programs import program_path, split_command, takes_preload
from .reader import Reader, Table
from .workload import Workload

FOLDER = Path(__file__).resolve().parents[2] / "data" / "knowledge" / "programs"


@dataclass(frozen=True)
class Adapter:
    """What is known of a program.

    Parameters
    ----------
    name, title, source : what it is, and of which version this holds.
    model : omp, sycl, mpi or external.
    arguments : after the program; {option} stands for an option.
    options : their defaults.
    env : variables that it needs.
    reader : how its output is read.
    seen : "run": recorded from the program itself; "described": written after a description of its format.
    """

    name: str
    title: str
    source: str
    model: str
    arguments: str
    options: Mapping[str, object]
    env: Mapping[str, str]
    reader: Reader
    seen: str

    def __repr__(self) -> str:
        return f"Adapter({self.name}: {self.title})"


def adapter(name: str | os.PathLike, command: str | Sequence[str], *, threads: int | None = None, timeout_s: float = 120.0,
            start: str | None = None, **options: object) -> Workload:
    """Somebody else's program, unmodified, as a workload whose times are read from its output.

    Parameters
    ----------
    name : one of `adapters()`, or the path of a .yml file of one's own.
    command : the path of the program: its arguments are then the adapter's, with `options`. Or the program with arguments: they are
        taken as they are.
    threads : OMP_NUM_THREADS; None: the program's own choice.
    timeout_s, start : see `Workload`.
    options : of the adapter, for example elements=2**25.

    Raises
    ------
    InputError : no such adapter or option.
    RunError : the program does not exist.

    Examples
    --------
    >>> adapter("babelstream", "./omp-stream", elements=2**22, repeats=40)          # doctest: +SKIP
    >>> adapter("epcc-syncbench", "./syncbench --outer-repetitions 20")             # doctest: +SKIP
    """
    known = find_adapter(name)
    words = split_command(command) if isinstance(command, str) else [str(word) for word in command]
    if not words:
        raise InputError("the command is empty", where=known.name)
    program = program_path(words[0])
    arguments = words[1:] if len(words) > 1 else _arguments(known, options)
    if len(words) > 1 and options:
        raise InputError(f"options ({', '.join(options)}) and arguments ({' '.join(words[1:])}) were both given", where=known.name,
                         mend="give the program alone with options, or its whole command line")
    env = {"OMP_PROC_BIND": "false"} if known.model == "omp" else {}
    env |= dict(known.env) | ({} if threads is None else {"OMP_NUM_THREADS": str(int(threads))})
    return Workload(known.name, known.model, (str(program), *arguments), env=env, reader=known.reader, timeout_s=timeout_s,
                    start=start or ("main" if takes_preload(program) else "exec"))


def _arguments(known: Adapter, options: Mapping[str, object]) -> list[str]:
    unknown = set(options) - set(known.options)
    if unknown:
        raise InputError(f"'{min(unknown)}' is no option of the adapter '{known.name}'", mend=f"options: {', '.join(known.options) or 'none'}")
    return [word.format_map({**known.options, **options}) for word in shlex.split(known.arguments)]


def adapters() -> dict[str, Adapter]:
    """All adapters that come with Noisebook, by name."""
    return {path.stem: read_adapter(path) for path in sorted(FOLDER.glob("*.yml"))}


def find_adapter(name: str | os.PathLike) -> Adapter:
    """An adapter by name, or by the path of a file of one's own.

    Raises
    ------
    InputError : there is no such adapter, or the file is none.
    """
    text = os.fspath(name)
    if os.sep in text or text.endswith((".yml", ".yaml")):
        return read_adapter(text)
    names = sorted(path.stem for path in FOLDER.glob("*.yml"))
    if text in names:
        return read_adapter(FOLDER / f"{text}.yml")
    near = difflib.get_close_matches(text, names, 1)
    raise InputError(f"there is no adapter '{text}'" + (f"; did you mean '{near[0]}'?" if near else ""),
                     mend=f"choose from {', '.join(names)}, or give the path of a .yml file")


def read_adapter(path: str | os.PathLike) -> Adapter:
    """Read an adapter's file.

    Raises
    ------
    InputError : no such file, not YAML, or not as data/knowledge/programs/program.schema.json has it; the message names the field.
    """
    import yaml

    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read the adapter: {error.strerror}", where=path) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"the adapter is not YAML: {error}", where=path) from None
    _check(content, path)
    return _adapter(path.stem, content)


def _adapter(name: str, content: dict) -> Adapter:
    time, verification = content.get("time", {}), content.get("verification", {})
    reader = Reader(name, seconds=time.get("pattern"), unit=time.get("unit", "s"), passed=verification.get("passed"),
                    failed=verification.get("failed"), files=content.get("files"), fresh_folder=content.get("fresh_folder", False),
                    values=tuple((entry["column"], entry["pattern"]) for entry in content.get("values", ())),
                    tables=tuple(Table(entry["row"], tuple(entry["columns"].items()), entry.get("section")) for entry in content.get("tables", ())),
                    series=tuple((entry["name"], entry["unit"], entry["pattern"]) for entry in content.get("series", ())))
    env = {key: str(value) for key, value in content.get("env", {}).items()}
    return Adapter(name, content["title"], content["source"], content.get("model", "external"), content.get("arguments", ""),
                   content.get("options", {}), env, reader, content.get("seen", "described"))


def _check(content: object, path: Path) -> None:
    """Against the schema, and that the arguments name no option that is not there."""
    if error := schema_error(_schema(), content):
        raise InputError(f"not an adapter: {error.message}", where=f"{path}, at {place_of(error)}", mend="compare with program.schema.json and the files beside it")
    named = {field for _, field, _, _ in string.Formatter().parse(content.get("arguments", "")) if field}
    lacking = named - set(content.get("options", {}))
    if lacking:
        raise InputError(f"the arguments name an option '{min(lacking)}' without a default", where=f"{path}, at options")


@cache
def _schema() -> dict:
    return read_json(FOLDER / "program.schema.json")
