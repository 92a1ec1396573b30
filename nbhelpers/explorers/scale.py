"""A noise signature against the slow-down on many simulated ranks.

Owns the view of one signature: a loop of computation and all-reduce, simulated when it is asked
for.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from ..noise.signature import Signature
from ..simulation import evaluate, signature_on_ranks
from . import _drawing as draw
from ._base import Explorer
from ._controls import Choice, Control

FREQUENCIES = (10, 20, 50, 100, 200, 500, 1000)
DURATIONS = (10, 25, 50, 100, 250, 500)
RANKS = (4, 16, 64, 256, 1024)
STEPS = 5  # of computation and all-reduce
SEEDS = 3


@dataclass(frozen=True)
class ScaleExplorer(Explorer):
    """Slow-down of a loop of computation and all-reduce under a signature.

    Attributes
    ----------
    compute_ms
        Computation of a step.
    frequency_hz, duration_us, ranks
        To begin with.
    """

    compute_ms: float = 1.0
    frequency_hz: int = 10
    duration_us: int = 250
    ranks: int = 1024

    def controls(self) -> tuple[Control, ...]:
        """Frequency, duration, ranks."""
        return self._controls

    @cached_property
    def _controls(self) -> tuple[Control, ...]:
        return (
            Choice("frequency_hz", "frequency", self.frequency_hz, FREQUENCIES, "Hz"),
            Choice("duration_us", "duration", self.duration_us, DURATIONS, "µs"),
            Choice("ranks", "ranks", self.ranks, RANKS),
        )

    def chosen(self) -> list[dict[str, Any]]:
        """The same share of the time in several shapes, then rarer and longer noise."""
        shapes = ((10, 250), (50, 50), (100, 25), (100, 250), (1000, 25), (1000, 100))
        return [{"frequency_hz": hz, "duration_us": us} for hz, us in shapes]

    def slowdowns(self, frequency_hz: int, duration_us: int, ranks: int) -> np.ndarray:
        """Run time under noise over that without, a value a seed."""
        return _slowdowns(frequency_hz, duration_us, ranks, self.compute_ms)

    def draw(self, state: dict[str, Any]) -> str:
        """The slow-down at these ranks, and its curve up to them."""
        signature = Signature(state["frequency_hz"], state["duration_us"])
        sizes = [size for size in RANKS if size <= state["ranks"]]
        names = state["frequency_hz"], state["duration_us"]
        drawn = np.array([self.slowdowns(*names, size) for size in sizes])
        last = drawn[-1]
        return (
            f"<p>The noise takes {signature.share:.2%} of each rank's time. A program that waits"
            f" for nobody takes {signature.local_slowdown:.4g} times as long; one that reduces"
            f" every {self.compute_ms:g} ms on {sizes[-1]:,} ranks {np.median(last):.4g} times"
            f" ({last.min():.4g} to {last.max():.4g}, n = {SEEDS} seeds).</p>"
            + _picture(sizes, drawn, signature.local_slowdown)
        )


def explore_scale(compute_ms: float = 1.0) -> ScaleExplorer:
    """Look at what a noise signature costs on many ranks.

    Parameters
    ----------
    compute_ms
        Computation between two all-reduces.

    Returns
    -------
    ScaleExplorer: frequency, duration and ranks can be chosen.
    """
    return ScaleExplorer(compute_ms)


@lru_cache(512)
def _slowdowns(frequency_hz: int, duration_us: int, ranks: int, compute_ms: float) -> np.ndarray:
    signature = Signature(frequency_hz, duration_us)
    loop = partial(
        evaluate,
        "dissemination",
        ranks,
        repetitions=STEPS,
        compute_ns=round(compute_ms * 1e6),
    )
    ideal = loop().makespan_ns
    noises = (signature_on_ranks(signature, ranks, seed) for seed in range(SEEDS))
    return np.array([loop(noise=noise).makespan_ns / ideal for noise in noises])


def _picture(sizes: list[int], drawn: np.ndarray, alone: float) -> str:
    """Median and range of the slow-down over the ranks, and a lone program's."""
    most = max(float(drawn.max()), alone)
    high = 1 + 1.1 * max(most - 1, 0.01)
    frame = draw.Frame(70, 34, draw.WIDTH - 260, 220, (1, np.log2(RANKS[-1])), (1, high))
    x, middle = frame.at_x(np.log2(sizes)), np.median(drawn, axis=1)
    colour = draw.COLOURS["slow"]
    parts = [draw.curve(x, frame.at_y(middle), f'stroke="{colour}" stroke-width="2"')]
    for place, row, value in zip(x, drawn, middle):
        low, top = frame.at_y(row.min()), frame.at_y(row.max())
        parts.append(draw.line(place, low, place, top, f'stroke="{colour}"'))
        parts.append(draw.box(place - 4, frame.at_y(value) - 4, 8, 8, f'fill="{colour}"'))
    level, right = float(frame.at_y(alone)), frame.left + frame.width
    bottom = frame.top + frame.height
    parts.append(draw.line(frame.left, level, right, level, 'stroke-dasharray="6 4"'))
    parts.append(draw.text(right + 8, level + 5, "waits for nobody"))
    parts.append(draw.line(frame.left, bottom, right, bottom))
    for size in RANKS:
        parts.append(draw.text(frame.at_x(np.log2(size)), bottom + 20, f"{size:,}", "middle"))
    parts.append(draw.text((frame.left + right) / 2, bottom + 42, "ranks", "middle"))
    return draw.picture(bottom + 56, "slow-down over ranks", *parts, frame.y_axis("slow-down"))
