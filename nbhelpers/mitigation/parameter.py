"""An action on the program's own parameters: the value of its option for a seed, fixed.

Owns the proof that the process got it.
"""

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ..workloads import Workload
from .action import YES, Action, NotYet, Possible

_SEED = re.compile(r"--?([\w-]*[-_])?(seed|random[-_]?state)(=|$)", re.IGNORECASE)


def seed_option(command: tuple[str, ...]) -> int | None:
    """Where the value of an option for a seed stands in a command; None: it has none.

    Examples
    --------
    >>> seed_option(("./probe", "--seed", "random", "8")), seed_option(("./probe", "8"))
    (2, None)
    """
    for place, word in enumerate(command):
        if not _SEED.match(word):
            continue
        if "=" in word:
            return place
        if place + 1 < len(command):
            return place + 1
    return None


@dataclass(frozen=True)
class FixedSeed(Action):
    """The option of the command that speaks of a seed gets one value in each run.

    Parameters
    ----------
    value
        Of the seed.
    """

    value: str = "1"
    needs_program = True

    def possible(self, workload: Workload | None = None) -> Possible:
        if workload is None:
            return YES
        place = seed_option(workload.command)
        if place is None:
            return Possible(
                False,
                "its command has no option for a seed",
                "give the program an option --seed, and name it in the command",
            )
        if workload.command[place] == self._word(workload.command[place]):
            return Possible(False, f"the seed is {self.value} already")
        return YES

    def applied_to(self, workload: Workload) -> Workload:
        words = list(workload.command)
        place = seed_option(workload.command)
        if place is not None:
            words[place] = self._word(words[place])
        return replace(workload, command=tuple(words))

    def check(self, pid: int) -> str | None:
        words: tuple[str, ...] = ()
        with suppress(OSError):
            text = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="surrogateescape")
            words = tuple(text.split("\0"))
        place = seed_option(words)
        if place is None:
            return NotYet("the process has no option for a seed")
        if words[place] != self._word(words[place]):
            return f"the seed is {words[place]}, not {self.value}"
        return None

    def _word(self, word: str) -> str:
        """The word with the fixed value, alone or behind an equals sign."""
        name, equals, _ = word.partition("=")
        return f"{name}={self.value}" if equals else self.value
