"""The study of one program of the user's: why does it not take the same time twice?"""

from typing import TYPE_CHECKING

from ... import lazily

if TYPE_CHECKING:
    from .options import program_from_options, study_folder
    from .study import ProgramStudy
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
