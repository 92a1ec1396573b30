"""Schedules without a file: every pattern of the reference's generator, those it lacks, and how they are put together.

Everything is built from arrays, without a loop over ranks: a dissemination among a million ranks (42 million operations) takes seconds.
`patterns.dissemination(1024, 8)`, `patterns.loop(patterns.halo((8, 8), 4096), 100, compute_ns=10_000)`; applications: `applications.py`.
"""

from ._composition import (beside, chained_dissemination, compose, compute, embed, idle, loop, renumber, repeat, rotate_root, sequence, shift_ranks,
                           training_step)
from ._doubling import recursive_doubling_allgather, recursive_doubling_allreduce, recursive_halving_reduce_scatter, rabenseifner_allreduce
from ._exchanges import (barrier, bruck_allgather, bruck_alltoall, dissemination, linear_alltoall, linear_alltoallv, linear_scan, nway_dissemination,
                         pairwise_alltoall, random_bisection, ring_allgather, ring_allreduce, ring_reduce_scatter, scan)
from ._halos import grid, halo, sweep
from ._trees import (binary_bcast, binomial_bcast, binomial_gather, binomial_reduce, binomial_scatter, double_ring, gather, kary_bcast, kary_reduce,
                     knomial_bcast, knomial_reduce, linear_barrier, pipelined_ring, scatter)

__all__ = [
    "barrier", "beside", "binary_bcast", "binomial_bcast", "binomial_gather", "binomial_reduce", "binomial_scatter", "bruck_allgather", "bruck_alltoall",
    "chained_dissemination", "compose", "compute", "dissemination", "double_ring", "embed", "gather", "grid", "halo", "idle", "kary_bcast", "kary_reduce",
    "knomial_bcast", "knomial_reduce", "linear_alltoall", "linear_alltoallv", "linear_barrier", "linear_scan", "loop", "nway_dissemination",
    "pairwise_alltoall", "pipelined_ring", "rabenseifner_allreduce", "random_bisection", "recursive_doubling_allgather", "recursive_doubling_allreduce",
    "recursive_halving_reduce_scatter", "renumber", "repeat", "ring_allgather", "ring_allreduce", "ring_reduce_scatter", "rotate_root", "scan", "scatter",
    "sequence", "shift_ranks", "sweep", "training_step",
]
