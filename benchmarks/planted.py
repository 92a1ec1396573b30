"""Planted anomalies replayed by our injector and by the published method, interleaved with the
disturbed runs themselves.

Each case is a real SCHED_FIFO hog's schedule; of five traced runs under it the one of median run
time becomes a config, which both methods replay: ours, and the BASELINE (relative sleep, wall-clock
spin, a process a CPU, unpinned; injector_rival.c) in the published file format. Printed: replayed /
disturbed of each case, mean and worst |ratio - 1| of both methods and by how much they differ, all
with 95 % bootstrap intervals, and what the spread of the disturbed runs alone brings about. `make
bench` takes four cases, a minute and a half; --cases 10 --runs 7 takes four.
"""

import argparse
import contextlib
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from _c_programs import build

from nbhelpers.injection.hog import Hog
from nbhelpers.injection.rules import may_realtime
from nbhelpers.machine import doctor, online_cpus
from nbhelpers.measurement import Campaign, Cell, calibrate, finished
from nbhelpers.noise import NoiseConfig, average_noise
from nbhelpers.statistics import percentile_interval
from nbhelpers.studies.planted_anomalies import (
    describe_configs,
    planted_campaign,
    planted_schedules,
    planted_table,
    traced_configs,
)
from nbhelpers.tracing import Tracer, read_traces
from nbhelpers.workloads import binary_folder, nbody, program_path

REPEATS = 4000


class Published(Hog):
    """The BASELINE injector beside a run: started, told t0 and ended as a hog is."""

    def __init__(self, program: Path, config: Path):
        super().__init__({0: [(0, 1)]})  # one process; its schedule is in the file
        self._program, self._config = program, config

    def _command(self, cpu, blocks):
        launcher = str(program_path(binary_folder() / "nbstart"))
        return [
            launcher,
            "--parent",
            str(os.getpid()),
            "--",
            str(self._program),
            "replay",
            str(self._config),
        ]

    def after(self, run):
        with contextlib.suppress(KeyError):
            return {
                name: value
                for name, value in super().after(run).items()
                if name in ("status", "message")
            }


def prepare(folder: Path, arguments: argparse.Namespace):
    """The workload, the schedules, and a config of each from the traced run of median run time."""
    workload = calibrate(nbody_of(arguments.seconds), 4000, target_seconds=arguments.seconds)
    calm = finished(
        Campaign(
            folder / "calm",
            [Cell("traced", workload, attachments=[Tracer(folder / "calm/traces")])],
            runs=8,
        ).run()
    )
    average = average_noise(read_traces(folder / "calm/traces", calm), calm)
    schedules = planted_schedules(
        arguments.cases, float(calm["seconds"].mean()), cpus=len(online_cpus()), seed=arguments.seed
    )
    configs = traced_configs(
        folder / "traced",
        workload,
        schedules,
        average,
        seed=arguments.seed,
        traces=arguments.traces,
    )
    return workload, schedules, configs


def nbody_of(seconds: float):
    return lambda size: nbody(size, 20, threads=len(online_cpus()))


def measure(
    folder: Path,
    workload,
    schedules,
    configs: list[NoiseConfig],
    arguments: argparse.Namespace,
    program: Path,
) -> pd.DataFrame:
    planted = planted_campaign(
        folder / "replayed", workload, schedules, configs, runs=arguments.runs, seed=arguments.seed
    )
    files = [
        config.write_published(folder / f"case-{case}.json")
        for case, config in enumerate(configs, start=1)
    ]
    rivals = [
        Cell(
            f"published {case}",
            workload,
            noise=config.digest,
            attachments=[Published(program, path)],
        )
        for case, (config, path) in enumerate(zip(configs, files), start=1)
    ]
    return finished(
        Campaign(
            folder / "replayed", [*planted.cells, *rivals], runs=arguments.runs, seed=arguments.seed
        ).run()
    )


def of_method(runs: pd.DataFrame, method: str) -> pd.DataFrame:
    """The runs as `planted_table` takes them, with one method's replays."""
    other = {"ours": "published", "published": "replayed"}[method]
    chosen = runs[~runs["cell"].str.startswith(other)]
    return chosen.assign(cell=chosen["cell"].str.replace("published", "replayed"))


def drawn_means(runs: pd.DataFrame, seed: int) -> dict[str, np.ndarray]:
    """Of each cell the mean run time, then the means of its resamples."""
    random = np.random.default_rng(seed)
    return {
        cell: np.append(
            own["seconds"].mean(), random.choice(own["seconds"], (REPEATS, len(own))).mean(axis=1)
        )
        for cell, own in runs.groupby("cell")
    }


def errors(runs: pd.DataFrame, cases: int, seed: int = 0) -> dict[str, np.ndarray]:
    """|ratio - 1| as a row a case, of each method and of the disturbed runs to themselves (chance);
    columns: as measured, then of resamples.
    """
    means, again = drawn_means(runs, seed), drawn_means(runs, seed + 1)
    numbers = range(1, cases + 1)
    off = {
        name: np.array(
            [np.abs(means[f"{cell} {case}"] / means[f"disturbed {case}"] - 1) for case in numbers]
        )
        for name, cell in (("ours", "replayed"), ("published", "published"))
    }
    return off | {
        "chance": np.array(
            [
                np.abs(again[f"disturbed {case}"] / means[f"disturbed {case}"] - 1)[1:]
                for case in numbers
            ]
        )
    }


def told(values: np.ndarray) -> str:
    """The first value, and the 95 % interval of the others."""
    low, high = percentile_interval(values[1:])
    return f"{values[0]:.1%} [{low:.1%}, {high:.1%}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=4)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument(
        "--traces",
        type=int,
        default=5,
        help="traced runs of each case, of which the median one is replayed",
    )
    parser.add_argument("--seconds", type=float, default=0.4, help="of an undisturbed run")
    parser.add_argument("--seed", type=int, default=3)
    arguments = parser.parse_args()
    if not may_realtime(50) or doctor().capabilities.tracer == "detours":
        sys.exit("skipped: SCHED_FIFO is not permitted here, or the kernel cannot be traced")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workload, schedules, configs = prepare(folder, arguments)
        runs = measure(
            folder, workload, schedules, configs, arguments, build(folder, "injector_rival")
        )
    report(runs, configs, arguments)


def report(runs: pd.DataFrame, configs: list[NoiseConfig], arguments: argparse.Namespace) -> None:
    tables = {
        method: planted_table(of_method(runs, method)).set_index("case")
        for method in ("ours", "published")
    }
    first, traced = tables["ours"], describe_configs(configs).set_index("case")
    shown = {
        "undisturbed (s)": first["baseline"].map("{:.4f}".format),
        "disturbed (s)": first["disturbed"].map("{:.4f}".format),
        f"{arguments.traces} traced (s)": [
            f"{row.fastest:.3f} {row.seconds:.3f} {row.slowest:.3f}" for row in traced.itertuples()
        ],
    }
    for method, table in tables.items():
        shown[f"{method}: ratio"] = [
            f"{row.ratio:.3f} [{row.ratio_low:.3f}, {row.ratio_high:.3f}]"
            for row in table.itertuples()
        ]
    calm = runs.loc[runs["cell"] == "undisturbed", "seconds"]
    print(
        f"{arguments.cases} planted anomalies, {arguments.runs} interleaved runs of each arm;"
        f" undisturbed CV {calm.std() / calm.mean():.1%}; traced: fastest, replayed and slowest"
        " run; replayed / disturbed with 95 %:"
    )
    print(pd.DataFrame(shown).to_string())
    report_errors(errors(runs, arguments.cases))


def report_errors(off: dict[str, np.ndarray]) -> None:
    for method, name in (("ours", "ours"), ("published", "published (BASELINE)")):
        print(
            f"|ratio - 1|, {name}: mean {told(off[method].mean(axis=0))}, worst"
            f" {told(off[method].max(axis=0))}"
        )
    print(f"published less ours: mean {told((off['published'] - off['ours']).mean(axis=0))}")
    middle, high = np.quantile(off["chance"].mean(axis=0), [0.5, 0.95])
    print(
        "the same of a second sample of the disturbed runs themselves, by resampling: mean"
        f" {middle:.1%}, in one of twenty over {high:.1%}"
    )


if __name__ == "__main__":
    main()
