"""The account of a run: where its time went, beside the ordinary runs.

Owns the view of one run's account.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..account import Account
from . import _drawing as draw
from ._base import Explorer
from ._controls import Choice, Control

if TYPE_CHECKING:
    from IPython.display import HTML

COLOURS = {
    "useful": "#DDDDDD",
    "kernel": "#D55E00",
    "edges": "#F0A070",
    "hypervisor": "#999999",
    "slow_core": "#0072B2",
    "slow_memory": "#009E73",
    "waiting": "#F0E442",
    "unexplained": "#000000",
}
LABELS = {
    "useful": "useful work at full speed",
    "kernel": "kernel events",
    "edges": "ways in and out",
    "hypervisor": "hypervisor",
    "slow_core": "slower core",
    "slow_memory": "slower memory",
    "waiting": "waiting for others",
    "unexplained": "unexplained",
}
ORDINARY = "ordinary runs (mean)"
MOST_CHOSEN = 8  # runs in the twin
LEFT, BAR = 160, 34  # px


@dataclass(frozen=True, eq=False)
class AccountExplorer(Explorer):
    """The account of a run that is chosen.

    Attributes
    ----------
    by_run
        Index `run`, the slowest first; a column for each part, in ns.
    ordinary
        The mean of the ordinary runs, in ns.
    """

    by_run: pd.DataFrame = field(repr=False)
    ordinary: pd.Series = field(repr=False)

    def controls(self) -> tuple[Control, ...]:
        """The run, the slowest first."""
        return self._controls

    @cached_property
    def _controls(self) -> tuple[Control, ...]:
        return (Choice("run", "run, slowest first", self._runs[0], self._runs),)

    @cached_property
    def _runs(self) -> list[int]:
        return [int(run) for run in self.by_run.index]

    def chosen(self) -> list[dict[str, Any]]:
        """The slowest runs, and the median one."""
        runs = self._runs
        return [{"run": run} for run in (*runs[: MOST_CHOSEN - 1], runs[len(runs) // 2])]

    def draw(self, state: dict[str, Any]) -> str:
        """Two bars, and what the run took longer by part."""
        mine = self.by_run.loc[state["run"]]
        place = self.by_run.index.get_loc(state["run"]) + 1
        longer = (mine - self.ordinary) / 1e6
        table = pd.DataFrame(
            {
                "this run, ms": mine / 1e6,
                "ordinary, ms": self.ordinary / 1e6,
                "longer by, ms": longer,
            }
        ).rename(index=LABELS)
        return (
            f"<p>Place {place} of {len(self.by_run)}: {mine.sum() / 1e9:.3f} s,"
            f" {longer.sum():.1f} ms longer than ordinary runs.</p>{self._bars(state['run'])}"
            + table.to_html(float_format=lambda ms: f"{ms:z.1f}", border=0)
        )

    def _bars(self, run: int) -> str:
        most = float(self.by_run.clip(lower=0).sum(axis=1).max()) / 1e6
        frame = draw.Frame(LEFT, 10, draw.WIDTH - LEFT - 20, 2 * BAR + 20, (0, most))
        rows = {ORDINARY: self.ordinary, f"run {run}": self.by_run.loc[run]}
        parts = [
            _bar(values / 1e6, frame, frame.top + 6 + (BAR + 8) * row, name)
            for row, (name, values) in enumerate(rows.items())
        ]
        bottom = frame.top + frame.height
        legend = "".join(
            draw.box(20 + 210 * (n % 4), bottom + 50 + 24 * (n // 4), 12, 12, f'fill="{colour}"')
            + draw.text(38 + 210 * (n % 4), bottom + 61 + 24 * (n // 4), LABELS[part])
            for n, (part, colour) in enumerate(COLOURS.items())
        )
        label = "where the time of the run went, beside ordinary runs"
        return draw.picture(bottom + 92, label, *parts, frame.x_axis("ms"), legend)


NO_ACCOUNT = (
    "There is no account of these runs: the speed of the CPUs was not recorded. Measure stage 10"
    " again where the probe can run."
)


def explore_account(account: Account | None) -> "AccountExplorer | HTML":
    """Look at the account of one run after the other.

    Parameters
    ----------
    account
        Of the runs; None: there is none.

    Returns
    -------
    AccountExplorer: the run can be chosen, the slowest first; where there is no account, a sentence
    that says why.
    """
    if account is None:
        from IPython.display import HTML

        return HTML(f"<p>{NO_ACCOUNT}</p>")
    by_run = account.by_run.loc[account.slowest(len(account.by_run))]
    return AccountExplorer(by_run, account.by_run.loc[account.ordinary].mean())


def _bar(ms: pd.Series, frame: draw.Frame, top: float, name: str) -> str:
    """Parts side by side; a negative one stands to the left of 0 and is not drawn."""
    parts, at = [draw.text(LEFT - 10, top + 22, name, "end")], 0.0
    for part, colour in COLOURS.items():
        length = max(float(ms[part]), 0.0)
        left, right = float(frame.at_x(at)), float(frame.at_x(at + length))
        parts.append(draw.box(left, top, right - left, BAR, f'fill="{colour}"'))
        at += length
    return "".join(parts)
