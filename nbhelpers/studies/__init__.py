"""The two single-node studies in full: what is run, its tables, and the papers' findings weighed against it."""

from .cui import (as_panels, clock_table, parameter_table, repetitions, run_statistics, runs_of_dynamic, runtime_campaign, runtime_design, runtime_findings,
                  variability_table)
from .design import BENCHMARKS, MODELS, PRINTED_MODELS, PROGRAMS, Design, kept_design
from .findings import CONTRADICTED, SUPPORTED, UNSEEN, Finding, finding_sentences, persson_findings, verdict, weigh
from .persson import MODES, WorstTrace, baseline_campaign, describe_traces, injected_campaign, labelled, worst_traces
from .progress import shown_progress
from .tables import (as_published, fairness_table, merge_table, placement_table, replay_table, resilience_table, run_ratios, slowdown_table,
                     spread_table, tracing_table)

__all__ = ["BENCHMARKS", "CONTRADICTED", "Design", "Finding", "MODELS", "MODES", "PRINTED_MODELS", "PROGRAMS", "SUPPORTED", "UNSEEN", "WorstTrace",
           "as_panels", "as_published", "baseline_campaign", "clock_table", "describe_traces", "fairness_table", "finding_sentences", "injected_campaign", "kept_design",
           "labelled", "merge_table", "parameter_table", "persson_findings", "placement_table", "repetitions", "replay_table", "resilience_table",
           "run_ratios", "run_statistics", "runs_of_dynamic", "runtime_campaign", "runtime_design", "runtime_findings", "shown_progress",
           "slowdown_table", "spread_table", "tracing_table", "variability_table", "verdict", "weigh", "worst_traces"]
