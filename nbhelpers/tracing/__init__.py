"""Traces: three sources, one events table (CONTRIBUTING.md, "Tables").

Owns recording (`Tracer` and its parts) and reading (`read_osnoise`, `read_tracepoints`,
`read_detours_run`, `read_traces`).
"""

from ._steal import gap_account, steal_sentence, steal_table
from .cache import direct_cost, kept_detours
from .cost import event_cost_ns, event_costs_ns
from .detour_causes import attribute_detours, record_explained_detours
from .detours import DetourTracer, detour_workload, read_detours_run, record_detours
from .foreign import read_given_traces
from .ftq import read_quanta, record_ftq, record_fwq, write_quanta
from .hypervisor import stolen_time, stolen_times, with_hardware
from .netduration import noise_from_tracepoints
from .netgauge import detour_summary, read_netgauge, write_netgauge
from .osnoise import read_osnoise, window_from_workload
from .simple import Traced, trace
from .tracepoints import read_raw_tracepoints, read_tracepoints, write_tracepoints
from .tracer import SOURCES, Tracer, read_traces, summary, tracing_findings

__all__ = [
    "SOURCES",
    "DetourTracer",
    "Traced",
    "Tracer",
    "trace",
    "attribute_detours",
    "detour_summary",
    "detour_workload",
    "direct_cost",
    "event_cost_ns",
    "event_costs_ns",
    "gap_account",
    "kept_detours",
    "noise_from_tracepoints",
    "read_detours_run",
    "read_given_traces",
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
    "steal_sentence",
    "steal_table",
    "stolen_time",
    "stolen_times",
    "summary",
    "tracing_findings",
    "window_from_workload",
    "with_hardware",
    "write_netgauge",
    "write_quanta",
    "write_tracepoints",
]
