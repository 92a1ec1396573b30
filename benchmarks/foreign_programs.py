"""Programs that nobody here wrote, each by one description through measure, trace, delta, inject
and explain.

    .venv/bin/python benchmarks/foreign_programs.py [runs] [name ...]

Ten to twenty minutes with 10 runs each (as root; otherwise detours stand in for the trace). What
neither is installed nor built by `make originals` is left out. Columns: the outcome that is judged;
the kind of region and by how much it misses the time that the program itself tells (largest
of all runs); the share of CPU time that was noise; and the replay's outcome over that of the worst
run, and the undisturbed one's, both as costs (1 is the worst run), with 95 % bootstrap intervals.
"""

import sys
import tempfile
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from nbhelpers.attribution import explain
from nbhelpers.errors import NoisebookError
from nbhelpers.injection import injection_campaign
from nbhelpers.measurement import consequences, finished, measure, rates
from nbhelpers.noise import NoiseConfig, average_noise, delta_noise
from nbhelpers.outcomes import COST, outcome_of, with_cost, worst_first
from nbhelpers.statistics import mean_interval
from nbhelpers.tracing import trace
from nbhelpers.workloads import Workload, program
from nbhelpers.workloads.programs import original_path

SCRIPT = """
import time, zlib
time.sleep(0.2)
print("begin", flush=True)
began = time.perf_counter()
data = bytes(range(256)) * 4000
for _ in range(12): zlib.compress(data, 6)
took = time.perf_counter() - began
print("end", flush=True)
print(f"took {took:.6f}")
"""


def original(name: str) -> str:
    return str(original_path(name))


def script() -> Workload:
    return program(
        [sys.executable, "-S", "-c", SCRIPT],
        name="Python script",
        region=("^begin", "^end"),
        seconds=r"^took (?P<seconds>\S+)",
    )


PROGRAMS = {
    "sysbench": lambda: program(description="sysbench", events=1200, threads=2),
    "stress-ng": lambda: program(description="stress-ng", ops=200),
    "openssl": lambda: program(description="openssl-speed"),
    "7z": lambda: program(description="7z-benchmark"),
    "fio": lambda: program(description="fio", size="8m"),
    "hpl": lambda: program(description="hpcc-hpl"),
    "python": script,
    "mpi": lambda: program(description="minife-mpi", binary=original("minife-mpi"), nx=16),
    "epcc": lambda: program(
        original("epcc-syncbench"), description="epcc-syncbench", outer=20, threads=2
    ),
    "minife": lambda: program(
        original("minife-openmp"), description="minife-openmp", nx=20, threads=2
    ),
    "babelstream": lambda: program(
        original("babelstream"),
        description="babelstream",
        elements=2**20,
        threads=2,
        outcome="triad_mb_per_s",
    ),
    "nbody": lambda: program(
        original("hecbench-nbody"), description="hecbench-nbody", bodies=1000, threads=2
    ),
}
REPORTED = {
    "sysbench": "seconds",
    "python": "seconds",
    "minife": "seconds",
    "mpi": "program_s",
}  # to a millisecond or better


def loop(name: str, workload: Workload, runs: int, folder: Path) -> dict:
    """One program through all stages; a row of the table."""
    counted = finished(measure(workload, runs, ["software", "kernel"]))
    traced = trace(workload, runs, folder=folder / "trace")
    worst = worst_first(traced.runs).iloc[0]
    delta = delta_noise(
        traced.events, average_noise(traced.events, traced.runs), traced.runs, run=int(worst["run"])
    )
    row = {
        "program": workload.name,
        "outcome": str(outcome_of(counted)),
        "n": runs,
        "region": workload.region.kind,
        "region_s": counted["region_seconds"].median(),
        "misses_ms": _misses(counted, REPORTED.get(name)),
        "source": traced.source,
        "noise_share": traced.summary()["cpu_share"].sum(),
        "worst_share": _share_of(traced, int(worst["run"])),
    }
    explained = explain(rates(counted), permutations=0, consequences=consequences())
    row["slow"] = f"{int(explained.labels.sum())} of {len(explained.labels)}"
    if not (delta["duration_ns"] > 0).any():
        return row | {"replayed": "nothing beyond the average"}
    config = NoiseConfig.from_events(delta, merge="improved")
    table = with_cost(finished(injection_campaign(folder / "inject", workload, config, runs).run()))
    anomaly = float(with_cost(traced.runs).set_index("run")[COST][worst["run"]])
    for cell in ("injected", "baseline"):
        found = mean_interval(table.loc[table["cell"] == cell, COST])[:3]
        row[cell] = "{:.3f} ({:.3f} to {:.3f})".format(*(end / anomaly for end in found))
    return row | {"replayed_ms": delta["duration_ns"].sum() / 1e6}


def _misses(runs: pd.DataFrame, reported: str | None) -> float:
    return (
        float("nan")
        if reported is None
        else float((runs["region_seconds"] - runs[reported]).abs().max() * 1e3)
    )


def _share_of(traced, run: int) -> float:
    """Noise of one run, of the CPU time of its region."""
    events, row = traced.events[traced.events["run"] == run], traced.runs.set_index("run").loc[run]
    cpus = len(traced.events.attrs.get("cpus", ())) or max(traced.events["cpu"].nunique(), 1)
    return float(events["duration_ns"].sum() / (row["region_seconds"] * 1e9 * cpus))


def main(words: list[str]) -> None:
    runs = int(words[0]) if words else 10
    names = words[1:] or list(PROGRAMS)
    rows = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="noisebook-foreign-") as folder:
            try:
                rows.append(loop(name, PROGRAMS[name](), runs, Path(folder)))
            except NoisebookError as error:
                rows.append({"program": name, "left out": str(error).replace("\n", " ")[:400]})
        print(pd.Series(rows[-1]).to_string(), "\n", flush=True)
    with pd.option_context(
        "display.width",
        250,
        "display.max_columns",
        None,
        "display.max_colwidth",
        60,
        "display.float_format",
        "{:.4g}".format,
    ):
        print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    main(sys.argv[1:])
