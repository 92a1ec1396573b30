"""How far a long campaign is, shown in a notebook while it runs.

Owns one line of text that is overwritten, and nothing else.
"""

import time
from collections.abc import Callable


def shown_progress(what: str, every_s: float = 2.0) -> Callable[[int, int, float], None]:
    """A callback for `Campaign.run` that shows the finished runs and the time left in one line of a notebook's cell.

    Parameters
    ----------
    what : is measured, for the line.
    every_s : the line changes at most so often, and once at the end.
    """
    from IPython.display import display

    place = display({"text/plain": f"{what}: nothing is missing"}, raw=True, display_id=True)
    last = [0.0]

    def show(done: int, asked: int, seconds_left: float) -> None:
        if place is None or (done < asked and time.monotonic() - last[0] < every_s):
            return
        last[0] = time.monotonic()
        left = f", {_readable(seconds_left)} left" if done < asked else ""
        place.update({"text/plain": f"{what}: {done} of {asked} runs{left}"}, raw=True)

    return show


def _readable(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
