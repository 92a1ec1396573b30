"""Measurement: one run, a campaign of interleaved runs, counters of each run, the runs table."""

from ._readers_table import read_table
from ._series import series
from .attachment import Attachment
from .calibration import calibrate
from .campaign import Campaign, Cell, recorded_runs
from .frequency import FrequencyLogger
from .layers import available_layers, consequences, metrics
from .placement import PlacementCheck
from .run import run_once
from .simple import measure
from .table import describe_columns, finished, rates, region_seconds

__all__ = [
    "Attachment",
    "Campaign",
    "Cell",
    "FrequencyLogger",
    "PlacementCheck",
    "available_layers",
    "calibrate",
    "consequences",
    "describe_columns",
    "finished",
    "measure",
    "metrics",
    "rates",
    "read_table",
    "recorded_runs",
    "region_seconds",
    "run_once",
    "series",
]
