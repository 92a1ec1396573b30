"""Brings osnoise start times (`trace_clock_local`) to the clock of the trace's time stamps, CPU by
CPU.

The two differ by an offset and a rate; an interrupt that nothing interrupted ties them: it ends
when its line is stamped.
"""

import numpy as np

from ._table import KINDS, rows_by_cpu

# interrupts to a piece: the clocks' rates differ, so a long trace gets an offset that moves
_PIECE = 50
_PIECES = 64
# all errors but the rounding (±0.5 µs) make the difference larger, so a low quantile is near the
# truth
_LOW = 0.1
# cpu -> (at_ns, offset_ns): a CPU's offset of time stamps to start times, at points in start time
Points = dict[int, tuple[np.ndarray, np.ndarray]]


def clock_points(columns: dict) -> Points:
    """Estimate the offsets from the un-nested interrupts: TIMESTAMP − start − duration, a low
    quantile a piece of the trace.
    """
    difference = columns["stamp_ns"] - columns["start_ns"] - columns["duration_ns"]
    irq = np.flatnonzero(columns["kind"] == KINDS.index("irq"))
    return {
        cpu: _offsets(columns["start_ns"][irq[rows]], difference[irq[rows]])
        for cpu, rows in rows_by_cpu(columns["cpu"][irq])
    }


def clock_offsets(points: Points, cpu: np.ndarray, start_ns: np.ndarray) -> np.ndarray:
    """Offset of each event, ns; a CPU without an interrupt takes the median of the others."""
    common = int(np.median([offset[0] for _, offset in points.values()]))
    result = np.full(len(cpu), common, dtype=np.int64)
    for number, mine in rows_by_cpu(cpu):
        if number in points:
            at_ns, offset_ns = points[number]
            moved = np.interp(start_ns[mine] - at_ns[0], at_ns - at_ns[0], offset_ns - offset_ns[0])
            result[mine] = offset_ns[0] + np.rint(moved).astype(np.int64)
    return result


def _offsets(start_ns: np.ndarray, difference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(start_ns, kind="stable")
    pieces = np.array_split(order, min(max(1, len(order) // _PIECE), _PIECES))
    at_ns = np.array([start_ns[piece[len(piece) // 2]] for piece in pieces])
    return at_ns, np.array(
        [int(np.quantile(difference[piece], _LOW, method="lower")) for piece in pieces]
    )
