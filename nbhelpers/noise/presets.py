"""Noise signatures that were published: the paper's, and those of machines.

Owns their values; the machines' are read from data/published.
"""

from collections.abc import Mapping
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


def published_noise() -> pd.DataFrame:
    """The figures of the noise of nine systems, as data/published has them, a row a system."""
    return read_csv(MACHINES, comment="#")
