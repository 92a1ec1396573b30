"""Natural variability of our programs: n interleaved runs of each, by each compiler, with nothing injected.

    python benchmarks/programs.py [runs] [seconds a run]

Prints mean, sd, CV, least and greatest time, the share of the run that threads waited for a CPU and that the hypervisor stole. No rival: the bound
is the CV of `spin`, a fixed chain of dependent multiplications by one thread in the same rounds, which is what the machine itself varies.
"""

import sys
import tempfile
from pathlib import Path

import pandas as pd

from nbhelpers.measure import Campaign, Cell, finished, metrics, sized
from nbhelpers.workloads import compilers, delay_steps, syncbench

FIXED = {"schedbench": {"outer": 20, "references": 1}, "syncbench": {"outer": 100, "references": 1}}


def cells(folder: Path, target_s: float) -> list[Cell]:
    """Each program in one size for all compilers, found with the default one."""
    step = delay_steps(0.1)
    found = [Cell("spin", syncbench(1, "critical", threads=1, delay=max(1, round(target_s * 1e7 * step / 20)), outer=20, references=1))]
    for name in ("nbody", "stream", "minife", "schedbench", "syncbench"):
        options = FIXED.get(name, {}) | ({"delay": step} if name in FIXED else {})
        for compiler in compilers():
            workload = sized(name, folder / f"{name}.json", target_s, compiler=compiler, **options)
            found.append(Cell(f"{name}, {compiler}", workload))
    return found


def variability(runs: pd.DataFrame) -> pd.DataFrame:
    """A row a cell."""
    grouped = runs.groupby("cell", sort=False)
    table = grouped.seconds.agg(n="size", mean="mean", sd="std", min="min", max="max", median="median")
    table.insert(3, "cv_percent", 100 * table.sd / table["mean"])
    table["steal_percent"] = 100 * grouped.steal_s.sum() / grouped.elapsed_seconds.sum() if "steal_s" in runs else float("nan")
    table["waited_percent"] = 100 * grouped.runqueue_wait_ns.sum() / 1e9 / grouped.seconds.sum()
    return table


def main(runs: int = 10, target_s: float = 0.15) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asked = cells(Path(folder), target_s)
        sizes = {cell.name: " ".join(cell.workload.command[1:]) for cell in asked}
        campaign = Campaign(None, asked, runs, attachments=metrics("kernel"))
        table = variability(finished(campaign.run()))
    print(f"{runs} interleaved runs of about {target_s:g} s, all CPUs (spin: one thread); times in s")
    print(table.reindex([cell.name for cell in asked]).round(4).to_string())
    for name, size in sizes.items():
        print(f"  {name}: {size}")


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((int, float), sys.argv[1:])))
