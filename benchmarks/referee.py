"""How often is the referee wrong, and how many pairs does it need?

`record FOLDER` measures runs of three short programs against themselves, a stretch of each in turn.
"""

import argparse
import gzip
import sys
from pathlib import Path

from nbhelpers.referee.duel import Duel
from nbhelpers.referee.sides import Side
from nbhelpers.workloads import Workload, nbody, program

STRETCH = 25  # quads of one program, before the next has its turn


def programs(folder: Path) -> dict[str, Workload]:
    """Three programs of 10 to 60 ms: two threads that wait for each other, an interpreter that
    starts, and one thread that computes.
    """
    packed = folder / "text.gz"
    if not packed.exists():
        words = " ".join(f"{number * 7919 % 10007:x}" for number in range(900_000)).encode()
        packed.write_bytes(gzip.compress(words, mtime=0))
    return {
        "nbody": nbody(bodies=1200, steps=10, threads=2),
        "python": program([sys.executable, "-I", "-S", "-c", "sum(range(100000))"]),
        "gzip": program(["gzip", "-t", str(packed)]),
    }


def record(folder: Path, quads: int) -> None:
    """Quads of each program against itself; the same call goes on where an earlier one stopped."""
    folder.mkdir(parents=True, exist_ok=True)
    for upto in range(STRETCH, quads + STRETCH, STRETCH):
        for name, workload in programs(folder).items():
            duel = Duel(folder / name, Side(workload), Side(workload), min(upto, quads))
            runs = duel.run()
            print(f"{name}: {len(runs)} runs, {runs['seconds'].median():.4f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=["record"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quads", type=int, default=450)
    arguments = parser.parse_args()
    record(arguments.folder.absolute(), arguments.quads)


if __name__ == "__main__":
    main()
