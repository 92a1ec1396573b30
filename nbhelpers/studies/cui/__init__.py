"""The study of Cui et al. 2023: how much the operations of the OpenMP runtime vary."""

from .answer import (
    variability_answer,
    variability_sentence,
)
from .campaign import (
    FAMILIES,
    benchmark_names,
    runs_in,
    runtime_campaign,
    runtime_design,
)
from .findings import (
    runtime_findings,
)
from .panels import (
    STREAM_KERNELS,
    construct_rows,
    cores_left,
    node_sides,
    of_benchmarks,
    of_compiler,
    of_configurations,
    reserved_sides,
    smt_sides,
    stream_rows,
    thread_scaling,
)
from .tables import (
    clock_table,
    parameter_table,
    repetitions,
    run_statistics,
    runs_of_dynamic,
    variability_table,
)

__all__ = [
    "FAMILIES",
    "STREAM_KERNELS",
    "benchmark_names",
    "clock_table",
    "construct_rows",
    "cores_left",
    "node_sides",
    "of_benchmarks",
    "of_compiler",
    "of_configurations",
    "parameter_table",
    "repetitions",
    "reserved_sides",
    "run_statistics",
    "runs_in",
    "runs_of_dynamic",
    "runtime_campaign",
    "runtime_design",
    "runtime_findings",
    "smt_sides",
    "stream_rows",
    "thread_scaling",
    "variability_answer",
    "variability_sentence",
    "variability_table",
]
