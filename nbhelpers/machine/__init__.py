"""The machine: what it is, what it can do, its settings, its measuring lock, provenance of results.

Everything that reads or changes a setting of the kernel goes through this package.
"""

from typing import TYPE_CHECKING

from .. import lazily

if TYPE_CHECKING:
    from . import kernel, settings
    from ._provenance import provenance
    from ._read import cpu_list
    from ._watch import state_folder
    from .checks import Doctor, doctor
    from .cpus import Cpu, Topology, online_cpus, topology
    from .description import describe
    from .lock import measuring
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
