"""Schedules without a file: the patterns of the reference's generator that pages use, those it
lacks, and how they are put together.

Everything is built from arrays, without a loop over ranks: a dissemination among a million ranks
(42 million operations) takes seconds. `patterns.dissemination(1024, 8)`,
`patterns.loop(patterns.halo((8, 8), 4096), 100, compute_ns=10_000)`; applications:
`applications.py`.
"""

# ruff: noqa: F401 (what it imports is what it is for)
from ._collectives import (
    barrier,
    binomial_bcast,
    binomial_gather,
    binomial_reduce,
    binomial_scatter,
    bruck_allgather,
    bruck_alltoall,
    dissemination,
    gather,
    pairwise_alltoall,
    rabenseifner_allreduce,
    recursive_doubling_allreduce,
    ring_allgather,
    scan,
    scatter,
)
from ._composition import (
    calls,
    compose,
    compute,
    embed,
    loop,
    sequence,
    side_by_side,
)
from ._halos import grid, halo, sweep
