"""The study of Persson et al. 2025: programs × models × configurations, undisturbed, under replayed
worst cases, and the questions of fairness.
"""

from .answer import (
    mitigation_answer,
)
from .campaigns import (
    baseline_campaign,
    describe_traces,
    injected_campaign,
    label_runs,
    worst_traces,
)
from .fairness import (
    label_length_runs,
    length_campaign,
    planted_traces,
)
from .fairness_tables import (
    crossing_table,
    fairness_findings,
    fairness_sentences,
    length_cells,
    length_table,
)
from .findings import (
    persson_findings,
)
from .panels import (
    trace_lanes,
)
from .robustness import decided_table, robust_sentences
from .selection import first_traced, natural_rows, planted_rows, trace_note
from .tables import (
    comparable_rows,
    merge_table,
    replay_table,
    resilience_table,
    run_ratios,
    slowdown_table,
    spread_table,
    tracing_table,
)

__all__ = [
    "baseline_campaign",
    "comparable_rows",
    "crossing_table",
    "decided_table",
    "describe_traces",
    "fairness_findings",
    "fairness_sentences",
    "first_traced",
    "injected_campaign",
    "label_length_runs",
    "label_runs",
    "length_campaign",
    "length_cells",
    "length_table",
    "merge_table",
    "mitigation_answer",
    "natural_rows",
    "persson_findings",
    "planted_rows",
    "planted_traces",
    "replay_table",
    "resilience_table",
    "robust_sentences",
    "run_ratios",
    "slowdown_table",
    "spread_table",
    "trace_lanes",
    "trace_note",
    "tracing_table",
    "worst_traces",
]
