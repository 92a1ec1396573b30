"""A figure as an image inside HTML, for what is drawn anew while somebody looks."""

import base64
import html
import io
from typing import TYPE_CHECKING

from ..palette import names_as_they_are, second_channel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 130  # a dot a pixel of a page, at _LARGER
_LARGER = 1.35  # than in print


def embedded(figure: "Figure", alternative: str) -> str:
    """A figure as an image in HTML, closed afterwards.

    Parameters
    ----------
    figure
        Figure of matplotlib.
    alternative
        What it shows, for those who cannot see it.
    """
    import matplotlib.pyplot as plt
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    content = io.BytesIO()
    width_in = _LARGER * float(figure.get_size_inches()[0])
    names_as_they_are()
    second_channel(figure)
    figure.set_dpi(_DPI)  # savefig would draw twice, the first time for the layout alone
    made = {"metadata": {"Software": None}, "pil_kwargs": {"compress_level": 1}}
    FigureCanvasAgg(figure).print_png(content, **made)
    plt.close(figure)
    data = base64.b64encode(content.getvalue()).decode()
    return (
        f'<img alt="{html.escape(alternative)}" style="width:{width_in:.2f}in;max-width:100%"'
        f' src="data:image/png;base64,{data}">'
    )
