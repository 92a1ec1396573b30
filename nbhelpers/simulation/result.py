"""What a simulation says: when each rank ended, what noise it had, what lay on the critical path
and who is to blame.

Owns the result and the record of what happened; the path itself is followed in _path.py.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from ..errors import InputError
from . import _path
from ._binding import UNIT_NS, _buffers, _struct
from .loggops import Network
from .noise import Noise
from .schedule import Schedule

NO_NODE = 2**32 - 1


@dataclass(frozen=True, eq=False, repr=False)
class Record:
    """What happened, in the engine's unit: node i is operation i, node N + i is the reception of
    the message of send i.

    begin, end: uint64[2N]; arrival: uint64[N]; cause: uint32[2N];
    via: uint8[2N] (enum nb_via in simulator_c/engine.h); last: uint32[P]; last_via: uint8[P].
    """

    begin: np.ndarray
    end: np.ndarray
    arrival: np.ndarray
    cause: np.ndarray
    via: np.ndarray
    last: np.ndarray
    last_via: np.ndarray

    @classmethod
    def empty(cls, schedule: Schedule) -> "Record":
        """Room for what a schedule will do."""
        n = len(schedule)
        if n >= 2**31:
            raise InputError(
                f"the critical path of {n} operations can't be recorded",
                where=schedule.name,
                why="nodes are numbered with 32 bits",
            )
        zeros = np.zeros
        return cls(
            zeros(2 * n, np.uint64),
            zeros(2 * n, np.uint64),
            zeros(n, np.uint64),
            np.full(2 * n, NO_NODE, np.uint32),
            zeros(2 * n, np.uint8),
            zeros(schedule.ranks, np.uint32),
            zeros(schedule.ranks, np.uint8),
        )

    def bind(self) -> object:
        """`struct nb_record *`."""
        return _struct("struct nb_record *", _buffers(vars(self)))


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The outcome of one simulation.

    Parameters
    ----------
    finish_ns
        float64[P]; when each rank ended.
    noise_ns
        float64[P]; by how much noise lengthened what each rank's CPUs did (what it absorbed while
        waiting isn't in it).
    schedule, network, noise, mode
        What was simulated.
    record
        What happened when, if it was asked for (`critical_path=True`).
    """

    finish_ns: np.ndarray
    noise_ns: np.ndarray
    schedule: Schedule
    network: Network
    noise: Noise | None = None
    mode: str = "exact"
    record: Record | None = None

    @property
    def makespan_ns(self) -> float:
        """When the last rank ended."""
        return float(self.finish_ns.max())

    @cached_property
    def ideal(self) -> "Result":
        """The same without noise (simulated when first asked for)."""
        from .engine import simulate

        if self.noise is None:
            return self
        return simulate(self.schedule, self.network, mode=self.mode)

    @property
    def slowdown(self) -> float:
        """How many times longer it took than without noise."""
        return self.makespan_ns / self.ideal.makespan_ns

    def path(self, rank: int | None = None) -> pd.DataFrame:
        """What the end of a rank (default: of the last) had to wait for, from the beginning: the
        critical path.

        Columns: `rank`, `op` (number in the rank; of a reception: of the send, in the sender's
        rank), `what` (calc, send, recv, reception), `begin_ns`, `end_ns` (when it let the next go
        on), `via` (by what: cpu, send gap, receive gap, network, rendezvous, done, begun),
        `clean_ns` (how long that would have taken without noise), `noise_ns` (the rest). end_ns of
        a row is begin_ns of the next.

        Raises
        ------
        InputError
            Simulated without critical_path=True, or in the mode compat.
        """
        last = int(self.finish_ns.argmax()) if rank is None else rank
        return _path.follow(self._recorded(), self, last)

    def struck(self, rank: int | None = None) -> pd.DataFrame:
        """The detours on the critical path: `rank`, `source`, `start_ns` (simulated time),
        `duration_ns`, `path_ns` (what it added to the path), `what`, `op`.
        """
        return _path.struck(self.path(rank), self)

    def culprits(self, by: tuple[str, ...] = ("rank", "source")) -> pd.DataFrame:
        """Who is to blame for the slow-down: the noise on the critical path by rank and source, the
        largest first.

        Columns: those of `by`, `detours` (how many lie on the path), `path_ns` (what they added to
        it), `share` (of all noise on the path) and `caused_ns`: that share of the delay against
        `ideal`. The two sums differ when the path without its noise is shorter than the ideal
        critical path (the difference was absorbed: caused < path) or longer (messages piled up
        behind a detour: caused > path).
        """
        hits = self.struck()
        table = hits.groupby(list(by), as_index=False, observed=True).agg(
            detours=("path_ns", "size"), path_ns=("path_ns", "sum")
        )
        table = table[table["path_ns"] > 0].sort_values(
            "path_ns", ascending=False, kind="stable", ignore_index=True
        )
        share = table["path_ns"] / table["path_ns"].sum()
        return table.assign(
            share=share, caused_ns=share * (self.makespan_ns - self.ideal.makespan_ns)
        )

    def timeline(self, ranks: np.ndarray | None = None) -> pd.DataFrame:
        """Everything that took time, for drawing: `rank`, `cpu`, `what`, `start_ns`, `end_ns`,
        `op`, `peer`, `size`, `noise_ns`, `source`.

        `what` is calc, send, reception (CPU occupied at the receiver), message (between the sender,
        `rank`, and the receiver, `peer`: on the wire, first byte) or detour (time lost, whatever
        the CPU did). `ranks` : only those; messages between them. For small cases: a row an event.

        Raises
        ------
        InputError
            Simulated without critical_path=True, or in the mode compat.
        """
        return _path.timeline(self._recorded(), self, ranks)

    def _recorded(self) -> Record:
        if self.record is None or self.mode != "exact":
            raise InputError(
                "what happened was not recorded, or in another mode than exact",
                fix="simulate(…, critical_path=True), without a mode",
            )
        return self.record

    @property
    def unit_ns(self) -> float:
        """Length of the engine's unit of time."""
        return UNIT_NS[self.mode]

    def __repr__(self) -> str:
        noise = "no noise" if self.noise is None else repr(self.noise)
        return (
            f"Result({self.schedule.name}: {self.schedule.ranks} ranks end at"
            f" {self.makespan_ns / 1e3:.6g} µs or before, {noise}, {self.mode})"
        )
