"""The machine: what it is, what it can do, its settings changed under guard, its measuring lock,
provenance of results.

Owns all that is read from and written to the kernel's settings; the parts after it ask here.
"""

from . import kernel, leftovers, settings
from ._provenance import provenance
from ._read import cpu_list
from ._watch import state_folder
from .checks import Capabilities, Check, Doctor, doctor
from .cpus import Cpu, Topology, online_cpus, topology
from .description import Machine, describe
from .lock import measuring

__all__ = [
    "Capabilities",
    "Check",
    "Cpu",
    "Doctor",
    "Machine",
    "Topology",
    "cpu_list",
    "describe",
    "doctor",
    "kernel",
    "leftovers",
    "measuring",
    "online_cpus",
    "provenance",
    "settings",
    "state_folder",
    "topology",
]
