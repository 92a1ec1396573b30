"""The linked view of runs, the same in JupyterLab and on exported pages."""

from typing import TYPE_CHECKING

from .. import lazily

if TYPE_CHECKING:
    from .runs import explore_runs
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
