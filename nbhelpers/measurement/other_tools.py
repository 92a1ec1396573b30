"""Runs that other tools timed, as a runs table: JSON of hyperfine, pyperf and Google Benchmark.

Owns what is a run in each of them: one execution, one value of a process, one repetition.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from ..outcomes import OUTCOME
from ..reading import in_child, parsed_json, read_bytes, refusing

_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_OF_GOOGLE = {"real_time", "cpu_time", "family_index", "per_family_instance_index", "repetitions"}
_OF_GOOGLE |= {"repetition_index", "iterations", "threads"}


def read_benchmark(path: str | Path) -> pd.DataFrame:
    """Read the runs of a file of hyperfine, pyperf or Google Benchmark.

    Parameters
    ----------
    path
        What ``hyperfine --export-json``, ``pyperf -o`` or ``--benchmark_out`` wrote, plain or gzip.

    Returns
    -------
    One row a run: `run` (from 0, as in the file), `cell` (command or benchmark), `seconds`,
    `status`, and what the tool recorded of each: hyperfine's memory and parameters; pyperf's
    process, the value's place in it and the process's metadata; Google's CPU time, iterations and
    counters. What pyperf has in another unit is in a column of its name, which `outcome` names.

    Raises
    ------
    InputError
        It cannot be read, or is none of these.
    """
    content = read_bytes(path, "runs")
    with refusing("no runs of hyperfine, pyperf or Google Benchmark", path):
        return in_child(
            lambda: _table(parsed_json(content, path, "runs")), path, "runs", len(content)
        )


def _table(content: dict) -> pd.DataFrame:
    read = _hyperfine if "results" in content else _google if "context" in content else _pyperf
    table = pd.DataFrame(read(content))
    table.insert(0, "run", range(len(table)))
    return table.drop(columns=[OUTCOME]) if set(table[OUTCOME]) == {"seconds"} else table


def _hyperfine(content: dict) -> Iterator[dict]:
    for result in content["results"]:
        times = result["times"]
        codes = result.get("exit_codes") or [0] * len(times)
        memory = result.get("memory_usage_byte") or [None] * len(times)
        for seconds, code, used in zip(times, codes, memory, strict=True):
            row = {"cell": str(result["command"]), "seconds": float(seconds)}
            row |= {"status": f"exit {code}" if code else "ok", OUTCOME: "seconds"}
            yield row | ({"memory_bytes": used} if used else {}) | (result.get("parameters") or {})


def _pyperf(content: dict) -> Iterator[dict]:
    common = content.get("metadata", {})
    for benchmark in content["benchmarks"]:
        about = common | benchmark.get("metadata", {})
        unit = {"second": "seconds", "byte": "bytes"}.get(about.get("unit", "second"), "value")
        measured = (one for one in benchmark["runs"] if "values" in one)  # others calibrate
        for process, one in enumerate(measured):
            known = {"cell": str(about.get("name")), "status": "ok", OUTCOME: unit}
            known |= {"process": process} | _of_process(one.get("metadata", {}))
            for place, value in enumerate(one["values"]):
                yield known | {unit: float(value), "place": place}


def _of_process(metadata: dict) -> dict:
    """Numbers of a process; clock frequencies and temperatures are means over its sensors."""
    found = {name: value for name, value in metadata.items() if isinstance(value, int | float)}
    found.pop("duration", None)  # all its values together, and more
    for name, unit in (("cpu_freq", "MHz"), ("cpu_temp", "C")):
        values = [int(one) for one in re.findall(rf"=(\d+) {unit}", str(metadata.get(name)))]
        found |= {f"{name}_{unit.lower()}": sum(values) / len(values)} if values else {}
    return found


def _google(content: dict) -> Iterator[dict]:
    for one in content["benchmarks"]:
        if one.get("run_type") == "aggregate":
            continue
        unit = _UNITS[one.get("time_unit", "ns")]
        row = {"cell": str(one.get("run_name", one["name"])), OUTCOME: "seconds"}
        row |= {"status": "error" if one.get("error_occurred") else "ok"}
        row |= {"seconds": one["real_time"] * unit, "cpu_seconds": one["cpu_time"] * unit}
        row |= {"iterations": one.get("iterations"), "repeat": one.get("repetition_index", 0)}
        counters = (name for name, value in one.items() if isinstance(value, int | float))
        yield row | {name: float(one[name]) for name in counters if name not in _OF_GOOGLE}
