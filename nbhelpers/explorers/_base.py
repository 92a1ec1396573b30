"""What every explorer is: controls, a function that draws their values, a widget that follows them,
and a twin for pages that have no kernel.
"""

import html
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import NoisebookError

STATIC = "NOISEBOOK_STATIC"  # set where nobody is there to drag
_SHOW = (
    "var views=this.parentNode.parentNode.querySelectorAll('[data-view]');"
    "for(var i=0;i&lt;views.length;i++)views[i].style.display=(i==this.value)?'':'none'"
)
# JupyterLab's own rules for tables do not reach into widgets; pages have theirs.
LOOK = (
    "<style>.jupyter-widgets .explorer{line-height:1.4}"
    ".jupyter-widgets .explorer p{margin:.5em 0}"
    ".jupyter-widgets .explorer table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    ".jupyter-widgets .explorer :is(th,td){padding:.25em .7em;text-align:right}"
    ".jupyter-widgets .explorer thead{border-bottom:1px solid}</style>"
)


@dataclass(frozen=True)
class Control:
    """One control: numbers along a slider.

    Attributes
    ----------
    label
        Beside the control.
    options
        What can be chosen.
    start
        One of them.
    unit
        Of the numbers.
    """

    label: str
    options: Sequence[Any]
    start: Any
    unit: str = ""

    def words(self, value: Any) -> str:
        """The value in words, with its unit."""
        shown = f"{value:.4g}" if isinstance(value, float) else f"{value}"
        return f"{shown} {self.unit}".rstrip()

    def widget(self) -> Any:
        """An ipywidget whose `value` is the control's; the view says the value, in one piece with
        what it leads to.
        """
        import ipywidgets

        look: dict[str, Any] = {"description": self.label, "tooltip": self.label}
        look["style"] = {"description_width": "12em"}
        options = [(self.words(value), value) for value in self.options]
        look |= {"readout": False, "layout": {"width": "90%"}}
        return ipywidgets.SelectionSlider(options=options, value=self.start, **look)


@dataclass(frozen=True, eq=False)
class Explorer:
    """Something to look around in; shows itself in a notebook.

    Attributes
    ----------
    draw
        HTML of the controls' values, which it takes by their names.
    controls
        What can be changed, by name.
    chosen
        What differs from the start in each view of the twin, in the order of its slider.

    Examples
    --------
    >>> squares = Explorer(lambda side: f"{side**2}", {"side": Control("side", [1, 2], 1, "m")})
    >>> squares.view(side=2)
    '<div class="explorer"><p>side <strong>2 m</strong></p>4</div>'
    """

    draw: Callable[..., str] = field(repr=False)
    controls: Mapping[str, Control] = field(repr=False)
    chosen: Sequence[Mapping[str, Any]] = field(repr=False, default=())

    def view(self, **values: Any) -> str:
        """HTML of the values, in words and drawn; what is not given has its start value."""
        values = {name: control.start for name, control in self.controls.items()} | values
        words = ", ".join(
            f"{control.label} <strong>{html.escape(control.words(values[name]))}</strong>"
            for name, control in self.controls.items()
        )
        try:
            drawn = self.draw(**values)
        except NoisebookError as error:  # not every choice can be drawn, and the next one may be
            drawn = f"<pre>{html.escape(str(error))}</pre>"
        return f'<div class="explorer"><p>{words}</p>{drawn}</div>'

    def widget(self) -> Any:
        """The controls and the view below, for a running JupyterLab (ipywidgets VBox).

        A browser sends a control's last value when the view of an earlier one is there.
        """
        import ipywidgets

        controls = {name: control.widget() for name, control in self.controls.items()}
        shown = ipywidgets.HTML()

        def follow(_: Any = None) -> None:
            values = {name: control.value for name, control in controls.items()}
            shown.value = LOOK + self.view(**values)

        follow()
        for control in controls.values():
            control.observe(follow, "value")
        return ipywidgets.VBox([*controls.values(), shown])

    def twin(self) -> str:
        """HTML that needs no kernel: the chosen views behind a plain slider."""
        views, start = [self.view(**one) for one in self.chosen], self.view()
        at = views.index(start) if start in views else 0
        hidden = ["" if number == at else ' style="display:none"' for number in range(len(views))]
        shown = "".join(
            f'<div data-view="{number}"{hidden[number]}>{view}</div>'
            for number, view in enumerate(views)
        )
        return (
            f'<div class="explorer-twin"><label>{len(views)} views: <input type="range" min="0"'
            f' max="{len(views) - 1}" value="{at}" style="width:60%" aria-label="view"'
            f' oninput="{_SHOW}"></label>{shown}</div>'
        )

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display

        display(HTML(self.twin()) if os.environ.get(STATIC) else self.widget())
