"""What can be run: our programs, any command line, and where they are placed on the machine."""

from ._cpus import format_cpu_list
from .configuration import (
    Configuration,
    configurations,
    environment_table,
    existing_configurations,
)
from .description import descriptions
from .openmp import compilers, minife, nbody, stream, syncbench
from .programs import (
    as_workload,
    binary_folder,
    program,
    program_path,
)
from .reader import Report
from .region import Region
from .workload import Workload

__all__ = [
    "Configuration",
    "Region",
    "Report",
    "Workload",
    "as_workload",
    "binary_folder",
    "compilers",
    "configurations",
    "descriptions",
    "environment_table",
    "existing_configurations",
    "format_cpu_list",
    "minife",
    "nbody",
    "program",
    "program_path",
    "stream",
    "syncbench",
]
