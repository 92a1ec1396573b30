"""LogGOPS parameters of this machine, one set for all sizes and piecewise, and what they predict:
round trips of rounds that the fits have not seen, all-reduces between two ranks, and the
time that programs spend in MPI. In the column "messages" calls cost nothing besides those.

Needs `make mpi` and a minute and a half. Words are further MPI programs, with their arguments:

    python benchmarks/loggops.py "/path/of/hpccg 32 32 32" …
"""

import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy import stats

from nbhelpers import program
from nbhelpers.measurement import Campaign, Cell, finished
from nbhelpers.mpi import CallTrace, installation, read_calls
from nbhelpers.mpi.pingpong import measure_pingpong
from nbhelpers.simulation import patterns, simulate
from nbhelpers.simulation.loggops import NO_COSTS
from nbhelpers.simulation.loggops_fit import LogGOPSFit, fit_loggops
from nbhelpers.studies.ferreira.ranks import rank_program
from nbhelpers.studies.ferreira.traced import mpi_times
from nbhelpers.workloads import Region, Workload
from nbhelpers.workloads.mpi import placed_env

QUANTILE, ROUNDS = 0.25, 8
PROGRAMS: dict[str, tuple[str, dict]] = {
    name: (name, {}) for name in ("halo2d", "halo3d", "adaptive", "sweep", "amg")
}
for operation, size in (("allreduce", 8), ("allreduce", 65536), ("alltoall", 262144)):
    sizes = {"smallest": size, "largest": size, "calls": 500}
    PROGRAMS[f"{operation} {size}"] = "collectives", {"operation": operation, **sizes}


def predicted_trips(fit: LogGOPSFit, unseen) -> None:
    """Print round trips, measured and simulated."""
    trips = unseen[unseen["family"] == "roundtrip"]
    print(f"{'bytes':>9} {'trip us':>9} {'one set':>8} {'pieces':>8}")
    for size, rows in trips.groupby("bytes"):
        measured = float(np.quantile(rows["ns"], QUANTILE))
        there_and_back = patterns.calls(patterns.binomial_bcast, 2, size, 2, rotated=True)
        ours = [
            simulate(there_and_back, network).makespan_ns / measured - 1
            for network in (fit.network, fit.piecewise)
        ]
        print(f"{size:9} {measured / 1e3:9.2f} {ours[0]:+8.1%} {ours[1]:+8.1%}")


def predicted_allreduces(fit: LogGOPSFit) -> None:
    """Print all-reduces of two ranks, measured and simulated."""
    here = installation()
    words = ["--operation", "allreduce", "--smallest", "8", "--largest", "262144", "--factor", "8"]
    command = [*here.command(2), str(here.programs / "collectives"), *words, "--calls", "300"]
    printed = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=120
    ).stdout
    print(f"{'bytes':>9} {'call us':>9} {'one set':>8} {'pieces':>8}")
    for line in printed.splitlines():
        if not line.startswith("noisebook-series: ") or not line.split()[1].endswith("_0"):
            continue
        _, name, _, *values = line.split()
        size = int(name.split("_")[1])
        measured = float(np.quantile(np.array(values, float), QUANTILE)) * 1e3
        loop = patterns.recursive_doubling_allreduce(2, size)
        ours = [
            simulate(loop, network).makespan_ns / measured - 1
            for network in (fit.network, fit.piecewise)
        ]
        print(f"{size:9} {measured / 1e3:9.2f} {ours[0]:+8.1%} {ours[1]:+8.1%}")


def other_programs(commands: list[str], ranks: int) -> dict[str, Workload]:
    """The programs of the command line, and one of mpi4py where it is installed; by name."""
    here, cpus = installation(), sorted(os.sched_getaffinity(0))[:ranks]
    heat = Path(__file__).with_name("mpi4py_heat.py")
    found = {"mpi4py": [str(here.python), str(heat), "2000", "200"]} if here.python else {}
    found |= {Path(words[0]).name: words for words in map(shlex.split, commands)}
    started = {name: [*here.command(ranks), *words] for name, words in found.items()}
    return {
        name: program(words, region=Region("mpi"), env=placed_env("TP", cpus), timeout_s=120)
        for name, words in started.items()
    }


def times_in_mpi(fit: LogGOPSFit, folder: Path, commands: list[str], ranks: int = 2) -> None:
    """Print, of traced programs, the simulated over the measured time in MPI: geometric mean and
    95 % interval (Student, over runs).
    """
    programs = {
        label: rank_program(name, ranks, 0.2, **options)
        for label, (name, options) in PROGRAMS.items()
    } | other_programs(commands, ranks)
    cells = [Cell(label, one, compared_with=()) for label, one in programs.items()]
    trace = CallTrace(folder / "calls")
    runs = finished(Campaign(folder, cells, ROUNDS, attachments=(trace,)).run())
    networks = (replace(fit.piecewise, calls=NO_COSTS), fit.piecewise)
    print(f"{'program':18} {'in MPI':>7} {'messages':>20} {'and calls':>20} n")
    for label, rows in runs.groupby("cell", sort=False):
        traced = [read_calls(folder / "calls" / f"run-{run:06d}") for run in rows["run"]]
        shown, share = [], 0.0
        for network in networks:
            found = [mpi_times(calls, network) for calls in traced]
            share = np.mean([one["mpi_ms"] / ranks / one["measured_ms"] for one in found])
            logs = np.log([one["mpi_simulated_ms"] / one["mpi_ms"] for one in found])
            half = stats.t.ppf(0.975, len(logs) - 1) * stats.sem(logs)
            low, middle, high = np.exp(logs.mean() + half * np.array([-1, 0, 1]))
            shown.append(f"{middle:.2f} ({low:.2f} to {high:.2f})")
        print(f"{label:18} {share:7.0%} {shown[0]:>20} {shown[1]:>20} {len(traced)}")


def main() -> None:
    """Fit to the even rounds, predict the odd ones."""
    times = measure_pingpong(rounds=12)
    seen = times["round"] % 2 == 0
    fit = fit_loggops(times[seen])
    print(times.attrs["mpi"])
    print(fit.table.round(3).to_string())
    predicted_trips(fit, times[~seen])
    predicted_allreduces(fit)
    with TemporaryDirectory() as folder:
        times_in_mpi(fit, Path(folder), sys.argv[1:])


if __name__ == "__main__":
    main()
