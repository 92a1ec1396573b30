"""Natural variability of our programs: n interleaved runs of each, by each compiler and with SYCL
where it is installed, with nothing injected.

    python benchmarks/programs.py [runs] [seconds a run] [write]

Prints mean, sd, CV, least and greatest time, what the harness and the program's start take around
the timed region, the share of the run that threads waited for a CPU and that the hypervisor stole.
No rival: the bound is the CV of `spin`, a fixed chain of dependent multiplications by one thread in
the same rounds, which is what the machine itself varies. With `write` the table goes into
data/README.md (at least 100 runs; let the machine be idle: 100 runs of 0.1 s take 5 minutes with
SYCL).
"""

import re
import sys
import tempfile
from pathlib import Path

import pandas as pd

from nbhelpers.machine import describe
from nbhelpers.measurement import Campaign, Cell, calibrate, finished, metrics
from nbhelpers.measurement.calibration import delay_steps
from nbhelpers.workloads import compilers, syncbench
from nbhelpers.workloads.sycl import PROGRAMS as SYCL
from nbhelpers.workloads.sycl import available

FIXED = {"schedbench": {"outer": 20, "references": 1}, "syncbench": {"outer": 100, "references": 1}}
DICTIONARY = Path(__file__).resolve().parent.parent / "data" / "README.md"
BLOCK = re.compile(
    r"(?<=<!-- written by benchmarks/programs.py -->\n).*?(?=<!-- end -->)", re.DOTALL
)
FEWEST = 100  # runs of a table that may be recorded


def cells(folder: Path, target_s: float) -> list[Cell]:
    """Each program in one size for all compilers and for its SYCL twin, found with the default
    compiler.
    """
    step = delay_steps(0.1)
    found = [
        Cell(
            "spin",
            syncbench(
                1,
                "critical",
                threads=1,
                delay=max(1, round(target_s * 1e7 * step / 20)),
                outer=20,
                references=1,
            ),
        )
    ]
    for name in ("nbody", "stream", "minife", "schedbench", "syncbench"):
        options = FIXED.get(name, {}) | ({"delay": step} if name in FIXED else {})
        for compiler in compilers():
            found.append(
                Cell(
                    f"{name}, {compiler}",
                    calibrate(
                        name,
                        target_seconds=target_s,
                        file=folder / f"{name}.json",
                        compiler=compiler,
                        **options,
                    ),
                )
            )
        if name in SYCL and available():
            found.append(
                Cell(
                    f"{name}, SYCL",
                    calibrate(
                        name, target_seconds=target_s, file=folder / f"{name}.json", model="sycl"
                    ),
                )
            )
    return found


def variability(runs: pd.DataFrame) -> pd.DataFrame:
    """A row a cell."""
    grouped = runs.groupby("cell", sort=False)
    table = grouped.seconds.agg(
        n="size", mean="mean", sd="std", min="min", max="max", median="median"
    )
    table.insert(3, "cv_percent", 100 * table.sd / table["mean"])
    table["around_ms"] = 1e3 * (grouped.elapsed_seconds.mean() - table["mean"])
    table["steal_percent"] = (
        100 * grouped.steal_s.sum() / grouped.elapsed_seconds.sum()
        if "steal_s" in runs
        else float("nan")
    )
    table["waited_percent"] = 100 * grouped.runqueue_wait_ns.sum() / 1e9 / grouped.seconds.sum()
    return table


def written(table: pd.DataFrame, sizes: dict[str, str], machine: str) -> str:
    """The table as it stands in the data dictionary."""
    lines = [
        f"Measured on {machine}; {int(table.n.min())} interleaved runs of each; times in s.",
        "",
        (
            "| program | size | runs | mean | sd | CV % | min | max | around it, ms | stolen % |"
            " waited % |"
        ),
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {row.Index} | {sizes[row.Index]} | {row.n} | {row.mean:.4f} | {row.sd:.4f} |"
        f" {row.cv_percent:.1f} | {row.min:.4f} | {row.max:.4f} | {row.around_ms:.0f} |"
        f" {row.steal_percent:.1f} | {row.waited_percent:.1f} |"
        for row in table.itertuples()
    ]
    return "\n".join(lines) + "\n"


def put(text: str, path: Path = DICTIONARY) -> None:
    """Replace what the last call wrote between the two marks."""
    whole = path.read_text()
    if not BLOCK.search(whole):
        raise SystemExit(
            f"{path}: no place for the table: a line <!-- written by benchmarks/programs.py -->,"
            " later a line <!-- end -->"
        )
    path.write_text(BLOCK.sub(lambda _: text, whole, count=1))


def main(runs: int = 10, target_s: float = 0.15, write: str = "") -> None:
    if write and runs < FEWEST:
        raise SystemExit(f"{runs} runs are too few for a record: at least {FEWEST}")
    with tempfile.TemporaryDirectory() as folder:
        measured = cells(Path(folder), target_s)
        sizes = {cell.name: " ".join(cell.workload.command[1:]) for cell in measured}
        campaign = Campaign(None, measured, runs, attachments=metrics("kernel"))
        table = variability(finished(campaign.run())).reindex([cell.name for cell in measured])
    print(
        f"{runs} interleaved runs of about {target_s:g} s, all CPUs (spin: one thread); times in s"
    )
    print(table.round(4).to_string())
    for name, size in sizes.items():
        print(f"  {name}: {size}")
    if not available():
        print(f"no SYCL: {available().reason}")
    if write:
        machine = describe()
        put(
            written(
                table,
                sizes,
                f"{len(machine.cpus)} CPUs ({machine.cpu_model}; virtualisation:"
                f" {machine.virtualisation}), Linux {machine.kernel}",
            )
        )


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((int, float, str), sys.argv[1:])))
