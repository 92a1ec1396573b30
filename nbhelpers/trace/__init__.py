"""Traces: three sources, one events table (CONTRIBUTING.md, "Tables").

Owns recording (`Tracer` and its parts) and reading (`read_osnoise`, `read_tracepoints`, `read_detours_run`, `read_traces`).
"""

from .cost import event_cost_ns, event_costs_ns
from .detours import DetourTracer, detour_workload, read_detours_run, record_detours
from .kept import direct_cost, kept_detours
from .netduration import noise_from_tracepoints
from .osnoise import read_osnoise, window_from_workload
from .tracepoints import read_raw_tracepoints, read_tracepoints, write_tracepoints
from .tracer import SOURCES, Tracer, read_traces, summary, tracing_findings

__all__ = ["SOURCES", "DetourTracer", "Tracer", "detour_workload", "direct_cost", "event_cost_ns", "event_costs_ns", "kept_detours", "noise_from_tracepoints",
           "read_detours_run", "read_osnoise", "read_raw_tracepoints", "read_traces", "read_tracepoints", "record_detours", "summary", "tracing_findings",
           "window_from_workload", "write_tracepoints"]
