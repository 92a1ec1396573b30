"""How long the studies of noise at scale take, and how their cost grows: against ranks, seeds, and
one worker.

Prints, for a noisy dissemination evaluated without a schedule, seconds, millions of messages a
second and the ratio to the row above (4.6 is linear in messages); for replicates, all workers
against one; for applications on the engine, the same. Rival in the same run: the engine on the same
schedule.
"""

import os
import time

from nbhelpers.simulation import LogGOPS, Noise, patterns, periodic, simulate
from nbhelpers.simulation.implicit import evaluate
from nbhelpers.simulation.replicates import replicate
from nbhelpers.studies.scale import applications_on, published_signatures

NOISES = {"1000 Hz x 100 us": periodic(1000, 100), "alps": published_signatures()["alps"]}


def seconds(call: object) -> tuple[float, object]:
    """How long a call takes (best of two), and what it gives."""
    best, made = float("inf"), None
    for _ in range(2):
        begin = time.perf_counter()
        made = call()
        best = min(best, time.perf_counter() - begin)
    return best, made


def grow() -> None:
    print(
        f"{'dissemination, 1 B':<22}{'ranks':>9}{'seconds':>9}{'M msg/s':>9}"
        f"{'to the row above':>18}{'engine / this':>15}"
    )
    for name, trace in NOISES.items():
        before = None
        for exponent in (12, 14, 16, 18):
            ranks = 1 << exponent
            noise = Noise.on_ranks(trace, ranks, 1)
            took, made = seconds(lambda: evaluate("dissemination", ranks, noise=noise))
            schedule = patterns.dissemination(ranks, 1) if exponent <= 16 else None
            engine = (
                f"{seconds(lambda: simulate(schedule, noise=noise))[0] / took:>15.1f}"
                if schedule
                else f"{'-':>15}"
            )
            print(
                f"{name:<22}{ranks:>9}{took:>9.3f}{made.messages / took / 1e6:>9.1f}"
                f"{took / before if before else float('nan'):>18.1f}{engine}"
            )
            before = took


def repeat() -> None:
    cores = len(os.sched_getaffinity(0))
    print(f"\n{'30 replicates':<34}{'1 worker (s)':>13}{f'{cores} workers (s)':>15}{'ratio':>7}")
    ranks = 4096
    calls = {
        f"dissemination, {ranks} ranks": (
            lambda noise: evaluate("dissemination", ranks, noise=noise),
            ranks,
        )
    }
    calls |= {
        f"{name}, {schedule.ranks} ranks": (
            (lambda noise, schedule=schedule: simulate(schedule, LogGOPS(), noise)),
            schedule.ranks,
        )
        for name, schedule in applications_on(64, 0.05).items()
    }
    for name, (call, count) in calls.items():
        noise = Noise.on_ranks(NOISES["1000 Hz x 100 us"], count, 1)
        alone, _ = seconds(lambda: replicate(call, noise, 30, workers=1))
        together, _ = seconds(lambda: replicate(call, noise, 30))
        print(f"{name:<34}{alone:>13.2f}{together:>15.2f}{alone / together:>7.2f}")


if __name__ == "__main__":
    grow()
    repeat()
