"""The two single-node studies in full: what is run, its tables, and the papers' findings weighed against it."""

from .cui import (FAMILIES, asked, benchmarks, clock_table, parameter_table, repetitions, run_statistics, runs_of_dynamic, runtime_campaign, runtime_design, runtime_findings,
                  variability_table)
from .cui_panels import cores_left, node_sides, reserved_sides, smt_sides, thread_scaling
from .design import BENCHMARKS, MODELS, PRINTED_MODELS, PROGRAMS, Design, absence, kept_design
from .findings import CONTRADICTED, SUPPORTED, UNSEEN, Finding, finding_sentences, persson_findings, verdict, weigh
from .own_program import OwnProgram, Plan, Traced, Verdict, described_program, own_folder, plan_of, report_of
from .persson import MODES, WorstTrace, baseline_campaign, describe_traces, injected_campaign, labelled, worst_traces
from .persson_answers import crossing_table, fairness_sentences, length_cells, length_table
from .persson_fairness import labelled_lengths, length_campaign, planted_traces, repeated
from .persson_panels import trace_lanes, traced_cell
from .tables import (as_published, merge_table, placement_table, replay_table, resilience_table, run_ratios, slowdown_table,
                     spread_table, tracing_table)

__all__ = ["OwnProgram", "Plan", "Traced", "Verdict", "described_program", "own_folder", "plan_of", "report_of",
           "BENCHMARKS", "CONTRADICTED", "Design", "Finding", "MODELS", "MODES", "PRINTED_MODELS", "PROGRAMS", "SUPPORTED", "UNSEEN", "WorstTrace",
           "FAMILIES", "absence", "as_published", "asked", "benchmarks", "cores_left", "node_sides", "reserved_sides", "smt_sides", "thread_scaling", "trace_lanes", "traced_cell", "baseline_campaign", "clock_table", "crossing_table", "describe_traces", "fairness_sentences", "finding_sentences", "injected_campaign", "kept_design",
           "labelled", "labelled_lengths", "length_campaign", "length_cells", "length_table", "merge_table", "parameter_table", "persson_findings", "placement_table", "planted_traces", "repeated", "repetitions", "replay_table", "resilience_table",
           "run_ratios", "run_statistics", "runs_of_dynamic", "runtime_campaign", "runtime_design", "runtime_findings", 
           "slowdown_table", "spread_table", "tracing_table", "variability_table", "verdict", "weigh", "worst_traces"]
