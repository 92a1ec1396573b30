"""Campaigns that replay noise configs: one injector a config, a folder for each set of them.

What a replay brought back is judged in `known`.
"""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from ..files import digest
from ..injection import Injector
from ..injection._lanes import Placement
from ..measurement import Attachment, Campaign, Cell, recorded_runs
from ..noise import NoiseConfig
from ..workloads import Workload


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
