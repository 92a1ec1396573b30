"""Injection of a signature whose random phases are drawn anew for every run.

Owns the attachment. One config for all runs would measure one set of phases again and again.
"""

import secrets
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ...injection import Injector, make_plan
from ...injection.log import noise_ns
from ...noise import NoiseConfig
from ...noise.signature import Signature
from ...workloads import Workload

_LANES = 2


class FreshPhases(Injector):
    """Injects a signature on CPUs, each run with another seed; runs are of one cell all the same.

    Parameters
    ----------
    signature
        What to inject; its own seed is not used.
    window_s
        Longer than any run.
    cpus
        CPU numbers.

    Notes
    -----
    Further columns of the runs table: `phase_seed`, by which a run's noise can be made again;
    `net_noise_ns`, what each CPU lost to it within the region (mean over `noisy_cpus`).
    """

    def __init__(self, signature: Signature, window_s: float, cpus: Sequence[int]):
        self._signature, self._window_s, self._cpus = signature, window_s, tuple(cpus)
        self._seed = 0
        super().__init__(self._drawn(), "origin", lanes=_LANES, keep_logs=True)
        self.identity = f"injected {signature!r} on {len(self._cpus)} CPUs, fresh phases"

    def _drawn(self) -> NoiseConfig:
        return self._signature.with_(seed=self._seed).config(self._window_s, self._cpus)

    def before(self, workload: Workload) -> None:
        """Draw the phases of the next run."""
        self._seed = secrets.randbelow(2**31)
        self.config = self._drawn()
        self.plan = make_plan(self.config, "origin", _LANES)
        super().before(workload)

    def after(self, run: dict) -> dict:
        """As an `Injector`, with the seed, and the net noise of each CPU within the region."""
        columns = super().after(run)
        log = self.logs.pop(run["run"], None)
        if log is None or run.get("end_ns") is None:
            return columns
        region = (run["start_ns"] - run["t0_ns"], run["end_ns"] - run["t0_ns"])
        return columns | {
            "phase_seed": self._seed,
            "net_noise_ns": net_noise_ns(log, *region) / len(self._cpus),
            "noisy_cpus": len(self._cpus),
        }


def net_noise_ns(log: pd.DataFrame, start_ns: int, end_ns: int) -> float:
    """What the events that began within a region took from the program, up to its end.

    Parameters
    ----------
    log
        Of an injection.
    start_ns, end_ns
        Of the region, from t0. The injector goes on until the program has ended, and programs
        check their results after the region.
    """
    inside = log[(log["taken_ns"] >= start_ns) & (log["taken_ns"] < end_ns)]
    left_ns = end_ns - inside["taken_ns"]
    return float(np.minimum(noise_ns(inside), left_ns).sum())
