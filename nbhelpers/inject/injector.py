"""The injector as an attachment of a run: armed while the workload waits, released with it, ended with it.

Owns what is set on the machine for an injection (real-time throttling) and what is said of it (`notes`).
"""

import os
import platform
import re
import threading
from pathlib import Path

import pandas as pd

from ..errors import SettingError
from ..machine import settings
from ..measure import Attachment
from ..noise import NoiseConfig
from ..workloads import Workload
from .log import log_path, make_log, summarise
from .plan import HIGHEST_PRIORITY, REALTIME, Plan, Rules, busiest_second_share, make_plan
from .replay import Replay

THROTTLING = "/proc/sys/kernel/sched_rt_runtime_us"
FAIR_SERVER_SINCE = (6, 12)
FAIR_SERVER_SHARE = 0.9  # it steps in after 0.95 s without ordinary tasks; the rest is for lateness


class Injector(Attachment):
    """Injects a noise config into every run that it accompanies (Persson et al. 2025, section 4.3).

    Parameters
    ----------
    config : what to inject.
    placement : "roam": unpinned, as in the paper; "origin": on the CPU that the event was recorded on.
    lanes : processes a CPU of the config: 1 as in the paper, 2 with ordinary events apart from real-time ones; see `make_plan`.
    rules : how late and how long events may be; see `Rules`.
    log_folder : where each run's log is kept, as `injection-000123.parquet`; None: not kept.
    keep_logs : keep the logs in memory, in `logs` (run -> DataFrame).

    Attributes
    ----------
    notes : what a reader of the results must know: what was degraded, and what the kernel may cut.

    Raises
    ------
    InputError : a config that this machine cannot, or should not, be given.

    Columns of the runs table: see `summarise`; a run whose injection failed gets another status.
    """

    def __init__(self, config: NoiseConfig, placement: str = "roam", *, lanes: int = 1, rules: Rules | None = None,
                 log_folder: str | Path | None = None, keep_logs: bool = False):
        self.config = config
        self.plan = make_plan(config, placement, lanes, rules)
        self.logs: dict[int, pd.DataFrame] = {}
        self._log_folder, self._keep_logs = log_folder and Path(log_folder), keep_logs
        self._replay: Replay | None = None
        self._throttling: settings.Change | None = None
        self.notes = tuple(_notes(self.plan))

    def __repr__(self) -> str:
        return f"Injector({self.config.digest}: {self.plan!r})"

    def before(self, workload: Workload) -> None:
        """Lift real-time throttling, until `close`."""
        if self._throttling is None and self.plan.longest_realtime_ns:
            try:
                self._throttling = settings.changed({THROTTLING: -1})
            except SettingError as error:
                self._note(f"real-time throttling was not lifted ({error.what}): the kernel may cut long noise")

    def armed(self, pid: int) -> None:
        """Fork the injectors and wait until they are ready."""
        self._end_replay()
        self._replay = Replay(self.plan)
        self._replay.start(pid)

    def released(self, t0_ns: int) -> None:
        """The plan's times count from t0."""
        if self._replay:
            self._replay.release(t0_ns)

    def after(self, run: dict) -> dict:
        """Stop, and tell what was injected."""
        if self._replay is None:
            return {}
        replay, self._replay = self._replay, None
        replay.close()
        log = make_log(replay)
        self._save(log, run["run"])
        if replay.refused and not any("refused" in note for note in self.notes):
            self._note(f"the kernel refused {replay.refused} change(s) of scheduling policy: see the log's column policy")
        return summarise(log) | _verdict(replay, run)

    def close(self) -> None:
        """End what still runs and put throttling back."""
        self._end_replay()
        if self._throttling:
            throttling, self._throttling = self._throttling, None
            throttling.restore()

    def _end_replay(self) -> None:
        replay, self._replay = self._replay, None
        if replay:
            replay.close()

    def _save(self, log: pd.DataFrame, run: int) -> None:
        if self._keep_logs:
            self.logs[run] = log
        if self._log_folder:
            self._log_folder.mkdir(parents=True, exist_ok=True)
            path = log_path(self._log_folder, run)
            log.to_parquet(path.with_suffix(".new"))
            os.replace(path.with_suffix(".new"), path)

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes += (note,)


def _verdict(replay: Replay, run: dict) -> dict:
    """A run whose noise was not what it should be is no data."""
    problem = replay.problem()
    return {"status": "injection failed", "message": problem} if problem and run.get("status") == "ok" else {}


def _notes(plan: Plan) -> list[str]:
    notes = []
    priority = int(plan.events.loc[plan.events["policy"].isin(REALTIME), "priority"].max()) if plan.longest_realtime_ns else 0
    if priority and not may_realtime(min(priority, HIGHEST_PRIORITY)):
        notes.append("SCHED_FIFO is not permitted here: real-time events are injected as ordinary ones (SCHED_OTHER), which the "
                     "workload shares the CPU with; run as root, or raise the limit: ulimit -r 99")
    share = busiest_second_share(plan.events)
    if share > FAIR_SERVER_SHARE and _kernel_release() >= FAIR_SERVER_SINCE:
        notes.append(f"real-time noise takes up to {share:.0%} of a CPU for a second; the fair server of Linux 6.12 and later "
                     "gives ordinary tasks 50 ms a second all the same, so up to so much of it is cut")
    return notes


def may_realtime(priority: int) -> bool:
    """Whether a thread of this process may take SCHED_FIFO at a priority; a short-lived thread tries."""
    permitted = []

    def attempt() -> None:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
            permitted.append(True)
        except OSError:
            pass

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return bool(permitted)


def _kernel_release() -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", platform.release())[:2])
