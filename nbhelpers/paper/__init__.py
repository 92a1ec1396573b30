"""The paper: a front page of questions and answers, and what there is to quote from it.

`write_paper` makes `build/PROFILE/paper`; `Front` and `Publications` show in a
notebook what stands there.
"""

from ._files import write_paper
from ._front import Front
from ._publications import Publications

__all__ = ["Front", "Publications", "write_paper"]
