"""Campaigns and noise beyond one machine: which node is slow, and an injector on every node.

`workers.slurm_workers`, `pbs_workers` and `local_workers` ask for nodes by Dask,
`campaign.measure_on_nodes` measures on them, `comparison.compare_nodes` and `figure.figure_nodes`
say which is slow; `head.run_on_nodes` runs an MPI program with noise on every node. This package
imports nothing, so that workers and ranks start quickly.
"""
