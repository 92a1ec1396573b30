"""What a study of a program says on a terminal: 25 lines of 80 columns, cause and size first."""

import textwrap
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ...attribution.who import COMPUTED
from .took import SLOWER_CPU

if TYPE_CHECKING:
    from .study import ProgramStudy
    from .took import Took

# grades of a cause, each more than the one before
SEEN, AGAIN = "seen with it", "seen again in other runs"
REPLAYED, DOSE, REMOVED = "replayed", "dose shown", "removed"
COLUMNS, BINS = 80, 6
_SHORT = {
    "spread": "Spread",
    "noise": "Noise",
    "tracing": "Tracing",
    "replay": "Replay",
    "anomaly": "As slow",
    "cause": "Counters",
    "remedy": "Remedy",
    "proof": "Doses",
}
_COMMANDS = {
    "runnable": "Try: renice 19 $(pgrep -x '{}'), or give it other CPUs (taskset).",
    "waiting": "Look: ps -o pid,etime,cmd -C '{}'.",
    "stopped": "Look who sends SIGSTOP: perf trace -e kill -a, or the batch system's log.",
    "quota": "Look: cat /sys/fs/cgroup/.../cpu.max of its control group.",
    "disk": "Look: iostat -x 1, and what else writes then.",
    "asleep": "Look: strace -f -e trace=nanosleep,clock_nanosleep COMMAND.",
    **dict.fromkeys(COMPUTED, "Look: is its input the same each time? noisebook explain -- {}"),
    "speed": "Look: vmstat 1 (st), turbostat: other guests or a lower clock.",
    "output": "Is its input the same each time? for i in 1 2 3 4 5 6; do {} | wc; done",
}
_LONG = 40  # characters; a longer command is named by a word


def next_command(took: "Took", command: str) -> str:
    """One command to go on with, for the best of what was found; "" where none is plain."""
    best = took.best
    if best is None:
        return ""
    part, name = best["part"], best["name"]
    if part in (*COMPUTED, "output"):
        name = command if len(command) <= _LONG else "COMMAND"
        part = "speed" if took.name == SLOWER_CPU else part
        part = part if took.other_output is None else "output"
    return _COMMANDS.get(part, "").format(name)


def histogram(values: pd.Series, unit: str) -> list[str]:
    """The values as lines of text, a bin each.

    Examples
    --------
    >>> histogram(pd.Series([1.0, 1.0, 1.0, 2.0]), "s")[0]
    '  1      to 1.17   s ### 3'
    """
    counts, edges = np.histogram(values.dropna(), bins=BINS)
    most = max(int(counts.max()), 1)
    bars = [round(40 * count / most) if most > 40 else count for count in counts]
    return [
        f"  {low:<6.3g} to {high:<6.3g} {unit} {'#' * bar} {count or ''}".rstrip()
        for low, high, bar, count in zip(edges, edges[1:], bars, counts)
    ]


def terminal_text(study: "ProgramStudy", page: str, data: str) -> str:
    """All that `noisebook why` prints in the end; the rest is on the page."""
    lines = textwrap.wrap(study.headline(), COLUMNS, break_long_words=False)
    lines += ["", *histogram(study.undisturbed[study.outcome.name], study.outcome.unit), ""]
    for about, label in _SHORT.items():
        reply = textwrap.shorten(study.verdict(about).reply, COLUMNS - 9, placeholder=" …")
        lines.append(f"{label:<9}{reply}")
    lines += [textwrap.shorten(f"runs     {note}", COLUMNS) for note in study.notes()]
    lines += [f"page     {page}"] * bool(page) + [f"data     {data}"]
    return "\n".join(lines)
