"""Explorers: where an answer depends on a choice, controls in JupyterLab and the view that follows.

On an exported page a few chosen views stand behind a plain slider instead; the linked view of runs
is the same in both.
"""

from typing import TYPE_CHECKING

from .. import lazily

if TYPE_CHECKING:
    from ._base import LOOK, STATIC
    from .config import explore_config
    from .cutoff import STEPS, explore_cutoff, tree_html
    from .runs import explore_runs
    from .scale import explore_scale
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
