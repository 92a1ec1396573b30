"""Traces: three sources, one events table (CONTRIBUTING.md, "Tables").

Owns recording (`Tracer` and its parts) and reading (`read_osnoise`, `read_tracepoints`,
`read_detours_run`, `read_traces`). FTQ and FWQ are in `ftq.py`, Netgauge's files in `netgauge.py`,
the naming of detours in `detour_causes.py`.
"""

from .cache import cached_detours, recording_cost
from .campaign import each_trace, read_traces, stolen_times
from .detours import DetourTracer, detour_workload, read_detours_run, record_detours
from .hypervisor import with_stolen_time
from .netduration import noise_from_tracepoints
from .osnoise import read_osnoise
from .simple import trace
from .stolen_shares import stolen_time_sentence, stolen_time_table
from .tracepoints import read_raw_tracepoints, read_tracepoints, write_tracepoints
from .tracer import Tracer, noise_summary, tracing_sentences

__all__ = [
    "DetourTracer",
    "Tracer",
    "cached_detours",
    "detour_workload",
    "each_trace",
    "noise_from_tracepoints",
    "noise_summary",
    "read_detours_run",
    "read_osnoise",
    "read_raw_tracepoints",
    "read_tracepoints",
    "read_traces",
    "record_detours",
    "recording_cost",
    "stolen_time_sentence",
    "stolen_time_table",
    "stolen_times",
    "trace",
    "tracing_sentences",
    "with_stolen_time",
    "write_tracepoints",
]
