"""What recording every MPI call takes: our MPI programs with and without `libnbtrace.so`.

First, what a call of a rank that is alone takes (mpi_call.c), in pairs of runs in turn. Then, a
program a line:

* `ratio`: of the mean lengths of the timed regions with and without, with its 95 % interval (pairs
  of runs in random order are resampled). It holds all that recording does, and is as wide as the
  program's own run times.
* `calls/s` of a rank, and calls/s x the cost of a call above, the largest of all pairs: `warm`, of
  calls in a row, and `cold`, of calls after which all caches were emptied. A program's own calls
  lie between the two. Both hold what recording adds to the calls, not what it takes from the
  caches of the computation.

    python benchmarks/mpi_overhead.py [PAIRS [RANKS [PROGRAM [ARGUMENT …]]]]
    python benchmarks/mpi_overhead.py where [ROUNDS]

The second says where a call's cost goes, in ROUNDS (30) of runs in turn: MPI_Allreduce of a lone
rank, plain and through libraries that do more and more of what libnbtrace.so does (mpi_layers.c).
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from nbhelpers import program
from nbhelpers.measurement import run_once
from nbhelpers.mpi import CallTrace, installation, read_calls
from nbhelpers.mpi.programs import PROGRAMS
from nbhelpers.workloads import Region, Workload
from tests.mpi import traced_run
from tests.mpi.messages import matched_messages


def our_programs() -> list[list[str]]:
    """The six programs with their own sizes, and one of mpi4py where it is installed."""
    here, ours = installation(), Path(__file__).with_name("mpi4py_heat.py")
    commands = [[str(here.programs / name)] for name in PROGRAMS]
    return commands + ([[str(here.python), str(ours)]] if here.python else [])


def on_ranks(command: list[str], ranks: int) -> Workload:
    words = [*installation().command(ranks), *command]
    return program(words, region=Region("mpi"), timeout_s=120)


def seconds(workload: Workload, attachments=()) -> float:
    row = run_once(workload, attachments)
    if row["status"] != "ok":
        raise SystemExit(f"{' '.join(workload.command)}: {row['status']}: {row['message']}")
    return row["region_seconds"]


def paired(workload: Workload, pairs: int, folder: Path) -> np.ndarray:
    """Seconds of runs without and with the trace, a row a pair."""
    trace, rng, found = CallTrace(folder), np.random.default_rng(), np.empty((pairs, 2))
    try:
        for pair in found:
            for traced in rng.permutation(2):
                pair[traced] = seconds(workload, [trace] if traced else [])
    finally:
        trace.close()
    return found


def interval(found: np.ndarray) -> tuple[float, float]:
    rng = np.random.default_rng(1)
    picked = found[rng.integers(len(found), size=(4000, len(found)))].mean(axis=1)
    low, high = np.quantile(picked[:, 1] / picked[:, 0], [0.025, 0.975])
    return low, high


def call_costs(pairs: int) -> tuple[float, float]:
    """Print what a call takes with and without, by the median batch of each of some runs; the
    largest cost in ns, of warm and of cold calls.
    """
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        made = Path(folder) / "mpi_call"
        source = Path(__file__).with_name("mpi_call.c")
        subprocess.run([installation().mpicc, "-O2", source, "-o", made], check=True)
        found: dict[str, list[list[float]]] = {}
        for pair in range(pairs):
            for traced in (False, True):
                env = {**os.environ, "NBTRACE_MIB": "200"}
                if traced:
                    env["LD_PRELOAD"] = str(installation().programs / "libnbtrace.so")
                    env["NBTRACE"] = f"{folder}/{pair}"
                    os.mkdir(env["NBTRACE"])
                words = [*installation().command(1), made]
                done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
                for name, _, median in map(str.split, done.stdout.splitlines()):
                    found.setdefault(name, [[], []])[traced].append(float(median))
                if traced:
                    shutil.rmtree(env["NBTRACE"])
    dearest = [0.0, 0.0]
    for name, (plain, with_trace) in found.items():
        costs = np.array(with_trace) - np.array(plain)
        print(
            f"{name:<22}{np.median(plain):>7.1f} ns, recorded {np.median(with_trace):.1f} ns: "
            f"+{np.median(costs):.1f} ns ({costs.min():.1f} to {costs.max():.1f}, n = {pairs})"
        )
        cold = name.endswith("cold")
        dearest[cold] = max(dearest[cold], costs.max())
    return dearest[0], dearest[1]


LAYERS = ("passed on: LD_PRELOAD, PMPI", "the clock read two times", "a record taken and filled")


def where(rounds: int = 30) -> None:
    """Print what each part of recording a call costs, by the median batch of each run."""
    ours = Path(__file__).resolve().parents[1] / "workloads"
    sources = [ours / "mpi" / f"nbtrace{part}.c" for part in ("", "_numbers")]
    flags = "-O2 -std=c11 -D_GNU_SOURCE -ftls-model=initial-exec -shared -fPIC -Wl,--as-needed"
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        here, mpicc = Path(__file__).parent, installation().mpicc
        call = Path(folder) / "mpi_call"
        subprocess.run([mpicc, "-O2", here / "mpi_call.c", "-o", call], check=True)
        libraries: list[Path | None] = [None]
        for number in range(1, 1 + len(LAYERS)):
            libraries.append(Path(folder) / f"layer{number}.so")
            words = [f"-DLAYER={number}", f"-I{ours}", f"-I{ours / 'mpi'}", "-o", libraries[-1]]
            made = [mpicc, *flags.split(), *words, here / "mpi_layers.c", *sources]
            subprocess.run([*made, "-ldl", "-pthread"], check=True)
        libraries.append(installation().programs / "libnbtrace.so")
        ns = np.array(
            [
                [call_ns(call, one, Path(folder) / "trace") for one in libraries]
                for _ in range(rounds)
            ]
        )
    print(
        f"{installation()}: MPI_Allreduce of one rank {np.median(ns[:, 0]):.1f} ns; of this more:"
    )
    names = (*LAYERS, "its arguments: bytes, communicator")
    for name, parts in zip((*names, "all"), (*np.diff(ns).T, ns[:, -1] - ns[:, 0])):
        low, high = np.quantile(parts, [0.25, 0.75])
        said = f"{np.median(parts):>+7.1f} ns (quartiles {low:.1f} to {high:.1f}, n = {rounds})"
        print(f"{name:<36}{said}")


def call_ns(call: Path, library: Path | None, folder: Path) -> float:
    """The median batch of MPI_Allreduce in ns a call, with a library in LD_PRELOAD."""
    env = {**os.environ, "NBTRACE_MIB": "200"}
    if library:
        folder.mkdir()
        env |= {"LD_PRELOAD": str(library), "NBTRACE": str(folder)}
    words = [*installation().command(1), call]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    shutil.rmtree(folder, ignore_errors=True)
    return next(
        float(line.split()[2]) for line in done.stdout.splitlines() if line[:10] == "Allreduce "
    )


def line(command: list[str], pairs: int, ranks: int, costs_ns: tuple[float, float]) -> str:
    workload = on_ranks(command, ranks)
    with tempfile.TemporaryDirectory() as folder:
        _, calls = traced_run(workload, Path(folder))
        unmatched = (matched_messages(calls)[["send_row", "receive_row"]] < 0).any(axis=1).sum()
        found = paired(workload, pairs, Path(folder))
        calls = read_calls(Path(folder) / "run-000000")
    plain, traced = found.mean(axis=0)
    low, high = interval(found)
    name = next(Path(word).stem for word in command if not word.endswith("/python"))
    rate = len(calls.table) / ranks / plain
    bounds = "".join(f"{rate * ns * 1e-9:>10.4%}" for ns in costs_ns)
    return (
        f"{name:<14}{plain:>9.3f}{traced / plain:>8.4f} ({low:.4f} to {high:.4f})"
        f"{rate:>12,.0f}{bounds}{unmatched:>11}"
    )


def main(pairs: int = 30, ranks: int = 2, *command: str) -> None:
    costs_ns = call_costs(min(pairs, 10))
    print(f"{installation()}, {ranks} ranks, {pairs} pairs of runs; region in s")
    print("warm, cold: calls/s x {:.1f} ns, x {:.1f} ns".format(*costs_ns))
    print(
        f"{'program':<14}{'region':>9}{'ratio with, without':>27}{'calls/s':>12}"
        f"{'warm':>10}{'cold':>10}{'unmatched':>11}"
    )
    for words in [list(command)] if command else our_programs():
        print(line(words, pairs, ranks, costs_ns), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["where"]:
        where(*map(int, sys.argv[2:3]))
    else:
        main(*map(int, sys.argv[1:3]), *sys.argv[3:])
