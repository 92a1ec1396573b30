"""Runs that can be trusted: one run, a campaign of interleaved runs, counters beside them, the runs table."""

from .attachment import Attachment
from .campaign import Campaign, Cell
from .kept import calibrated, recorded_runs
from .layers import LAYERS, metrics
from .run import run_once
from .simple import calibrate, measure
from .table import describe_columns, finished, rates, runs_table

__all__ = ["LAYERS", "Attachment", "Campaign", "Cell", "calibrate", "calibrated", "describe_columns", "finished", "measure", "metrics", "rates", "recorded_runs",
           "run_once", "runs_table"]
