"""Campaigns that replay noise configs, each set of configs in a folder of its own."""

from collections.abc import Sequence
from pathlib import Path

from ..files import digest
from ..measurement import Attachment, Campaign, Cell


def replay_campaign(
    folder: str | Path,
    cells: Sequence[Cell],
    runs: int,
    seed: int,
    recorded_only: bool,
    attachments: Sequence[Attachment],
) -> Campaign:
    """A campaign in the subfolder that is named by the configs of its cells.

    Parameters
    ----------
    folder
        Holds a subfolder for each set of configs.
    cells, runs, seed, recorded_only, attachments
        As of `Campaign`.
    """
    own = Path(folder) / digest(*(cell.noise for cell in cells))
    return Campaign(own, cells, runs, seed, recorded_only, attachments)
