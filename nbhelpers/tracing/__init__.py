"""Traces: three sources, one events table (CONTRIBUTING.md, "Tables").

Owns recording (`Tracer` and its parts) and reading (`read_osnoise`, `read_tracepoints`,
`read_detours_run`, `read_traces`).
"""

from .cache import cached_detours, recording_cost
from .cost import event_cost_ns, event_costs_ns
from .detour_causes import attribute_detours, record_explained_detours
from .detours import DetourTracer, detour_workload, read_detours_run, record_detours
from .foreign import read_foreign_traces
from .ftq import read_quanta, record_ftq, record_fwq, write_quanta
from .hypervisor import stolen_time, stolen_times, with_stolen_time
from .netduration import noise_from_tracepoints
from .netgauge import detour_summary, read_netgauge, write_netgauge
from .osnoise import read_osnoise, window_from_workload
from .simple import TracedRuns, trace
from .stolen_shares import stolen_time_sentence, stolen_time_table
from .tracepoints import read_raw_tracepoints, read_tracepoints, write_tracepoints
from .tracer import SOURCES, Tracer, noise_summary, read_traces, tracing_sentences

__all__ = [
    "SOURCES",
    "DetourTracer",
    "TracedRuns",
    "Tracer",
    "trace",
    "attribute_detours",
    "detour_summary",
    "detour_workload",
    "recording_cost",
    "event_cost_ns",
    "event_costs_ns",
    "cached_detours",
    "noise_from_tracepoints",
    "read_detours_run",
    "read_foreign_traces",
    "read_netgauge",
    "read_osnoise",
    "read_quanta",
    "read_raw_tracepoints",
    "read_tracepoints",
    "read_traces",
    "record_detours",
    "record_explained_detours",
    "record_ftq",
    "record_fwq",
    "stolen_time_sentence",
    "stolen_time_table",
    "stolen_time",
    "stolen_times",
    "noise_summary",
    "tracing_sentences",
    "window_from_workload",
    "with_stolen_time",
    "write_netgauge",
    "write_quanta",
    "write_tracepoints",
]
