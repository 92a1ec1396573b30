"""Pairs of runs of two sides, who goes first by a coin toss, with a random start and environment.

Owns what is random about a start, and the log ratios of the pairs.
"""

import time
from pathlib import Path

import numpy as np
import pandas as pd

from ..files import digest
from ..measurement import Attachment, Campaign, Cell
from ..outcomes import COST, with_cost
from ..workloads import Workload
from .sides import NEW, OLD, Side

LONGEST_PADDING = 4096  # bytes: a page, after which the place of the stack repeats itself
LARGE_BYTES = 2**24
LONGEST_WAIT_S = 0.01  # a period of the slowest usual timer (100 Hz)


class RandomStart(Attachment):
    """A random length of the environment, and a random phase of the start.

    The length of the environment moves the stack, which alone can change run times by more than a
    change of the program does. The phase is that of the start against periodic work of the machine.

    Parameters
    ----------
    seed
        Seed of the lengths and phases; None: a new one each time.

    Notes
    -----
    Mytkowicz et al., Producing wrong data without doing anything obviously wrong! (ASPLOS 2009).

    Examples
    --------
    >>> start = RandomStart(seed=1)
    >>> start.before(None)
    >>> len(start.variables["NOISEBOOK_PADDING"]) == start.after({})["padding_bytes"]
    True
    """

    identity = "a coin a pair"  # runs that were drawn by fours, as before, are put aside

    def __init__(self, seed: int | None = None):
        self._random = np.random.default_rng(seed)
        self._wait_s = 0.0

    def before(self, workload: Workload) -> None:
        """Draw a length and a phase, and wait for the phase."""
        length = int(self._random.integers(LONGEST_PADDING))
        self.variables = {"NOISEBOOK_PADDING": "x" * length}
        self._wait_s = float(self._random.uniform(0, LONGEST_WAIT_S))
        time.sleep(self._wait_s)

    def after(self, run: dict) -> dict:
        """What was drawn."""
        length = len(self.variables["NOISEBOOK_PADDING"])
        return {"padding_bytes": length, "start_wait_ms": 1e3 * self._wait_s}


class NamedFiles(Attachment):
    """Makes runs of another content of the files that a command names runs of something else.

    A campaign looks at the program's file by itself; this looks at scripts and inputs.

    Parameters
    ----------
    workload
        Whose arguments may be names of files.

    Examples
    --------
    >>> from nbhelpers.workloads import program
    >>> NamedFiles(program("cat /etc/hostname")).identity.startswith("files ")
    True
    """

    def __init__(self, workload: Workload):
        files = [path for path in map(Path, workload.command[1:]) if _is_file(path)]
        self.identity = f"files {digest(*map(_content, files))}" if files else ""


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # an argument that is too long for a name
        return False


def _content(path: Path) -> bytes | str:
    """What is in a file; of a large one its size and its time."""
    status = path.stat()
    if status.st_size > LARGE_BYTES:
        return f"{status.st_size} {status.st_mtime_ns}"
    return path.read_bytes()


class Duel(Campaign):
    """A campaign of two cells, `old` and `new`: a round is a pair of runs.

    Which side begins is drawn anew for each round: that is what the statistics rest on.

    Parameters
    ----------
    folder
        Where the runs are stored; None: in memory.
    old, new
        The two sides.
    pairs
        How many; `run(enough=…)` may add more.
    seed
        Seed of the random order.

    Examples
    --------
    >>> from nbhelpers.workloads import program
    >>> duel = Duel(None, Side(program("sleep 0.01")), Side(program("sleep 0.01")), pairs=1)
    >>> sorted(cell.name for cell in duel.order(0))
    ['new', 'old']
    """

    def __init__(
        self,
        folder: str | Path | None,
        old: Side,
        new: Side,
        pairs: int,
        seed: int = 1,
    ):
        cells = [
            Cell(name, side.workload, attachments=(NamedFiles(side.workload), *side.attachments))
            for name, side in ((OLD, old), (NEW, new))
        ]
        super().__init__(folder, cells, pairs, seed=seed, attachments=(RandomStart(),))


def log_ratios(runs: pd.DataFrame) -> np.ndarray:
    """What each complete pair says, in the order of time.

    Parameters
    ----------
    runs
        Finished runs of a `Duel`.

    Returns
    -------
    Log ratios, new over old, of the cost of what is judged; above 0 is worse.

    Examples
    --------
    >>> runs = pd.DataFrame({"round": [0, 0, 1, 1], "cell": ["old", "new", "new", "old"]})
    >>> log_ratios(runs.assign(seconds=[1.0, 2.0, 3.0, 1.5])).round(4).tolist()
    [0.6931, 0.6931]
    """
    costs = with_cost(runs).assign(log_cost=lambda table: np.log(table[COST]))
    table = costs.pivot_table(index="round", columns="cell", values="log_cost")
    return (table.reindex(columns=[OLD, NEW]).diff(axis=1)[NEW]).dropna().to_numpy()
