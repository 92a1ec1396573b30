"""Programs in which mitigations show: compiled or interpreted, some 50 ms each; and an action's
proof without the action.
"""

import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from nbhelpers.mitigation.action import Action
from nbhelpers.workloads import Workload, nbody, program

SOURCES = {
    # nothing but a sleep: no library that a variable is for
    "plain": ("#include <unistd.h>\nint main(void) { return usleep(50000); }\n", ()),
    # four threads that allocate at the same time for 120 ms
    "threads": (
        """
        #include <pthread.h>
        #include <stdlib.h>
        #include <time.h>
        static double now(void) {
            struct timespec t;
            clock_gettime(CLOCK_MONOTONIC, &t);
            return t.tv_sec + 1e-9 * t.tv_nsec;
        }
        static void *work(void *none) {
            for (double end = now() + 0.12; now() < end;)
                for (size_t size = 64; size < 8192; size *= 2) {
                    char *volatile block = malloc(size);
                    block[0] = 1;
                    free(block);
                }
            return none;
        }
        int main(void) {
            pthread_t threads[4];
            for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, 0);
            for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
            return 0;
        }
        """,
        ("-pthread",),
    ),
    # a loop whose schedule is OMP_SCHEDULE's
    "loop": (
        """
        #include <time.h>
        int main(void) {
            double sum = 0;
            for (int pass = 0; pass < 100; pass++)
        #pragma omp parallel for schedule(runtime) reduction(+ : sum)
                for (int i = 0; i < 20000; i++)
                    for (int j = 1; j < 20; j++) sum += 1.0 / (i + pass + j);
            return sum < 0;
        }
        """,
        ("-fopenmp",),
    ),
    # writes that reach a disk
    "writer": (
        """
        #include <fcntl.h>
        #include <stdlib.h>
        #include <unistd.h>
        int main(int count, char **words) {
            static char block[1 << 16];
            int file = open(words[count - 1], O_CREAT | O_WRONLY, 0600);
            for (int i = 0; i < 5; i++, usleep(10000))
                if (write(file, block, sizeof block) < 0 || fsync(file)) return 1;
            return 0;
        }
        """,
        (),
    ),
    # its own malloc, which no library replaces
    "own": (
        """
        #include <stddef.h>
        #include <unistd.h>
        static char memory[1 << 20];
        static size_t used;
        void *malloc(size_t size) { used += (size + 15) & ~15ul; return memory + used - size; }
        void free(void *block) { (void)block; }
        int main(void) { return malloc(8) == NULL || usleep(50000); }
        """,
        ("-rdynamic", "-fno-builtin"),
    ),
}
PYTHON = {
    "blas": "import numpy as n; a = n.ones((700, 700)); [a @ a for _ in range(15)]",
    "large": "import time; x = bytearray(b'x') * 40_000_000; time.sleep(0.05)",
    "seed": "import time; time.sleep(0.05)",
}
USED_BY = {
    "single-blas-thread": "blas",
    "malloc-arenas": "threads",
    "malloc-huge": "large",
    "thp-always": "large",
    "thp-never": "large",
    "fixed-hash-seed": "seed",
    "dynamic-schedule": "loop",
    "io-priority": "writer",
}
OPENMP = {"pin-threads", "leave-one-cpu", "openmp-passive", "openmp-active"}


@cache
def built(name: str) -> str:
    """The path of a compiled program; skips the test where it cannot be built."""
    source, flags = SOURCES[name]
    path = Path(mkdtemp(prefix="nb-programs-")) / name
    (path.parent / "program.c").write_text(source)
    command = ["gcc", "-O1", *flags, "-o", path, path.parent / "program.c"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"gcc cannot build {name}: {done.stderr.strip()[:80]}")
    return str(path)


def python_program(name: str) -> Workload:
    site = () if name == "blas" else ("-S",)
    return program([sys.executable, *site, "-c", PYTHON[name]])


def suitable(mitigation: str) -> Workload:
    """A short program that a mitigation is meant for."""
    if mitigation in OPENMP:
        return nbody(1000, 50, threads=2)  # some 50 ms: its threads must have been seen
    name = USED_BY.get(mitigation)
    if name == "writer":
        return program([built(name), str(Path(built(name)).with_name("written"))])
    if name in SOURCES:
        return program([built(name)], model="omp" if name == "loop" else "external")
    return python_program(name) if name else program("sleep 0.05")


class Looking(Action):
    """The proof of an action alone: nothing is done."""

    def __init__(self, action: Action):
        self.action, self.needs_program = action, action.needs_program

    def check(self, pid: int) -> str | None:
        return self.action.check(pid)

    def confirmed(self, errors: str) -> bool:
        return self.action.confirmed(errors)
