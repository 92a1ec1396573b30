"""A figure as an image inside HTML, for what is drawn anew while somebody looks."""

import base64
import html
import io
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWING = threading.RLock()  # pyplot has one state for all threads
_DPI = 130  # a dot a pixel of a page, at _LARGER
_LARGER = 1.35  # than in print


def plain_texts(figure: "Figure") -> None:
    """Draw the texts of a figure as they are: a thread named ``$\\frac$kd`` is no mathematics.

    What matplotlib itself writes as mathematics, the powers of ten at an axis, stays.
    """
    from matplotlib.text import Text

    for axes in figure.axes:  # the labels of ticks have no text before
        axes.get_xticklabels(which="both"), axes.get_yticklabels(which="both")
    for text in figure.findobj(Text):
        text.set_parse_math("\\mathdefault" in text.get_text())


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
    with DRAWING:
        plain_texts(figure)
        figure.set_dpi(_DPI)  # savefig would draw twice, the first time for the layout alone
        made = {"metadata": {"Software": None}, "pil_kwargs": {"compress_level": 1}}
        FigureCanvasAgg(figure).print_png(content, **made)
        plt.close(figure)
    data = base64.b64encode(content.getvalue()).decode()
    return (
        f'<img alt="{html.escape(alternative)}" style="width:{width_in:.2f}in;max-width:100%"'
        f' src="data:image/png;base64,{data}">'
    )
