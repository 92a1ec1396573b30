"""A noise signature against the slow-down of a loop of computation and all-reduce on many ranks."""

from functools import lru_cache, partial

import numpy as np

from ..noise.signature import Signature
from ..palette import COLUMN_IN, SIDES
from ..report.appearance import style
from ..report.images import DRAWING, embedded
from ..simulation import patterns, signature_on_ranks, simulate
from ._base import Control, Explorer

RANKS = (4, 16, 64, 256, 1024)
SEEDS = 3


def explore_scale() -> Explorer:
    """Look at what a noise signature costs on many ranks, in a loop of 1 ms of computation and an
    all-reduce.

    Returns
    -------
    Explorer: frequency, duration and ranks can be chosen.
    """
    shapes = ((10, 250), (50, 50), (100, 25), (100, 250), (1000, 25), (1000, 100))
    return Explorer(
        _scale,
        {
            "frequency": Control("frequency", (10, 20, 50, 100, 200, 500, 1000), 10, "Hz"),
            "duration": Control("duration", (10, 25, 50, 100, 250, 500), 250, "µs"),
            "ranks": Control("ranks", RANKS, RANKS[-1]),
        },
        [{"frequency": hz, "duration": us} for hz, us in shapes],
    )


@lru_cache(512)
def slowdowns(frequency: int, duration: int, ranks: int) -> np.ndarray:
    """Run time under noise over that without, a value a seed."""
    signature = Signature(frequency, duration)
    loop = partial(simulate, patterns.loop(patterns.dissemination(ranks), 5, 1_000_000))
    noises = (signature_on_ranks(signature, ranks, seed) for seed in range(SEEDS))
    return np.array([loop(noise=noise).makespan_ns for noise in noises]) / loop().makespan_ns


def _scale(frequency: int, duration: int, ranks: int) -> str:
    """The slow-down at these ranks, and its curve up to them."""
    import matplotlib.pyplot as plt

    signature = Signature(frequency, duration)
    alone, sizes = signature.local_slowdown, [size for size in RANKS if size <= ranks]
    drawn = np.array([slowdowns(frequency, duration, size) for size in sizes])
    low, middle, high = drawn.min(axis=1), np.median(drawn, axis=1), drawn.max(axis=1)
    with DRAWING, style():
        figure, axes = plt.subplots(figsize=(1.5 * COLUMN_IN, 2.2))
        reach = [middle - low, high - middle]
        axes.errorbar(sizes, middle, reach, marker="s", color=SIDES["injected"], capsize=2)
        axes.axhline(alone, color="black", linestyle="--", label="waits for nobody")
        axes.set_xscale("log", base=2)
        axes.set_xticks(RANKS, [f"{size:,}" for size in RANKS])
        axes.set(xlabel="ranks", ylabel="slow-down", xlim=(3, 1.3 * RANKS[-1]))
        axes.set_ylim(1, 1 + 1.1 * max(high.max() - 1, alone - 1, 0.01))
        figure.legend(loc="outside upper left")
        shown = embedded(figure, "slow-down over ranks")
    return (
        f"<p>The noise takes {signature.share:.2%} of each rank's time. A program that waits for"
        f" nobody takes {alone:.4g} times as long; one that reduces every ms on {ranks:,} ranks"
        f" {middle[-1]:.4g} times ({low[-1]:.4g} to {high[-1]:.4g}, n = {SEEDS} seeds).</p>{shown}"
    )
