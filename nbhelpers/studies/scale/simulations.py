"""The simulations of the stage on scale, each at the size that a profile asks for.

Owns which noise, pattern and number of ranks belong to which table; what is simulated lies in the
modules beside it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import pandas as pd

from ...simulation import LogGOPS, periodic
from ...simulation.noise import Detours
from .applications import (
    application_slowdown,
    applications_on,
    extrapolation,
    injected_codes,
    overlap_potential,
    point_to_point,
    pop_alone,
    sensitivity,
    talked_of,
    traced_sweep,
)
from .cache import Cache
from .collectives import bottleneck, overhead_and_slowdown, pipelining, scaling
from .experiments import apparent_speedup, balance, growth, variations
from .formulas import closed_forms
from .results import Row, application_results, collective_results, injected_results
from .signatures import system_networks, system_noises
from .skeletons import skeleton_table

_MOST_CHEAP = 32768  # ranks; more take minutes, so that they have fewer replicates
_MOST_STEPS = 2**17  # ranks; beyond, only the largest number
_LONG, _SHORT = "10 Hz x 2500 us", "1000 Hz x 25 us"


@dataclass(frozen=True)
class Sizes:
    """How many ranks are simulated, and how often.

    Parameters
    ----------
    ranks, seeds
        Largest number of ranks, a power of two, and replicates of each simulation.
    large_ranks, large_seeds
        Ranks for the comparison of systems, networks and messages; replicates on more than 32,768.
    code_ranks, pop_ranks, program_ranks
        Ranks of POP, SAGE and CTH; of POP under the short noise; of the other applications.
    growth_ranks
        Largest number of nodes of POP, SAGE and CTH.
    """

    ranks: int
    seeds: int
    large_ranks: int
    large_seeds: int
    code_ranks: int
    pop_ranks: int
    program_ranks: int
    growth_ranks: int = 128

    def __str__(self) -> str:
        return (
            f"Up to {max(self.ranks, self.large_ranks):,} ranks, {self.seeds} seeds"
            f" ({self.large_seeds} on more than {_MOST_CHEAP:,}); PROFILE=record goes to a million"
            " ranks with 30 seeds."
        )

    def steps(self) -> list[int]:
        """Every second power of two up to the largest number of ranks."""
        return rank_steps(self.ranks)

    def steps_to(self, most: int) -> list[int]:
        """The steps below another largest number, and that number."""
        return [size for size in self.steps() if size < most] + [most]


def rank_steps(most: int) -> list[int]:
    """Every second power of two up to so many ranks, and that number."""
    steps = range(1, min(most, _MOST_STEPS).bit_length(), 2)
    return sorted({2**step for step in steps} | {most})


@dataclass(frozen=True)
class Simulations:
    """All simulated tables of the stage on scale, each computed once, when it is asked for.

    Parameters
    ----------
    folder
        Where the tables are cached.
    sizes
        How many ranks and replicates.
    share, pop_share
        Of the applications' published numbers of collectives; of POP's, under the short noise.
    calls
        Collectives in the loop of a benchmark.
    traces
        Folder of other systems' detours; empty: made anew from their published figures.
    recorded_only
        Whether tables of a recorded campaign are read (`Cache`).
    """

    folder: Path
    sizes: Sizes
    share: float
    pop_share: float
    calls: int
    traces: str = ""
    recorded_only: bool = False

    def _table(
        self, name: str, study: Callable[..., pd.DataFrame], *args: object, **options: object
    ) -> pd.DataFrame:
        return Cache(self.folder, self.recorded_only).table(name, study, *args, **options)

    # --- single collectives -------------------------------------------------------------------

    @cached_property
    def closed_forms(self) -> pd.DataFrame:
        """Simulated times beside the closed forms, summed up by pattern."""
        sizes = [2**step for step in range(1, self.sizes.ranks.bit_length())]
        forms = self._table("closed-forms", closed_forms, sizes, bytes=[1, 1000])
        by_pattern = forms.groupby("pattern", sort=False).agg(
            cases=("ranks", "size"),
            most_ranks=("ranks", "max"),
            largest_difference_ns=("difference_ns", "max"),
            least_difference_ns=("difference_ns", "min"),
        )
        return by_pattern.reset_index()

    @cached_property
    def regular(self) -> pd.DataFrame:
        """A dissemination under 1000 Hz × 100 µs, co-scheduled and not, by number of ranks."""
        few = [size for size in self.sizes.steps() if size <= _MOST_CHEAP]
        many = [size for size in self.sizes.steps() if size > _MOST_CHEAP]
        parts = [
            ("regular", few, self.sizes.seeds),
            ("regular-large", many, self.sizes.large_seeds),
        ]
        noise, both = periodic(1000, 100), [False, True]
        tables = [
            self._table(name, scaling, noise, sizes, seeds=seeds, cosched=both)
            for name, sizes, seeds in parts
            if sizes
        ]
        return pd.concat(tables, ignore_index=True)

    @cached_property
    def beckman(self) -> pd.DataFrame:
        """A dissemination under the twelve noises that Beckman et al. 2006 injected."""
        noises = {
            f"{hz} Hz x {us} us": periodic(hz, us)
            for hz in (1000, 100, 10)
            for us in (16, 50, 100, 200)
        }
        return self._table(
            "beckman", scaling, noises, self.sizes.large_ranks, seeds=self.sizes.seeds
        )

    @cached_property
    def noises(self) -> dict[str, Detours]:
        """The noise of the systems, by name."""
        return system_noises(self.traces)

    @cached_property
    def networks(self) -> dict[str, LogGOPS]:
        """The networks of the systems, by name."""
        return system_networks()

    @cached_property
    def systems(self) -> pd.DataFrame:
        """Overhead and slow-down of the systems."""
        return self._table(
            "systems",
            overhead_and_slowdown,
            self.noises,
            self.sizes.large_ranks,
            seeds=self.sizes.seeds,
            networks=self.networks,
        )

    @cached_property
    def messages(self) -> pd.DataFrame:
        """A dissemination of 1 B and of 1 MiB under the noise of three systems."""
        noises = {name: self.noises[name] for name in ("alps", "azure-hc", "deep-est")}
        eager = {name: self.networks[name].with_(S=2**40) for name in noises}
        return self._table(
            "messages",
            scaling,
            noises,
            self.sizes.steps_to(self.sizes.large_ranks),
            seeds=self.sizes.seeds,
            networks=eager,
            bytes=[1, 2**20],
        )

    @cached_property
    def coscheduled(self) -> pd.DataFrame:
        """A dissemination under the noise of Alps that strikes all ranks at once."""
        return self._table(
            "cosched-alps",
            scaling,
            {"alps": self.noises["alps"]},
            self.sizes.large_ranks,
            seeds=self.sizes.seeds,
            networks=self.networks,
            cosched=True,
        )

    @cached_property
    def bottleneck(self) -> pd.DataFrame:
        """What a faster network brings under the noise of Alps."""
        noise = {"alps": self.noises["alps"]}
        return self._table(
            "bottleneck", bottleneck, noise, self.sizes.large_ranks, seeds=self.sizes.seeds
        )

    @cached_property
    def pipelining(self) -> pd.DataFrame:
        """What a benchmark's loop makes of a collective."""
        return pipelining([2**step for step in range(3, 11)])

    # --- loops and applications under injected noise -------------------------------------------

    @cached_property
    def shapes(self) -> dict[str, Detours]:
        """2.5 % of noise in few long pieces and in many short ones (Ferreira et al. 2008)."""
        return {_LONG: periodic(10, 2500), _SHORT: periodic(1000, 25)}

    @cached_property
    def loops(self) -> dict[str, pd.DataFrame]:
        """Collectives in a loop under these two, by what is called."""
        long = {_LONG: self.shapes[_LONG]}
        loop = partial(self._table, seeds=self.sizes.seeds, bytes=8, repetitions=self.calls)
        return {
            "allreduce": loop("loops-allreduce", scaling, self.shapes, 128),
            "bcast": loop("loops-bcast", scaling, self.shapes, 128, pattern="binomial_bcast"),
            "cosched": loop("loops-cosched", scaling, long, 128, cosched=True),
            "allreduce-{ranks}": loop("loops-few", scaling, long, [8, 32]),
        }

    @cached_property
    def codes(self) -> pd.DataFrame:
        """POP, SAGE and CTH under these two."""
        codes = partial(injected_codes, self.sizes.code_ranks, self.share)
        return self._table(
            "codes", application_slowdown, codes, self.shapes, seeds=self.sizes.seeds
        )

    @cached_property
    def pop(self) -> pd.DataFrame:
        """POP under the short one, with more of its collectives."""
        pop = partial(pop_alone, self.sizes.pop_ranks, self.pop_share)
        short = {_SHORT: self.shapes[_SHORT]}
        return self._table("pop", application_slowdown, pop, short, seeds=self.sizes.seeds)

    @cached_property
    def point_to_point(self) -> pd.DataFrame:
        """Computation with nothing, a halo exchange, a wavefront or an all-reduce in each step."""
        return self._table(
            "point-to-point",
            point_to_point,
            self.shapes,
            self.sizes.program_ranks,
            seeds=self.sizes.seeds,
        )

    # --- why ours differ -----------------------------------------------------------------------

    @cached_property
    def skeletons(self) -> pd.DataFrame:
        """What the skeletons communicate, beside what was published of it."""
        return self._table("skeletons", skeleton_table, min(512, self.sizes.code_ranks), self.share)

    @cached_property
    def growth(self) -> pd.DataFrame:
        """POP, SAGE and CTH under the two injected noises by number of nodes."""
        most = self.sizes.growth_ranks
        ranks = sorted({size for size in (2, 16, 128, 1024, 2500, 8192) if size < most} | {most})
        return self._table(
            "growth", growth, self.shapes, ranks, share=self.share, seeds=self._few_seeds
        )

    @cached_property
    def variations(self) -> pd.DataFrame:
        """The codes with one choice of ours varied at a time."""
        return self._table(
            "variations",
            variations,
            self.shapes,
            self.sizes.code_ranks,
            share=self.share,
            seeds=self._few_seeds,
            calls=self.calls,
        )

    @cached_property
    def balance(self) -> pd.DataFrame:
        """The codes on networks of ever less bandwidth."""
        return self._table(
            "balance",
            balance,
            self.shapes,
            min(512, self.sizes.code_ranks),
            share=self.share,
            seeds=self._few_seeds,
        )

    @cached_property
    def apparent_speedup(self) -> pd.DataFrame:
        """Sweep3D where noise seems to speed it up, and where not."""
        noise = self.noises["daint"]
        ranks = self.sizes.program_ranks
        return self._table(
            "apparent-speedup", apparent_speedup, noise, ranks, seeds=self.sizes.seeds
        )

    @property
    def _few_seeds(self) -> int:
        """Replicates of what has many cases; six are the fewest of which a verdict is made."""
        return min(self.sizes.seeds, 6)

    # --- applications --------------------------------------------------------------------------

    @property
    def _programs(self) -> partial:
        return partial(applications_on, self.sizes.program_ranks, self.share)

    @cached_property
    def applications(self) -> pd.DataFrame:
        """Sweep3D, POP and AMG under the noise of three systems."""
        noises = {name: self.noises[name] for name in ("alps", "daint", "azure-hc")}
        return self._table(
            "applications",
            application_slowdown,
            self._programs,
            noises,
            seeds=self.sizes.seeds,
            network=self.networks,
        )

    @cached_property
    def on_systems(self) -> pd.DataFrame:
        """POP and AMG under the noise of all nine systems, on the network of each."""
        return self._table(
            "on-systems",
            application_slowdown,
            partial(talked_of, self.sizes.program_ranks, self.share),
            self.noises,
            seeds=self.sizes.seeds,
            network=self.networks,
        )

    @cached_property
    def overlap(self) -> pd.DataFrame:
        """What these applications could gain by overlapping."""
        return self._table("overlap", overlap_potential, self._programs)

    @cached_property
    def sensitivity(self) -> pd.DataFrame:
        """What a better network would bring them."""
        return self._table("sensitivity", sensitivity, self._programs)

    @cached_property
    def extrapolation(self) -> pd.DataFrame:
        """What is lost by extrapolating a small trace."""
        noise = self.shapes[_LONG]
        return self._table(
            "extrapolation", extrapolation, noise=noise, iterations=1, seeds=self.sizes.seeds
        )

    @cached_property
    def results(self) -> dict[str, Row]:
        """All that has a published result, by its name there."""
        single = collective_results(
            self.regular,
            self.beckman,
            self.systems,
            self.bottleneck,
            self.messages,
            self.pipelining,
            self.coscheduled,
        )
        injected = injected_results(self.loops, pd.concat([self.codes, self.pop]))
        sweep = self._table("sweep3d", traced_sweep, seeds=self.sizes.seeds)
        return single | injected | application_results(self.on_systems, sweep)
