"""What can be run: our programs, any command line, and where they are placed on the machine."""

from typing import TYPE_CHECKING

from .. import lazily

if TYPE_CHECKING:
    from ._cpus import format_cpu_list
    from .configuration import (
        Configuration,
        configurations,
        environment_table,
        existing_configurations,
    )
    from .description import descriptions
    from .openmp import compilers, minife, nbody, stream, syncbench
    from .programs import as_workload, binary_folder, program, program_path
    from .reader import Report
    from .region import Region
    from .workload import Workload
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
