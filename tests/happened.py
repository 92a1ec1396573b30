"""What a study really did, read from its data and pages: what the promises of the doctor are held
against.
"""

import html
import json
import re
from pathlib import Path

import pandas as pd

from nbhelpers.empty import UNKNOWN

HARDWARE = ("instructions", "cycles")


def runs_of(folder: Path) -> pd.DataFrame:
    """All runs of the campaigns below a folder."""
    lines = [
        line
        for path in sorted(folder.rglob("runs.jsonl"))
        for line in path.read_text().splitlines()
    ]
    return pd.DataFrame([json.loads(line) for line in lines])


def saved(profile: Path, stage: str, name: str) -> pd.DataFrame:
    """A table that a stage saved; without rows where it says why it has none."""
    table = pd.read_csv(profile / "results" / stage / f"{name}.csv")
    return table.iloc[:0] if len(table) and str(table.iloc[0, 0]).startswith("No rows: ") else table


def replaced_or_left_out(profile: Path, stage: str) -> set[str]:
    """The parts of a stage that were not done by the full method, by what lies in its folders."""
    ask = _ASKED.get(stage)
    return set(ask(profile)) if ask else set()


def _tracer(profile: Path, stage: str) -> list[str]:
    traces = [
        path.name.split(".")[1]
        for path in (profile / "data" / stage).rglob("run-*.gz")
        if "traces" in path.parts
    ]
    return [] if traces and set(traces) == {"osnoise"} else ["kernel tracer"]


def _noise(profile: Path, stage: str) -> list[str]:
    """Real-time scheduling, by the policies that the kernel gave to what was injected as such."""
    logs = [
        pd.read_parquet(path)
        for path in sorted((profile / "data" / stage).rglob("injection-*.parquet"))
    ]
    policies = {str(policy) for log in logs for policy in log["policy"].unique()}
    return [] if "SCHED_FIFO" in policies else ["real-time scheduling"]


def _counters(profile: Path, stage: str) -> list[str]:
    runs = runs_of(profile / "data" / stage)
    return (
        []
        if any(name in runs and runs[name].notna().any() for name in HARDWARE)
        else ["hardware counters"]
    )


def _first(profile: Path) -> list[str]:
    return _tracer(profile, "10-trace-collection") + _counters(profile, "10-trace-collection")


def _worst(profile: Path) -> list[str]:
    without = [] if len(saved(profile, "37-worst-runs", "loop")) else ["time of the hypervisor"]
    return _tracer(profile, "10-trace-collection") + without


def _mitigations(profile: Path) -> list[str]:
    design = json.loads((profile / "data/40-mitigations/design.json").read_text())
    traced = list((profile / "data/40-mitigations/baseline/traces").glob("run-*.osnoise.gz"))
    return ([] if traced else ["kernel tracer"]) + list(design["absent"])


def _allocators(profile: Path) -> list[str]:
    tried = set(saved(profile, "55-mitigate-and-compare", "allocators")["mitigation"])
    return sorted({"jemalloc"} - tried) + _counters(profile, "55-mitigate-and-compare")


def _compilers(profile: Path) -> list[str]:
    design = json.loads((profile / "data/60-openmp-variability/design.json").read_text())
    runs = runs_of(profile / "data/60-openmp-variability/runs")
    told = "frequency_mhz" in runs and runs["frequency_mhz"].notna().any()
    return list(design["absent"]) + ([] if told else ["clock frequency"])


_ASKED = {
    "10-trace-collection": _first,
    "30-injection": lambda profile: (
        _noise(profile, "30-injection") + _counters(profile, "30-injection")
    ),
    "37-worst-runs": _worst,
    "40-mitigations": _mitigations,
    "55-mitigate-and-compare": _allocators,
    "60-openmp-variability": _compilers,
}
CHECKED = {  # the parts of a stage whose absence can be read from its data
    "10-trace-collection": {"kernel tracer", "hardware counters"},
    "30-injection": {"real-time scheduling", "hardware counters"},
    "37-worst-runs": {"kernel tracer", "time of the hypervisor"},
    "40-mitigations": {"kernel tracer", "sycl"},
    "55-mitigate-and-compare": {"jemalloc", "hardware counters"},
    "60-openmp-variability": {"clang", "clock frequency"},
}


def faults(profile: Path, stages: list[str]) -> list[str]:
    """What is missing in, or not readable on, the pages of a profile; none on a complete one."""
    found = []
    for stage in stages:
        page = profile / "pages" / f"{stage}.html"
        if not page.exists():
            found.append(f"{stage}: no page")
            continue
        text = page.read_text(encoding="utf-8")
        found += [f"{stage}: {told}" for told in _unreadable(profile, stage, text)]
    return found


def _unreadable(profile: Path, stage: str, page: str) -> list[str]:
    place = profile / "results" / stage / "found.json"
    told = json.loads(place.read_text()) if place.exists() else []
    words = re.compile(r"\b(nan|inf)\b|\bNone\b(?! of)")
    unknown = [sentence for sentence in told if words.search(sentence)]
    return unknown + (
        ["a table without rows does not say why"]
        if f"No rows: {UNKNOWN}" in html.unescape(page)
        else []
    )


def says(profile: Path, stage: str, sentence: str) -> bool:
    """Whether the page of a stage has a sentence."""
    page = (profile / "pages" / f"{stage}.html").read_text(encoding="utf-8")
    return " ".join(sentence.split()) in " ".join(html.unescape(page).split())
