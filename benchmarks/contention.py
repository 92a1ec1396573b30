"""Shared links: what they cost the engine, and how well they agree with a packet simulator.

Cost: CPU time of one simulation with a fat tree (spread and hashed ways, half the
links upwards; also with a resolution of 5 µs)
over that of the plain model, least of three each, in turn. Agreement: the cases of
data/published/olteanu2022-flows1.csv.
"""

import time

from nbhelpers.report.publications import published_table
from nbhelpers.simulation import LogGOPS, Schedule, patterns, simulate
from nbhelpers.simulation.spread import MessageSpread
from nbhelpers.simulation.topology import FatTree
from nbhelpers.studies.scale.contention import contention_table, incast_sentence

NETWORK = LogGOPS(L=1900, o=230, g=5, G=0.079, S=2**40)
ROUNDS = 3


def schedules() -> dict[str, Schedule]:
    """What is simulated, by name."""
    return {
        "dissemination 8 B, 4096 ranks": patterns.dissemination(4096, 8),
        "ring all-reduce 1 MiB, 256 ranks": patterns.ring_allreduce(256, 2**20),
        "halo 16 x 16, 64 KiB, 10 steps": patterns.loop(
            patterns.halo((16, 16), 65536), 10, compute_ns=0
        ),
        "all-to-all 4 KiB, 128 ranks": patterns.pairwise_alltoall(128, 4096),
        "all-to-all at once 4 KiB, 48 ranks": patterns.linear_alltoall(48, 4096),
        "gather 1 MiB, 512 ranks": patterns.gather(512, 2**20),
    }


def seconds_of(schedule: Schedule, network, **options) -> float:
    """CPU time of one simulation."""
    begin = time.process_time()
    simulate(schedule, network, **options)
    return time.process_time() - begin


def main() -> None:
    """Print both tables."""
    ways = {
        "spread": FatTree(network=NETWORK, oversubscription=2),
        "hash": FatTree(network=NETWORK, oversubscription=2, routing="hash"),
        "hash 5 us": FatTree(
            network=NETWORK, oversubscription=2, routing="hash", resolution_ns=5000
        ),
    }
    drawn = MessageSpread(L=[1900, 2500, 9000], G=[0.079, 0.1])
    names = ("plain ms", "drawn x", "spread x", "hash x", "5 us x")
    print(f"{'schedule':38} {'messages':>9}" + "".join(f"{name:>10}" for name in names))
    for name, schedule in schedules().items():
        taken: dict[str, list[float]] = {"plain": [], "drawn": [], **{way: [] for way in ways}}
        for _ in range(ROUNDS):
            taken["plain"].append(seconds_of(schedule, NETWORK))
            taken["drawn"].append(seconds_of(schedule, NETWORK, spread=drawn))
            for way, tree in ways.items():
                taken[way].append(seconds_of(schedule, tree))
        plain = min(taken["plain"])
        ratio = {way: min(values) / plain for way, values in taken.items()}
        sends = int((schedule.kind == 1).sum())
        figures = [plain * 1e3, *(ratio[way] for way in ("drawn", "spread", "hash", "hash 5 us"))]
        print(f"{name:38} {sends:9}" + "".join(f"{figure:10.2f}" for figure in figures))
    table = contention_table(published_table("olteanu2022-flows1"))
    print(table.round(3).to_string(index=False))
    print(incast_sentence(table))


if __name__ == "__main__":
    main()
