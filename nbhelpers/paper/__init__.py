"""The paper: a front page of questions and answers, and what there is to quote from it.

`write_paper` makes `build/PROFILE/paper`; `Front` shows in a notebook what stands there first.
"""

from typing import TYPE_CHECKING

from .. import lazily

if TYPE_CHECKING:
    from ._files import write_paper
    from ._front import Front
    from ._publications import publications, verdicts_table
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
