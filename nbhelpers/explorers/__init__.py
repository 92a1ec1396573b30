"""Explorers: where an answer depends on a choice, controls in JupyterLab and the view that follows.

On an exported page a few chosen views stand behind a plain slider instead.
"""

from .cutoff import explore_cutoff

__all__ = ["explore_cutoff"]
