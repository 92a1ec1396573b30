"""The study of one program of the user's: why does it not take the same time twice?"""

from .study import (
    ProgramStudy,
    program_from_options,
    study_folder,
)

__all__ = [
    "ProgramStudy",
    "program_from_options",
    "study_folder",
]
