"""A fault that is planted in a copy of the programs' sources."""

from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "workloads"


@dataclass(frozen=True)
class Fault:
    """What stands in a source, what is put in its place, and the run that must fail."""

    name: str
    words: str
    right: str
    wrong: str
    source: str = ""

    @property
    def program(self) -> str:
        return self.words.split()[0]
