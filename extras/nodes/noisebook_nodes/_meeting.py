"""Where the ranks of an MPI program on one node meet at the end of their MPI_Init, for who starts
them otherwise than by `run_once`.
"""

import os
import select
import time
from collections.abc import Callable

from nbhelpers.measurement._output import NoRegion
from nbhelpers.measurement._regions import MpiWatch, Times
from nbhelpers.workloads import Region, binary_folder


class Meeting:
    """Ranks of this node wait here until all have come and the start is announced.

    Parameters
    ----------
    ranks
        How many there are on the node.

    Attributes
    ----------
    env
        Variables that the ranks need.
    """

    def __init__(self, ranks: int):
        self._watch = MpiWatch(Region("mpi"))
        folder = self._watch.env["NOISEBOOK_REGION_FOLDER"]
        library = f"{folder}/{self._watch.library}"  # LD_PRELOAD cannot name a path with a blank
        os.symlink(binary_folder() / self._watch.library, library)
        others = os.environ.get("LD_PRELOAD", "")
        self.env = {
            **self._watch.env,
            "NOISEBOOK_RANKS_HERE": str(ranks),
            "LD_PRELOAD": f"{library}:{others}" if others else library,
        }

    def __enter__(self) -> "Meeting":
        return self

    def __exit__(self, *_) -> None:
        self._watch.close()

    def all_came(self, seconds: float, going_on: Callable[[], bool]) -> bool:
        """Whether all ranks wait; False: time ran out, or it does not go on."""
        end = time.monotonic() + seconds
        assert self._watch.arrivals is not None
        while going_on() and time.monotonic() < end:
            if select.select([self._watch.arrivals], [], [], 0.1)[0] and self._watch.arrived():
                return True
        return False

    def begin(self, t0_ns: int) -> None:
        """Announce the start (CLOCK_MONOTONIC)."""
        self._watch.release(t0_ns)

    def times(self, seconds: float) -> Times:
        """The region of all ranks; those that are about to end are waited for.

        Raises
        ------
        NoRegion
            A rank never came to its MPI_Finalize.
        """
        end = time.monotonic() + seconds
        while True:
            try:
                return self._watch.times()
            except NoRegion:
                if time.monotonic() > end:
                    raise
                time.sleep(0.01)
