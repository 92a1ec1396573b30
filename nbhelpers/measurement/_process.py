"""One process from its start to the last of its descendants: spawned, awaited on a pidfd, reaped,
never left behind.

Owns the barrier's pipes and the poll loop (CONTRIBUTING.md, "How a run goes"); nothing here knows
what is measured.
"""

import fcntl
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType

from ..errors import RunError
from ..machine import run_marks
from ..workloads import Workload, binary_folder, format_cpu_list, program_path
from ._groups import RunGroup
from ._orphans import MARK, belongs_to_run, children, find_run, kill_and_reap
from ._output import ROOM_FOR_SERIES, Capture
from ._regions import watch
from ._stamps import StampedCapture, WakeUps, stamped_pair

_SIGNALS_TO_RESET = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)
_MOMENT_S = 0.1
_in_another_folder = threading.Lock()
_found: set[str] = set()


class Child:
    """A process started by nbstart, with its pipes; use as a context: what is still alive at its
    end is killed and reaped.

    Attributes
    ----------
    pid
        Of the process, which leads its own process group; 0: not started.
    output, errors
        What it prints.
    watch
        Observes where its timed region begins and ends.
    end_ns
        CLOCK_MONOTONIC at the wake-up for its end; None: it lives.
    wait_status, usage
        From wait4, after it was reaped.
    folder
        Where it runs, if in a fresh one; deleted at the end.
    group
        Holds its descendants together.
    harness_peak_kb
        Peak memory of this process when it started the child. The kernel carries it over into the
        child's peak.
    """

    output: Capture
    errors: Capture

    def __init__(
        self,
        workload: Workload,
        mark: str,
        variables: Mapping[str, str] = MappingProxyType({}),
        libraries: Collection[str] = (),
    ):
        self.pid = 0
        self.end_ns: int | None = None
        self.wait_status = 0
        self.usage: resource.struct_rusage | None = None
        self.watch = watch(workload.region)
        self.folder: str | None = None
        self.harness_peak_kb = 0
        self._mark = mark
        self._variables, self._libraries = variables, libraries
        self._fds: list[int] = []
        self._captures: list[Capture] = []
        self._wakeups: WakeUps | None = None
        self._foreign_children = children()
        self._unkillable: set[int] = set()
        self._go = -1
        self.group = RunGroup()
        try:
            if workload.reader and workload.reader.fresh_folder:
                self.folder = tempfile.mkdtemp(prefix="noisebook-")
            self._start(workload)
        except BaseException:
            self.close()
            raise

    def _start(self, workload: Workload) -> None:
        make_pipe = stamped_pair if self.watch.stamped else os.pipe
        (output, printed), (errors, complained) = self._pipe(make_pipe), self._pipe(make_pipe)
        capture = StampedCapture if self.watch.stamped else Capture
        self.output, self.errors = capture(output, ROOM_FOR_SERIES), capture(errors)
        self._captures = [self.output, self.errors]
        self.watch.listen(self._captures)
        barrier = self._barrier()
        self.pid = self._spawn(workload, printed, complained, barrier)
        self.harness_peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.pidfd = os.pidfd_open(self.pid)
        self._fds.append(self.pidfd)
        for fd in (printed, complained, *barrier.values()):
            self._close_fd(fd)
        self._poll = select.poll()
        for fd in (self.pidfd, self._ready, self.output.fd, self.errors.fd):
            self._poll.register(fd, select.POLLIN)
        if self.watch.written is not None:
            self._wakeups = WakeUps()
            self._poll.register(self.watch.written, select.POLLIN)

    def _spawn(
        self, workload: Workload, printed: int, complained: int, barrier: Mapping[str, int]
    ) -> int:
        """Start the launcher with the program; its process id."""
        launcher = _file_of(binary_folder() / "nbstart")
        program = _file_of(workload.command[0])
        libraries = [
            self._preload_name(_file_of(binary_folder() / name)) for name in self._libraries
        ]
        if self.watch.library:  # of all the run's processes: no rank of MPI inherits open files
            libraries.append(self._preload_name(_file_of(binary_folder() / self.watch.library)))
        elif workload.start == "main":
            libraries.append(_file_of(binary_folder() / "libnbstart.so"))
        options = [*self.group.options, *_launcher_options(workload, libraries)]
        variables = {
            **self._variables,
            **self.watch.env,
            **{name: str(fd) for name, fd in barrier.items()},
            MARK: self._mark,
        }
        streams = [
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, printed, 1),
            (os.POSIX_SPAWN_DUP2, complained, 2),
            *((os.POSIX_SPAWN_DUP2, fd, fd) for fd in barrier.values()),
        ]
        try:
            with _working_in(self.folder):
                return os.posix_spawn(
                    launcher,
                    [launcher, *options, "--", program, *workload.command[1:]],
                    {**os.environ, **dict(workload.env), **variables},
                    file_actions=streams,
                    setpgroup=0,
                    setsigmask=(),
                    setsigdef=_SIGNALS_TO_RESET,
                )
        except OSError as error:
            raise RunError(
                f"the launcher cannot be started: {error.strerror}",
                where=f"{launcher} -- {program}",
                fix=(
                    "shorten the command or the environment if they are too long; if the launcher"
                    " is damaged: make env"
                ),
            ) from None

    def _barrier(self) -> dict[str, int]:
        """The pipes of the barrier, as the program inherits them; none where the watch replaces
        them.
        """
        if self.watch.arrivals is not None:
            self._ready = self.watch.arrivals
            return {}
        (self._ready, ready), (go, self._go) = self._pipe(), self._pipe()
        return {"NOISEBOOK_READY_FD": ready, "NOISEBOOK_GO_FD": go}

    def _pipe(self, make: Callable[[], tuple[int, int]] = os.pipe) -> tuple[int, int]:
        """A pipe, or sockets, above the standard streams, which a parent may have closed."""
        ends = []
        for fd in make():
            if fd < 3:
                low, fd = fd, fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
                os.close(low)
            self._fds.append(fd)
            ends.append(fd)
        return ends[0], ends[1]

    def _close_fd(self, fd: int) -> None:
        self._fds.remove(fd)
        os.close(fd)

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _preload_name(self, library: str) -> str:
        """LD_PRELOAD is a list that blanks and colons separate: a path that holds one is named by a
        file that we keep open, so that children of the program find it, too.

        nbstart names its own library otherwise, by a file that the program inherits: the ranks of
        an MPI do not inherit it, and a program of another user may not look into our /proc.
        """
        if not set(library) & set(": "):
            return library
        self._fds.append(os.open(library, os.O_RDONLY | os.O_CLOEXEC))
        return f"/proc/{os.getpid()}/fd/{self._fds[-1]}"

    def close(self) -> None:
        """Kill and reap whatever is left, and close all pipes; safe to call again."""
        if self.pid and self.usage is None:
            self.kill()
        self.group.kill()
        self.group.close()
        for capture in self._captures:
            capture.close()
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()
        self.watch.close()
        if self._wakeups:
            self._wakeups.close()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def await_barrier(self, seconds: float) -> bool:
        """Whether the process came to the barrier; False: it ended before (then `end_ns` is set),
        or time ran out.
        """
        deadline_ns = time.monotonic_ns() + int(seconds * 1e9)
        while self.end_ns is None and (ready := self._poll_events(deadline_ns)) is not None:
            if self._ready in ready and self._arrived():
                return self.end_ns is None
        return False

    def _arrived(self) -> bool:
        """Whether everybody waits who is to wait."""
        if self.watch.arrivals is None:
            self._poll.unregister(
                self._ready
            )  # at its end of file too, which a process that dies shows before its end
            return bool(os.read(self._ready, 1))
        arrived = self.watch.arrived()
        if arrived:
            self._poll.unregister(self._ready)  # one that comes later finds the start time
        return arrived

    def release(self, lead_ns: int) -> int:
        """Write the start time, `lead_ns` from now, and return it; a process that died meanwhile
        shows at its end.
        """
        t0_ns = time.monotonic_ns() + lead_ns
        if self.watch.arrivals is not None:
            self.watch.release(t0_ns)
            return t0_ns
        with suppress(BrokenPipeError):
            os.write(self._go, t0_ns.to_bytes(8, sys.byteorder, signed=True))
        return t0_ns

    def await_end(
        self,
        seconds: float,
        before_reaping: Callable[[], object] | None = None,
        begun: Callable[[int], object] | None = None,
    ) -> bool:
        """Whether the process ended in time; it is reaped then, and what it had printed is there.

        `begun` is called with the begin of a region that could not be armed, as soon as it was
        seen.
        """
        deadline_ns = time.monotonic_ns() + int(seconds * 1e9)
        with _woken_first(self.watch.written is not None):
            while self.end_ns is None:
                if self._poll_events(deadline_ns) is None:
                    return False
                if begun and (begin_ns := self.watch.begun()) is not None:
                    begun(begin_ns)
                    begun = None
        if before_reaping:
            before_reaping()
        self._reap()
        return True

    def _poll_events(self, deadline_ns: int) -> set[int] | None:
        """Wait for something to happen and read it; the file descriptors concerned, or None when
        time ran out.
        """
        left_ms = (deadline_ns - time.monotonic_ns()) / 1e6
        if self._wakeups:
            self._wakeups.mark()
        events = self._poll.poll(max(0, left_ms))
        now_ns = time.monotonic_ns()
        ready = {fd for fd, _ in events}
        if self._wakeups and self.watch.written in ready:
            self.watch.read(*self._wakeups.stamp())
        if self.pidfd in ready:
            self.end_ns = now_ns
        elif now_ns > deadline_ns:  # even if there is output: a program may print for ever
            return None
        for capture in self._captures:
            if capture.fd in ready:
                capture.read()
                if not capture.open:
                    self._poll.unregister(capture.fd)
        return ready or None

    def _reap(self) -> None:
        _, self.wait_status, self.usage = os.wait4(self.pid, 0)
        self.output.drain()
        self.errors.drain()

    def kill(self) -> None:
        """Kill the process with its group and every descendant, and reap it."""
        self._kill_groups()
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        _, self.wait_status, self.usage = os.wait4(self.pid, 0)
        self.end_ns = self.end_ns or time.monotonic_ns()
        self.output.drain()
        self.errors.drain()
        self._sweep()

    def _kill_groups(self) -> None:
        self.group.kill()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def note_children(self) -> None:
        """Remember the children that others of this process started since, such as injectors: they
        are not the run's.
        """
        self._foreign_children |= {
            pid for pid in children() - self._foreign_children - {self.pid} if not self._owns(pid)
        }

    def _owns(self, pid: int) -> bool:
        return belongs_to_run(pid, self.pid, self._mark, self.group.mark)

    def clear_leftovers(self) -> list[str]:
        """After the end: kill what the process left running; returns the names of what lived.

        Helpers of an interpreter or a shell end by themselves, a moment after the program.
        """
        if not self._has_left():
            return []
        run_marks.wait_for_ends(self._living(), _MOMENT_S)
        return self._sweep()

    def _has_left(self) -> bool:
        """Whether there may be something of the run: alive, or ended and to be reaped."""
        if self.group.living():
            return True
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return bool(self._adopted())
        except PermissionError:
            pass
        return True

    def _adopted(self) -> list[int]:
        return [pid for pid in children() - self._foreign_children if self._owns(pid)]

    def _sweep(self) -> list[str]:
        """Kill until nothing is found: a process may start another while we look.

        Every descendant that lives is in a group, carries a mark, or is below one that we adopted.
        """
        names = {pid: run_marks.name_of(pid) for pid in self._living()}
        self._kill_groups()
        with suppress(OSError):  # it does not end: left to `settings.repair`
            names |= run_marks.end(lambda: find_run(self._mark, self.group.mark))
        while adopted := set(self._adopted()) - self._unkillable:
            living = run_marks.living(adopted)
            names |= {pid: run_marks.name_of(pid) for pid in living if pid not in names}
            self._unkillable |= {pid for pid in adopted if not kill_and_reap(pid)}
        return sorted(names.values())

    def _living(self) -> set[int]:
        marked = run_marks.living(find_run(self._mark, self.group.mark))
        return {*self.group.living(), *marked, *run_marks.living(self._adopted())}


@contextmanager
def _woken_first(wanted: bool) -> Iterator[None]:
    """Be woken before ordinary threads where that is permitted: what a script writes is stamped
    when we wake up.
    """
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        if wanted:
            with suppress(PermissionError):
                os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
        yield
    finally:
        if wanted:
            with suppress(PermissionError):
                os.sched_setscheduler(0, *before)


@contextmanager
def _working_in(folder: str | None) -> Iterator[None]:
    """Be in a folder while a process is spawned, which inherits it: posix_spawn of Python cannot
    change folders itself.
    """
    if folder is None:
        yield
        return
    with _in_another_folder:
        before = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.chdir(folder)
            yield
        finally:
            os.fchdir(before)
            os.close(before)


def _launcher_options(workload: Workload, libraries: Collection[str]) -> list[str]:
    options = ["--parent", str(os.getpid())]
    if workload.cpus is not None:
        options += ["--cpus", format_cpu_list(workload.cpus)]
    for library in libraries:
        options += ["--preload", library]
    return options + (["--wait"] if workload.start == "exec" else [])


def _file_of(name: str | os.PathLike) -> str:
    """As `program_path`, which takes a good part of the time of a start: an absolute path that was
    found is only looked at again.
    """
    name = os.fspath(name)
    if name in _found and os.access(name, os.X_OK):
        return name
    file = str(program_path(name))
    if file == name:
        _found.add(name)
    return file
