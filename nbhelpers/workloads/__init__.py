"""What can be run: our programs, any command line, and where they are placed on the machine."""

from ._cpus import format_cpu_list
from .configuration import (
    Configuration,
    configuration_table,
    configurations,
    environment_table,
    existing_configurations,
)
from .description import Description, descriptions, find_description, read_description
from .openmp import CONSTRUCTS, SCHEDULES, compilers, minife, nbody, schedbench, stream, syncbench
from .programs import (
    as_workload,
    binary_folder,
    elf_interpreter,
    program,
    program_path,
    takes_preload,
)
from .reader import Reader, Report, Table
from .region import REGION_KINDS, Region, as_region
from .sizes import SIZE_MODELS, delay_steps, size_model
from .workload import CONFIGS, MODELS, STARTS, Workload

__all__ = [
    "CONFIGS",
    "CONSTRUCTS",
    "Configuration",
    "Description",
    "MODELS",
    "REGION_KINDS",
    "Reader",
    "Region",
    "Report",
    "SCHEDULES",
    "SIZE_MODELS",
    "STARTS",
    "Table",
    "Workload",
    "as_region",
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
    "find_description",
    "format_cpu_list",
    "minife",
    "nbody",
    "program",
    "program_path",
    "read_description",
    "schedbench",
    "size_model",
    "stream",
    "syncbench",
    "takes_preload",
]
