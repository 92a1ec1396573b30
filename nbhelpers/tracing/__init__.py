"""Traces: three sources, one events table (data/README.md).

Owns recording (`Tracer` and its parts) and reading (`read_osnoise`, `read_tracepoints`,
`read_detours_run`, `read_traces`). Netgauge's files are in `netgauge`.
"""

from typing import TYPE_CHECKING

from .. import lazily

if TYPE_CHECKING:
    from .cache import cached_detours
    from .campaign import each_trace, read_traces, stolen_times
    from .cost import event_costs
    from .detours import DetourTracer, detour_workload, read_detours_run, record_detours
    from .hypervisor import with_stolen_time
    from .netduration import noise_from_tracepoints
    from .osnoise import read_osnoise
    from .simple import trace
    from .tracepoints import read_recording, read_tracepoints, write_tracepoints
    from .tracer import Tracer, noise_summary
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
