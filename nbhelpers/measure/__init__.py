"""Runs that can be trusted: one run, a campaign of interleaved runs, counters beside them, the runs
table.
"""

from ._family import threads_of
from ._readers_table import read_table
from ._series import series
from .attachment import Attachment
from .campaign import Campaign, Cell
from .frequency import FrequencyLogger
from .kept import calibrated, recorded_runs, sized
from .layers import LAYERS, consequences, layer_cells, layers_here, metrics, nsys_profiled
from .once import measured_once
from .placement import PlacementCheck
from .run import run_once
from .simple import calibrate, measure
from .table import (
    describe_columns,
    finished,
    rates,
    region_notes,
    region_seconds,
    runs_table,
    same_epochs,
)

__all__ = [
    "Attachment",
    "Campaign",
    "Cell",
    "FrequencyLogger",
    "LAYERS",
    "PlacementCheck",
    "calibrate",
    "calibrated",
    "consequences",
    "describe_columns",
    "finished",
    "layer_cells",
    "layers_here",
    "measure",
    "measured_once",
    "metrics",
    "nsys_profiled",
    "rates",
    "read_table",
    "recorded_runs",
    "region_notes",
    "region_seconds",
    "run_once",
    "runs_table",
    "same_epochs",
    "series",
    "sized",
    "threads_of",
]
