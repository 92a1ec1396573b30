"""What can be run: our programs, anybody's command line, and where they are placed on the machine."""

from ._cpus import format_cpu_list
from .adapters import Adapter, adapter, adapters
from .configurations import Configuration, configuration_table, configurations, environment_table, existing
from .openmp import CONSTRUCTS, SCHEDULES, compilers, minife, nbody, schedbench, stream, syncbench
from .programs import binary_folder, elf_interpreter, external, program_path, takes_preload
from .reader import Reader, Table
from .region import REGION_KINDS, Region, as_region
from .sizing import Sizing, delay_steps, sizing
from .workload import CONFIGS, MODELS, STARTS, Workload

__all__ = ["CONFIGS", "CONSTRUCTS", "Configuration", "MODELS", "REGION_KINDS", "SCHEDULES", "STARTS", "Adapter", "Reader", "Region", "Sizing", "Table", "Workload", "adapter", "adapters", "as_region",
           "binary_folder", "compilers", "configuration_table", "configurations", "delay_steps", "elf_interpreter", "environment_table", "existing", "external", "format_cpu_list", "minife", "nbody", "program_path",
           "schedbench", "sizing", "stream", "syncbench", "takes_preload"]
