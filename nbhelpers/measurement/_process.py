"""One process from its start to the last of its descendants: spawned, awaited on a pidfd, reaped,
never left behind.

Owns the barrier's pipes and the poll loop (CONTRIBUTING.md, "How a run goes"); nothing here knows
what is measured.
"""

import os
import resource
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ..errors import RunError
from ..machine import kernel, run_groups
from ..workloads import Workload, binary_folder, format_cpu_list, program_path
from ._orphans import MARK, belongs_to_run, children, kill_and_reap, new_mark
from ._output import ROOM_FOR_SERIES, Capture
from ._regions import watch
from ._stamps import StampedCapture, stamped_pair
from .attachment import Attachment

_SIGNALS_TO_RESET = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)
_MOMENT_S = 0.1


class Child:
    """A process started by nbstart, with its pipes; `close` kills and reaps what is still alive.

    Attributes
    ----------
    pid
        Id of the process, which leads its own process group; 0: not started.
    output, errors
        What it prints.
    watch
        Observes where its timed region begins and ends.
    end_ns
        CLOCK_MONOTONIC at the wake-up for its end; None: it lives.
    wait_status, usage
        Exit status and resource usage from wait4, after it was reaped.
    left
        Names of the processes that it left running, which were killed.
    folder
        Where it runs, if in a fresh one; deleted at the end.
    harness_peak_kb
        Peak memory of this process when it started the child. The kernel carries it over into the
        child's peak.
    """

    output: Capture
    errors: Capture

    def __init__(self, workload: Workload, attachments: Sequence[Attachment] = (), group: str = ""):
        self.pid = 0
        self.end_ns: int | None = None
        self.wait_status = 0
        self.usage: resource.struct_rusage | None = None
        self.watch = watch(workload.region)
        self.folder: str | None = None
        self.harness_peak_kb = 0
        self.left: list[str] = []
        self._attachments = attachments
        self._mark = new_mark()
        self._fds: list[int] = []
        self._captures: list[Capture] = []
        self._foreign_children = children()
        self._groups = [group] if group else []
        try:
            if workload.reader and workload.reader.fresh_folder:
                self.folder = tempfile.mkdtemp(prefix="noisebook-")
            self._start(workload)
        except BaseException:
            self.close()
            raise

    def _start(self, workload: Workload) -> None:
        while (fd := os.open(os.devnull, os.O_RDWR)) < 3:
            pass  # a parent closed this standard stream: no pipe may get its number
        os.close(fd)
        make_pipe = stamped_pair if self.watch.stamped else os.pipe
        (output, printed), (errors, complained) = self._pipe(make_pipe), self._pipe(make_pipe)
        capture = StampedCapture if self.watch.stamped else Capture
        self.output, self.errors = capture(output, ROOM_FOR_SERIES), capture(errors)
        self._captures = [self.output, self.errors]
        self.watch.listen(self._captures)
        barrier = self.watch.barrier(self._pipe)
        self.pid = self._spawn(workload, printed, complained, barrier)
        self.harness_peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.pidfd = os.pidfd_open(self.pid)
        self._fds.append(self.pidfd)
        for fd in (printed, complained, *barrier.values()):
            self._fds.remove(fd)
            os.close(fd)
        self._poll = select.poll()
        for fd in (self.pidfd, self.watch.arrivals, self.output.fd, self.errors.fd):
            self._poll.register(fd, select.POLLIN)

    def _spawn(
        self, workload: Workload, printed: int, complained: int, barrier: Mapping[str, int]
    ) -> int:
        """Start the launcher with the program; its process id."""
        launcher, program = str(_ours("nbstart")), str(program_path(workload.command[0]))
        libraries = [
            self._preload_name(_ours(name)) for one in self._attachments for name in one.libraries
        ]
        if self.watch.library:  # of all the run's processes: no rank of MPI inherits open files
            libraries.append(self._preload_name(_ours(self.watch.library)))
        elif workload.start == "main":
            libraries.append(str(_ours("libnbstart.so")))
        options = ["--parent", str(os.getpid())]
        for option, values in (
            ("--cpus", [format_cpu_list(workload.cpus)] if workload.cpus else []),
            ("--preload", libraries),
            ("--group", self._groups),
            ("--folder", [self.folder] if self.folder else []),
        ):
            options += [word for value in values for word in (option, value)]
        options += ["--wait"] if workload.start == "exec" else []
        env = {**os.environ, **dict(workload.env)}
        for one in self._attachments:
            env |= one.variables
        env |= self.watch.env | {name: str(fd) for name, fd in barrier.items()}
        env[MARK] = self._mark
        wrapper = [word for one in self._attachments for word in one.wrapper]
        words = [*wrapper, launcher, *options, "--", program, *workload.command[1:]]
        streams = [
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, printed, 1),
            (os.POSIX_SPAWN_DUP2, complained, 2),
            *((os.POSIX_SPAWN_DUP2, fd, fd) for fd in barrier.values()),
        ]
        try:
            return os.posix_spawnp(
                words[0],
                words,
                env,
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

    def _pipe(self, make: Callable[[], tuple[int, int]] = os.pipe) -> tuple[int, int]:
        """A pipe, or sockets."""
        ends = make()
        self._fds += ends
        return ends

    def _preload_name(self, library: Path) -> str:
        """LD_PRELOAD is a list that blanks and colons separate: a path that holds one is named by a
        file that we keep open, so that children of the program find it, too.

        nbstart names its own library otherwise, by a file that the program inherits: the ranks of
        an MPI do not inherit it, and a program of another user may not look into our /proc.
        """
        if not set(str(library)) & set(": "):
            return str(library)
        self._fds.append(os.open(library, os.O_RDONLY | os.O_CLOEXEC))
        return f"/proc/{os.getpid()}/fd/{self._fds[-1]}"

    def close(self) -> None:
        """Kill and reap whatever is left, and close all pipes; safe to call again."""
        if self.pid and self.usage is None:
            self.kill()
        self._end_groups()
        for capture in self._captures:
            capture.close()
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()
        self.watch.close()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def await_barrier(self, seconds: float) -> bool:
        """Whether the process came to the barrier; False: it ended before (then `end_ns` is set),
        or time ran out.
        """
        deadline_ns = time.monotonic_ns() + int(seconds * 1e9)
        while self.end_ns is None and (ready := self._poll_events(deadline_ns)) is not None:
            if self.watch.arrivals in ready and (arrived := self.watch.arrived()) is not False:
                self._poll.unregister(self.watch.arrivals)  # who comes later finds the start time
                if arrived:
                    return self.end_ns is None
        return False

    def await_end(self, seconds: float, following: Sequence[Attachment] = ()) -> bool:
        """Whether the process ended in time; it is reaped then, and what it had printed is there.

        Parameters
        ----------
        following
            Attachments that are told of the begin of a region that could not be armed, as soon as
            it was seen.
        """
        deadline_ns = time.monotonic_ns() + int(seconds * 1e9)
        while self.end_ns is None:
            if self._poll_events(deadline_ns) is None:
                return False
            if following and (begin_ns := self.watch.begun()) is not None:
                for one in following:
                    one.released(begin_ns)
                following = ()
        return True

    def _poll_events(self, deadline_ns: int) -> set[int] | None:
        """Wait for something to happen and read it; the file descriptors concerned, or None when
        time ran out.
        """
        left_ms = (deadline_ns - time.monotonic_ns()) / 1e6
        events = self._poll.poll(max(0, left_ms))
        now_ns = time.monotonic_ns()
        ready = {fd for fd, _ in events}
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

    def reap(self) -> None:
        """After its end: reap the process, and kill what it left running.

        Helpers of an interpreter or a shell end by themselves, a moment after the program.
        """
        self._wait()
        if living := self._living():
            run_groups.wait_for_ends(living, _MOMENT_S)
        self.left = self._sweep()

    def kill(self) -> None:
        """Kill the process with its group and every descendant, and reap it."""
        self._kill_groups()
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._wait()
        self.end_ns = self.end_ns or time.monotonic_ns()
        self._sweep()

    def _wait(self) -> None:
        _, self.wait_status, self.usage = os.wait4(self.pid, 0)
        self.output.drain()
        self.errors.drain()

    def follow(self) -> None:
        """Take in a group of ours that an attachment moved the process to: a process is in one
        group of version 2 only.
        """
        if not self._groups:
            return
        own = self._groups[0]
        top = own
        while run_groups.is_group(os.path.dirname(top)):
            top = os.path.dirname(top)
        with suppress(OSError), open(f"/proc/{self.pid}/cgroup") as file:
            for line in file:
                place = top + line[3:-1] if line.startswith("0::") else own
                if place != own and kernel.owner_of(os.path.basename(place)):
                    self._groups.append(place)

    def _end_groups(self) -> None:
        for group in self._groups:
            with suppress(OSError):  # what cannot be ended is left to `settings.repair`
                if run_groups.members(group):
                    run_groups.end_group(group)

    def _kill_groups(self) -> None:
        self._end_groups()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def note_children(self) -> None:
        """Remember the children that others of this process started since, such as injectors: they
        are not the run's.
        """
        self._foreign_children = children() - {self.pid, *self._adopted()}

    def _adopted(self) -> set[int]:
        found = children() - self._foreign_children
        return {pid for pid in found if belongs_to_run(pid, self.pid, self._mark)}

    def _sweep(self) -> list[str]:
        """Kill until nothing is found, as a process may start another while we look; returns the
        names of what lived.

        Every descendant that lives is in a group, or is below one that we adopted.
        """
        names = {pid: run_groups.name_of(pid) for pid in self._living()}
        unkillable: set[int] = set()
        self._kill_groups()
        while adopted := self._adopted() - unkillable:
            living = run_groups.living(adopted)
            names |= {pid: run_groups.name_of(pid) for pid in living if pid not in names}
            unkillable |= {pid for pid in adopted if not kill_and_reap(pid)}
        return sorted(names.values())

    def _living(self) -> set[int]:
        in_groups = (pid for group in self._groups for pid in run_groups.members(group))
        return {*in_groups, *run_groups.living(self._adopted())}


def _ours(name: str) -> Path:
    """A program or library of ours."""
    return program_path(binary_folder() / name)
