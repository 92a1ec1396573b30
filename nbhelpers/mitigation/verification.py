"""What proves that a variable of the environment acts in a running process: who reads it is there,
and what can be seen from outside shows that it was followed.

Owns one proof for each variable that a mitigation sets; without one nothing counts as proven.
"""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ..machine import nvml
from ..machine.parts import LIBRARIES
from . import _elf, _proc
from .action import Momentary, NotYet, Unproven

Answer = str | None
_BLAS = re.compile(r"lib(scipy_)?(openblas|mkl_rt|mkl_core|blis)")
_OPENMP = ("libgomp", "libomp", "libiomp")
_ARENA_B = 1 << 26  # HEAP_MAX_SIZE of glibc where addresses have 64 bits
_FEW_ARENAS_THREADS = 3  # so many threads would have as many arenas
_LAZY_CUDA, LAZY_ANYWAY = 11_070, 12_020  # versions of CUDA: reads the variable; loads lazily


def proof(pid: int, name: str, value: str) -> Answer:
    """Whether a variable acts in a process that has it in its environment.

    Parameters
    ----------
    pid
        The process.
    name, value
        Of the variable.

    Returns
    -------
    None: it does; `NotYet`: not now; `Unproven`: that cannot be seen from outside.
    """
    if name not in PROOFS:
        return Unproven(f"nothing shows whether anybody follows {name}")
    return PROOFS[name](pid, value)


def openmp_missing(pid: int) -> Answer:
    """`NotYet`, where no OpenMP runtime is loaded."""
    if any(name.startswith(_OPENMP) for name in _mapped_names(pid)):
        return None
    return NotYet("no OpenMP runtime is loaded by the process, so nobody reads it")


def follows_display(name: str, value: str, errors: str) -> bool:
    """Whether an OpenMP runtime printed, as OMP_DISPLAY_ENV requests, that it follows a variable.

    Examples
    --------
    >>> follows_display("OMP_WAIT_POLICY", "passive", "  [host] OMP_WAIT_POLICY='PASSIVE'")
    True
    """
    told = re.search(rf"^\s*(\[\w+\] )?{name} ?= ?'([^']*)'", errors, re.M)
    return bool(told and told[2].lower().split(",")[0] == value.lower().split(",")[0])


def program_malloc(pid: int) -> Answer:
    """Where the program brings a malloc of its own, which no library and no variable replaces."""
    program = _elf.image(f"/proc/{pid}/exe")
    if program is not None and "malloc" in program.symbols:
        name = os.path.basename(_proc.executable(pid))
        return f"{name} has a malloc of its own"
    return None


def _mapped_names(pid: int) -> set[str]:
    return {os.path.basename(name) for name in _proc.mapped_files(pid)}


# ---- glibc's malloc ------------------------------------------------------------------------------


def _glibc(pid: int) -> Answer:
    """Whether malloc is glibc's."""
    files = _mapped_names(pid)
    if not any(name.startswith(("libc.so", "libc-")) for name in files):
        return NotYet("glibc is not loaded by the process, so nobody reads it")
    rivals = (name for name in sorted(files) if any(library in name for library in LIBRARIES))
    if rival := next(rivals, None):
        return f"malloc is that of {rival}, not glibc's"
    return program_malloc(pid)


def _top_pad(pid: int, value: str) -> Answer:
    """The heap has grown by at least the padding."""
    if wrong := _glibc(pid):
        return wrong
    heap_b = sum(one.end - one.start for one in _proc.maps(pid) if one.path == "[heap]")
    if heap_b >= int(value):
        return None
    return NotYet(f"the heap of the process has {heap_b} bytes, less than {value}")


def _with_top_pad(pid: int, value: str) -> Answer:
    """Read by malloc together with MALLOC_TOP_PAD_, which shows in the size of the heap."""
    return _glibc(pid)


def _arenas(pid: int, value: str) -> Answer:
    """Threads enough to have more arenas, and no more than these are there."""
    if wrong := _glibc(pid):
        return wrong
    threads, arenas = len(_proc.tasks(pid)), 1 + _heaps_of_threads(pid)
    if arenas > int(value):
        return f"malloc uses {arenas} arenas, not at most {value}"
    if threads < _FEW_ARENAS_THREADS or arenas < 2:
        return Unproven(f"{threads} threads use {arenas} arenas, which no limit holds back")
    return None


def _heaps_of_threads(pid: int) -> int:
    """Regions of 64 MB, at a multiple of it, whose first part alone may be written."""
    rows = _proc.maps(pid)
    return sum(
        not one.path
        and not one.start % _ARENA_B
        and (one.rights, then.rights) == ("rw-p", "---p")
        and one.end == then.start
        and then.end - one.start == _ARENA_B
        for one, then in zip(rows, rows[1:])
    )


def _huge_advice(pid: int, value: str) -> Answer:
    """Memory of the process is advised for huge pages (the flag hg), at this moment or before: a
    program may give back each block.
    """
    if wrong := _glibc(pid):
        return wrong
    if "malloc.hugetlb=1" not in value:
        return Unproven(f"nothing shows whether glibc follows {value}")
    with suppress(OSError):
        rows = Path(f"/proc/{pid}/smaps").read_text(errors="replace").splitlines()
        if any("hg" in row.split() for row in rows if row.startswith("VmFlags:")):
            return None
    return Momentary("malloc advises no memory of the process for huge pages")


# ---- OpenMP, BLAS, CUDA, Python, the loader ------------------------------------------------------


def _openmp_policy(pid: int, value: str) -> Answer:
    """The runtime prints what it follows; see `follows_display`."""
    return openmp_missing(pid) or Unproven("the OpenMP runtime did not print that it follows it")


def _openmp_schedule(pid: int, value: str) -> Answer:
    """Only loops with schedule(runtime) follow it; GCC calls functions of that name for these."""
    if wrong := openmp_missing(pid):
        return wrong
    names = {name for path in _proc.mapped_files(pid) for name in _imports(path)}
    if any(re.fullmatch(r"GOMP_\w*loop_\w*runtime\w*", name) for name in names):
        return _openmp_policy(pid, value)
    if any(name.startswith("__kmpc_dispatch_init") for name in names):
        return Unproven("LLVM's code does not show whether a loop has schedule(runtime)")
    return NotYet("no loop of the program has schedule(runtime), so none follows it")


def _imports(path: str) -> set[str]:
    """What a program or library of the user needs; the system's runtimes call themselves."""
    if os.path.basename(path).startswith((*_OPENMP, "libc.", "libnb", "ld-")):
        return set()
    found = _elf.image(path)
    return found.imports if found else set()


def _blas(pid: int, value: str) -> Answer:
    """OpenBLAS exports how many threads it works with; of others the process must have one."""
    libraries = [p for p in _proc.mapped_files(pid) if _BLAS.match(os.path.basename(p))]
    if not libraries:
        return NotYet("no BLAS library is loaded by the process, so nobody reads it")
    threads = len(_proc.tasks(pid))
    for path in sorted(libraries):
        own = _elf.exported_number(pid, path, "blas_cpu_number")
        if own == 0:
            return NotYet(f"{os.path.basename(path)} has not started")
        if own is not None and own != int(value):
            return f"{os.path.basename(path)} works with {own} threads, not with {value}"
        if own is None and threads > 1:
            return NotYet(f"{os.path.basename(path)} does not show which of {threads} are its own")
    return None


def _cuda(pid: int, value: str) -> Answer:
    """The driver's library is in the process, and of a version that reads it."""
    if not uses_cuda(pid):
        return NotYet("CUDA is not loaded by the process, so nobody reads it")
    known = cuda_version()
    if known >= LAZY_ANYWAY:
        return f"the driver (CUDA {version_text(known)}) loads modules lazily by itself"
    if known < _LAZY_CUDA:
        return f"the driver (CUDA {version_text(known)}) does not read it: 11.7 does"
    return None


def uses_cuda(pid: int) -> bool:
    """Whether the process has the library of NVIDIA's driver loaded that runs kernels."""
    return any(name.startswith("libcuda.so") for name in _mapped_names(pid))


def uses_gpu(pid: int) -> bool:
    """Whether the process has CUDA or a device of NVIDIA's driver mapped."""
    return uses_cuda(pid) or any(name.startswith("/dev/nvidia") for name in _proc.mapped_files(pid))


def cuda_version() -> int:
    """Of the driver: 12040 is CUDA 12.4; 0: there is none."""
    import ctypes

    with suppress(OSError):
        library = nvml.Nvml()
        try:
            return library.number(ctypes.c_int, "nvmlSystemGetCudaDriverVersion")
        finally:
            library.close()
    return 0


def version_text(version: int) -> str:
    """12040 as "12.4"."""
    return f"{version // 1000}.{version % 1000 // 10}"


def _hash_seed(pid: int, value: str) -> Answer:
    """Python executes it, and was not told to ignore the environment (-E, -I)."""
    name = os.path.basename(_proc.executable(pid))
    if not name.startswith("python"):
        return NotYet(f"the process executes {name}, not Python")
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        for word in words[1:]:
            if not word.startswith("-") or word in ("-", "--"):
                break
            if re.fullmatch(r"-[a-zA-Z]*[EI][a-zA-Z]*", word):
                return f"Python was started with {word}, which ignores the environment"
            if word in ("-c", "-m"):
                break
    return None


def _bound(pid: int, value: str) -> Answer:
    """No function waits for its first call."""
    path = _proc.executable(pid)
    found = _elf.unbound(pid, path)
    if found is None:
        return NotYet(f"{os.path.basename(path)} binds nothing at the first call anyway")
    waiting, all_of = found
    name = os.path.basename(path)
    return NotYet(f"{waiting} of {all_of} functions of {name} are not bound") if waiting else None


PROOFS: dict[str, Callable[[int, str], Answer]] = {
    "MALLOC_TOP_PAD_": _top_pad,
    "MALLOC_MMAP_MAX_": _with_top_pad,
    "MALLOC_TRIM_THRESHOLD_": _with_top_pad,
    "MALLOC_ARENA_MAX": _arenas,
    "GLIBC_TUNABLES": _huge_advice,
    "OMP_WAIT_POLICY": _openmp_policy,
    "OMP_SCHEDULE": _openmp_schedule,
    "OPENBLAS_NUM_THREADS": _blas,
    "MKL_NUM_THREADS": _blas,
    "BLIS_NUM_THREADS": _blas,
    "CUDA_MODULE_LOADING": _cuda,
    "PYTHONHASHSEED": _hash_seed,
    "LD_BIND_NOW": _bound,
}
