"""Explorers: where an answer depends on a choice, controls in JupyterLab and the view that follows.

On an exported page a few chosen views stand behind a plain slider instead.
"""

from .account import explore_account
from .config import explore_config
from .cutoff import explore_cutoff
from .scale import explore_scale
from .trace import explore_trace

__all__ = [
    "explore_account",
    "explore_config",
    "explore_cutoff",
    "explore_scale",
    "explore_trace",
]
