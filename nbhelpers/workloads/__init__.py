"""What can be run: our programs, any command line, and where they are placed on the machine."""

from ._cpus import format_cpu_list
from .configuration import (
    Configuration,
    configuration_table,
    configurations,
    environment_table,
    existing_configurations,
)
from .description import descriptions
from .openmp import CONSTRUCTS, SCHEDULES, compilers, minife, nbody, stream, syncbench
from .programs import (
    as_workload,
    binary_folder,
    elf_interpreter,
    program,
    program_path,
    takes_preload,
)
from .reader import Reader, Report, Table
from .region import Region
from .sizes import delay_steps, size_model
from .workload import Workload

__all__ = [
    "CONSTRUCTS",
    "Configuration",
    "Reader",
    "Region",
    "Report",
    "SCHEDULES",
    "Table",
    "Workload",
    "as_workload",
    "binary_folder",
    "compilers",
    "configuration_table",
    "configurations",
    "delay_steps",
    "descriptions",
    "elf_interpreter",
    "environment_table",
    "existing_configurations",
    "format_cpu_list",
    "minife",
    "nbody",
    "program",
    "program_path",
    "size_model",
    "stream",
    "syncbench",
    "takes_preload",
]
