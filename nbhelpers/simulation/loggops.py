"""The network's seven numbers: LogGOPS parameters in ns, ns a byte and bytes, and those of real
machines.

Owns the record, its checks, and the reading of data/knowledge/networks.yml.
"""

from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

from ..errors import InputError
from ..facts import facts_html
from ..places import knowledge
from ..reading import read_yaml

KNOWLEDGE = knowledge() / "networks.yml"
_LONGEST_NS = 1e12


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

    def _repr_html_(self) -> str:
        facts = {
            "L, latency (ns)": self.L,
            "o, CPU for a message, at each end (ns)": self.o,
            "g, gap between messages (ns)": self.g,
            "G, gap a byte (ns)": self.G,
            "O, CPU a byte (ns)": self.O,
            "S, largest message sent eagerly (bytes)": self.S,
        }
        return facts_html("LogGOPS parameters", facts)

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

    def picoseconds(self) -> tuple[int, int, int, float, float, int]:
        """L, o, g in whole ps; G, O in ps a byte (not rounded: the product with the bytes is); S in
        bytes.
        """
        L, o, g = (round(ns * 1000) for ns in (self.L, self.o, self.g))
        return L, o, g, self.G * 1000.0, self.O * 1000.0, int(self.S)

    def nanoseconds(self) -> tuple[int, int, int, int, int, int]:
        """L, o, g, G, O, S as whole numbers, for the mode `compat`.

        Raises
        ------
        InputError
            a parameter is not whole, or beyond what the reference's 32-bit numbers hold.
        """
        for name in ("L", "o", "g", "G", "O"):
            value = getattr(self, name)
            if value != int(value) or value >= 2**31:
                raise InputError(
                    f"{name} = {value} ns can't be simulated in the mode 'compat'",
                    where="LogGOPS",
                    why="the reference simulator knows whole nanoseconds below 2^31 only",
                    fix="use mode='exact'",
                )
        L, o, g, G, O = (int(value) for value in (self.L, self.o, self.g, self.G, self.O))
        return L, o, g, G, O, int(self.S)


def known_network(name: str) -> LogGOPS:
    """The parameters of a machine in data/knowledge/networks.yml.

    Raises
    ------
    InputError
        There is no such machine; the message lists those there are.
    """
    known = _known()
    if name not in known:
        raise InputError(
            f"no network '{name}' is known",
            where=KNOWLEDGE,
            fix="one of: " + ", ".join(sorted(known)),
        )
    return LogGOPS(**{key: known[name][key] for key in "LogGOS"})


@cache
def _known() -> dict[str, dict]:
    return read_yaml(KNOWLEDGE, "table of networks")["networks"]
