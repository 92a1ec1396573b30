"""Recorders: attachments that switch a kernel tracer on for each run and save one file a run.

Owns which events are recorded, and whose threads are the workload's and whose the harness's.
"""

import os
import platform
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path

from ..errors import Unavailable
from ..machine import privileged, settings
from ..measurement import Attachment
from ..measurement.families import threads_of
from ..workloads import Workload
from ._files import header_line, write_trace
from ._tracefs import Instance, lost_events
from .osnoise import FORMAT as OSNOISE_FORMAT
from .osnoise import HEADER as OSNOISE_HEADER
from .tracepoints import write_tracepoints

EVENTS = (
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq_vectors/*_entry",
    "irq_vectors/*_exit",
    "nmi/nmi_handler",
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_wakeup",
    "sched/sched_process_fork",
    "sched/sched_stat_runtime",
)
# on PREEMPT_RT softirqs are threads and are seen as such
SOFTIRQ_EVENTS = ("irq/softirq_entry", "irq/softirq_exit")
MOST_KIB = 65_536  # of a CPU's buffer


class KernelRecorder(Attachment, ABC):
    """What the two kernel tracers have in common: an instance while the campaign lasts, recording
    while a run lasts.
    """

    suffix = ""

    def __init__(self, folder: str | Path, buffer_kib: int = 4096):
        self.folder, self.buffer_kib = Path(folder), buffer_kib
        self._instance: Instance | None = None
        self._pids: set[int] = set()
        self._harness: set[int] = set()
        self._on_ns = 0

    def before(self, workload: Workload) -> None:
        """Attach to the events now: patching the kernel takes some 10 ms, and must not reach into
        the run.
        """
        if self._instance is None:
            self._instance = Instance(self.suffix, buffer_kib=self.buffer_kib)
            self.notes = (*self.notes, *self._instance.repaired)
            self._prepare(self._instance)
        self._attach(self._instance)

    def armed(self, pid: int) -> None:
        # Threads are listed after recording began: one that is created meanwhile is in the list or
        # in the trace.
        self._on_ns = time.monotonic_ns()
        self._open_instance().start()
        self._pids, self._harness = threads_of(pid) | {pid}, _harness_threads()

    def after(self, run: dict) -> dict:
        """Stop, save, detach: a run without tracing, measured in turn with this one, finds the
        kernel as it was.
        """
        instance = self._open_instance()
        instance.stop()
        off_ns = time.monotonic_ns()
        stats = instance.stats()
        lost = lost_events(stats)
        header = self._header(run, off_ns, stats, lost)
        path = self._save(self.folder / f"run-{run['run']:06d}.{self.suffix}.gz", header)
        self._detach(instance)
        columns = {
            "trace_events": sum(account.get("entries", 0) for account in stats.values()),
            "trace_lost": lost,
            "trace_bytes": path.stat().st_size,
        }
        if not lost:
            return columns
        small = self.buffer_kib
        self.buffer_kib = max(small, min(4 * small, MOST_KIB))
        with suppress(Unavailable):  # there is no memory for it
            instance.write("buffer_size_kb", self.buffer_kib)
        what = f"the kernel lost {lost} events of {path.name}: {small} KiB a CPU were full"
        failed = {"status": "lost events", "message": what}
        return columns | (failed if run.get("status") == "ok" else {})

    def close(self) -> None:
        instance, self._instance = self._instance, None
        if instance is not None:
            with suppress(Unavailable):
                instance.stop()
                self._detach(instance)
            self._put_back()
            instance.close()

    def _open_instance(self) -> Instance:
        if self._instance is None:
            raise RuntimeError("`before` opens the instance; it was not called")
        return self._instance

    def _header(self, run: dict, off_ns: int, stats: dict, lost: int) -> dict:
        start_ns, end_ns = (
            run.get(name) or spare
            for name, spare in (("start_ns", self._on_ns), ("end_ns", off_ns))
        )
        return {
            "run": int(run["run"]),
            "workload": run.get("workload", ""),
            "status": run.get("status", ""),
            "clock": "mono",
            "on_ns": self._on_ns,
            "off_ns": off_ns,
            "start_ns": int(start_ns),
            "end_ns": int(end_ns),
            "workload_pids": sorted(self._pids),
            "excluded_pids": sorted(self._harness | _harness_threads()),
            "lost": lost,
            "stats": {str(cpu): account for cpu, account in stats.items()},
            "kernel": " ".join(platform.uname()[i] for i in (0, 2, 3, 4)),
            "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        }

    def _prepare(self, instance: Instance) -> None:
        """Once, when the instance is new."""

    @abstractmethod
    def _attach(self, instance: Instance) -> None:
        """Recording on."""

    def _detach(self, instance: Instance) -> None:
        instance.enable(())

    @abstractmethod
    def _save(self, path: Path, header: dict) -> Path:
        """What was recorded of a run, as a file."""

    def _put_back(self) -> None:
        """Once, before the instance goes."""


class TracepointRecorder(KernelRecorder):
    """Records interrupts, softirqs, NMIs and switches as raw pages."""

    suffix = "tracepoints"

    def _prepare(self, instance: Instance) -> None:
        softirqs = () if Path("/sys/kernel/realtime").exists() else SOFTIRQ_EVENTS
        self._events = instance.existing((*EVENTS, *softirqs))
        self._formats = {event: instance.read(f"events/{event}/format") for event in self._events}
        self._header_page = instance.read("events/header_page")

    def _attach(self, instance: Instance) -> None:
        instance.enable(self._events)

    def _save(self, path: Path, header: dict) -> Path:
        return write_tracepoints(
            path,
            header | {"formats": self._formats, "header_page": self._header_page},
            self._open_instance().drain(),
        )


class OsnoiseRecorder(KernelRecorder):
    """Records with the kernel's osnoise tracer, in the mode that only watches
    (NO_OSNOISE_WORKLOAD), as text.
    """

    suffix = "osnoise"
    _watching: settings.Change | None = None

    def _prepare(self, instance: Instance) -> None:
        options = privileged.OSNOISE_OPTIONS
        if not instance.can_only_watch():
            raise Unavailable(
                "this kernel has no osnoise tracer that only watches",
                where=options,
                why="the option NO_OSNOISE_WORKLOAD is of Linux 6.2",
                fix='use Tracer(…, source="tracepoints")',
            )
        self._watching = settings.set_flag(options, "NO_OSNOISE_WORKLOAD")

    def _attach(self, instance: Instance) -> None:
        # Switching recording on re-initialises the tracer, so its accounting begins anew with each
        # run.
        instance.write("current_tracer", "osnoise")
        instance.enable(["osnoise/*", "sched/sched_process_fork"])

    def _detach(self, instance: Instance) -> None:
        instance.enable(())
        instance.write("current_tracer", "nop")

    def _save(self, path: Path, header: dict) -> Path:
        line = OSNOISE_HEADER + header_line(header | {"format": OSNOISE_FORMAT})
        return write_trace(path, line + (self._open_instance().path / "trace").read_bytes())

    def _put_back(self) -> None:
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.restore()


def _harness_threads() -> set[int]:
    """The threads of this process alone: its children are injectors, and those are noise."""
    return {int(name) for name in os.listdir("/proc/self/task")}
