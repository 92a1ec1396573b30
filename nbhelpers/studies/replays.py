"""Campaigns that replay noise configs: one injector a config, a folder for each set of them; and
the word for what a replay brought back.

Owns the gate: a replay is judged by the share of the excess that comes back, with undisturbed runs
as the floor. The plain rival is the ratio to the recorded run: 0.99 of it where undisturbed runs
take 0.98 is near it, and says nothing.
"""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from ..answers import CANNOT_TELL, NO, YES
from ..files import digest
from ..injection import Injector
from ..injection._lanes import Placement
from ..measurement import Attachment, Campaign, Cell, recorded_runs
from ..noise import NoiseConfig
from ..statistics.claims import FEWEST_UNITS
from ..workloads import Workload

NOTHING = "nothing to replay"
SLOW_SHARE = 0.05  # a run that took less longer than undisturbed ones is no anomaly
WHOLE = 0.8, 1.25  # share of the excess: an interval within is a whole replay
HALF = 0.5  # an interval below it: most did not come back


def replay_word(share: float, low: float, high: float, excess: float, rounds: int) -> str:
    """What a replay brought back, in a word.

    Parameters
    ----------
    share, low, high
        Share of the excess that came back, with its 95 % interval; undisturbed runs have 0.
    excess
        What the slow run took longer than undisturbed ones, as a share of these.
    rounds
        How many rounds the interval rests on.

    Returns
    -------
    "nothing to replay", "yes", "no", "cannot tell here", or the part: where the whole interval is
    above 0 and reaches a half, the replay did bring something back.

    Examples
    --------
    >>> replay_word(0.98, 0.91, 1.05, 0.3, 20), replay_word(0.6, 0.5, 0.7, 0.3, 20)
    ('yes', '60 % of it')
    >>> replay_word(0.5, -0.2, 1.2, 0.01, 20), replay_word(0.1, -0.2, 0.4, 0.3, 20)
    ('nothing to replay', 'no')
    """
    if not excess > SLOW_SHARE:
        return NOTHING
    if rounds < FEWEST_UNITS:
        return CANNOT_TELL
    if WHOLE[0] <= low and high <= WHOLE[1]:
        return YES
    if high < HALF:
        return NO
    return f"{100 * share:.0f} % of it" if low > 0 else CANNOT_TELL


class Replays:
    """Cells under replayed noise, with one injector for each config and placement.

    Parameters
    ----------
    recorded_only
        True: the cells are only read, and have no injector.
    """

    def __init__(self, recorded_only: bool = False):
        self._recorded_only = recorded_only
        self._injectors: dict[tuple[str, str], tuple[Attachment, ...]] = {}

    def __repr__(self) -> str:
        return f"Replays({len(self._injectors)} injectors)"

    def cell(
        self, name: str, workload: Workload, config: NoiseConfig, placement: Placement = "roam"
    ) -> Cell:
        """The cell of a workload under a noise config.

        Parameters
        ----------
        name, workload
            Name of the cell, and the program in its place.
        config, placement
            What is injected, and where (`Injector`).
        """
        key = config.digest, str(placement)
        if key not in self._injectors:
            made = () if self._recorded_only else (Injector(config, placement),)
            self._injectors[key] = made
        return Cell(name, workload, noise=config.digest, attachments=self._injectors[key])


def replay_campaign(
    folder: str | Path,
    cells: Sequence[Cell],
    runs: int,
    seed: int,
    recorded_only: bool,
    attachments: Sequence[Attachment],
) -> Campaign:
    """A campaign in the subfolder that is named by the configs of its cells, in their order.

    Parameters
    ----------
    folder
        Holds a subfolder for each set of configs.
    cells, runs, seed, recorded_only, attachments
        Passed to `Campaign`.
    """
    own = Path(folder) / digest(*(cell.noise for cell in cells))
    return Campaign(own, cells, runs, seed, recorded_only, attachments)


def replayed_runs(folder: str | Path) -> pd.DataFrame:
    """All runs of the set of configs that was replayed last; none where nothing was replayed.

    Parameters
    ----------
    folder
        The folder of `replay_campaign`.
    """
    measured = sorted(Path(folder).glob("*/campaign.json"), key=lambda path: path.stat().st_mtime)
    if not measured:
        return pd.DataFrame(columns=["run", "cell", "round", "model", "seconds", "status"])
    return recorded_runs(measured[-1].parent)
