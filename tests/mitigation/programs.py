"""Programs in which mitigations show: compiled or interpreted, some 50 ms each; and an action's
proof without the action.
"""

import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from nbhelpers.mitigation import mitigations
from nbhelpers.mitigation.action import Action
from nbhelpers.workloads import Workload, nbody, program

ALLOCATES = """
    #include <stdlib.h>
    #include <unistd.h>
    int main(void) { char *p = malloc(100000); p[5] = 1; usleep(30000); return p[5] - 1; }
"""
SOURCES = {
    # nothing but a sleep: no library that a variable is for
    "plain": ("#include <unistd.h>\nint main(void) { return usleep(50000); }\n", ()),
    # allocates once
    "dynamic": (ALLOCATES, ("-O0",)),
    "static": (ALLOCATES, ("-O0", "-static")),
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
LARGE = "import time; x = bytearray(b'x') * 40_000_000; time.sleep(0.05)"
OPENMP = {"pin-threads", "leave-one-cpu"} | {
    name
    for name, one in mitigations().items()
    if any(getattr(action, "needs", "") == "openmp" for action in one.actions)
}


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


def suitable(mitigation: str) -> Workload:
    """A short program that a mitigation is meant for."""
    if mitigation in OPENMP:
        return nbody(1000, 50, threads=2)  # some 50 ms: its threads must have been seen
    if mitigation == "malloc-arenas":
        return program([built("threads")])
    if mitigation in ("malloc-huge", "thp-always", "thp-never"):
        return program([sys.executable, "-S", "-c", LARGE])
    return program("sleep 0.05")


class Looking(Action):
    """The proof of an action alone: nothing is done."""

    def __init__(self, action: Action):
        self.action, self.needs_program = action, action.needs_program

    def check(self, pid: int) -> str | None:
        return self.action.check(pid)

    def confirmed(self, errors: str) -> bool:
        return self.action.confirmed(errors)
