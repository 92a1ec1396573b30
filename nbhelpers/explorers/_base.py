"""What every explorer is: controls, a view that is a pure function of their values, a widget that
follows them, and a twin for pages that have no kernel.

Owns the frame of a view and its cache, and the twin's slider.
"""

import html
import json
import os
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

from ..errors import InputError, NoisebookError
from ._controls import Control
from ._follow import Following

STATIC = "NOISEBOOK_STATIC"  # set where nobody is there to drag
MOST_VIEWS = 256  # in the cache of an explorer
_SHOW = (
    "var views=this.parentNode.querySelectorAll('[data-view]');"
    "for(var i=0;i&lt;views.length;i++)views[i].style.display=(i==this.value)?'':'none'"
)
_HIDDEN = ' style="display:none"'
# JupyterLab's own rules for tables do not reach into widgets; pages have theirs.
_LOOK = (
    "<style>.jupyter-widgets .explorer{line-height:1.4}"
    ".jupyter-widgets .explorer p{margin:.5em 0}"
    ".jupyter-widgets .explorer table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    ".jupyter-widgets .explorer :is(th,td){padding:.25em .7em;text-align:right}"
    ".jupyter-widgets .explorer thead{border-bottom:1px solid}</style>"
)


class Explorer:
    """Something to look around in; shows itself in a notebook.

    A subclass has `controls`, `draw` and `chosen`. All else follows.
    """

    def controls(self) -> tuple[Control, ...]:
        """What can be changed."""
        raise NotImplementedError

    def draw(self, state: dict[str, Any]) -> str:
        """HTML of a state, without the state's own words; the same state gives the same HTML."""
        raise NotImplementedError

    def chosen(self) -> list[dict[str, Any]]:
        """The states that the twin shows, in the order of its slider."""
        raise NotImplementedError

    @property
    def start(self) -> dict[str, Any]:
        """The state to begin with."""
        return {control.name: control.start for control in self.controls()}

    def view(self, state: Mapping[str, Any] | None = None) -> str:
        """HTML of a state: its values in words, and what they lead to, in one piece.

        Parameters
        ----------
        state
            Values by the controls' names; what is not named has its start value.

        Raises
        ------
        InputError
            No control has this name.
        """
        state = dict(state or {})
        controls = {control.name: control for control in self.controls()}
        unknown = [name for name in state if name not in controls]
        if unknown:
            raise InputError(
                f"no control is called {unknown[0]!r}",
                fix=f"there are: {', '.join(controls)}",
            )
        values = self.start | state
        return self._views(
            tuple((name, control.clean(values[name])) for name, control in controls.items())
        )

    @cached_property
    def _views(self) -> Any:
        return lru_cache(MOST_VIEWS)(self._framed)

    def _framed(self, items: tuple[tuple[str, Any], ...]) -> str:
        state = dict(items)
        words = ", ".join(
            f"{control.label} <strong>{html.escape(control.words(state[control.name]))}</strong>"
            for control in self.controls()
        )
        values = html.escape(json.dumps(state), quote=True)
        try:
            drawn = self.draw(state)
        except NoisebookError as error:  # not every choice can be drawn, and the next one may be
            drawn = f"<pre>{html.escape(str(error))}</pre>"
        return f'<div class="explorer" data-state="{values}"><p>{words}</p>{drawn}</div>'

    def in_widget(self, state: Mapping[str, Any]) -> str:
        """HTML of a state with the look of its tables, which a widget's HTML does not have."""
        return _LOOK + self.view(state)

    def widget(self) -> Any:
        """The controls and the view below, for a running JupyterLab (ipywidgets VBox).

        The view always ends at the controls' last values; states between may be left out.
        """
        import ipywidgets

        controls = {control.name: control.widget() for control in self.controls()}
        shown = ipywidgets.HTML(self.in_widget(self.start))
        box = ipywidgets.VBox([*controls.values(), shown])
        box.following = Following(self, controls, shown)
        return box

    def twin(self) -> str:
        """HTML that needs no kernel: views of the chosen states behind a plain slider."""
        views = [self.view(state) for state in self.chosen()]
        start = self.view()
        at = views.index(start) if start in views else 0
        shown = "".join(
            f'<div data-view="{number}"{"" if number == at else _HIDDEN}>{view}</div>'
            for number, view in enumerate(views)
        )
        return (
            f'<div class="explorer-twin"><label>{len(views)} views: <input type="range" min="0"'
            f' max="{len(views) - 1}" value="{at}" style="width:60%" aria-label="view"'
            f' oninput="{_SHOW.replace("this.parentNode", "this.parentNode.parentNode")}"></label>'
            f"{shown}</div>"
        )

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display

        display(HTML(self.twin()) if os.environ.get(STATIC) else self.widget())
