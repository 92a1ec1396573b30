"""The fair server of Linux 6.12 and later: what it gives ordinary tasks, how it is lifted for a
while, and what it cut.

It gives ordinary tasks 50 ms a second on each CPU whatever `sched_rt_runtime_us` says, and so cuts
real-time noise that fills a CPU for 0.95 s. Owns where its budget is read and set; that it is put
back is the business of `machine.settings`.
"""

import contextlib
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ..machine import kernel, settings

DEBUGFS = "/sys/kernel/debug"
# ns of each period that ordinary tasks are given; 0: no server
BUDGETS = "sched/fair_server/cpu*/runtime"
SINCE = (6, 12)
# default runtime and period of the kernel (kernel/sched/deadline.c)
USUAL_NS = (50_000_000, 1_000_000_000)


@dataclass(frozen=True)
class FairServer:
    """What the kernel reserves for ordinary tasks."""

    exists: bool  # whether this kernel has a fair server
    budgets: dict[int, tuple[int, int]]  # CPU -> (runtime, period) in ns; empty: debugfs lacks it
    why: str = ""  # why debugfs does not state it; empty where it does

    def budget_ns(self, cpu: int) -> tuple[int, int]:
        """Runtime and period of a CPU's server or the kernel's default; (0, period) without one."""
        if not self.exists:
            return 0, USUAL_NS[1]
        return self.budgets.get(cpu, USUAL_NS)

    @property
    def patience_ns(self) -> int:
        """How long real-time tasks may fill a CPU before the server steps in, on the least patient
        CPU; 0 where none ever does.
        """
        budgets = list(self.budgets.values()) or [self.budget_ns(0)]
        return min((period - runtime for runtime, period in budgets if runtime), default=0)

    def __repr__(self) -> str:
        if not self.exists:
            return "FairServer(none in this kernel)"
        runtime, period = self.budget_ns(min(self.budgets, default=0))
        return (
            f"FairServer({runtime / 1e6:g} of {period / 1e6:g}"
            f" ms{', as the kernel usually has it: ' + self.why if self.why else ''})"
        )


def fair_server() -> FairServer:
    """Read what the kernel reserves for ordinary tasks now."""
    release = tuple(int(part) for part in re.findall(r"\d+", platform.release())[:2])
    try:
        budgets = {
            _cpu(path): (int(path.read_text()), int(path.with_name("period").read_text()))
            for path in sorted(Path(kernel.file_system(DEBUGFS)).glob(BUDGETS))
        }
    except (OSError, ValueError) as error:
        why = f"cannot read it: {getattr(error, 'strerror', None) or error}"
        return FairServer(release >= SINCE, {}, why)
    return FairServer(
        bool(budgets) or release >= SINCE,
        budgets,
        "" if budgets or release < SINCE else "debugfs does not show it",
    )


def _cpu(path: Path) -> int:
    return int(path.parent.name.removeprefix("cpu"))


@contextlib.contextmanager
def fair_server_lifted() -> Iterator[tuple[str, ...]]:
    """Take the fair server's budget away on every CPU; it is put back at the end of the block.

    Yields
    ------
    The files that were changed; none where the kernel has no fair server, or does not show it.

    Raises
    ------
    SettingError
        Debugfs cannot be used, the kernel does not let the budget be set, or somebody else holds
        it; nothing is changed then.
    """
    with settings.explained("cannot use debugfs", DEBUGFS):
        debugfs = kernel.file_system(DEBUGFS)
        files = [DEBUGFS + str(path).removeprefix(debugfs) for path in Path(debugfs).glob(BUDGETS)]
    with settings.apply(dict.fromkeys(sorted(files), 0)) as change:
        yield tuple(made["path"] for made in change.changes)


def cuts(log: pd.DataFrame, server: FairServer, pause_ns: int = 1_000_000) -> pd.DataFrame:
    """Find the real-time events in which ordinary tasks got the CPU as only the fair server lets
    them.

    Parameters
    ----------
    log
        An injection log, of one run.
    server
        What the kernel had at the time.
    pause_ns
        Shorter pauses between the real-time events of a CPU don't help ordinary tasks: they are
        ignored.

    Returns
    -------
    One row an event: `cpu`, `event`, `ran_on`, `start_ns`, `gap_ns` (the longest single cut),
    `lost_ns` (of all, wall time less CPU time) and `filled_ns`: how long real-time noise had filled
    the CPU at its end. An event is listed if a gap of half a budget at least falls in it, and the
    CPU had been filled for nine tenths of the server's patience. A gap of the hypervisor looks the
    same to the injector: the list is of suspects, complete, and short where the machine is quiet.
    """
    real_time = log[
        log["policy"].isin(("SCHED_FIFO", "SCHED_RR"))
        & log["outcome"].isin(("injected", "late", "cut"))
    ]
    table = real_time[["cpu", "event", "ran_on", "start_ns", "gap_ns"]].copy()
    table["lost_ns"] = real_time["end_ns"] - real_time["start_ns"] - real_time["cpu_time_ns"]
    table["filled_ns"] = real_time["end_ns"] - _filled_since(real_time, pause_ns)
    if not server.exists or not server.patience_ns:
        return table.iloc[:0]
    runtime = table["ran_on"].map(lambda cpu: server.budget_ns(cpu)[0])
    return table[
        (runtime > 0)
        & (table["gap_ns"] >= runtime / 2)
        & (table["filled_ns"] >= 0.9 * server.patience_ns)
    ].reset_index(drop=True)


def _filled_since(real_time: pd.DataFrame, pause_ns: int) -> pd.Series:
    """For each event, since when real-time noise had filled its CPU."""
    ordered = real_time.sort_values(["ran_on", "start_ns"], kind="stable")
    latest = ordered.groupby("ran_on")["end_ns"].cummax()
    new = (ordered["ran_on"] != ordered["ran_on"].shift()) | (
        ordered["start_ns"] - latest.shift() > pause_ns
    )
    return ordered.groupby(new.cumsum())["start_ns"].transform("first").reindex(real_time.index)
