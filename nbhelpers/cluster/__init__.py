"""A campaign over many nodes: Dask starts the workers, by the site's scheduler or on this machine;
each node measures by itself, and the nodes are compared.

Dask is an extra: `pip install "noisebook[cluster]"`; `make env` installs it, too.
"""

from .campaign import measure_on_nodes, recorded_on_nodes
from .comparison import compare_nodes
from .workers import local_workers, pbs_workers, slurm_workers

__all__ = [
    "compare_nodes",
    "local_workers",
    "measure_on_nodes",
    "pbs_workers",
    "recorded_on_nodes",
    "slurm_workers",
]
