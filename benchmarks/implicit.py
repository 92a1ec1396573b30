"""How fast regular collectives are evaluated without a schedule, beside the engine on the same
pattern and the figures of the reference.

    python benchmarks/implicit.py [--ranks 1048576] [--replicates 200] [--all]

One core unless said; --threads compares one thread with two.
The reference (LogGOPSim at -O3, on two virtual cores): 64 k ranks 4.6 to 8 s,
456 MB; 1 M ranks 137 s, 7.7 GB, after 124 s of preparing its schedule. Memory is that of a process
of its own beyond its imports. "history": one of all events was kept.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np  # noqa: E402

from nbhelpers.simulation import Detours, Noise, patterns, read_detours, simulate
from nbhelpers.simulation.implicit import evaluate
from nbhelpers.simulation.replicates import replicate

REFERENCE_S = {65_536: 4.6, 262_144: 18.0, 1_048_576: 137.0}


def dense(seed: int = 0) -> Detours:
    """A recording like those of busy systems: a tick every ms of 2 to 20 µs and now and then a
    daemon, 50 s of whole ns.
    """
    rng = np.random.default_rng(seed)
    ticks = np.arange(50_000) * 1e6 + rng.integers(0, 500, 50_000)
    starts = np.concatenate([ticks, rng.integers(0, 50_000_000_000, 5000)])
    lengths = np.concatenate(
        [rng.integers(2000, 20_000, 50_000), rng.integers(20_000, 400_000, 5000)]
    )
    return Detours(starts.astype(float), lengths.astype(float), 5e10)


def sparse(seed: int = 0) -> Detours:
    """A recording like those of tuned systems: 250 Hz, 1 to 4 µs, seldom up to 700 µs."""
    rng = np.random.default_rng(seed)
    starts = np.arange(50_000) * 4e6 + rng.integers(0, 3000, 50_000)
    lengths = np.where(
        rng.random(50_000) < 0.002,
        rng.integers(50_000, 700_000, 50_000),
        rng.integers(900, 4000, 50_000),
    )
    return Detours(starts.astype(float), lengths.astype(float), 2e11)


def timed(function, *arguments, **options):
    """(CPU seconds, seconds, result) of the faster of two calls."""
    best = None
    for _ in range(2):
        cpu, wall = time.process_time(), time.perf_counter()
        result = function(*arguments, **options)
        spent = time.process_time() - cpu, time.perf_counter() - wall
        best = min(best or spent, spent)
    return *best, result


def peak_mb(code: str) -> float:
    """Peak memory of a process that runs this, beyond that of its imports."""
    measure = (
        "import re; here = lambda: int(re.search(r'VmHWM:\\s+(\\d+)',"
        " open('/proc/self/status').read())[1]) / 1e3"
    )
    program = (
        "from nbhelpers.simulation.implicit import evaluate\nimport"
        f" nbhelpers.simulation._simulator\n{measure}\nbefore = here()\n{code}\nprint(here() -"
        " before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def line(what: str, cpu_s: float, found, against: float | None = None, rival: str = "") -> None:
    ratio = f"{against / cpu_s:8.1f} x faster than {rival} ({against:.1f} s)" if against else ""
    history = " history" if getattr(found, "ties", 0) else ""
    print(
        f"  {what:46} {cpu_s:8.2f} s {getattr(found, 'messages', 0) / cpu_s / 1e6:8.1f} M"
        f" messages/s {ratio}{history}"
    )


def recordings(trace: str | None) -> dict[str, Detours]:
    found = {"sparse synthetic recording": sparse(), "dense synthetic recording": dense()}
    return found | ({Path(trace).name: read_detours(trace)} if trace else {})


def dissemination(ranks: int, trace: str | None) -> None:
    print(f"dissemination, 1 byte, {ranks} ranks")
    cpu_s, _, found = timed(evaluate, "dissemination", ranks)
    line("no noise", cpu_s, found, REFERENCE_S.get(ranks), "the reference, prepared schedule")
    for name, detours in recordings(trace).items():
        cpu_s, _, found = timed(
            evaluate, "dissemination", ranks, noise=Noise.on_ranks(detours, ranks, seed=1)
        )
        line(name, cpu_s, found, REFERENCE_S.get(ranks), "the reference without noise")
    cpu_s, _, found = timed(
        evaluate, "dissemination", ranks, noise=Noise.on_ranks(dense(), ranks, seed=1, cosched=True)
    )
    line(
        "dense synthetic recording, co-scheduled",
        cpu_s,
        found,
        REFERENCE_S.get(ranks),
        "the reference without noise",
    )
    cpu_s, _, found = timed(evaluate, "scatter", ranks)
    line("a scatter instead, no noise", cpu_s, found)
    print(
        "  peak memory, no noise:"
        f" {peak_mb(f'evaluate({chr(34)}dissemination{chr(34)}, {ranks})'):.0f} MB"
    )


def both_threads(ranks: int, noises: dict[str, Detours], rounds: int = 5) -> None:
    """One thread and two in turn: seconds by the clock, the least and all pairs' ratios."""
    for pattern in ("dissemination", "recursive_doubling_allreduce"):
        for name, detours in noises.items():
            noise = Noise.on_ranks(detours, ranks, seed=1)
            took = {1: [], 2: []}
            for turn in range(rounds):
                for threads in (1, 2) if turn % 2 == 0 else (2, 1):
                    begin = time.perf_counter()
                    evaluate(pattern, ranks, noise=noise, threads=threads)
                    took[threads].append(time.perf_counter() - begin)
            ratios = sorted(one / two for one, two in zip(took[1], took[2]))
            print(
                f"  {pattern}, {name}: one thread {min(took[1]):.2f} s, two {min(took[2]):.2f} s;"
                f" {ratios[0]:.2f} to {ratios[-1]:.2f} x, median {ratios[rounds // 2]:.2f}"
            )


def beside_the_engine(ranks: int) -> None:
    print(f"beside the engine, {ranks} ranks")
    noise = Noise.on_ranks(sparse(), ranks, seed=1)
    for pattern, own in (
        ("dissemination", None),
        ("dissemination", noise),
        ("barrier", noise),
        ("recursive_doubling_allreduce", noise),
        ("binomial_bcast", None),
    ):
        schedule = (
            patterns.barrier(ranks)
            if pattern == "barrier"
            else getattr(patterns, pattern)(ranks, 1)
        )
        engine_s, _, engine = timed(simulate, schedule, noise=own)
        cpu_s, _, found = timed(evaluate, pattern, ranks, noise=own)
        assert np.array_equal(engine.finish_ns, found.finish_ns)
        line(
            f"{pattern}{', noise' if own else ''}",
            cpu_s,
            found,
            engine_s,
            "the engine, prepared schedule",
        )


def replicates(count: int, ranks: int = 32_768) -> None:
    workers = len(os.sched_getaffinity(0))
    print(f"{count} replicates of a noisy dissemination on {ranks} ranks, {workers} threads")
    for name, detours in {"sparse": sparse(), "dense": dense()}.items():
        noise = Noise.on_ranks(detours, ranks)
        begin = time.perf_counter()
        replicate(lambda own: evaluate("dissemination", ranks, noise=own), noise, count)
        wall_s = time.perf_counter() - begin
        print(
            f"  {name:46} {wall_s:8.2f} s, {1000 * wall_s / count:.1f} s for 1000 (bound: 60 s,"
            f" ratio {60 * count / 1000 / wall_s:.2f})"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=1 << 20)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--trace", help="a recorded trace, besides the synthetic ones")
    parser.add_argument("--threads", action="store_true", help="compare one thread with two only")
    parser.add_argument("--all", action="store_true", help="all of 1000 replicates")
    options = parser.parse_args()
    if options.threads:
        return both_threads(options.ranks, recordings(options.trace))
    dissemination(options.ranks, options.trace)
    beside_the_engine(min(options.ranks, 1 << 16))
    replicates(1000 if options.all else options.replicates)


if __name__ == "__main__":
    main()
