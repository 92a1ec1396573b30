"""A planted disturbance: real-time hogs that take CPUs away on a schedule, independent of the
injector.

Owns the processes of `workloads/hog.c` and random schedules for them.
"""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import InputError, RunError
from ..files import digest
from ..measurement import Attachment
from ..workloads import binary_folder, program_path

LONGEST_NS = (
    900_000_000  # per CPU at a stretch: the kernel's fair server would step in after 0.95 s
)
PAUSE_NS = 100_000  # a shorter pause is none
READY_S = 5.0
Schedule = Mapping[int, Sequence[tuple[int, int]]]


class Hog(Attachment):
    """One SCHED_FIFO process a CPU that takes it away from `start_ns` (after t0) for `length_ns`,
    block by block.

    Parameters
    ----------
    schedule
        CPU -> blocks (start_ns, length_ns), in order, not overlapping, at most 0.9 s at a stretch.
    priority
        Priority under SCHED_FIFO, 1 to 98; 0: an ordinary process.
    roam
        Let each process go to any CPU; otherwise it stays on the schedule's CPU.

    Raises
    ------
    InputError
        A schedule that cannot, or should not, be followed.
    """

    follows_region = True

    def __init__(self, schedule: Schedule, priority: int = 40, roam: bool = False):
        if not 0 <= priority <= 98:
            raise InputError(
                f"priority {priority}", fix="use 1 to 98, or 0 for an ordinary process"
            )
        self.schedule = {
            int(cpu): tuple((int(start), int(length)) for start, length in blocks)
            for cpu, blocks in schedule.items()
        }
        for cpu, blocks in self.schedule.items():
            _check_blocks(cpu, blocks)
        self._priority, self._roam = priority, roam
        self.identity = f"hog {digest(str(self.schedule), str(priority), str(roam))}"
        self._hogs: list[subprocess.Popen] = []
        # our ends: of the ready pipes to read, of the go pipes to write
        self._pipes: list[int] = []
        self._go: list[int] = []

    def __repr__(self) -> str:
        total_ms = sum(length for blocks in self.schedule.values() for _, length in blocks) / 1e6
        return f"Hog({len(self.schedule)} CPUs, {total_ms:.1f} ms in all)"

    @property
    def pids(self) -> tuple[int, ...]:
        """Pids of the hogs that were started and not yet reaped."""
        return tuple(hog.pid for hog in self._hogs)

    def armed(self, pid: int) -> None:
        """Start the hogs and wait until each of them waits at the barrier."""
        self.close()
        try:
            ready = [self._start(cpu, blocks) for cpu, blocks in self.schedule.items() if blocks]
            _await_ready(ready)
        except BaseException:
            self.close()
            raise

    def _start(self, cpu: int, blocks: tuple[tuple[int, int], ...]) -> int:
        """Start one hog; returns the descriptor on which it reports that it is ready."""
        (ready, theirs_ready), (theirs_go, go) = os.pipe(), os.pipe()
        self._pipes += [ready, go]
        self._go.append(go)
        barrier = {"NOISEBOOK_READY_FD": str(theirs_ready), "NOISEBOOK_GO_FD": str(theirs_go)}
        try:
            command, inherited = self._command(cpu, blocks), (theirs_ready, theirs_go)
            hog = subprocess.Popen(command, env=os.environ | barrier, pass_fds=inherited)
            self._hogs.append(hog)
        finally:
            os.close(theirs_ready)
            os.close(theirs_go)
        return ready

    def _command(self, cpu: int, blocks: tuple[tuple[int, int], ...]) -> list[str]:
        """The hog's command, by way of the launcher: it dies with this process."""
        launcher, hog = (str(program_path(binary_folder() / name)) for name in ("nbstart", "hog"))
        place = ["--roam"] if self._roam else ["--cpu", str(cpu)]
        policy = ["--fifo", str(self._priority)] if self._priority else []
        schedule = ",".join(f"{start}:{length}" for start, length in blocks)
        command = [launcher, "--parent", str(os.getpid()), "--", hog]
        return [*command, *place, *policy, "--schedule", schedule]

    def released(self, t0_ns: int) -> None:
        """Send every hog the begin of the region; one that has died shows in `after`."""
        for go in self._go:
            with contextlib.suppress(BrokenPipeError):
                os.write(go, np.int64(t0_ns).tobytes())

    def after(self, run: dict) -> dict:
        """End the hogs; a run in which one failed is excluded.

        Returns
        -------
        `hog_ns` (CPU time that the hogs used, start-up included), `hog_planned_ns` (blocks that
        began before the timed region's end).
        """
        ends = self._end()
        columns: dict[str, object] = {
            "hog_ns": sum(used_ns for _, used_ns in ends),
            "hog_planned_ns": self._planned_ns(run),
        }
        failed = [status for status, _ in ends if status not in (0, -signal.SIGKILL)]
        if failed and run.get("status") == "ok":
            columns |= {"status": "hog failed", "message": f"a hog ended with status {failed[0]}"}
        return columns

    def _planned_ns(self, run: dict) -> int | None:
        if not run.get("end_ns") or not run.get("start_ns"):
            return None
        took_ns = run["end_ns"] - run["start_ns"]
        return sum(
            length
            for blocks in self.schedule.values()
            for start, length in blocks
            if start < took_ns
        )

    def _end(self) -> list[tuple[int, int]]:
        """Kill and reap the hogs, close the pipes; exit code and CPU time in ns of each hog."""
        ends = []
        while self._hogs:
            ends.append(_end_process(self._hogs.pop()))
        while self._pipes:
            os.close(self._pipes.pop())
        self._go.clear()
        return ends

    def close(self) -> None:
        """End what still runs."""
        self._end()


def _end_process(hog: subprocess.Popen) -> tuple[int, int]:
    """Exit code and CPU time in ns; of one that had ended by itself they are its own."""
    os.kill(hog.pid, signal.SIGKILL)
    _, status, usage = os.wait4(hog.pid, 0)
    hog.returncode = os.waitstatus_to_exitcode(status)
    return hog.returncode, round((usage.ru_utime + usage.ru_stime) * 1e9)


def _await_ready(ready: list[int]) -> None:
    """Wait until each hog has written its byte.

    Raises
    ------
    RunError
        One of them ended instead, or takes too long.
    """
    limit = time.monotonic() + READY_S
    for fd in ready:
        readable, _, _ = select.select([fd], [], [], max(0, limit - time.monotonic()))
        if not readable or os.read(fd, 1) != b"r":
            raise RunError(
                "a hog did not become ready",
                why="the run would not be disturbed",
                fix="the hog's message stands above; SCHED_FIFO needs root or: ulimit -r 99",
            )


def _check_blocks(cpu: int, blocks: Sequence[tuple[int, int]]) -> None:
    since = until = 0  # of the stretch that the blocks up to here make without a pause
    for number, (start, length) in enumerate(blocks):
        where = f"schedule of CPU {cpu}, block {number}"
        if start < until or length <= 0:
            raise InputError("blocks must follow each other and have a length", where=where)
        since, until = start if start - until > PAUSE_NS else since, start + length
        if until - since > LONGEST_NS:
            raise InputError(
                f"{(until - since) / 1e9:.3f} s at a stretch",
                where=where,
                fix="leave the CPU for 2 ms every 0.9 s",
                why="the kernel's fair server would step in, and the machine must stay usable",
            )


def random_schedule(
    seconds: float,
    share: float,
    cpus: Sequence[int],
    seed: int,
    shortest_ms: float = 1.0,
    longest_ms: float = 60.0,
) -> dict[int, list[tuple[int, int]]]:
    """A schedule whose blocks sum to a share of the run time, over all CPUs together.

    Parameters
    ----------
    seconds
        Run time of the undisturbed workload; the blocks lie within it.
    share
        Sum of all blocks over `seconds`, such as 0.2 to 1.0; each CPU gets an equal part of it.
    cpus
        CPUs to disturb. Blocks of different CPUs may coincide.
    seed
        Equal seeds give equal schedules.
    shortest_ms, longest_ms
        Length of a block (evenly distributed; the last one of a CPU may be shorter).

    Raises
    ------
    InputError
        The share does not fit in 90 % of the CPUs' time.
    """
    part_ns = round(seconds * share / max(len(cpus), 1) * 1e9)
    if not cpus or not 0 < share <= 0.9 * len(cpus):
        raise InputError(
            f"{share:.0%} of the run time on {len(cpus)} CPUs", fix="at most 90 % for each CPU"
        )
    if not 0 < shortest_ms <= longest_ms <= LONGEST_NS / 1e6:
        raise InputError(
            f"blocks of {shortest_ms} to {longest_ms} ms",
            fix="0 < shortest_ms <= longest_ms <= 900",
        )
    random = np.random.default_rng(seed)
    return {
        int(cpu): _random_blocks(
            round(seconds * 1e9), part_ns, round(shortest_ms * 1e6), round(longest_ms * 1e6), random
        )
        for cpu in cpus
    }


def _random_blocks(
    window_ns: int, sum_ns: int, shortest_ns: int, longest_ns: int, random: np.random.Generator
) -> list[tuple[int, int]]:
    """Blocks of random length, the idle time between them split at random; each pause is at least
    PAUSE_NS long.
    """
    lengths: list[int] = []
    while (left := sum_ns - sum(lengths)) > 0:
        lengths.append(min(left, int(random.integers(shortest_ns, longest_ns, endpoint=True))))
    idle_ns = window_ns - sum_ns - 2 * PAUSE_NS * len(lengths)
    cuts = np.sort(random.integers(0, max(idle_ns, 1), len(lengths)))
    before = (
        cuts + 2 * PAUSE_NS * np.arange(1, len(lengths) + 1)
        if idle_ns > 0
        else np.zeros(len(lengths), int)
    )
    starts = before + np.cumsum([0, *lengths[:-1]])
    return [(int(start), length) for start, length in zip(starts, lengths)]
