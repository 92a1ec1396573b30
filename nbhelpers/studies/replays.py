"""Campaigns that replay noise configs: a folder for each set of them.

What a replay brought back is judged in `known`.
"""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from ..files import digest
from ..measurement import Attachment, Campaign, Cell, recorded_runs


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
