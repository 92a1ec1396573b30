"""What the lanes replay, and by which rules: `Rules`, `Plan`, and the numbers that
the C core knows the words by.

Owns these records; `plan.py` makes plans of noise configs, `costs.py` says what an event costs,
`replay.py` carries plans out.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError
from ..machine import privileged
from ..noise._vocabulary import STRESSOR_CODES
from ._limits import busiest_second_share, longest_span_ns
from .costs import Overheads

POLICY_CODES = {"SCHED_OTHER": 0, "SCHED_FIFO": 1, "SCHED_RR": 2, "SCHED_BATCH": 3, "SCHED_IDLE": 5}
POLICY_NAMES = {code: name for name, code in POLICY_CODES.items()}
# of nb_plan.kind; kinds that are not listed keep the CPU busy (NB_OCCUPY, 0)
KIND_CODES = dict(STRESSOR_CODES)
HIGHEST_PRIORITY = 98  # 99 is the supervisor's, which must be able to end every lane


@dataclass(frozen=True)
class Rules:
    """How events are replayed, and the limits that keep the machine usable.

    Parameters
    ----------
    wake_allowance_us
        An event that wakes at most so late was on time. Waking up is part of the noise: the
        workload lost the CPU when the timer fired.
    give_up_ms
        An event that wakes later than the allowance keeps its duration, counted from then; events
        behind it wait, and the pauses between them use the lateness up. One that wakes later than
        this is dropped: lateness never builds up beyond
        it.
    exit_cost_us
        A real-time event stops so long before its planned end, because giving the CPU back costs
        the workload that much. None: as measured after events of that length on that kind of core,
        and corrected by how long the event took to wake up.
    shortest_us
        An event that is shorter is carried by another one, or left out; see `make_plan`. None: as
        measured, for real-time and ordinary events apart; 0: every event is injected as it is,
        and those cost what the machine's floor is.
    coalesce_ms
        So far may the noise of an event be moved for that. 20 ms are a handful of timer ticks:
        about what it takes.
    longest_event_s
        An event longer than this is refused.
    full_stop_ms
        A plan that takes every CPU of the machine with real-time priority for longer than this is
        refused.
    full_stop_second_ms
        A plan that takes every CPU at once with real-time priority for more than this of any
        second, in one piece or in many, is refused...
    full_stop_ten_seconds_s
        ...or for more than this of any ten seconds...
    allow_full_stop
        ...unless this is true.
    any_intensity
        Whether operations and interrupts may be asked for at rates that leave others nothing:
        more than 10^5 timers, or 10^6 of another kind, a second. Bandwidths are not limited.
    overtime_s
        Everything ends so long after the planned end of the last event.

    Raises
    ------
    InputError
        A negative number.
    """

    wake_allowance_us: float = 500.0
    give_up_ms: float = 100.0
    exit_cost_us: float | None = None
    shortest_us: float | None = None
    coalesce_ms: float = 20.0
    longest_event_s: float = 2.0
    full_stop_ms: float = 500.0
    full_stop_second_ms: float = 800.0
    full_stop_ten_seconds_s: float = 6.0
    allow_full_stop: bool = False
    any_intensity: bool = False
    overtime_s: float = 10.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, int | float) and not 0 <= value < float("inf"):
                raise InputError(
                    f"{name} is {value}", where="Rules", fix="pass a number, 0 or more"
                )


@dataclass(frozen=True)
class Plan:
    """What the lanes replay.

    Attributes
    ----------
    events
        One row an event of the config: first those that are injected, lane by lane and by start
        within a lane, then the others. Columns `cpu` (of the config), `event` (counted within that
        CPU), `start_ns`, `duration_ns` (as it is injected, with what it carries), `policy`,
        `priority`, `kind`, `intensity`, `recorded_start_ns`, `recorded_duration_ns` (of the
        config), and `into`: the row of the event that carries this one; the same row where it is
        injected; −1 where it is too short and nothing could carry it.
    lanes
        One row a process: `cpu` (−1: may roam), `first` and `count` of its events.
    rules
        The rules by which the events are replayed.
    overheads
        What the rules that were left open are taken from.
    roam
        CPUs that roaming lanes may run on; empty: all.
    scratch
        Where file noise makes its files.
    """

    events: pd.DataFrame
    lanes: pd.DataFrame
    rules: Rules = field(default_factory=Rules)
    overheads: Overheads = field(default_factory=Overheads)
    roam: tuple[int, ...] = ()
    scratch: str | Path | None = None

    @property
    def injected(self) -> pd.DataFrame:
        """The events that the lanes replay; they lie at the beginning of `events`."""
        return self.events.iloc[: int(self.lanes["count"].sum())]

    @property
    def end_ns(self) -> int:
        """Planned end of the last event, from t0."""
        injected = self.injected
        return int((injected["start_ns"] + injected["duration_ns"]).max()) if len(injected) else 0

    @property
    def longest_realtime_ns(self) -> int:
        """Longest time for which one CPU's real-time events follow each other without a pause."""
        return longest_span_ns(self.injected)

    @property
    def busiest_second_share(self) -> float:
        """Largest share of any second that real-time noise takes of one CPU."""
        return busiest_second_share(self.injected)

    def __repr__(self) -> str:
        injected = len(self.injected)
        left = f"{injected} of {len(self.events)}" if injected < len(self.events) else f"{injected}"
        return f"Plan({left} events in {len(self.lanes)} lanes, {self.end_ns / 1e6:.1f} ms)"


def codes_of(words: pd.Series) -> np.ndarray:
    """A column `policy` or `kind` in the numbers of the C core."""
    codes = POLICY_CODES if words.name == "policy" else KIND_CODES
    categories = words.astype("category").cat
    return np.array([codes.get(str(word), 0) for word in categories.categories] or [0], np.int8)[
        categories.codes
    ]


def may_realtime(priority: int) -> bool:
    """Whether a thread of this process may take SCHED_FIFO at a priority, perhaps with the helper's
    leave.
    """
    return privileged.realtime_refusal(priority) == 0
