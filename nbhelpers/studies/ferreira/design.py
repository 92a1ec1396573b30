"""Which signatures stage 70 measures, and what its campaigns have in common.

Owns the signatures' names; their values are those of `nbhelpers.noise.presets`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ...errors import InputError
from ...measurement import Campaign, Cell
from ...noise.presets import PRESETS, constant_share
from ...noise.signature import Signature

COSCHEDULED = "everywhere at once"
CARRIED = "short events carried"
QUIET = "none"


@dataclass(frozen=True)
class SignatureCampaign:
    """Runs under each signature and without noise, in turn.

    Parameters
    ----------
    folder
        Of the campaign.
    signatures
        By name.
    cpus
        On which noise is injected.
    rounds
        Each has one run of every cell, in random order.
    seconds
        Length of a run.
    seed
        Of the order.
    recorded_only
        True: use recorded data, measure nothing.
    """

    folder: Path
    signatures: Mapping[str, Signature]
    cpus: Sequence[int]
    rounds: int
    seconds: float
    seed: int = 0
    recorded_only: bool = False

    def _measured(self, cells: Sequence[Cell]) -> pd.DataFrame:
        """All runs of the cells, those that failed too."""
        return Campaign(
            self.folder, cells, self.rounds, self.seed, recorded_only=self.recorded_only
        ).run()


def staggered(signature: Signature, cpus: Sequence[int]) -> Signature:
    """The signature with the CPUs' first events spread evenly over the first period.

    No event is cut at the ends of the window then. What is co-scheduled stays so.
    """
    if signature.simultaneous:
        return signature
    period_us = 1e6 / signature.frequency_hz
    phase = {cpu: period_us * (i + 0.5) / len(cpus) for i, cpu in enumerate(cpus)}
    return signature.with_(phase=phase, coscheduled=False)


def measured_signatures(
    frequencies_hz: Sequence[float], loop_seconds: float, randomised: bool = True
) -> dict[str, Signature]:
    """The signatures of 2.5 % that the loops measure.

    Parameters
    ----------
    frequencies_hz
        Of the periodic ones.
    loop_seconds
        Length of a loop: a whole number of every period, so that each run has its exact share.
    randomised
        Whether to add section 3's: intervals and durations of a Poisson-distributed number of µs;
        a Poisson process; a periodic signature that strikes all CPUs at once; and the shortest
        events by the injector's usual rule, by which a longer one carries those that are too short
        for the machine.

    Returns
    -------
    Name -> signature.

    Raises
    ------
    InputError
        A period that the loop does not hold a whole number of times.
    """
    for hz in frequencies_hz:
        periods = hz * loop_seconds
        if periods < 0.5 or abs(periods - round(periods)) > 1e-9:
            raise InputError(
                f"{loop_seconds:g} s are not a whole number of periods of {hz:g} Hz",
                where="loop_seconds",
                why="the loop would lose more or less than the share, by where the window ends",
                fix="choose a multiple of all periods, for instance 0.8",
            )
    periodic = constant_share(frequencies_hz=tuple(frequencies_hz))
    return periodic | (_randomised() if randomised else {})


def _randomised() -> dict[str, Signature]:
    poisson = Signature(1000, 25, distribution="poisson", seed=1)
    ferreira = Signature(100, 250, distribution="ferreira", durations="ferreira", seed=1)
    together = PRESETS["daemon"].with_(phase="aligned", coscheduled=True)
    return {
        f"{poisson.label}, Poisson process": poisson,
        f"{ferreira.label}, both Poisson": ferreira,
        f"{together.label}, {COSCHEDULED}": together,
        f"{PRESETS['timer'].label}, {CARRIED}": PRESETS["timer"],
    }


def program_signatures(frequencies_hz: Sequence[float]) -> dict[str, Signature]:
    """The paper's presets of these frequencies; the lowest also striking all CPUs at once."""
    shown = {
        one.label: one for one in PRESETS.values() if one.frequency_hz in tuple(frequencies_hz)
    }
    if not shown:
        raise InputError(
            "none of the frequencies is one of the paper's presets",
            where="frequencies",
            fix="add 10, 100 or 1000",
        )
    slowest = min(shown.values(), key=lambda one: one.frequency_hz)
    together = slowest.with_(phase="aligned", coscheduled=True)
    return shown | {f"{slowest.label}, {COSCHEDULED}": together}
