"""LogGOPS parameters of this machine, and what they predict: round trips of rounds that the fit has
not seen, and all-reduces between two ranks.

Needs `make mpi` and half a minute.
"""

import subprocess

import numpy as np

from nbhelpers.mpi import installation
from nbhelpers.mpi.pingpong import measure_pingpong
from nbhelpers.simulation import patterns, simulate
from nbhelpers.simulation.loggops_fit import LogGOPSFit, fit_loggops

QUANTILE = 0.25


def predicted_trips(fit: LogGOPSFit, unseen) -> None:
    """Print round trips, measured and simulated."""
    trips = unseen[unseen["family"] == "roundtrip"]
    print(f"{'bytes':>9} {'trip us':>9} {'fit':>8}")
    for size, rows in trips.groupby("bytes"):
        measured = float(np.quantile(rows["ns"], QUANTILE))
        there_and_back = patterns.calls(patterns.binomial_bcast, 2, size, 2, rotated=True)
        ours = simulate(there_and_back, fit.network.with_(S=2**40)).makespan_ns / measured - 1
        print(f"{size:9} {measured / 1e3:9.2f} {ours:+8.1%}")


def predicted_allreduces(fit: LogGOPSFit) -> None:
    """Print all-reduces of two ranks, measured and simulated."""
    here = installation()
    words = ["--operation", "allreduce", "--smallest", "8", "--largest", "262144", "--factor", "8"]
    command = [*here.command(2), str(here.programs / "collectives"), *words, "--calls", "300"]
    printed = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=120
    ).stdout
    print(f"{'bytes':>9} {'call us':>9} {'fit':>8}")
    for line in printed.splitlines():
        if not line.startswith("noisebook-series: ") or not line.split()[1].endswith("_0"):
            continue
        _, name, _, *values = line.split()
        size = int(name.split("_")[1])
        measured = float(np.quantile(np.array(values, float), QUANTILE)) * 1e3
        loop = patterns.recursive_doubling_allreduce(2, size)
        ours = simulate(loop, fit.network).makespan_ns / measured - 1
        print(f"{size:9} {measured / 1e3:9.2f} {ours:+8.1%}")


def main() -> None:
    """Fit to the even rounds, predict the odd ones."""
    times = measure_pingpong(rounds=12)
    seen = times["round"] % 2 == 0
    fit = fit_loggops(times[seen])
    print(times.attrs["mpi"])
    print(fit.table.round(3).to_string())
    predicted_trips(fit, times[~seen])
    predicted_allreduces(fit)


if __name__ == "__main__":
    main()
