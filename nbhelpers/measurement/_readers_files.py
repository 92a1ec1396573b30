"""Counters from the text files of procfs, sysfs and cgroups: resolved one time, left open, read
with pread.

Owns the few formats that the kernel writes numbers in, and which number of a file is which metric.
A `root` can point to a recorded tree.
"""

import errno
import glob
import os
import re
from collections.abc import Callable
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from ..errors import Unavailable
from ..machine import kernel
from ._kernel import parse_hex_rows, parse_interrupts, parse_line, parse_rows, parse_softirqs
from ._knowledge import Metric, MetricReader, Source

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
FORMATS: dict[str, Callable[[str], dict]] = {
    "rows": parse_rows,
    "line": parse_line,
    "hex_rows": parse_hex_rows,
    "interrupts": parse_interrupts,
    "softirqs": parse_softirqs,
}
_COMBINE: dict[str, Callable[[list[float]], float]] = {
    "sum": sum,
    "mean": lambda values: sum(values) / len(values),
    "min": min,
    "max": max,
}


class FileReader(MetricReader):
    """The metrics of one source of files.

    Parameters
    ----------
    source
        Its options are `path` ({pid}: of the process; {cgroup:NAME}: its control group; * in sysfs:
        several files), `format`, `skip` (names of files that do not count) and `label` (a file
        in the same folder that holds its name).
    root
        Folder of a recorded tree; "/" is this machine.
    """

    def __init__(self, source: Source, root: str | Path = "/"):
        super().__init__(source, root)
        self._root = str(root).rstrip("/")
        self._fds: dict[str, int] = {}
        self._parse = FORMATS[source.options["format"]]
        # the files of a process are not those of the next
        self._per_process = "{" in source.options["path"]
        self._files: dict[str, str] = {} if self._per_process else self._resolved(os.getpid())

    def lacking(self) -> str:
        """Why nothing can be read here; "" if something can."""
        path = self.source.options["path"]
        files = self._resolved(os.getpid()) if self._per_process else self._files
        if not files:
            return f"this machine has no {path}"
        if not any(os.access(file, os.R_OK) for file in files):
            return f"{path} cannot be read by this user"
        texts = [self._text(file) for file in files]
        self.close()
        rows = [self._rows(text) for text in texts if text is not None]
        absent = [
            str(metric.where.get("key", metric.id))
            for metric in self.source.metrics
            if not any(_selected(metric, one) for one in rows)
        ]
        return f"{path} has no {', '.join(dict.fromkeys(absent))}" if absent else ""

    def open(self, pid: int) -> None:
        """A run is about to start; its files are found."""
        if self._per_process:
            self.close()
            self._files = self._resolved(pid)

    def read(self) -> dict[str, float]:
        """Column: value, as it is now; files that have gone are passed over."""
        raw = [
            (label, self._rows(text))
            for path, label in self._files.items()
            if (text := self._text(path)) is not None
        ]
        values: dict[str, float] = {}
        for metric in self.source.metrics:
            found = [(label, _selected(metric, rows)) for label, rows in raw]
            values |= _combined(metric, found)
        return values

    def shut(self) -> None:
        """The run is over."""
        if self._per_process:
            self.close()

    def close(self) -> None:
        """Close the files; the next read opens them again."""
        for fd in self._fds.values():
            os.close(fd)
        self._fds.clear()

    def _resolved(self, pid: int) -> dict[str, str]:
        """Path: label. The label is what the files named by `label` hold, then what the `*` stand
        for.
        """
        path: str | None = self.source.options["path"].replace("{pid}", str(pid))
        if path is not None and "{cgroup:" in path:
            path = _in_cgroup(path, pid, self._root)
        if path is None:
            return {}
        pattern = self._root + path
        if "*" not in pattern:
            return {pattern: ""} if os.path.exists(pattern) else {}
        skip = self.source.options.get("skip", ())
        expression = re.compile("(.*)".join(map(re.escape, pattern.split("*"))))
        files = {}
        for name in sorted(glob.glob(pattern), key=_natural):
            match = expression.fullmatch(name)
            label = "_".join(match.groups()) if match else ""
            if not any(fnmatchcase(label, skipped) for skipped in skip):
                files[name] = self._label(name, label)
        return files

    def _label(self, path: str, label: str) -> str:
        names = []
        for name in self.source.options.get("label", ()):
            stem = Path(path).name.rpartition("_")[0]
            with suppress(OSError):
                names.append((Path(path).parent / name.replace("{stem}", stem)).read_text().strip())
        words = names if names and self.source.options.get("label_only") else [*names, label]
        return re.sub(r"\W+", "_", "_".join(words)).strip("_")

    def _rows(self, text: str) -> dict:
        """The parsed file; nothing of one that is not in its format: a counter that cannot be read
        must not end a campaign.
        """
        with suppress(ValueError, IndexError):
            return self._parse(text)
        return {}

    def _text(self, path: str) -> str | None:
        try:
            if path not in self._fds:
                self._fds[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            return pread_all(self._fds[path]).decode(errors="replace")
        except OSError as error:
            if error.errno == errno.EMFILE:
                raise Unavailable(
                    "too few file descriptors for the metric layers",
                    where=path,
                    fix="ulimit -n 65536",
                ) from None
            return None  # a sensor that is switched off, a process that has gone


def pread_all(fd: int) -> bytes:
    """The whole of an open file."""
    parts, at = [], 0
    while data := os.pread(fd, 1 << 16, at):
        parts.append(data)
        at += len(data)
    return b"".join(parts)


def _natural(path: str) -> list:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path)]


_OF_RUNS = re.compile(rf"/{kernel.OURS}[\d-]+-(run|campaign)-\d+$", re.MULTILINE)


def _in_cgroup(pattern: str, pid: int, root: str) -> str | None:
    """The pattern with {cgroup:CONTROLLER} replaced by the folder of the process's group in the
    hierarchy with that controller.

    A controller belongs to its own hierarchy (v1) or to the unified one (v2, cgroups(7));
    None: it is in neither.
    """
    controller, rest = pattern[pattern.index("{cgroup:") + 8 :].split("}", 1)
    try:
        membership = Path(f"{root}/proc/{pid}/cgroup").read_text()
        # no controller is handed on to the group of a run: the one above it counts
        folder = _group_folder(controller, _OF_RUNS.sub("", membership), root)
    except OSError:
        return None
    return folder and folder + rest


@lru_cache(maxsize=64)
def _group_folder(controller: str, membership: str, root: str) -> str | None:
    """Where this process sees the group of that membership (the text of /proc/PID/cgroup)."""
    groups = [line.split(":", 2) for line in membership.splitlines()]
    mounts = [
        line.split()
        for line in Path(f"{root}/proc/{os.getpid()}/mountinfo").read_text().splitlines()
    ]
    group_of = {name: path for _, names, path in groups for name in names.split(",")}
    for words in mounts:
        kind, options = words[words.index("-") + 1], words[-1].split(",")
        if (kind == "cgroup" and controller in options and controller in group_of) or (
            kind == "cgroup2" and controller not in group_of and "" in group_of
        ):
            group = group_of[controller] if kind == "cgroup" else group_of[""]
            inside = os.path.relpath(group, words[3]) if group.startswith(words[3]) else "."
            return os.path.normpath(words[4] + "/" + inside)
    return None


def _selected(metric: Metric, raw: dict) -> dict[str, float]:
    """What of a file's rows belongs to a metric: part that the `*` of its id stands for: value."""
    keys, where = metric.where.get("key", ""), metric.where
    patterns = (keys,) if isinstance(keys, str) else tuple(keys)
    plain = not any("*" in pattern for pattern in patterns)
    names = (
        [key for key in patterns if key in raw]
        if plain
        else _named(tuple(raw), patterns, tuple(where.get("except", ())))
    )
    numbers: dict[str, float] = {}
    for name in names:
        value = _number(raw[name], where.get("column", 0), where.get("scale", 1))
        if value is not None:
            numbers[name] = value
    if "*" in metric.id and "combine" not in where:
        head, _, tail = keys.partition("*")
        return {
            metric.id.replace("*", name[len(head) : len(name) - len(tail)]): value
            for name, value in numbers.items()
        }
    return {metric.id: sum(numbers.values())} if numbers else {}


@lru_cache(maxsize=256)
def _named(
    names: tuple[str, ...], patterns: tuple[str, ...], left_out: tuple[str, ...]
) -> list[str]:
    """The rows that patterns mean; cached, as a file has the same rows in every run."""

    def matches(name: str, any_of: tuple[str, ...]) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in any_of)

    return [name for name in names if matches(name, patterns) and not matches(name, left_out)]


def _number(words: list, columns: int | list[int], scale: float | str) -> float | None:
    """The sum of some words of a row; None where the kernel wrote something else."""
    chosen = [columns] if isinstance(columns, int) else columns
    try:
        values = [
            word if isinstance(word, (int, float)) else _plain(word)
            for word in (words[column] for column in chosen)
        ]
    except (ValueError, IndexError):
        return None
    factor = scale if isinstance(scale, (int, float)) else 1 / _TICKS_PER_S  # "ticks"
    return sum(values) if factor == 1 else sum(values) * factor


def _plain(word: str) -> float:
    text = word.rpartition("=")[2]  # the pressure files write total=12
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _combined(metric: Metric, by_file: list[tuple[str, dict[str, float]]]) -> dict[str, float]:
    """One value a column over all files; with `each` over those of the same label."""
    how = metric.where.get("combine", "sum")
    values: dict[str, list[float]] = {}
    for label, found in by_file:
        for column, value in found.items():
            name = column.replace("*", label) if how == "each" else column
            values.setdefault(name, []).append(value)
    combine = _COMBINE.get(how, sum)
    return {
        column: found[0] if len(found) == 1 else combine(found) for column, found in values.items()
    }
