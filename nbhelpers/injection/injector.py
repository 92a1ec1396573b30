"""The injector as an attachment of a run: armed while the workload waits, released with it, ended
with it.

Owns what is set on the machine for an injection (real-time throttling), and the `notes` on it. The
plain way is the published method: sleep for a relative time, then spin on the wall clock. What a
loop loses to an event is off by 23.5 µs there, by 0.5 µs here (median, 1,451 and 1,454 events,
interleaved; benchmarks/injector.py, table 1).
"""

import contextlib
import os
from collections.abc import Collection
from pathlib import Path

import pandas as pd

from ..errors import RunError, SettingError
from ..machine import settings
from ..measurement import Attachment
from ..noise import NoiseConfig
from ..noise._vocabulary import REAL_TIME
from ..workloads import Workload
from ._lanes import Placement
from .fairserver import FairServer, cuts, fair_server, fair_server_lifted
from .log import log_path, make_log, summarise
from .plan import make_plan
from .recalibration import refreshed
from .replay import ARMED_LIMIT_S, Replay
from .rules import HIGHEST_PRIORITY, Overheads, Plan, Rules, may_realtime

THROTTLING = "/proc/sys/kernel/sched_rt_runtime_us"
NOISE_START = "noise_start_ns"
NO_SERVER = FairServer(False, {})
# of a second; it steps in after 0.95 s without ordinary tasks; the rest is for lateness
FAIR_SERVER_SHARE = 0.9


class Injector(Attachment):
    """Injects a noise config into every run that it accompanies (Persson et al. 2025, section 4.3).

    Parameters
    ----------
    config
        What to inject.
    placement
        "roam": unpinned, as in the paper; "origin": on the CPU that the event was recorded on;
        "faithful": what the kernel keeps on a CPU stays there, other threads roam; or a mapping
        {recorded CPU: CPU here}.
    rules
        How late, how long and how short events may be; see `Rules`.
    exclude_cpus
        Housekeeping CPUs that no noise may go to.
    scratch
        Where file noise makes its files, in a new folder that is always removed at the end. None: a
        folder for temporary files on a real disk.
    log_folder
        Where the log of each run is written, as `injection-000123.parquet`; None: nowhere.
    keep_logs
        Collect the logs in memory, in `logs` (run -> DataFrame).
    recorded_only
        It accompanies recorded runs: nothing is injected, and nothing is measured of this machine.

    Attributes
    ----------
    plan
        What is replayed; `plan.events` says what became of events that are too short for this
        machine.
    overheads
        What an injected event costs here, beyond its length.
    notes
        What a reader of the results must know: what was degraded, and what the kernel may cut.

    Raises
    ------
    InputError
        A config that this machine cannot, or should not, be given.

    Notes
    -----
    Columns of the runs table: those of `summarise`; `exit_cost_us` (measured, or by the rules),
    `wake_cost_us` and `floor_us` (measured), `overheads_at` and `overheads_age_s` (when, and how
    long before the run's end); `fair_server_cuts` (real-time events in which the
    kernel seems to have let ordinary tasks run, see `fairserver.cuts`). A run whose injection
    failed gets another status.
    """

    follows_region = True

    def __init__(
        self,
        config: NoiseConfig,
        placement: Placement = "roam",
        *,
        rules: Rules | None = None,
        exclude_cpus: Collection[int] = (),
        scratch: str | Path | None = None,
        log_folder: str | Path | None = None,
        keep_logs: bool = False,
        recorded_only: bool = False,
    ):
        self.config = config
        self.identity = f"injected {config.digest}, {placement}, 2 lanes"
        if recorded_only:
            return  # for a campaign that takes its runs from disk: nothing is measured or planned
        self.plan = make_plan(config, placement, rules, exclude_cpus, scratch=scratch)
        self.logs: dict[int, pd.DataFrame] = {}
        self._log_folder, self._keep_logs = log_folder and Path(log_folder), keep_logs
        self._replay: Replay | None = None
        self._armable = True
        self._unready = ""
        self._start_ns: int | None = None
        self._armed_limit_s = ARMED_LIMIT_S
        self._lifted: contextlib.ExitStack | None = None
        self._server = (
            fair_server() if self.plan.busiest_second_share > FAIR_SERVER_SHARE else NO_SERVER
        )
        self._cuts_by = self._server  # while noise is injected
        self.notes = tuple(_notes(self.plan, self._server))

    @property
    def overheads(self) -> Overheads:
        """What an injected event costs on this machine."""
        return self.plan.overheads

    def __repr__(self) -> str:
        return f"Injector({self.config.digest}: {getattr(self, 'plan', 'recorded runs')!r})"

    @property
    def pids(self) -> tuple[int, ...]:
        """The supervisor's pid, then the lanes'; empty when nothing is injected."""
        return self._replay.pids if self._replay else ()

    def before(self, workload: Workload) -> None:
        """Lift real-time throttling, and the fair server if the noise would meet it, until the
        `close` of the last injector on the machine; measure the overheads again if the machine has
        changed.
        """
        region = workload.region
        self._armable = region is None or region.begins_at_start
        self._armed_limit_s = ARMED_LIMIT_S if self._armable else ARMED_LIMIT_S + workload.timeout_s
        if region is not None and not self._armable:
            self._note(
                f"nobody can wait where this region begins (kind '{region.kind}'): the"
                " noise is released when its begin was seen, some 0.1 ms later; what is planned"
                " before that is late in the log"
            )
        if self._lifted is None and self.plan.longest_realtime_ns:
            self._lifted = contextlib.ExitStack()
            self._lift_throttling(self._lifted)
            if self._server.exists:
                self._lift_fair_server(self._lifted)
        self.plan, note = refreshed(self.plan)
        self._note(note)

    def _lift_throttling(self, stack: contextlib.ExitStack) -> None:
        try:
            lifted = stack.enter_context(settings.apply({THROTTLING: -1}))
            self.notes += lifted.repaired
        except SettingError as error:
            self._note(
                f"real-time throttling was not lifted ({error.what}): the kernel may cut long noise"
            )

    def _lift_fair_server(self, stack: contextlib.ExitStack) -> None:
        try:
            lifted = stack.enter_context(fair_server_lifted())
            self._cuts_by = NO_SERVER if lifted else self._server
        except SettingError as error:
            self._note(
                f"the fair server was not lifted ({error.what}): see the column fair_server_cuts"
            )

    def armed(self, pid: int) -> None:
        """Start the injectors and wait until they are ready; a run without them has failed, and is
        tried again.
        """
        self._end_replay()
        self._start_ns, self._unready = None, ""
        self._replay = Replay(self.plan, self._armed_limit_s)
        try:
            self._replay.start(pid)
        except RunError as error:
            self._replay, self._unready = None, error.what

    def released(self, t0_ns: int) -> None:
        """The plan's times count from t0, the begin of the timed region."""
        if self._replay:
            self._start_ns = t0_ns
            self._replay.release(t0_ns)

    def after(self, run: dict) -> dict:
        """Stop, and return what was injected as columns of the runs table."""
        if self._unready and run.get("status") == "ok":
            return {"status": "injection failed", "message": self._unready}
        if self._replay is None:
            return {}
        replay, self._replay = self._replay, None
        replay.close()
        log = make_log(replay)
        self._save(log, run["run"])
        if replay.refused and not any("refused" in note for note in self.notes):
            self._note(
                f"the kernel refused {replay.refused} change(s) of scheduling policy: see the log's"
                " column policy"
            )
        columns: dict[str, object] = {
            "exit_cost_us": replay.exit_cost_us,
            "wake_cost_us": self.overheads.wake_us,
            "floor_us": self.overheads.floor_us,
            "overheads_at": self.overheads.measured_at,
            "overheads_age_s": self.overheads.age_s(),
            "fair_server_cuts": len(cuts(log, self._cuts_by)),
        }
        if not self._armable:
            columns[NOISE_START] = self._start_ns
        problem = replay.problem()
        if problem and run.get("status") == "ok":  # a run without its noise is excluded
            columns |= {"status": "injection failed", "message": problem}
        return summarise(log) | columns

    def close(self) -> None:
        """End what still runs and put the settings back."""
        self._end_replay()
        lifted, self._lifted = self._lifted, None
        if lifted:
            lifted.close()

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
        if note and note not in self.notes:
            self.notes += (note,)


def _notes(plan: Plan, server: FairServer) -> list[str]:
    events = plan.injected
    notes = []
    priority = 0
    if plan.longest_realtime_ns:
        priority = int(events.loc[events["policy"].isin(REAL_TIME), "priority"].max())
    if priority and not may_realtime(min(priority, HIGHEST_PRIORITY)):
        notes.append(
            "SCHED_FIFO is not permitted here: real-time events are injected as ordinary ones"
            " (SCHED_OTHER), which the workload shares the CPU with; run as root, or raise the"
            " limit: ulimit -r 99"
        )
    elif priority and not plan.overheads.measured and plan.rules.exit_cost_us is None:
        notes.append(
            "the cost of an injected event was not measured: typical numbers are used, see"
            " nbhelpers.injection.overheads"
        )
    if server.exists:
        notes.append(
            f"real-time noise takes up to {plan.busiest_second_share:.0%} of a CPU for a second;"
            f" the fair server of this kernel ({server!r}) gives ordinary tasks their part all the"
            " same, unless it can be lifted for the run"
        )
    return notes
