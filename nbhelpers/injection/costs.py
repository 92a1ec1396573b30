"""What an injected event costs beyond its length: the record of one calibration, by kind of core.

Owns `Overheads`, and how exit costs are interpolated.
"""

from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

SHORT_NS = 100_000  # length of the event that `exit_us` is stated for


class ExitCost(NamedTuple):
    """What giving the CPU back costs after events of one length; median with 95 % interval."""

    length_us: float
    cost_us: float
    low_us: float
    high_us: float
    events: int


@dataclass(frozen=True)
class Overheads:
    """What an injected event costs on this machine beyond its length; medians in µs.

    Attributes
    ----------
    wake_us
        Time from the timer to the injector's first instruction; the workload is already stopped.
    wake_most_us
        95th percentile of the same. What wakes later was stopped by the hypervisor.
    exit_us
        What a workload loses beyond the injector's last instruction, after an event of 100 µs and a
        wake-up of median length...
    exit_per_wake
        ...and so much more for each µs that the wake-up took longer, up to `wake_most_us` (slope of
        Theil and Sen).
    exit_by_length
        The same after events of several lengths, an `ExitCost` each, by length. Between them the
        cost is interpolated over the logarithm of the length.
    floor_us
        What a real-time event of requested length 0 takes from a shielded workload.
    shortest_us
        The shortest real-time event that takes on average at most 1 % more than its length.
    ordinary_floor_us, shortest_ordinary_us
        The same of ordinary events, in CPU time.
    intervals
        95 % bootstrap intervals of the medians, name -> (low, high).
    n
        Events that the medians are of.
    cpu
        Where it was measured.
    measured
        False: SCHED_FIFO is not permitted here, or the machine could not be measured now; the
        numbers are typical ones.
    core_kind, cpus
        The kind of core, and which CPUs are of it; no CPU: all are.
    others
        The same of the machine's other kinds of core.
    measured_at
        UTC, ISO 8601; empty: not measured.
    state
        What the machine was then, as `machine_state` says it.
    """

    wake_us: float = 20.0
    wake_most_us: float = 60.0
    exit_us: float = 5.0
    exit_per_wake: float = 0.0
    exit_by_length: tuple[ExitCost, ...] = ()
    floor_us: float = 25.0
    shortest_us: float = 40.0
    ordinary_floor_us: float = 5.0
    shortest_ordinary_us: float = 10.0
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    n: int = 0
    cpu: int = -1
    measured: bool = False
    core_kind: str = "all"
    cpus: tuple[int, ...] = ()
    others: tuple["Overheads", ...] = ()
    measured_at: str = ""
    state: dict[str, str] = field(default_factory=dict)

    @property
    def kinds(self) -> tuple["Overheads", ...]:
        """One record a kind of core; this one is the first."""
        return (self, *self.others)

    def kind_of(self, cpus: ArrayLike) -> np.ndarray:
        """Which of `kinds` each CPU is of; 0 for a CPU that none names."""
        numbers = np.asarray(cpus)
        kind = np.zeros(numbers.shape, int)
        for place, own in enumerate(self.others, 1):
            kind[np.isin(numbers, own.cpus)] = place
        return kind

    @property
    def exit_points(self) -> tuple[tuple[int, int], ...]:
        """(length, exit cost) in ns, by length."""
        points = self.exit_by_length or (ExitCost(SHORT_NS / 1e3, self.exit_us, 0, 0, 0),)
        return tuple((round(at.length_us * 1e3), round(at.cost_us * 1e3)) for at in points)

    def exit_ns(self, duration_ns: ArrayLike, late_ns: ArrayLike) -> np.ndarray:
        """The exit cost as the C core predicts it (`predict_exit` of lane.c), on this kind of core.

        Parameters
        ----------
        duration_ns
            Length of each event.
        late_ns
            How long it took to wake up; NaN: not known, then the median counts.
        """
        length_ns, cost_ns = np.array(self.exit_points).T
        usual_ns, most_ns = self.wake_us * 1e3, self.wake_most_us * 1e3
        late = np.where(np.isnan(late_ns), usual_ns, np.minimum(late_ns, most_ns))
        cost = np.interp(logarithm(duration_ns), logarithm(length_ns), cost_ns)
        return np.maximum(cost + self.exit_per_wake * (late - usual_ns), 0)

    def age_s(self, now: datetime | None = None) -> float:
        """Seconds since they were measured; NaN: they were not."""
        if not self.measured_at:
            return float("nan")
        return (
            (now or datetime.now(UTC)) - datetime.fromisoformat(self.measured_at)
        ).total_seconds()

    def __repr__(self) -> str:
        source = f"{self.n} events on CPU {self.cpu}" if self.measured else "not measured"
        kinds = f"; {len(self.kinds)} kinds of core" if self.others else ""
        return (
            f"Overheads(wake {self.wake_us:.1f} µs, exit {self.exit_us:.1f} µs, floor"
            f" {self.floor_us:.1f} µs, shortest {self.shortest_us:.1f} µs; {source}{kinds})"
        )


def overheads_from(values: dict[str, Any]) -> Overheads:
    """Overheads of what `dataclasses.asdict` made of them and JSON kept.

    Raises
    ------
    KeyError, TypeError, ValueError
        Something is missing, or not what it should be.
    """
    own = {name: values[name] for name in (each.name for each in fields(Overheads))}
    own["exit_by_length"] = tuple(ExitCost(*row) for row in own["exit_by_length"])
    own["intervals"] = {name: tuple(interval) for name, interval in own["intervals"].items()}
    own["cpus"] = tuple(own["cpus"])
    own["others"] = tuple(overheads_from(other) for other in own["others"])
    return Overheads(**own)


def logarithm(numbers: ArrayLike) -> np.ndarray:
    """Base 2, straight between powers of two, as in lane.c; 0 for numbers below 1."""
    fraction, exponent = np.frexp(np.maximum(np.asarray(numbers, float), 1))
    return exponent + 2 * fraction - 2
