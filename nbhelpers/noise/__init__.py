"""Average noise, delta and signatures ─► noise config: from tables to tables, and the file the injector reads."""

from .average import average_noise
from .config import NoiseConfig
from .delta import delta_noise
from .signature import signature_noise

__all__ = ["NoiseConfig", "average_noise", "delta_noise", "signature_noise"]
