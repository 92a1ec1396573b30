"""The undisturbed runs that most stages begin with: those that stage 10 measured and traced.

Reads what the stage wrote, each table once; owns the file of what could be replayed there.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from ..account import owned_and_lost
from ..account.owned import owned_by_threads
from ..empty import because
from ..errors import InputError
from ..files import write_json
from ..injection import Overheads, measure_overheads
from ..injection.rules import may_realtime
from ..measurement import calibrate, finished, recorded_runs
from ..noise import average_noise
from ..noise.lost_time import loss_delta
from ..outcomes import ordinary_runs, worst_first
from ..reading import read_json
from ..speed import read_speed
from ..tracing import each_trace, read_traces, stolen_times
from ..workloads import Workload, nbody

_LIMITS = "replay-limits.json"
SAMPLED = "sampled"  # cell of runs whose program could not be traced
NOT_RECORDED = (
    "nothing was recorded of when these runs had a CPU: make doctor says what tracing takes on this"
    " machine"
)


@dataclass(frozen=True)
class Baseline:
    """Runs of the N-body program, half of them traced, as stage 10 measured them.

    Parameters
    ----------
    data
        The folder of that stage's data.
    recorded_only
        Use recorded data, measure nothing.
    """

    data: Path
    recorded_only: bool = False

    @property
    def folder(self) -> Path:
        """The campaign's folder."""
        return self.data / "baseline"

    @cached_property
    def workload(self) -> Workload:
        """The program, with the problem size that was calibrated."""
        return calibrate(
            nbody, file=self.data / "calibration.json", recorded_only=self.recorded_only
        )

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Runs table of all runs that finished."""
        return finished(recorded_runs(self.folder))

    @cached_property
    def untraced(self) -> pd.DataFrame:
        """The runs that were not traced."""
        return self.runs[self.runs["cell"] == "untraced"]

    @cached_property
    def traced(self) -> pd.DataFrame:
        """The runs that were traced."""
        return self.runs[self.runs["cell"] == "traced"].reset_index(drop=True)

    @cached_property
    def events(self) -> pd.DataFrame:
        """Noise events of the traced runs."""
        return read_traces(self.folder / "traces", self.traced)

    @cached_property
    def stolen(self) -> pd.DataFrame:
        """What the hypervisor took of the traced runs (`stolen_times`)."""
        return stolen_times(self.folder / "traces", self.traced)

    @cached_property
    def accounted(self) -> pd.DataFrame:
        """The runs of the account: the traced ones, or where nothing could be traced those whose
        speed alone was sampled.
        """
        sampled = self.runs[self.runs["cell"] == SAMPLED].reset_index(drop=True)
        return sampled if len(sampled) else self.traced

    @cached_property
    def speed(self) -> pd.DataFrame:
        """Samples of the speed probe in the runs of the account; no rows where there was none."""
        if "speed_samples" not in self.accounted:
            columns = ["run", "thread", "cpu", "latency", "throughput", "memory"]
            return because(pd.DataFrame(columns=columns), NOT_RECORDED)
        return read_speed(self.folder / "speed", self.accounted)

    @cached_property
    def _account(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Both tables of the account (`owned_and_lost`)."""
        sampled = self.accounted["cell"].eq(SAMPLED).all()
        runs = self.accounted.head(0) if sampled else self.accounted
        owned, lost = owned_and_lost(self.folder / "traces", runs, self.folder / "speed")
        if not len(owned.columns) and "speed_samples" in self.accounted:
            events = self.events.head(0) if sampled else self.events
            owned = owned_by_threads(self.accounted, events, self.folder / "speed")
        return owned, lost if len(lost) else because(lost, NOT_RECORDED)

    @property
    def owned_ms(self) -> pd.DataFrame:
        """Who had the time of the critical path of each run of the account (`owned_ms`); without
        tracepoints that of its threads, their mean.
        """
        return self._account[0]

    @property
    def lost(self) -> pd.DataFrame:
        """When each run lost time that a replay can take away (`owned_and_lost`)."""
        return self._account[1]

    @cached_property
    def losses(self) -> pd.DataFrame:
        """What each traced run lost more than ordinary ones, to be replayed (`loss_delta`)."""
        if self.lost.empty:
            return self.lost
        return loss_delta(self.lost, self.traced, ordinary_runs(self.traced)["run"])

    def average(self, method: str = "paper") -> pd.DataFrame:
        """The noise that the method of `delta_noise` takes off (`average_noise`): of every traced
        run, or by "time" of the ordinary ones. One run is in memory at a time.
        """
        runs = ordinary_runs(self.traced) if method == "time" else self.traced
        return average_noise(each_trace(self.folder / "traces", runs), runs)


def replay_limits(data: str | Path, measure: bool = False) -> dict:
    """What the injector could replay on the machine of the runs, when they were measured.

    Replays are found again by it, so it is kept with the runs, in `replay-limits.json`.

    Parameters
    ----------
    data
        The folder of stage 10's data.
    measure
        Measure it where it is not there yet; only the stage that owns the folder may.

    Returns
    -------
    dict with `shortest_ns`, the shortest event, and `realtime`, whether it may preempt: arguments
    of `replayable_shares`. Where they were never measured, typical numbers.

    Examples
    --------
    >>> replay_limits("data/recorded/10-trace-collection")
    {'realtime': True, 'shortest_ns': 75900}
    """
    file = Path(data) / _LIMITS
    if file.exists():
        return read_json(file)
    overheads = measure_overheads() if measure else Overheads()
    limits = {"realtime": may_realtime(50), "shortest_ns": round(overheads.shortest_us * 1e3)}
    if measure:
        write_json(file, limits)
    return limits


def chosen_run(traced: pd.DataFrame, run: int = -1) -> int:
    """The traced run to explain: the slowest, or the one that was asked for.

    Parameters
    ----------
    traced
        Runs table of the traced runs that finished.
    run
        Its number; below 0 for the slowest.

    Raises
    ------
    InputError
        The run was not traced, did not finish, or there is none at all.
    """
    if traced.empty:
        raise InputError(
            "no run was traced",
            why="a delta is made of what a trace holds",
            fix="make doctor says what tracing takes on this machine",
        )
    if run < 0:
        return int(worst_first(traced)["run"].iloc[0])
    if run not in set(traced["run"]):
        near = sorted(traced["run"], key=lambda one: abs(one - run))[:3]
        raise InputError(
            f"run {run} was not traced, or did not finish",
            where=f"{len(traced)} traced runs, such as {', '.join(map(str, sorted(near)))}",
            why="a delta is made of what a trace holds",
            fix=f"choose a traced run, such as run={near[0]}, or run=-1 for the slowest",
        )
    return run
