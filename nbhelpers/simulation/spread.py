"""Messages that are not alike: each has its own L and G, drawn from measured values.

Owns the record of the values and the draws; the engine draws the same in simulator_c/spread.h.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..errors import InputError

_LONGEST_NS = 1e12


def message_bits(seed: int, numbers: np.ndarray) -> np.ndarray:
    """64 random bits for each number, uint64: splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (np.asarray(numbers).astype(np.uint64) + np.uint64(1)) * np.uint64(
            0x9E3779B97F4A7C15
        )
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return z ^ z >> np.uint64(31)


@dataclass(frozen=True, eq=False, repr=False)
class MessageSpread:
    """Measured values of L and G, of which each message takes one.

    Parameters
    ----------
    L
        Latencies, ns; any number of values, each as likely as the others. Empty: all messages have
        the network's L.
    G
        Gaps a byte, ns; the same.
    seed
        Of the draws, 0 to 2^63 − 1. A message's draw depends on the seed and on its number in the
        schedule, on nothing else.

    Raises
    ------
    InputError
        Values that are no times, or a seed out of range.

    Notes
    -----
    De Sensi, De Matteis, Taranov, Di Girolamo, Rahn, Hoefler: Noise in the Clouds, SIGMETRICS 2022,
    sample L and G of a message from measured files in the same way. L and G are drawn
    independently.

    Examples
    --------
    >>> cloud = MessageSpread(L=[20_000, 21_000, 90_000], seed=1)
    >>> cloud.draws([0, 1, 2])[0]
    array([21000., 90000., 90000.])
    """

    L: np.ndarray = ()  # type: ignore[assignment]
    G: np.ndarray = ()  # type: ignore[assignment]
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("L", "G"):
            values = np.array(getattr(self, name), float).ravel()
            if not (np.isfinite(values) & (values >= 0) & (values <= _LONGEST_NS)).all():
                raise InputError(
                    f"{name} has values that are no times", where="MessageSpread", why="ns, ≥ 0"
                )
            if len(values) >= 2**32:
                raise InputError(f"{len(values)} values of {name}", where="MessageSpread")
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        if not 0 <= self.seed < 2**63:
            raise InputError(f"seed = {self.seed} is out of range", where="MessageSpread")

    def seeded(self, seed: int) -> "MessageSpread":
        """The same values, other draws: for a replicate."""
        return replace(self, seed=seed)

    def draws(self, messages: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """L in ns and G in ns a byte of messages; empty where all have the network's.

        Parameters
        ----------
        messages
            Numbers of their sends in the schedule.
        """
        bits = message_bits(self.seed, np.asarray(messages))
        return _pick(self.L, bits >> np.uint64(32)), _pick(self.G, bits)

    def __repr__(self) -> str:
        parts = [
            f"{name} {np.median(values):.4g} ns in the median of {len(values)}"
            for name, values in (("L", self.L), ("G", self.G))
            if len(values)
        ]
        return f"MessageSpread({', '.join(parts) or 'nothing is drawn'}, seed {self.seed})"


def _pick(values: np.ndarray, bits: np.ndarray) -> np.ndarray:
    if not len(values):
        return values
    place = (bits & np.uint64(0xFFFFFFFF)) * np.uint64(len(values)) >> np.uint64(32)
    return values[place.astype(np.int64)]
