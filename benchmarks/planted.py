"""Planted anomalies replayed by our injector and by the published method, interleaved with the
disturbed runs themselves.

Each case is a real SCHED_FIFO hog's schedule; of some traced runs under it the one of median run
time becomes a config, which all methods replay: ours, and the BASELINE (relative sleep, wall-clock
spin, a process a CPU, unpinned; injector_rival.c) in the published file format.
--rival PATH also drives the published injector itself: PATH is `noiseinjector/cpuoccupy`, built in
a checkout of its authors' repository (make in `common`, then in `noiseinjector`).

A round is one run of each arm of one case, in random order, so that slow phases of the machine fall
upon all arms; the hog runs twice in it, and its second runs show what chance brings about. Printed:
what a rival costs that has nothing to do; replayed / disturbed of each case; mean and worst
|ratio - 1| of each method and by how much they differ, all with 95 % bootstrap intervals (of
rounds). It takes four cases, two minutes; --cases 10 --runs 6 takes five.
"""

import argparse
import os
import sys
import tempfile
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import pandas as pd
from _c_programs import build
from _published import METHODS, Published, idle_table, report_idle, rival_methods

from nbhelpers.injection import Injector
from nbhelpers.injection.rules import may_realtime
from nbhelpers.machine import doctor, online_cpus
from nbhelpers.measurement import Campaign, Cell, calibrate, finished, recorded_runs
from nbhelpers.noise import NoiseConfig, average_noise
from nbhelpers.statistics import percentile_interval
from nbhelpers.studies.planted_anomalies import real_time_hog
from nbhelpers.tracing import Tracer, read_traces
from nbhelpers.workloads import nbody
from tests.cells import run_cells

PAGE = "35-planted-anomaly"  # whose cells draw the schedules and make the configs
REPEATS = 4000


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
    drawn = {"cases": arguments.cases, "seconds": float(calm["seconds"].mean())}
    drawn |= {"cpus": len(online_cpus()), "seed": arguments.seed}
    schedules = run_cells(PAGE, "schedules", **drawn)["schedules"]
    known = {"schedules": schedules, "numbers": range(1, arguments.cases + 1)}
    known |= {"study": SimpleNamespace(data=folder), "recorded_only": False}
    known |= {"seed": arguments.seed, "traces": arguments.traces}
    average = average_of(folder)
    known |= {"stage10": SimpleNamespace(workload=workload, average=lambda method: average)}
    configs = run_cells(PAGE, "traced", **known, method="paper", threads="recorded")["configs"]
    return workload, schedules, configs


def average_of(folder: Path) -> pd.DataFrame:
    calm = finished(recorded_runs(folder / "calm"))
    return average_noise(read_traces(folder / "calm/traces", calm), calm)


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
    """Finished runs of all cases; their cells end with the number of the case."""
    tables = []
    for case, (schedule, config) in enumerate(zip(schedules, configs), start=1):
        place = folder / f"case {case}"
        path = config.write_published(folder / f"case-{case}.json")
        cells = [
            Cell("undisturbed", workload),
            Cell("disturbed 1", workload, attachments=(real_time_hog(schedule),)),
            Cell("replayed 1", workload, noise=config.digest, attachments=(Injector(config),)),
            Cell("again 1", workload, attachments=[real_time_hog(schedule)]),
        ]
        cells += [
            Cell(
                f"{name} 1",
                workload,
                noise=config.digest,
                attachments=[Published(program, path, authors)],
            )
            for name, authors in rival_methods(arguments).items()
        ]
        campaign = Campaign(place, cells, runs=arguments.runs, seed=arguments.seed + case)
        runs = finished(campaign.run())
        tables.append(runs.assign(cell=runs["cell"].str.replace(" 1", f" {case}"), case=case))
    return pd.concat(tables, ignore_index=True)


def told(values: np.ndarray) -> str:
    """The first value, and the 95 % interval of the others."""
    low, high = percentile_interval(values[1:])
    return f"{values[0]:.1%} [{low:.1%}, {high:.1%}]"


def methods_of(runs: pd.DataFrame) -> dict[str, str]:
    """The methods that were measured: their names in `METHODS` and for a reader."""
    arms = set(runs["cell"].str.split().str[0])
    return {method: name for method, name in METHODS.items() if method in arms}


def arms_of(runs: pd.DataFrame, case: int) -> pd.DataFrame:
    """Run times of a case: a row a round, a column an arm; only whole rounds."""
    own = runs[runs["case"] == case]
    arm = own["cell"].str.split().str[0]
    return own.assign(arm=arm).pivot(index="round", columns="arm", values="seconds").dropna()


def drawn_ratios(seconds: pd.DataFrame, method: str, of_rounds: bool, seed: int) -> np.ndarray:
    """Replayed / disturbed as measured, then of resampled rounds: of the mean run times, or the
    median of the ratios of the rounds.
    """
    random = np.random.default_rng(seed)  # the same rounds for every method
    drawn = random.integers(len(seconds), size=(REPEATS, len(seconds)))
    rounds = np.vstack([np.arange(len(seconds)), drawn])
    replayed, disturbed = (seconds[arm].to_numpy()[rounds] for arm in (method, "disturbed"))
    if of_rounds:
        return np.median(replayed / disturbed, axis=1)
    return replayed.mean(axis=1) / disturbed.mean(axis=1)


def errors(
    runs: pd.DataFrame, cases: int, of_rounds: bool = False, seed: int = 0
) -> dict[str, np.ndarray]:
    """|ratio - 1| as a row a case, of each method; columns: as measured, then of resamples."""
    arms = {case: arms_of(runs, case) for case in range(1, cases + 1)}
    return {
        method: np.array(
            [
                np.abs(drawn_ratios(seconds, method, of_rounds, seed + case) - 1)
                for case, seconds in arms.items()
            ]
        )
        for method in methods_of(runs)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=4)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument(
        "--traces",
        type=int,
        default=3,
        help="traced runs of each case, of which the median one is replayed",
    )
    parser.add_argument("--seconds", type=float, default=0.4, help="of an undisturbed run")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--rival", type=Path, help="the published injector, cpuoccupy")
    parser.add_argument("--idle", type=int, default=20, help="rounds beside an idle rival, or 0")
    parser.add_argument("--save", type=Path, help="a CSV file for the replayed runs")
    arguments = parser.parse_args()
    if arguments.rival and not os.access(arguments.rival, os.X_OK):
        sys.exit(f"{arguments.rival} is no program; build it in its checkout: make -C common")
    if not may_realtime(50) or doctor().capabilities.tracer == "detours":
        sys.exit("skipped: SCHED_FIFO is not permitted here, or the kernel cannot be traced")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = build(folder, "injector_rival")
        workload, schedules, configs = prepare(folder, arguments)
        if arguments.idle > 1:
            report_idle(idle_table(folder, arguments, program))
        runs = measure(folder, workload, schedules, configs, arguments, program)
    if arguments.save:
        runs.to_csv(arguments.save, index=False)
    report(runs, configs, arguments)


def report(runs: pd.DataFrame, configs: list[NoiseConfig], arguments: argparse.Namespace) -> None:
    arms = {case: arms_of(runs, case) for case in range(1, arguments.cases + 1)}
    times = [config.provenance for config in configs]
    shown = pd.DataFrame(
        {
            "rounds": map(len, arms.values()),
            "undisturbed (s)": [own["undisturbed"].mean() for own in arms.values()],
            "disturbed (s)": [own["disturbed"].mean() for own in arms.values()],
            f"{arguments.traces} traced (s)": [
                f"{min(of['seconds_of_all']):.3f} {of['seconds']:.3f}"
                f" {max(of['seconds_of_all']):.3f}"
                for of in times
            ],
        },
        index=arms,
    ).round(4)
    for method, name in methods_of(runs).items():
        shown[f"{name}: ratio"] = [
            "{:.3f} [{:.3f}, {:.3f}]".format(ratios[0], *percentile_interval(ratios[1:]))
            for ratios in (drawn_ratios(own, method, False, case) for case, own in arms.items())
        ]
    calm = runs.loc[runs["cell"].str.startswith("undisturbed"), "seconds"]
    print(
        f"{arguments.cases} planted anomalies, {arguments.runs} rounds of each; undisturbed CV"
        f" {calm.std() / calm.mean():.1%}; traced: fastest, replayed and slowest run; replayed /"
        " disturbed (means) with 95 %:"
    )
    print(shown.to_string())
    for name, of_rounds in (("mean run times", False), ("the ratios of the rounds, median", True)):
        print(f"by {name}:")
        report_errors(errors(runs, arguments.cases, of_rounds), methods_of(runs))


def report_errors(off: dict[str, np.ndarray], methods: dict[str, str]) -> None:
    for method, name in methods.items():
        print(
            f"  |ratio - 1|, {name}: mean {told(off[method].mean(axis=0))}, worst"
            f" {told(off[method].max(axis=0))}"
        )
    for one, other in combinations([method for method in methods if method != "again"], 2):
        print(
            f"  {methods[other]} less {methods[one]}: mean"
            f" {told((off[other] - off[one]).mean(axis=0))}, worst"
            f" {told(off[other].max(axis=0) - off[one].max(axis=0))}"
        )


if __name__ == "__main__":
    main()
