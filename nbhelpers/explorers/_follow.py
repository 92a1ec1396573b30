"""How a view follows its controls: the last change always wins.

Owns the order of changes and drawings. A change only asks for a drawing; the drawing reads all
controls when it begins. So changes that come while one is drawn lead to one more drawing, of the
last values, and those between are left out.
"""

import asyncio
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._base import Explorer

PAUSE_S = 0.03  # after a change; what else waits in the kernel's queue is taken in meanwhile


class Following:
    """Draws an explorer's view whenever its controls change.

    JupyterLab may deliver changes on another thread than that of the cells (a subshell). So the
    values are read, drawn and shown under a lock.

    Parameters
    ----------
    explorer
        Whose view is drawn.
    controls
        Widgets by the names in the state.
    shown
        The widget whose `value` is the view.
    """

    def __init__(self, explorer: "Explorer", controls: dict[str, Any], shown: Any):
        self._explorer, self._controls, self._shown = explorer, controls, shown
        self._asked = False
        self._drawing = threading.Lock()
        for control in controls.values():
            control.observe(self._changed, "value")

    def _changed(self, _: Any) -> None:
        if self._asked:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # a script: nothing else will come meanwhile
            self._draw()
            return
        self._asked = True
        loop.call_later(PAUSE_S, self._draw)

    def _draw(self) -> None:
        with self._drawing:
            self._asked = False  # first: a change from here on asks again
            state = {name: control.value for name, control in self._controls.items()}
            self._shown.value = self._explorer.in_widget(state)
