"""Measurement: one run, a campaign of interleaved runs, counters of each run, the runs table."""

from typing import TYPE_CHECKING

from .. import lazily

if TYPE_CHECKING:
    from .attachment import Attachment
    from .calibration import calibrate
    from .campaign import Campaign, Cell, measure, recorded_runs, series
    from .frequency import FrequencyLogger
    from .layers import available_layers, consequences, metrics
    from .placement import PlacementCheck
    from .run import run_once
    from .table import describe_columns, finished, rates, region_seconds, run_notes
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
