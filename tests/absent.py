"""Runs a command where optional parts of the machine are really absent, and nothing else is
changed.

    python tests/absent.py [--profile-at FOLDER] [--cpus LIST] PART,PART… -- COMMAND…

A part is not switched off in our code: its files are gone from a mount namespace of the command's
own, a capability is dropped, a system call is refused, the user is an ordinary one. Needs root;
nothing is left behind, since the namespace ends with the command. `--profile-at` puts an empty
folder of the caller's where the profile `smoke` would be built, so that each set of parts has its
own.
"""

import argparse
import ctypes
import errno
import os
import resource
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
NOBODY = 65534
CAP_SYS_ADMIN, CAP_SYS_NICE = 21, 23
_NEW_NAMESPACE, _PRIVATE, _RECURSIVE, _BIND = 0x20000, 1 << 18, 1 << 14, 1 << 12
_DETACH = 2
_SET_SECCOMP, _FILTER, _DROP_CAPABILITY, _NO_NEW_PRIVILEGES = 22, 2, 24, 38
_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241, "riscv64": 241}
_libc = ctypes.CDLL(None, use_errno=True)


class CannotHide(Exception):
    """The part cannot be made absent here, so there is nothing to be tested."""


def _checked(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments):
        number = ctypes.get_errno()
        raise CannotHide(f"{name}: {os.strerror(number)}")


def _mount(
    source: str, target: str | Path, kind: str | None, flags: int = 0, options: str = ""
) -> None:
    _checked(
        "mount",
        source.encode(),
        str(target).encode(),
        kind and kind.encode(),
        flags,
        options.encode(),
    )


def _empty(*folders: str | Path) -> None:
    """Nothing is in these folders any more; those that do not exist are left so."""
    for folder in folders:
        if Path(folder).is_dir():
            _mount("absent", folder, "tmpfs", options="mode=755")


def _without_files(*patterns: str) -> None:
    """Files of /usr are gone, as if they had never been installed."""
    found = [path for pattern in patterns for path in Path("/usr").glob(pattern)]
    if not found:
        return
    upper = Path(tempfile.mkdtemp(prefix="noisebook-absent-"))
    _mount("absent", upper, "tmpfs")
    for name in ("changed", "work"):
        (upper / name).mkdir()
    _mount(
        "absent",
        "/usr",
        "overlay",
        options=f"lowerdir=/usr,upperdir={upper}/changed,workdir={upper}/work",
    )
    _checked("umount2", str(upper).encode(), _DETACH)  # the overlay holds on to what it needs
    upper.rmdir()
    for path in found:
        path.unlink(missing_ok=True)


def _drop(capability: int) -> None:
    _checked("prctl", _DROP_CAPABILITY, capability, 0, 0, 0)  # root's next exec does without


def _no_tracefs() -> None:
    _empty("/sys/kernel/tracing", "/sys/kernel/debug")
    _drop(CAP_SYS_ADMIN)  # or it would be mounted again


def _no_realtime() -> None:
    resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
    _drop(CAP_SYS_NICE)


def _no_perf() -> None:
    """perf_event_open is refused, as the engines of containers do it."""
    number = _PERF_EVENT_OPEN.get(os.uname().machine)
    if number is None:
        raise CannotHide(f"no number of perf_event_open for {os.uname().machine}")
    allow, refuse = 0x7FFF0000, 0x00050000 | errno.EPERM
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, refuse), (0x06, 0, 0, allow)]
    program = b"".join(struct.pack("HBBI", *step) for step in steps)
    code = ctypes.create_string_buffer(program, len(program))
    filtered = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
    _checked("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    _checked(
        "prctl", _SET_SECCOMP, _FILTER, ctypes.create_string_buffer(filtered, len(filtered)), 0, 0
    )


def _ordinary_user() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def _one_cpu() -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


_ALLOCATORS = ("jemalloc", "tcmalloc", "mimalloc")
FILES: dict[
    str, tuple[str, ...]
] = {  # of /usr, taken away together: the kernel stacks two overlays and no more
    "clang": ("bin/clang*",),
    "mpi": ("bin/mpirun*", "bin/mpiexec*", "bin/mpicc*", "bin/orterun*", "bin/prterun*"),
    "gpu": ("bin/nvidia-smi", "bin/nsys", "lib/*/libnvidia-ml.so*", "lib/libnvidia-ml.so*"),
    "allocators": tuple(
        f"{folder}/lib{name}*.so*"
        for folder in ("lib", "lib64", "lib/*", "local/lib")
        for name in _ALLOCATORS
    ),
}
OTHERS: dict[str, Callable[[], None]] = {  # in the order in which they can be taken away
    "sycl": lambda: _empty(REPOSITORY / "build/sycl", REPOSITORY / "build/bin/sycl"),
    "mpi-programs": lambda: _empty(REPOSITORY / "build/mpi", REPOSITORY / "build/bin/mpi"),
    "cpufreq": lambda: _empty(
        *sorted(Path("/sys/devices/system/cpu").glob("cpu*/cpufreq")),
        "/sys/devices/system/cpu/cpufreq",
    ),
    "pressure": lambda: _empty("/proc/pressure"),
    "cgroups": lambda: _empty("/sys/fs/cgroup"),
    "tracefs": _no_tracefs,
    "second-cpu": _one_cpu,
    "realtime": _no_realtime,
    "root": _ordinary_user,
    "perf": _no_perf,
}
PARTS = (*FILES, *OTHERS)


def take_away(parts: Iterable[str], profile_at: str | Path | None = None) -> None:
    """Make the parts absent for this process and those that it starts.

    Raises
    ------
    CannotHide
        One of them cannot be, on this machine.
    """
    parts = set(parts)
    _checked("unshare", _NEW_NAMESPACE)
    _mount("none", "/", None, _PRIVATE | _RECURSIVE)
    if profile_at is not None:
        place = REPOSITORY / "build/smoke"
        place.mkdir(parents=True, exist_ok=True)
        _mount(str(profile_at), place, None, _BIND)
    if "root" in parts:
        _open_the_way(
            REPOSITORY,
            Path(sys.base_prefix).resolve(),
            *([Path(profile_at).resolve().parent] if profile_at else []),
        )
    _without_files(
        *(pattern for name, patterns in FILES.items() if name in parts for pattern in patterns)
    )
    for name, take in OTHERS.items():
        if name in parts:
            take()


def _open_the_way(*folders: Path) -> None:
    """An ordinary user can reach the folders (repository, interpreter, profile), even if they lie
    in a home that is closed.
    """
    closed = {
        folder: [above for above in reversed(folder.parents) if not above.stat().st_mode & 0o001]
        for folder in folders
    }
    handles = {folder: os.open(folder, os.O_PATH) for folder, above in closed.items() if above}
    _empty(*{above[0] for above in closed.values() if above})
    for folder, handle in handles.items():
        folder.mkdir(parents=True)
        _mount(f"/proc/self/fd/{handle}", folder, None, _BIND | _RECURSIVE)
        os.close(handle)


def run_without(
    parts: Iterable[str], command: list[str], folder: Path, timeout_s: float = 600
) -> subprocess.CompletedProcess:
    """Run a command without some parts; home, state and profile lie in a folder of its own.

    Returns
    -------
    The ended command: exit status, and both outputs as text in `stdout`.
    """
    for name in ("smoke", "home", "state"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    if "root" in parts:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MAKE", "JUPYTER", "PYTEST"))
    }
    environment |= {
        "HOME": str(folder / "home"),
        "NOISEBOOK_STATE": str(folder / "state"),
        "TMPDIR": "/tmp",
    }
    words = [
        sys.executable,
        __file__,
        "--profile-at",
        str(folder / "smoke"),
        ",".join(parts) or "-",
        "--",
        *command,
    ]
    return subprocess.run(
        words,
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--profile-at")
    parser.add_argument("parts", help=f"of {' '.join(PARTS)}; '-': none")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    parts = [part for part in given.parts.split(",") if part not in ("", "-")]
    unknown = sorted(set(parts) - set(PARTS))
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}")
    try:
        take_away(parts, given.profile_at)
    except CannotHide as reason:
        parser.exit(77, f"cannot be made absent here: {reason}\n")
    os.execvp(given.command[0], given.command)


if __name__ == "__main__":
    main()
