"""What can be run: our programs, anybody's command line, and where they are placed on the machine."""

from ._cpus import format_cpu_list
from .programs import binary_folder, elf_interpreter, external, nbody, program_path, takes_preload
from .workload import CONFIGS, MODELS, STARTS, Workload

__all__ = ["CONFIGS", "MODELS", "STARTS", "Workload", "binary_folder", "elf_interpreter", "external", "format_cpu_list", "nbody",
           "program_path", "takes_preload"]
