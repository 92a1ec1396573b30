"""Average noise, delta and signatures ─► noise config: from tables to tables, and the file the
injector reads.

Noise that does more than occupy a CPU is in `stressors.py`, what a run lost in `lost_time.py`.
"""

from typing import TYPE_CHECKING

from .. import lazily

if TYPE_CHECKING:
    from ._vocabulary import STRESSORS
    from .average import average_noise
    from .config import NoiseConfig
    from .delta import delta_noise
    from .signature import Signature
    from .stressors import stressor_noise
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
