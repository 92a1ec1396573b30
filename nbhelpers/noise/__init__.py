"""Average noise, delta and signatures ─► noise config: from tables to tables, and the file the
injector reads.
"""

from .average import average_noise
from .config import NoiseConfig
from .delta import delta_noise
from .signature import SIGNATURES, signature_noise
from .stressors import combined_noise, stressor_noise, stressor_pattern, stressor_table

__all__ = [
    "SIGNATURES",
    "NoiseConfig",
    "average_noise",
    "combined_noise",
    "delta_noise",
    "signature_noise",
    "stressor_noise",
    "stressor_pattern",
    "stressor_table",
]
