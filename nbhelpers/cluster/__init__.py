"""A campaign over many nodes: Dask starts the workers, by the site's scheduler or on this machine;
each node measures by itself, and the nodes are compared.

For users: `workers.local_workers`, `slurm_workers` and `pbs_workers`, `campaign.measure_on_nodes`,
`comparison.compare_nodes`. Dask is an extra: `pip install "noisebook[cluster]"`; `make env`
installs it, too. A package that imports nothing lets workers start quickly.
"""
