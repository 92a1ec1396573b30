"""The steps of the autopilot's loop: each has a decision in one state file, and most a campaign.

Owns the folder of a loop. A decision is made once, so that the same call goes on where it stopped
and asks for as many runs as before.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pandas as pd

from ..errors import InputError, RunError, Unavailable
from ..files import write_json
from ..measurement import Attachment, Campaign, Cell, finished, recorded_runs
from ..reading import read_json

STATE = "autopilot.json"

Decision = dict[str, Any]


class Steps:
    """What was decided and measured so far.

    Parameters
    ----------
    folder
        Holds the state file, and a folder a campaign.
    seed
        Of the campaigns' orders.
    recorded_only
        True: nothing is measured or decided.
    """

    def __init__(self, folder: Path, seed: int, recorded_only: bool):
        self.folder = folder
        self.seed = seed
        self.recorded_only = recorded_only

    def decided(self, step: str) -> Decision | None:
        """The decision of a step; None: it was not made yet."""
        return self._state().get(step)

    def required(self, step: str) -> Decision | None:
        """As `decided`, of a step that every loop has.

        Raises
        ------
        InputError
            It was not made, and `recorded_only` is True.
        """
        decision = self.decided(step)
        if decision is None and self.recorded_only:
            raise InputError(
                f"the step '{step}' of the autopilot was not recorded here",
                where=self.folder / STATE,
                fix="run the stage that measures it: make paper",
            )
        return decision

    def decide(self, step: str, make: Callable[[], Decision]) -> Decision:
        """The decision of a step that every loop has; made and stored if there is none.

        Raises
        ------
        InputError
            As `required`.
        """
        decision = self.required(step)
        return self.store(step, make()) if decision is None else decision

    def store(self, step: str, decision: Decision) -> Decision:
        """Write a decision into the state file, and return it."""
        write_json(self.folder / STATE, self._state() | {step: decision})
        return decision

    def _state(self) -> dict[str, Decision]:
        path = self.folder / STATE
        return cast(dict[str, Decision], read_json(path)) if path.exists() else {}

    def runs(
        self,
        step: str,
        make_cells: Callable[[], list[Cell]],
        count: int,
        attachments: tuple[Attachment, ...] = (),
    ) -> pd.DataFrame:
        """The finished runs of a step's campaign.

        Parameters
        ----------
        step
            Name of the step, and of the campaign's folder.
        make_cells
            Makes the cells; recorded runs need neither the program nor its mitigations.
        count
            Runs of each cell.
        attachments
            Of every run.

        Raises
        ------
        RunError
            Fewer runs were recorded, or the program fails.
        Unavailable
            A mitigation can't be done here, and nothing was measured of it.
        """
        if self.recorded_only:
            return self._recorded(step, count)
        try:
            cells = make_cells()
        except Unavailable:
            # it could be done earlier: what was measured then still counts
            if not (self.folder / step / "runs.jsonl").exists():
                raise
            return self._recorded(step, count)
        campaign = Campaign(
            self.folder / step, cells, count, self.seed, attachments=attachments, max_failures=3
        )
        return finished(campaign.run())

    def _recorded(self, step: str, count: int) -> pd.DataFrame:
        folder = self.folder / step
        runs = pd.DataFrame(columns=["cell"])
        if list(folder.glob("runs.jsonl*")):
            runs = finished(recorded_runs(folder))
        if runs.empty or runs["cell"].value_counts().min() < count:
            raise RunError(
                f"fewer than {count} runs of each kind were recorded",
                where=folder,
                why="the campaign did not come to its end",
            )
        return runs

    def spent_s(self) -> float:
        """Seconds measured so far in this folder, by this call and earlier ones."""
        logs = [
            path
            for path in sorted(self.folder.glob("**/runs.jsonl*"))
            if "aside" not in path.relative_to(self.folder).parts
        ]
        return float(sum(recorded_runs(path.parent)["elapsed_seconds"].sum() for path in logs))
