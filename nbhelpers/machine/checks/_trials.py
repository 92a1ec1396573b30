"""What only a trial can show: counters, real-time scheduling, the compiler, unmounted file systems.

Each trial leaves the machine as it was: a counter that is released again, a thread that ends, a
temporary folder.
"""

import contextlib
import errno
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .. import privileged, run_groups
from .._read import located
from ..description import compiler
from ..kernel import KERNEL_FOLDERS, file_system, is_mounted
from ..perf_event import EXCLUDE_KERNEL_AND_HYPERVISOR, open_counter, read_counter

HARDWARE_INSTRUCTIONS, SOFTWARE_CONTEXT_SWITCHES = (0, 1), (1, 3)

OPENMP_PROGRAM = """
#include <omp.h>
#include <stdio.h>
int main(void) {
    int threads = 0;
    #pragma omp parallel num_threads(2) reduction(+:threads)
    threads += 1;
    return printf("%d\\n", threads) < 0;
}
"""


@dataclass(frozen=True)
class Trial:
    """How a trial went: `state` "yes", "limited" or "no", and a `message` on what was found."""

    state: str
    message: str
    errno: int = 0


_NOT_TRIED = Trial("no", "not tried: a recorded machine")


@dataclass(frozen=True)
class Trials:
    """The trials of one machine; those of a recorded machine were not made."""

    hardware: Trial = _NOT_TRIED
    software: Trial = _NOT_TRIED
    fifo: Trial = _NOT_TRIED
    openmp: Trial = _NOT_TRIED
    groups: Trial = _NOT_TRIED


def try_out() -> Trials:
    """Try everything on this machine, as this user; takes some tenths of a second."""
    hardware, software = map(try_counter, *zip(HARDWARE_INSTRUCTIONS, SOFTWARE_CONTEXT_SWITCHES))
    return Trials(hardware, software, try_fifo(), try_openmp(), try_groups())


def try_groups() -> Trial:
    """Whether a run can have a control group of its own."""
    folder = run_groups.base()
    if folder:
        return Trial("yes", f"a control group for each run, in {folder}")
    return Trial("limited", "no control group of version 2 can be made here")


def try_counter(kind: int, config: int) -> Trial:
    """Open a counter on this process with perf_event_open(2); one of the hardware has to count."""
    refusal = OSError()
    ways = (("yes", "", 0), ("limited", " in user space only", EXCLUDE_KERNEL_AND_HYPERVISOR))
    for state, where, flags in ways:
        try:
            handle = open_counter(kind, config, flags=flags)
        except PermissionError as error:
            refusal = error
            continue
        except OSError as error:
            refusal = error
            break
        try:
            count, *_ = read_counter(handle)
        finally:
            os.close(handle)
        if kind == 0 and count == 0:
            return Trial("no", "the counter opens but stays at 0")
        return Trial(state, f"counting{where}")
    number = refusal.errno or 0
    name = errno.errorcode.get(number, number)
    return Trial("no", f"perf_event_open: {os.strerror(number)} ({name})", number)


def try_fifo() -> Trial:
    """Request SCHED_FIFO 50, the priority of an interrupt thread."""
    number = privileged.realtime_refusal(50)
    if number:
        return Trial("no", f"SCHED_FIFO: {os.strerror(number)}", number)
    return Trial("yes", "SCHED_FIFO granted")


def try_openmp() -> Trial:
    """Compile a small OpenMP program with `$CC` or cc, and run it."""
    name = compiler()
    if name is None:
        return Trial("no", "no C compiler")
    command = (os.environ.get("CC") or "cc").split()
    try:
        with tempfile.TemporaryDirectory() as folder:
            build = [*command, "-fopenmp", "-o", f"{folder}/try", "-x", "c", "-"]
            for step in (build, [f"{folder}/try"]):
                done = subprocess.run(
                    step, input=OPENMP_PROGRAM, capture_output=True, text=True, timeout=60
                )
                if done.returncode:
                    reason = (done.stderr.strip() or f"exit {done.returncode}").splitlines()[0]
                    return Trial("no", f"{name}, but OpenMP fails: {reason[:120]}")
    except (OSError, subprocess.SubprocessError) as error:
        return Trial("no", f"{name}, but OpenMP fails: {type(error).__name__}")
    threads = done.stdout.strip()
    return Trial("yes" if threads == "2" else "limited", f"{name}, OpenMP with {threads} threads")


@contextlib.contextmanager
def kernel_folder(place: str, root: str | Path) -> Iterator[tuple[Path | None, bool]]:
    """(folder, whether it is mounted) of a kernel file system, or (None, False)."""
    if Path(root) != Path("/"):
        there = located(place, root)
        yield (there, True) if there.is_dir() else (None, False)
        return
    with contextlib.ExitStack() as stack:
        folder = None
        with contextlib.suppress(OSError):
            folder = Path(stack.enter_context(file_system(place)))
        yield folder, is_mounted(KERNEL_FOLDERS[place], place)
