"""What can be clicked: the bars of a distribution, and the nodes of a tree. Each is a button, so
that neither JavaScript nor a picture's coordinates are needed.
"""

import html
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..outcomes import outcome_of
from ..report.appearance import ROLES
from .nodes import Node
from .session import Session
from .views import paragraph, sentence_of_most_runs

if TYPE_CHECKING:
    from ..attribution import Explanation

FAST, SLOW = ROLES["fast"].colour, ROLES["slow"].colour
UNCLAIMED = "#dddddd"
ANYWAY = "show the tree anyway: it is not shown to be better than chance"
_HEIGHT_PX, _LEAST_PX = 150, 8
_MOST_BARS = 36
_WIDTH_PX = 360  # of a distribution: a tree of three leaves fits beside it
_LEAF_PX, _TREE_PX = 94, 400


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

    def clear(self) -> None:
        """Show no distribution."""
        self.box.children, self.scale.value = [], ""

    def show(self, session: Session, explanation: "Explanation") -> None:
        """Draw the distribution with the classes of an explanation."""
        values, higher = session.values, explanation.higher_is_better
        count = int(np.clip(2 * np.sqrt(values.size), 8, _MOST_BARS))
        runs, edges = np.histogram(values, bins=count)
        slow, _ = np.histogram(values[explanation.labels.to_numpy(bool)], bins=edges)
        pitch_px = _WIDTH_PX // count
        self.box.children = [
            self._bar(
                int(runs[at]), int(slow[at]), runs.max(), edges[at : at + 2], higher, pitch_px
            )
            for at in range(count)
        ]
        most = sentence_of_most_runs(values, outcome_of(session.table, session.judged).unit)
        wide = f"width:{pitch_px * count}px"
        self.scale.value = (
            f'<div style="display:flex;justify-content:space-between;{wide}">'
            f"<span>{edges[0]:.4g}</span><b>{html.escape(session.judged)}</b>"
            f"<span>{edges[-1]:.4g}</span></div>"
            f'<div style="line-height:1.4;{wide}">A click on a bar puts the cutoff at its'
            f" {'upper' if higher else 'lower'} edge.<br>"
            f'<span style="color:{FAST}">■</span> fast <span style="color:{SLOW}">■</span>'
            f" slow{paragraph(most)}</div>"
        )

    def _bar(
        self, runs: int, slow: int, most: int, edges: np.ndarray, higher: bool, pitch_px: int
    ) -> Any:
        import ipywidgets

        height = _LEAST_PX + round((_HEIGHT_PX - _LEAST_PX) * runs / max(most, 1))
        bar = ipywidgets.Button(
            tooltip=f"{runs} runs from {edges[0]:.4g} to {edges[1]:.4g}: cutoff here",
            layout=ipywidgets.Layout(
                width=f"{pitch_px - 1}px", height=f"{height}px", margin="0 1px 0 0", padding="0"
            ),
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
        self.widget = ipywidgets.VBox(layout=ipywidgets.Layout(flex="1 1 0"))

    def show(self, node: Node | None, unclaimed: str = "") -> None:
        """Draw a tree, or say that there is none.

        Parameters
        ----------
        node
            Its root.
        unclaimed
            Why nothing is claimed of it: such a tree has no colours. Empty: the null claims it.
        """
        if node is None:
            text = "No tree: no column of numbers separates the runs by itself."
            self.widget.children = [self._text(text)]
            return
        self._make_room(node.leaves)
        say = "A click on a node explains its metric. Left: at most the threshold."
        above = [self._text(unclaimed)] if unclaimed else []
        self.widget.children = [*above, self._of(node, bool(unclaimed)), self._text(say)]

    def clear(self) -> None:
        """Show no tree."""
        self.widget.children = []

    def refuse(self, why: str, node: Node | None) -> None:
        """Say why no tree is shown, and show it only on a click.

        Parameters
        ----------
        why
            With the numbers.
        node
            Root of the tree; None: there is none to show.
        """
        import ipywidgets

        self._make_room(1)
        self.widget.children = [self._text(why)]
        if node is None:
            return
        layout = ipywidgets.Layout(width="auto", align_self="flex-start")
        anyway = ipywidgets.Button(description=ANYWAY, layout=layout)
        anyway.on_click(lambda _: self.show(node, why))
        self.widget.children = [self._text(why), anyway]

    def _make_room(self, leaves: int) -> None:
        """Beside the distribution if there is room for all leaves, else beneath."""
        self.widget.layout.min_width = f"{max(_TREE_PX, _LEAF_PX * leaves)}px"

    def _text(self, text: str) -> Any:
        import ipywidgets

        return ipywidgets.HTML(
            f'<div style="max-width:42em;line-height:1.4">{paragraph(text)}</div>'
        )

    def _of(self, node: Node, is_pale: bool, share: float = 1.0) -> Any:
        import ipywidgets

        layout = ipywidgets.Layout(align_items="center", width=f"{100 * share:.4g}%")
        if not node.left or not node.right:
            return ipywidgets.VBox([self._drawn(node, is_pale)], layout=layout)
        below = ipywidgets.HBox(
            [self._of(one, is_pale, one.leaves / node.leaves) for one in (node.left, node.right)],
            layout=ipywidgets.Layout(width="100%"),
        )
        return ipywidgets.VBox([self._drawn(node, is_pale), below], layout=layout)

    def _drawn(self, node: Node, is_pale: bool) -> Any:
        import ipywidgets

        tally = f"{node.fast} fast, {node.slow} slow"
        colour = UNCLAIMED if is_pale else SLOW if node.is_slow else FAST
        if node.is_leaf:
            style = f"background:{colour};padding:4px 10px;line-height:1.3;text-align:center"
            return ipywidgets.HTML(f'<div style="{style};color:black">{tally}</div>')
        shown = ipywidgets.Button(
            description=f"{node.metric} ≤ {node.threshold:.3g}?",
            tooltip=f"{node.metric} ≤ {node.threshold:.6g}? {tally}; what is {node.metric}?",
            layout=ipywidgets.Layout(width="auto", max_width="100%", min_width="60px"),
        )
        shown.style.button_color, shown.style.text_color = colour, "black"
        shown.on_click(lambda _: self._look_at(node.metric))
        return shown
