"""Noise signatures that were published: the paper's, its families, and those of machines.

Owns their values; the machines' are read from data/published.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import pandas as pd

from ..places import shipped
from ..reading import read_csv
from .signature import Signature

MACHINES = shipped() / "data" / "published" / "desensi2022-noise1.csv"

# Ferreira, Bridges, Brightwell, SC 2008, sections 5.2 and 5.3.1: a loaded timer interrupt, a
# daemon, and between the two; each takes 2.5 % of a CPU.
PRESETS: Mapping[str, Signature] = MappingProxyType(
    {
        "timer": Signature(1000, 25),
        "between": Signature(100, 250),
        "daemon": Signature(10, 2500),
    }
)
# Figure 2's axis, 10 to 1000 Hz: the text names 10, 25 ("no impact … greater than 25 Hz") and 1000.
CONSTANT_SHARE_HZ = (10, 25, 50, 100, 250, 500, 1000)
# Figure 3: "durations from one to fifty microseconds", and "for each of the plotted durations, the
# difference between the first and last point is an increase by a factor of five". Which durations
# and frequencies lie between is read off the figure's range, not printed in the text.
INCREASING_US = (1, 5, 10, 25, 50)
INCREASING_HZ = (1000, 2000, 3000, 4000, 5000)


def constant_share(
    share: float = 0.025, frequencies_hz: tuple[float, ...] = CONSTANT_SHARE_HZ
) -> dict[str, Signature]:
    """The family of Figure 2: one net share, more and shorter events.

    Parameters
    ----------
    share
        Net share of each.
    frequencies_hz
        One signature each.

    Returns
    -------
    Label -> signature.

    Examples
    --------
    >>> from nbhelpers.noise.presets import constant_share
    >>> list(constant_share())[:2]
    ['10 Hz x 2500 us', '25 Hz x 1000 us']
    """
    return _by_label(Signature(hz, share=share) for hz in frequencies_hz)


def increasing_share(
    duration_us: float, frequencies_hz: tuple[float, ...] = INCREASING_HZ
) -> dict[str, Signature]:
    """A line of Figure 3: events of one duration, ever more often, so that the share grows.

    Parameters
    ----------
    duration_us
        Of each event; the figure has 1 to 50 µs (`INCREASING_US`).
    frequencies_hz
        One signature each; from the first to the last the share grows by a factor of five.

    Returns
    -------
    Label -> signature.

    Examples
    --------
    >>> from nbhelpers.noise.presets import increasing_share
    >>> [round(made.share, 3) for made in increasing_share(50).values()]
    [0.05, 0.1, 0.15, 0.2, 0.25]
    """
    return _by_label(Signature(hz, duration_us) for hz in frequencies_hz)


def published_noise() -> pd.DataFrame:
    """The figures of the noise of nine systems, as data/published has them, a row a system."""
    return read_csv(MACHINES, comment="#")


def _by_label(signatures: Iterable[Signature]) -> dict[str, Signature]:
    return {signature.label: signature for signature in signatures}
