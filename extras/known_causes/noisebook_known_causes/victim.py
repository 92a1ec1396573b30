"""Small Python programs, each sensitive to one kind of disturbance, for the bench of known causes.

    python victim.py WORK SIZE EXTRA

Owns what `workloads/victim.c` is for C. It follows the start protocol of CONTRIBUTING.md by itself,
imports nothing of the library, and prints its own counters on its last line.
"""

import os
import struct
import sys
import time
from collections.abc import Callable

SLOTS = 4096  # of the hash table
KEYS = 1024


def lookup(size: int, colliding: int) -> tuple[Callable[[], int], str]:
    """Looks up `size` keys in a table with open addressing; some keys want the same slot."""
    slots = [-1] * SLOTS
    keys = [number * SLOTS for number in range(colliding)]
    keys += [number * 5 + 1 for number in range(KEYS - colliding)]
    for key in keys:
        at = key % SLOTS
        while slots[at] >= 0:
            at = (at + 1) % SLOTS
        slots[at] = key

    def work() -> int:
        probes = 0
        for number in range(size):
            key = keys[number * 7 % KEYS]
            at = key % SLOTS
            probes += 1
            while slots[at] != key:
                at = (at + 1) % SLOTS
                probes += 1
        return probes

    return work, "probes"


def objects(size: int, collections: int) -> tuple[Callable[[], int], str]:
    """Makes objects that refer to themselves, and collects them so many times."""
    import gc

    keep = [{"number": number} for number in range(2000)]  # what a collection looks at, too

    def work() -> int:
        done = 0
        gc.disable()
        for number in range(size):
            own: list = keep[number % 100 : number % 100 + 3]
            own.append(own)
            while done * size < collections * (number + 1):
                done += 1
                gc.collect()
        return done

    return work, "collections"


def lines(size: int, written: int) -> tuple[Callable[[], int], str]:
    """Computes `size` pieces and writes so many lines between them."""
    log = os.open(os.devnull, os.O_WRONLY)

    def work() -> int:
        done = 0
        for number in range(size):
            sum(range(20_000))
            while done * size < written * (number + 1):
                done += 1
                os.write(log, b"line %d of the log of this program\n" % done)
        return done

    return work, "lines"


WORKS = {"lookup": lookup, "objects": objects, "lines": lines}


def wait_for_start() -> None:
    """The common start: say that we wait, then sleep until the time that we are told."""
    if "NOISEBOOK_READY_FD" not in os.environ:
        return
    os.write(int(os.environ["NOISEBOOK_READY_FD"]), b"r")
    told = os.read(int(os.environ["NOISEBOOK_GO_FD"]), 8)
    (start_ns,) = struct.unpack("q", told)
    time.sleep(max(0.0, (start_ns - time.monotonic_ns()) * 1e-9))


def main(words: list[str]) -> int:
    """Run one work; 2 if the words name none."""
    if len(words) != 3 or words[0] not in WORKS:
        print(f"usage: victim.py {'|'.join(WORKS)} SIZE EXTRA", file=sys.stderr)
        return 2
    work, counter = WORKS[words[0]](int(words[1]), int(words[2]))
    wait_for_start()
    start_ns = time.monotonic_ns()
    count = work()
    end_ns = time.monotonic_ns()
    print(
        f"noisebook: python-{words[0]} seconds={(end_ns - start_ns) * 1e-9:.9f}"
        f" start_ns={start_ns} end_ns={end_ns} {counter}={count} verified=yes"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
