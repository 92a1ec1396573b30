"""Noise configs as text, one event a line, the same bytes for the same config.

Owns both formats' writing; reading is in `_reading.py`.
"""

import json
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..errors import InputError
from ._table import COLUMNS, FORMAT, INTENSITY
from ._vocabulary import REAL_TIME

if TYPE_CHECKING:
    from .config import NoiseConfig


def noisebook_text(config: "NoiseConfig") -> str:
    """Noisebook's format."""
    table = config.events()
    columns = [*COLUMNS, INTENSITY] if INTENSITY in table.columns else list(COLUMNS)
    head = {
        "format": FORMAT,
        "provenance": config.provenance,
        "window_ns": config.window_ns,
        "columns": columns,
    }
    lines = [f'"{name}": {json.dumps(value, sort_keys=True)},' for name, value in head.items()]
    tails, which = _tails(table[columns[2:]])
    events = [
        f"[{start}, {duration}, {tails[tail]}]"
        for start, duration, tail in zip(
            table["start_ns"].tolist(), table["duration_ns"].tolist(), which.tolist()
        )
    ]
    return "{" + "\n ".join(lines) + '\n "cpus": {\n' + _by_cpu(config, table, events) + "\n }}\n"


def _tails(fields: pd.DataFrame) -> tuple[list[str], np.ndarray]:
    """What follows start and duration: each combination that occurs, and that of each event."""
    groups = fields.groupby(list(fields.columns), observed=True, sort=False, dropna=False)
    which = groups.ngroup().to_numpy()
    unique = fields.iloc[np.unique(which, return_index=True)[1]].astype(
        {"policy": str, "kind": str, "source": str}
    )
    rows = unique.itertuples(index=False, name=None)
    return [
        json.dumps([None if value != value else value for value in row])[1:-1] for row in rows
    ], which


def published_text(config: "NoiseConfig") -> str:
    """The published injector's format: 0 = SCHED_OTHER, −p = SCHED_FIFO p, a last entry of no
    length.
    """
    table = config.events()
    if INTENSITY in table.columns:
        raise InputError(
            "the published injector can only occupy CPUs",
            where="events with an intensity",
            fix="write(path) keeps them; or make a config without them",
        )
    priority = np.where(table["policy"].isin(REAL_TIME), -table["priority"].to_numpy(), 0)
    events = [
        f"[{start}, {duration}, {urgency}]"
        for start, duration, urgency in zip(
            table["start_ns"].tolist(), table["duration_ns"].tolist(), priority.tolist()
        )
    ]
    return "{\n" + _by_cpu(config, table, events, last=f"[{config.window_ns}, 0, 0]") + "\n}\n"


def _by_cpu(
    config: "NoiseConfig", table: pd.DataFrame, events: list[str], last: str | None = None
) -> str:
    """`"cpu": [` and its events, a line each, for all CPUs."""
    cpus = np.array(config.cpus)
    begins, ends = np.searchsorted(table["cpu"].to_numpy(), np.stack([cpus, cpus + 1]))
    blocks = []
    for cpu, begin, end in zip(config.cpus, begins.tolist(), ends.tolist()):
        lines = events[begin:end] + ([last] if last else [])
        blocks.append(f'  "{cpu}": [' + ("\n   " + ",\n   ".join(lines) if lines else "") + "]")
    return ",\n".join(blocks)
