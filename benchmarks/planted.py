"""Planted anomalies replayed by our injector and by the published method, interleaved with the disturbed runs themselves.

Each case is a real SCHED_FIFO hog's schedule; one disturbed run of it is traced and becomes a config, which both methods replay: ours, and the
BASELINE (relative sleep, wall-clock spin, a process a CPU, unpinned; injector_rival.c) in the published file format. Printed: replayed / disturbed
of each case, and mean and worst |ratio - 1| of both methods with 95 % bootstrap intervals. Ten cases of 12 runs take about 6 minutes.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from nbhelpers.inject import planted_campaign, planted_schedules, planted_table, traced_configs
from nbhelpers.inject.hog import Hog
from nbhelpers.inject.rules import may_realtime
from nbhelpers.machine import doctor, online_cpus
from nbhelpers.measure import Campaign, Cell, calibrate, finished
from nbhelpers.noise import NoiseConfig, average_noise
from nbhelpers.trace import Tracer, read_traces
from nbhelpers.workloads import binary_folder, nbody, program_path

REPEATS = 4000


class Published(Hog):
    """The BASELINE injector beside a run: started, told t0 and ended as a hog is."""

    def __init__(self, program: Path, config: Path):
        super().__init__({0: [(0, 1)]})  # one process; its schedule is in the file
        self._program, self._config = program, config

    def _command(self, cpu, blocks):
        launcher = str(program_path(binary_folder() / "nbstart"))
        return [launcher, "--parent", str(os.getpid()), "--", str(self._program), "replay", str(self._config)]

    def after(self, run):
        with contextlib.suppress(KeyError):
            return {name: value for name, value in super().after(run).items() if name in ("status", "message")}


def build(folder: Path) -> Path:
    program, source = folder / "injector_rival", Path(__file__).with_name("injector_rival.c")
    subprocess.run([shutil.which("cc") or "gcc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, source], check=True)
    return program


def prepare(folder: Path, arguments: argparse.Namespace):
    """The workload, the schedules, and a config of each from one traced run."""
    workload = calibrate(nbody_of(arguments.seconds), 4000, target_seconds=arguments.seconds)
    calm = finished(Campaign(folder / "calm", [Cell("traced", workload, attachments=[Tracer(folder / "calm/traces")])], runs=8).run())
    average = average_noise(read_traces(folder / "calm/traces", calm), calm)
    schedules = planted_schedules(arguments.cases, float(calm["seconds"].mean()), cpus=len(online_cpus()), seed=arguments.seed)
    return workload, schedules, traced_configs(folder / "traced", workload, schedules, average, seed=arguments.seed)


def nbody_of(seconds: float):
    return lambda size: nbody(size, 20, threads=len(online_cpus()))


def measure(folder: Path, workload, schedules, configs: list[NoiseConfig], arguments: argparse.Namespace, program: Path) -> pd.DataFrame:
    planted = planted_campaign(folder / "replayed", workload, schedules, configs, runs=arguments.runs, seed=arguments.seed)
    files = [config.write_published(folder / f"case-{case}.json") for case, config in enumerate(configs, start=1)]
    rivals = [Cell(f"published {case}", workload, noise=config.digest, attachments=[Published(program, path)])
              for case, (config, path) in enumerate(zip(configs, files), start=1)]
    return finished(Campaign(folder / "replayed", [*planted.cells, *rivals], runs=arguments.runs, seed=arguments.seed).run())


def of_method(runs: pd.DataFrame, method: str) -> pd.DataFrame:
    """The runs as `planted_table` takes them, with one method's replays."""
    other = {"ours": "published", "published": "replayed"}[method]
    chosen = runs[~runs["cell"].str.startswith(other)]
    return chosen.assign(cell=chosen["cell"].str.replace("published", "replayed"))


def errors(runs: pd.DataFrame, cases: int, seed: int = 0) -> dict[str, tuple[float, float, float]]:
    """Mean and worst |ratio - 1| with percentile intervals; the runs of each cell are resampled."""
    random = np.random.default_rng(seed)
    means = {cell: np.append(own["seconds"].mean(), random.choice(own["seconds"], (REPEATS, len(own))).mean(axis=1)) for cell, own in runs.groupby("cell")}
    off = np.array([np.abs(means[f"replayed {case}"] / means[f"disturbed {case}"] - 1) for case in range(1, cases + 1)])
    return {name: (values[0], *np.quantile(values[1:], [0.025, 0.975])) for name, values in (("mean", off.mean(axis=0)), ("worst", off.max(axis=0)))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=4)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=0.4, help="of an undisturbed run")
    parser.add_argument("--seed", type=int, default=3)
    arguments = parser.parse_args()
    if not may_realtime(50) or doctor().capabilities.tracer == "detours":
        sys.exit("skipped: SCHED_FIFO is not permitted here, or the kernel cannot be traced")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = measure(folder, *prepare(folder, arguments), arguments, build(folder))
    report(runs, arguments)


def report(runs: pd.DataFrame, arguments: argparse.Namespace) -> None:
    tables = {method: planted_table(of_method(runs, method)).set_index("case") for method in ("ours", "published")}
    first = tables["ours"]
    shown = {"disturbed (s)": first["disturbed"].map("{:.4f}".format), "undisturbed (s)": first["baseline"].map("{:.4f}".format)}
    for method, table in tables.items():
        shown[f"{method}: ratio"] = [f"{row.ratio:.3f} [{row.ratio_low:.3f}, {row.ratio_high:.3f}]" for row in table.itertuples()]
    calm = runs.loc[runs["cell"] == "undisturbed", "seconds"]
    print(f"{arguments.cases} planted anomalies, {arguments.runs} interleaved runs each; undisturbed CV {calm.std() / calm.mean():.1%}; replayed / disturbed, 95 %:")
    print(pd.DataFrame(shown).to_string())
    for method in tables:
        told = {name: f"{value:.1%} [{low:.1%}, {high:.1%}]" for name, (value, low, high) in errors(of_method(runs, method), arguments.cases).items()}
        print(f"|ratio - 1|, {'published (BASELINE)' if method == 'published' else method}: mean {told['mean']}, worst {told['worst']}")


if __name__ == "__main__":
    main()
