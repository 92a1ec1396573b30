"""The linked view of runs, the same in JupyterLab and on exported pages; the tree of a cutoff."""

from typing import TYPE_CHECKING

from .. import lazily

if TYPE_CHECKING:
    from .runs import explore_runs
    from .tree import LOOK, STATIC, STEPS, tree_html
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
