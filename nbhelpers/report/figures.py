"""All figures of Noisebook: one function a figure, tables in, a matplotlib Figure at print size out.

Owns nothing but the list; `save_figure` puts a figure on disk with its caption and data.
"""

from ._attribution import figure_attribution
from ._detours import figure_detours
from ._distribution import figure_compare, figure_distribution, figure_planted
from ._noise import figure_noise, figure_timeline

__all__ = ["figure_attribution", "figure_compare", "figure_detours", "figure_distribution", "figure_noise", "figure_planted", "figure_timeline"]
