"""Schedules, networks and noise as the C side's structs. Owns nothing but the translation: the
arrays stay NumPy's.

Each function returns a struct and keeps what it points to alive in `KEEP` as long as the struct
lives.
"""

from collections.abc import Mapping
from weakref import WeakKeyDictionary

import numpy as np

from ..errors import InputError, check_choice
from ._simulator import ffi
from .loggops import LogGOPS, Network
from .noise import Noise
from .schedule import CALC, Schedule

MODES = {"exact": 0, "compat": 1}
UNIT_NS = {"exact": 1e-3, "compat": 1.0}
_LONGEST_PS = 2**62
KEEP: WeakKeyDictionary = WeakKeyDictionary()


def bind_network(network: Network, mode: str) -> object:
    """`struct nb_network *` in the mode's unit."""
    check_choice("mode", mode, MODES)
    whole = isinstance(network, LogGOPS) and all(
        one == int(one) < 2**31 for one in (network.L, network.o, network.g, network.G, network.O)
    )
    if mode == "compat" and not whole:
        raise InputError(
            f"{network} can't be simulated in the mode 'compat'",
            why="the reference has one set of parameters for all sizes, in whole ns below 2^31",
            fix="use mode='exact'",
        )
    rows = [one.times(round(1 / UNIT_NS[mode])) for one in network.pieces]
    pieces = ffi.new("struct nb_piece[]", rows)
    fields = {"mode": MODES[mode], "pieces": len(rows), "piece": pieces, "S": int(network.S)}
    return _struct("struct nb_network *", fields)


def bind_noise(noise: Noise | None, mode: str) -> object:
    """`struct nb_noise *`, or NULL."""
    if noise is None:
        return ffi.NULL
    tables = noise.tables(mode)
    memory = ffi.from_buffer(_places(tables))
    place = ffi.cast("struct nb_place *", memory)
    return _struct("struct nb_noise *", _buffers(tables) | {"place": place}, memory)


_PLACE = np.dtype(
    [("from", "u8"), ("until", "u8"), ("begins", "i8"), ("trace", "i4"), ("hint", "i4")]
)


def _places(tables: dict[str, np.ndarray]) -> np.ndarray:
    """`struct nb_place` of each rank at time 0."""
    places = np.zeros(len(tables["phase"]), _PLACE)
    places["trace"] = tables["rank_trace"]
    places["begins"] = -tables["phase"]
    places["until"][tables["rank_trace"] < 0] = np.iinfo(np.uint64).max
    # where a rank's first look-up begins: as if its detours came evenly, which spares most of the
    # search
    period = tables["period"][tables["rank_trace"]]
    count = np.diff(tables["first"])[tables["rank_trace"]]
    places["hint"] = tables["phase"] % period / period * count
    return places


def bind_schedule(schedule: Schedule) -> object:
    """`struct nb_schedule *`; the schedule must have been checked."""
    fields = {
        "ranks": schedule.ranks,
        "operations": len(schedule),
        "cpus": schedule.cpus,
        "nics": schedule.nics,
        **_buffers({name: getattr(schedule, name) for name in ("rank_start", "kind", "peer")}),
    }
    columns = {
        name: ffi.from_buffer(getattr(schedule, name)) for name in ("size", "tag", "cpu", "nic")
    }
    for name, data in columns.items():
        array = getattr(schedule, name)
        fields[name] = {"data": data, "width": array.itemsize, "stride": int(len(array) > 1)}
    for name in ("done", "begun"):
        start, local = getattr(schedule, f"{name}_start"), getattr(schedule, f"{name}_op")
        if len(local):
            fields |= {
                f"{name}_start": ffi.from_buffer(start),
                f"{name}_width": start.itemsize,
                f"{name}_op": ffi.from_buffer("int32_t[]", local),
            }
    return _struct("struct nb_schedule *", fields, columns)


def check_range(schedule: Schedule, network: Network, mode: str) -> None:
    """Refuse what would leave 64 bits: single costs here; the engine watches the sums.

    Raises
    ------
    InputError
        An operation of more than 2^62 ps (53 days), or more operations than 32-bit numbers can
        name.
    """
    if schedule.events >= 2**32:
        raise InputError(
            f"{schedule.events} events in one schedule",
            where=schedule.name,
            why="the engine numbers them with 32 bits",
        )
    scale = 1000 if mode == "exact" else 1
    per_byte = max(max(one.G, one.O) for one in network.pieces)
    if float(schedule.size.max(initial=0)) * scale * max(per_byte, 1.0) < _LONGEST_PS:
        return
    is_calc = schedule.kind == CALC
    cost = schedule.column("size") * np.where(is_calc, float(scale), scale * per_byte)
    if cost.max(initial=0) >= _LONGEST_PS:
        raise InputError(
            "an operation is too long for 64-bit times",
            where=f"{schedule.name}: {schedule.where(int(np.argmax(cost)))}",
        )


def _buffers(arrays: Mapping[str, np.ndarray]) -> dict[str, object]:
    """NumPy's memory of each, typed as C has it."""
    return {name: ffi.from_buffer(f"{array.dtype}_t[]", array) for name, array in arrays.items()}


def _struct(ctype: str, fields: dict, *also: object) -> object:
    struct = ffi.new(ctype, fields)
    KEEP[struct] = (fields, *also)
    return struct
