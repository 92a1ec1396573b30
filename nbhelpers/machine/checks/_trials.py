"""What only a trial can show: counters, real-time scheduling, the compiler, unmounted file systems.

Each trial leaves the machine as it was: a counter that is released again, a thread that ends, a
temporary folder.
"""

import contextlib
import ctypes
import errno
import os
import platform
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .. import privileged, run_groups
from .._read import located
from ..description import compiler
from ..kernel import detached, is_mounted

PERF_EVENT_OPEN = {
    "x86_64": 298,
    "aarch64": 241,
    "riscv64": 241,
    "loongarch64": 241,
    "ppc64le": 319,
    "s390x": 331,
}
HARDWARE_INSTRUCTIONS, SOFTWARE_CONTEXT_SWITCHES = (0, 1), (1, 3)
_EXCLUDE_KERNEL_AND_HYPERVISOR = 1 << 5 | 1 << 6

OPENMP_PROGRAM = """
#include <omp.h>
#include <stdio.h>
int main(void) {
    int threads = 0;
    #pragma omp parallel num_threads(2)
    {
        #pragma omp single
        threads = omp_get_num_threads();
    }
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
    return Trials(
        try_counter(*HARDWARE_INSTRUCTIONS),
        try_counter(*SOFTWARE_CONTEXT_SWITCHES),
        try_fifo(),
        try_openmp(),
        try_groups(),
    )


def try_groups() -> Trial:
    """Whether a run can have a control group of its own."""
    folder = run_groups.base()
    if folder:
        return Trial("yes", f"a control group for each run, in {folder}")
    return Trial("limited", "no control group of version 2 can be made here")


def try_counter(kind: int, config: int) -> Trial:
    """Open a counter on this process with perf_event_open(2); one of the hardware has to count."""
    handle, number = _perf_open(kind, config, 0)
    state, where = "yes", ""
    if number in (errno.EACCES, errno.EPERM):
        handle, number = _perf_open(kind, config, _EXCLUDE_KERNEL_AND_HYPERVISOR)
        state, where = "limited", " in user space only"
    if number:
        return Trial(
            "no",
            f"perf_event_open: {os.strerror(number)} ({errno.errorcode.get(number, number)})",
            number,
        )
    try:
        count = struct.unpack_from("Q", os.read(handle, 24))[0]
    finally:
        os.close(handle)
    if kind == 0 and count == 0:
        return Trial("no", "the counter opens but stays at 0")
    return Trial(state, f"counting{where}")


def _perf_open(kind: int, config: int, flags: int) -> tuple[int, int]:
    """(file descriptor, 0) or (-1, errno) of an enabled counter on the calling thread."""
    call = PERF_EVENT_OPEN.get(platform.machine())
    if call is None:
        return -1, errno.ENOSYS
    attributes = struct.pack("IIQQQQQ", kind, 64, config, 0, 0, 0, flags).ljust(64, b"\0")
    libc = ctypes.CDLL(None, use_errno=True)
    # long arguments, or the upper half of the pid and cpu registers would be left to chance
    pid, cpu, group, close_on_exec = (ctypes.c_long(value) for value in (0, -1, -1, 8))
    handle = libc.syscall(ctypes.c_long(call), attributes, pid, cpu, group, close_on_exec)
    number = 0 if handle >= 0 else ctypes.get_errno()
    if number in (errno.EACCES, errno.EPERM):
        with contextlib.suppress(OSError):
            return privileged.counter(kind, config, 0, -1, flags), 0
    return handle, number


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
            source, program = Path(folder, "try.c"), Path(folder, "try")
            source.write_text(OPENMP_PROGRAM)
            build = [*command, "-fopenmp", "-o", str(program), str(source)]
            for step in (build, [str(program)]):
                done = subprocess.run(step, capture_output=True, text=True, check=True, timeout=60)
            threads = done.stdout.strip()
    except subprocess.CalledProcessError as error:
        reason = (error.stderr or "").strip().splitlines()[:1] or [f"exit {error.returncode}"]
        return Trial(
            "no", f"{name}, but OpenMP fails: {reason[0][:120].replace(str(folder), '').strip()}"
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Trial("no", f"{name}, but OpenMP fails: {type(error).__name__}")
    return Trial("yes" if threads == "2" else "limited", f"{name}, OpenMP with {threads} threads")


@contextlib.contextmanager
def kernel_folder(
    fstype: str, places: tuple[str, ...], root: str | Path
) -> Iterator[tuple[Path | None, bool]]:
    """(folder, whether it is mounted) of a kernel file system, or (None, False).

    Where nobody has mounted it, it is looked at through a mount that is attached nowhere: no
    process can see it, and it is gone with its file descriptor (fsopen(2), Linux 5.2).
    """
    here = Path(root) == Path("/")
    for place in places:
        if is_mounted(fstype, place) if here else located(place, root).is_dir():
            yield located(place, root), True
            return
    handle = detached(fstype)[0] if here else -1
    try:
        yield (Path(f"/proc/self/fd/{handle}") if handle >= 0 else None), False
    finally:
        if handle >= 0:
            os.close(handle)
