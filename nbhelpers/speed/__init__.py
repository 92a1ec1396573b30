"""How fast the CPUs are while a program runs: probes of known work, sampled at the kernel's ticks.

`SpeedProbe` accompanies a campaign; `read_speed` gives the samples as shares of full speed.
"""

from .probe import SpeedProbe
from .samples import read_speed

__all__ = ["SpeedProbe", "read_speed"]
