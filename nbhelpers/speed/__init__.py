"""How fast the CPUs are while a program runs: probes of known work, sampled at the kernel's ticks.

`SpeedProbe` accompanies a campaign; `read_speed` gives the samples as shares of full speed,
`read_waits` how long OpenMP's threads worked and waited. `ruler.slowness` says by what factor
fixed work took longer than in ordinary runs.
"""

from typing import TYPE_CHECKING

from .. import lazily

if TYPE_CHECKING:
    from .probe import SpeedProbe
    from .samples import read_speed
    from .waits import read_waits
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
