"""What data/knowledge says of a counter: its factor, whose it is, what one event can cost.

Owns the reading of these few fields; what a factor is, and what helps against it, is owned by
`mitigation.knowledge`.
"""

import fnmatch
import os
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from ..places import knowledge
from ..reading import read_yaml

RATE = "_per_s"
MOST_REMEMBERED = 50_000  # names
OWN_READERS = ("run", "taskstats", "perf", "program")  # of the process, not of the machine
OF_MACHINE = ("machine_", "vm_", "irq_", "softirq_", "disk_", "net_", "numastat_", "others_")
TIME_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True)
class Counter:
    """A counter as the knowledge has it.

    Attributes
    ----------
    factor
        Id; "" if none is named.
    of_process
        Counted for the process itself or its control group, not for the whole machine.
    of_others
        Counted for everybody but the process.
    is_level
        Does not grow with the run.
    harm
        Direction that can slow a run: 1 more of it, −1 less of it, 0 neither.
    seconds
        Of one unit, if it counts time; 0: it does not.
    event_us
        What one event can cost at most; 0: not known.
    symptom_of
        Factors of which its own factor is a symptom.
    """

    factor: str
    of_process: bool = True
    of_others: bool = False
    is_level: bool = False
    harm: int = 1
    seconds: float = 0.0
    event_us: float = 0.0
    symptom_of: tuple[str, ...] = ()


def known_counter(column: str) -> Counter | None:
    """What is known of a column; of a rate, what is known of its counter. None: nothing.

    Parameters
    ----------
    column
        Of a runs table.
    """
    return _found(str(column).removesuffix(RATE), os.environ.get("NOISEBOOK_KNOWLEDGE"))


@lru_cache(MOST_REMEMBERED)
def _found(name: str, chosen: str | None) -> Counter | None:
    exact, families = _counters(chosen)
    if name in exact:
        return exact[name]
    fitting = [pattern for pattern in families if fnmatch.fnmatchcase(name, pattern)]
    return families[max(fitting, key=len)] if fitting else None


@cache
def _counters(chosen: str | None) -> tuple[dict[str, Counter], dict[str, Counter]]:
    """Counters by name, and families of them by pattern; of the knowledge that was chosen."""
    folder = Path(chosen) if chosen else knowledge()
    factors = {row["id"]: row for row in _rows(folder / "factors")}
    found: dict[str, Counter] = {
        pattern: _counter(_by_name(pattern, row["id"]), factors, not _of_machine(pattern))
        for row in factors.values()
        for pattern in row["metrics"]
    }
    for path in sorted((folder / "metrics").glob("*.yml")):
        layer = read_yaml(path, "metric layer", fast=True)
        for source in layer["sources"]:
            for metric in source["metrics"]:
                found[metric["id"]] = _counter(metric, factors, _of_process(source))
        for metric in layer.get("derived", ()):
            found[metric["id"]] = _counter(
                metric, factors, of_process="minus_own_cpu" not in metric
            )
    exact = {name: counter for name, counter in found.items() if "*" not in name}
    return exact, {name: counter for name, counter in found.items() if "*" in name}


def _rows(folder: Path) -> list[dict]:
    return [row for path in sorted(folder.glob("*.yml")) for row in read_yaml(path, "factors")]


def _by_name(pattern: str, factor: str) -> dict:
    """A counter that no layer describes: its name ends with its unit."""
    unit = pattern.rpartition("_")[2]
    return {"id": pattern, "factor": factor, "unit": unit if unit in TIME_UNITS else ""}


def _of_machine(name: str) -> bool:
    return name.startswith(OF_MACHINE)


def _of_process(source: dict) -> bool:
    path = source.get("path", "")
    return source["reader"] in OWN_READERS or "{pid}" in path or "{cgroup:" in path


def _counter(metric: dict, factors: dict[str, dict], of_process: bool) -> Counter:
    factor = factors.get(metric.get("factor", ""), {})
    unit = metric.get("unit", "")
    return Counter(
        factor=metric.get("factor", ""),
        of_process=of_process,
        of_others="minus_own_cpu" in metric,
        is_level=metric.get("kind", "total") != "total",
        harm={True: 1, False: -1, None: 0}[metric.get("lower_is_better", True)],
        seconds=TIME_UNITS.get(unit, 0.0),
        event_us=factor.get("event_us", 0.0) if not unit else 0.0,
        symptom_of=tuple(factor.get("symptom_of", ())),
    )
