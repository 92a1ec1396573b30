"""What can be clicked: the bars of a distribution, and the nodes of a tree. Each is a button, so
that neither JavaScript nor a picture's coordinates are needed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..report.appearance import ROLES
from .nodes import Node
from .session import Session

if TYPE_CHECKING:
    from ..attribution import Explanation

FAST, SLOW = ROLES["fast"].colour, ROLES["slow"].colour
_HEIGHT_PX, _LEAST_PX = 150, 8
_MOST_BARS = 36


class Bars:
    """A distribution whose bars are buttons: a click puts the cutoff at the bar.

    Parameters
    ----------
    cut
        Called with the value of a clicked bar's edge.
    """

    def __init__(self, cut: Callable[[float], object]):
        import ipywidgets

        self._cut = cut
        layout = ipywidgets.Layout(align_items="flex-end", height=f"{_HEIGHT_PX + 24}px")
        self.box = ipywidgets.HBox(layout=layout)
        self.scale = ipywidgets.HTML()
        self.widget = ipywidgets.VBox([self.box, self.scale])

    def show(self, session: Session, explanation: "Explanation") -> None:
        """Draw the distribution with the classes of an explanation."""
        values, higher = session.values, explanation.higher_is_better
        count = int(np.clip(2 * np.sqrt(values.size), 8, _MOST_BARS))
        runs, edges = np.histogram(values, bins=count)
        slow, _ = np.histogram(values[explanation.labels.to_numpy(bool)], bins=edges)
        self.box.children = [
            self._bar(int(runs[at]), int(slow[at]), runs.max(), edges[at : at + 2], higher)
            for at in range(count)
        ]
        self.scale.value = (
            f'<div style="display:flex;justify-content:space-between;max-width:{18 * count}px">'
            f"<span>{edges[0]:.4g}</span><b>{session.judged}</b><span>{edges[-1]:.4g}</span></div>"
            f"<p>A click on a bar puts the cutoff at its {'upper' if higher else 'lower'} edge."
            f' <span style="color:{FAST}">■</span> fast <span style="color:{SLOW}">■</span>'
            " slow</p>"
        )

    def _bar(self, runs: int, slow: int, most: int, edges: np.ndarray, higher: bool) -> Any:
        import ipywidgets

        height = _LEAST_PX + round((_HEIGHT_PX - _LEAST_PX) * runs / max(most, 1))
        bar = ipywidgets.Button(
            tooltip=f"{runs} runs from {edges[0]:.4g} to {edges[1]:.4g}: cutoff here",
            layout=ipywidgets.Layout(width="17px", height=f"{height}px", margin="0 1px 0 0"),
        )
        bar.style.button_color = "#eeeeee" if not runs else SLOW if 2 * slow > runs else FAST
        value = float(edges[1] if higher else edges[0])
        bar.on_click(lambda _: self._cut(value))
        return bar


class Tree:
    """A decision tree whose nodes are buttons.

    Parameters
    ----------
    look_at
        Called with the metric of a clicked node.
    """

    def __init__(self, look_at: Callable[[str], object]):
        import ipywidgets

        self._look_at = look_at
        self.widget = ipywidgets.VBox(layout=ipywidgets.Layout(min_width="420px", flex="1 1 auto"))

    def show(self, node: Node | None) -> None:
        """Draw a tree, or say that there is none."""
        import ipywidgets

        if node is None:
            self.widget.children = [
                ipywidgets.HTML("<p>No tree: no column separates the runs.</p>")
            ]
            return
        say = "<p>A click on a node explains its metric. Left: at most the threshold.</p>"
        self.widget.children = [self._of(node), ipywidgets.HTML(say)]

    def _of(self, node: Node, share: float = 1.0) -> Any:
        import ipywidgets

        layout = ipywidgets.Layout(align_items="center", width=f"{100 * share:.4g}%")
        if not node.left or not node.right:
            return ipywidgets.VBox([self._button(node)], layout=layout)
        below = ipywidgets.HBox(
            [self._of(one, one.leaves / node.leaves) for one in (node.left, node.right)],
            layout=ipywidgets.Layout(width="100%"),
        )
        return ipywidgets.VBox([self._button(node), below], layout=layout)

    def _button(self, node: Node) -> Any:
        import ipywidgets

        tally = f"{node.fast} fast, {node.slow} slow"
        text = tally if node.is_leaf else f"{node.metric} ≤ {node.threshold:.3g}?"
        shown = ipywidgets.Button(
            description=text,
            tooltip=tally if node.is_leaf else f"{tally}; what is {node.metric}?",
            disabled=node.is_leaf,
            layout=ipywidgets.Layout(width="auto", max_width="100%", min_width="60px"),
        )
        shown.style.button_color = SLOW if node.is_slow else FAST
        shown.style.text_color = "black"
        if not node.is_leaf:
            shown.on_click(lambda _: self._look_at(node.metric))
        return shown
