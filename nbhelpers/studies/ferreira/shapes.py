"""What a loop lost over time under signatures of one share: for a figure and its table.

Owns which of them are shown, so that events can be seen one by one.
"""

from collections.abc import Mapping

import pandas as pd

_SHOWN = 4
_WINDOW_NS = 300_000_000  # three periods of the slowest


def shown_shapes(recorded: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The loop without noise and at most three signatures, the first 0.3 s of each.

    Parameters
    ----------
    recorded
        Of `Loops.detours`: "none", then the signatures by frequency.
    """
    names = list(recorded)
    if len(names) > _SHOWN:
        names = [names[0], names[1], names[len(names) // 2], names[-1]]
    return {name: _cut(recorded[name]) for name in names}


def _cut(detours: pd.DataFrame) -> pd.DataFrame:
    window_ns = min(_WINDOW_NS, detours.attrs["seconds"] * 1e9)
    cut = detours[detours["start_ns"] < window_ns].copy()
    cut.attrs = detours.attrs | {"seconds": window_ns / 1e9}
    return cut


def shapes_table(recorded: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The detours of `shown_shapes`: `signature`, `cpu`, `start_ns`, `duration_ns`."""
    columns = ["signature", "cpu", "start_ns", "duration_ns"]
    parts = [
        detours.assign(signature=name)[columns] for name, detours in shown_shapes(recorded).items()
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
