"""The network's numbers: LogGOPS parameters in ns, ns a byte and bytes, one set for all sizes of
messages or piecewise, and those of real machines.

Owns the records, their checks, and the reading of data/knowledge/networks.yml.
"""

from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np

from ..errors import InputError, check_choice
from ..places import knowledge
from ..reading import read_yaml

KNOWLEDGE = knowledge() / "networks.yml"
_LONGEST_NS = 1e12


@dataclass(frozen=True)
class CallCosts:
    """What MPI calls take of their own rank's CPU beyond messages: collectives copy and add, and
    what a computation displaced from the caches comes back.

    Parameters
    ----------
    copy, add
        ns a byte.
    make
        ns to make a communicator.
    sizes
        Bytes of messages, which rise.
    after
        Computations' lengths in ns, which rise, each with what a message of each of the sizes takes
        longer after it, ns; lines between. Beyond the ends it is as at the ends.

    Examples
    --------
    >>> costs = CallCosts(sizes=(8, 1000), after=((0, 0, 0), (1000, 100, 300)))
    >>> costs.cold_ns(500, 8), costs.cold_ns(2000, 10_000)
    (50.0, 300.0)
    """

    copy: float = 0
    add: float = 0
    make: float = 0
    sizes: tuple[float, ...] = (1,)
    after: tuple[tuple[float, ...], ...] = ((0, 0),)

    def cold_ns(self, computed_ns: float, bytes: int) -> float:
        """What a message takes longer if the memory that such messages take was last used so much
        computation ago.
        """
        return float(np.interp(computed_ns, *_cold_by_time(self, bytes)))


@cache
def _cold_by_time(costs: CallCosts, bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """Computations' lengths, and what a message takes longer after each: a trace asks often."""
    times, *by_size = np.transpose(costs.after)
    return times, np.array([np.interp(bytes, costs.sizes, one) for one in np.transpose(by_size)])


NO_COSTS = CallCosts()


@dataclass(frozen=True)
class LogGOPS:
    """LogGOPS parameters (Hoefler et al. 2010); the defaults are the reference simulator's.

    Parameters
    ----------
    L
        Latency, ns.
    o
        Overhead of the CPU for a message, at each end, ns.
    g
        Gap between messages on a NIC, ns.
    G
        Gap a byte, ns.
    O
        Overhead of the CPU a byte, ns.
    S
        Largest message sent eagerly, bytes; the send of a larger one is done only when it is
        received.

    Notes
    -----
    `exact` simulates whole picoseconds; `compat` needs whole nanoseconds.

    Examples
    --------
    >>> network = LogGOPS(L=1900, o=230, G=0.079)
    >>> network.with_(L=0).L, network.scaled(o=2).o
    (0, 460)
    """

    L: float = 2500
    o: float = 1500
    g: float = 1000
    G: float = 6
    O: float = 0  # noqa: E741 (the model's own name)
    S: int = 65535

    def __post_init__(self) -> None:
        for name in ("L", "o", "g", "G", "O"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and 0 <= value <= _LONGEST_NS):
                raise InputError(
                    f"{name} = {value!r} is no time",
                    where="LogGOPS",
                    why="ns (G and O: ns a byte), 0 or more, at most 1000 s",
                )
        if isinstance(self.S, bool) or int(self.S) != self.S or not 0 <= self.S < 2**63:
            raise InputError(f"S = {self.S!r} is no number of bytes", where="LogGOPS")

    def with_(self, **changes: Any) -> "LogGOPS":
        """The same network with some parameters replaced: `network.with_(L=0)`."""
        return replace(self, **changes)

    def scaled(self, **factors: float) -> "LogGOPS":
        """The same network with some parameters multiplied: ten times faster is `scaled(L=0.1,
        g=0.1, G=0.1)`.
        """
        unknown = set(factors) - {f.name for f in fields(self)}
        if unknown:
            raise InputError(f"LogGOPS has no parameter '{min(unknown)}'", fix="L, o, g, G, O or S")
        return replace(
            self, **{name: getattr(self, name) * factor for name, factor in factors.items()}
        )

    @property
    def pieces(self) -> tuple["Piece", ...]:
        """The parameters as the only piece of all sizes."""
        return (Piece(1, self.L, self.o, self.o, self.g, self.G, self.O),)

    @property
    def calls(self) -> CallCosts:
        """None."""
        return NO_COSTS


@dataclass(frozen=True)
class Piece:
    """What a message of so many bytes costs in `Piecewise`, ns and ns a byte.

    Parameters
    ----------
    least
        Bytes of the smallest such message.
    L
        Latency.
    o, r
        Overhead of the sender's CPU and of the receiver's.
    g
        Gap between messages on a NIC.
    G, O
        Gap, and overhead of the CPU, for each byte beyond `least`.
    """

    least: int
    L: float
    o: float
    r: float
    g: float
    G: float
    O: float  # noqa: E741 (the model's own name)

    def times(self, unit: int) -> tuple[int, int, int, int, int, float, float]:
        """All, in a unit of which a nanosecond has so many; G and O are not rounded, since their
        product with the bytes is.
        """
        L, o, r, g = (round(ns * unit) for ns in (self.L, self.o, self.r, self.g))
        return self.least, L, o, r, g, self.G * unit, self.O * unit


@dataclass(frozen=True)
class Piecewise:
    """A network whose LogGOPS parameters depend on a message's size, as real ones' do where the
    protocol or a cache changes (piecewise, as in SMPI: Bedaride et al. 2013).

    Parameters
    ----------
    pieces
        From small messages to large ones; the first begins at 1 byte.
    S
        As of `LogGOPS`.
    calls
        What calls take besides; `schedule_of_calls` takes it.

    Notes
    -----
    A message arrives before a later one of its sender to the same receiver, as MPI has it. So no
    piece may let a smaller message overtake: o + L of a larger one is at most its own gap,
    max(o, g), and o + L of the smaller.

    Examples
    --------
    >>> Piecewise((Piece(1, 300, 100, 100, 150, 0.1, 0), Piece(4096, 600, 400, 500, 700, 0.1, 0)))
    Piecewise(2 pieces from 1 to 4096 bytes, S = 65535)
    """

    pieces: tuple[Piece, ...]
    S: int = 65535
    calls: CallCosts = NO_COSTS

    def __post_init__(self) -> None:
        sizes = [one.least for one in self.pieces]
        if sizes[:1] != [1] or sorted(set(sizes)) != sizes:
            raise InputError(
                f"pieces from {sizes} bytes", where="Piecewise", why="they rise, and begin at 1"
            )
        soonest = min(one.o + one.L for one in self.pieces)
        for one in self.pieces:
            LogGOPS(one.L, one.o, max(one.g, one.r), one.G, one.O, self.S)  # are these times?
            if one.o + one.L > max(one.o, one.g) + soonest + 1e-6:
                raise InputError(
                    f"a message of {one.least} bytes would be overtaken by a smaller one",
                    where="Piecewise",
                    why="o + L is beyond its gap and o + L of another piece",
                )

    def __repr__(self) -> str:
        first, last = self.pieces[0].least, self.pieces[-1].least
        return f"Piecewise({len(self.pieces)} pieces from {first} to {last} bytes, S = {self.S})"


Network = LogGOPS | Piecewise


def known_network(name: str) -> LogGOPS:
    """The parameters of a machine in data/knowledge/networks.yml.

    Raises
    ------
    InputError
        There is no such machine; the message lists those there are.
    """
    known = _known()
    check_choice("network", name, known, KNOWLEDGE)
    return LogGOPS(**{key: known[name][key] for key in "LogGOS"})


@cache
def _known() -> dict[str, dict]:
    return read_yaml(KNOWLEDGE, "table of networks")["networks"]
