"""Average noise, delta and signatures ─► noise config: from tables to tables, and the file the
injector reads.

Patterns and combinations of noise that does more than occupy a CPU are in `stressors.py`.
"""

from .average import average_noise
from .config import NoiseConfig
from .delta import delta_noise
from .signature import signature_noise
from .stressors import stressor_noise, stressor_table

__all__ = [
    "NoiseConfig",
    "average_noise",
    "delta_noise",
    "signature_noise",
    "stressor_noise",
    "stressor_table",
]
