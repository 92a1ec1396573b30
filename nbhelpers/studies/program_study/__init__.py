"""The study of one program of the user's: why does it not take the same time twice?"""

from .options import program_from_options
from .steps import study_folder
from .study import ProgramStudy

__all__ = ["ProgramStudy", "program_from_options", "study_folder"]
