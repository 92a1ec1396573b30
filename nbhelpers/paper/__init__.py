"""The paper: a front page of questions and answers, and what there is to quote from it.

`write_paper` makes `build/PROFILE/paper`; `Front` shows the cards in a notebook.
"""

from ._files import write_paper
from ._front import Front

__all__ = ["Front", "write_paper"]
