"""`Account`: where the time of each run went, and where a slow run lost its time.

Owns the account table and what is read from it. A replay of what it says that 12 slow runs lost
takes their time to within 2.7 % (mean). The plain way, the delta of their noise events, is off by
25.3 %, and no replay at all by 24.3 % (page 37, table `split`, recorded). Corrected times of 200
recorded runs vary by 1.6 %, CPU times, the plain correction, by 12.5 %, run times by 14.0 %. Each
half is corrected by the sensitivity of the other (benchmarks/rivals.py corrected).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from scipy import sparse

from ..errors import InputError
from ..outcomes import worst_first
from ..statistics import percentile_interval
from .edges import Edges
from .occupied import held_intervals, occupied_intervals
from .sensitivity import Sensitivity, computing_of_runs, fit_sensitivity
from .threads import SLOWER, TAKEN, slower_by, thread_times

PARTS = ("useful", *TAKEN, "slow_core", "slow_memory", "waiting", "unexplained")
LOST = ("kernel", "edges", "hypervisor", "slow_core", "slow_memory")
DRAWS = 200
FEWEST_RUNS = 4
_ORDINARY = (0.25, 0.75)  # quantiles of the run time between which runs are ordinary


@dataclass(frozen=True)
class Account:
    """Where the time of runs of one program went, thread by thread.

    Parameters
    ----------
    runs
        Finished runs of one configuration.
    occupied
        When the CPUs were taken from the program (`occupied_intervals`); None: nothing was traced.
    speed
        Samples of the speed probe (`nbhelpers.speed.read_speed`).
    waits
        Busy time of threads (`nbhelpers.speed.read_waits`); may have no rows.
    held
        When others had a CPU on which no thread of the program was (`held_intervals`).
    seed
        Seed of the bootstrap.

    Raises
    ------
    InputError
        Not one sample of these runs.
    """

    runs: pd.DataFrame
    occupied: pd.DataFrame | None
    speed: pd.DataFrame
    waits: pd.DataFrame
    held: pd.DataFrame | None = None
    seed: int = 0
    times: pd.DataFrame = field(init=False, repr=False)
    sensitivity: Sensitivity = field(init=False, repr=False)

    def __post_init__(self):
        times = thread_times(self.runs, self.occupied, self.speed, self.waits, self.held)
        sampled = times["run"].nunique()
        if sampled < FEWEST_RUNS:
            raise InputError(
                f"{sampled} of {len(self.runs)} runs have samples of the CPUs' speed",
                why="a run is slow only in comparison with others, and with what the CPUs could do",
                fix=f"measure {FEWEST_RUNS} runs or more, of 0.1 s or longer, with `SpeedProbe`",
            )
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "sensitivity", self._fit(None))

    @classmethod
    def of_events(
        cls,
        runs: pd.DataFrame,
        events: pd.DataFrame,
        stolen: pd.DataFrame,
        edges: Edges,
        speed: pd.DataFrame,
        waits: pd.DataFrame,
    ) -> "Account":
        """The account of traced runs.

        Parameters
        ----------
        runs, speed, waits
            Finished runs, samples of the speed probe, and busy times of threads; see `Account`.
        events
            Noise events of these runs, or more (`read_traces`).
        stolen
            What the hypervisor took (`stolen_times`).
        edges
            Length of the ways out and in, as `measure_edges` returns them.
        """
        occupied = occupied_intervals(events, stolen, edges, runs)
        return cls(runs, occupied, speed, waits, held_intervals(events))

    def __repr__(self) -> str:
        return f"Account({self.times['run'].nunique()} runs, {self.sensitivity.by})"

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row a run and thread, in ns: `useful` (the program's work at full speed), `kernel`
        (events), `edges` (ways into the kernel and out), `hypervisor`, `slow_core`,
        `slow_memory`, `waiting`, `unexplained`; together the timed region.
        """
        return pd.concat(
            [self.times[["run", "thread"]], share_out(self.times, self.sensitivity)], axis=1
        )

    @cached_property
    def by_run(self) -> pd.DataFrame:
        """The mean of a run's threads: index `run`, a column for each of PARTS, ns."""
        return self.table.groupby("run")[list(PARTS)].mean()

    @cached_property
    def ordinary(self) -> pd.Index:
        """Runs of the middle half by run time, with which a slow run is compared."""
        seconds = self.runs.set_index("run")["seconds"].reindex(self.by_run.index)
        low, high = seconds.quantile(_ORDINARY)
        return self.by_run.index[(seconds >= low) & (seconds <= high)]

    def slowest(self, count: int = 5) -> list[int]:
        """The slowest runs that are in the account, the slowest first."""
        known = self.runs[self.runs["run"].isin(self.by_run.index)]
        return [int(run) for run in worst_first(known)["run"].head(count)]

    def excess(self, runs: int | Sequence[int] | None = None) -> pd.DataFrame:
        """What a run, or several together, took longer than the ordinary runs.

        For each run the other runs alone decide how sensitive the program is.

        Parameters
        ----------
        runs
            Numbers of runs; None: the slowest.

        Returns
        -------
        One row a part: `part`, `ms` (mean of the threads, the sum of `runs`), `low`, `high` (95 %,
        bootstrap of the other runs), `share` of the excess with
        `share_low`, `share_high`. The parts sum to `attrs["excess_ms"]`.
        """
        chosen = self._chosen(runs)
        each = [self._excess_ms(run) for run in chosen]
        ms, drawn = (np.sum(parts, axis=0) for parts in zip(*each))
        table = pd.DataFrame({"part": PARTS, "ms": ms})
        table["low"], table["high"] = _intervals(drawn)
        table["share"] = ms / ms.sum()
        table["share_low"], table["share_high"] = _intervals(drawn / drawn.sum(1, keepdims=True))
        table.attrs |= {"excess_ms": float(ms.sum()), "runs": chosen, "n": len(self.by_run)}
        return table

    def _chosen(self, runs: int | Sequence[int] | None) -> list[int]:
        chosen = self.slowest(1) if runs is None else [runs] if isinstance(runs, int) else [*runs]
        missing = [run for run in chosen if run not in self.by_run.index]
        if missing or not chosen:
            raise InputError(
                f"run {missing or chosen} is not in the account",
                fix=f"choose some of {self.by_run.index.min()} to {self.by_run.index.max()}",
            )
        return chosen

    def _excess_ms(self, run: int) -> tuple[np.ndarray, np.ndarray]:
        """What a run took longer, a value for each of PARTS, and the same of resamples: the other
        runs decide how sensitive the program is and what is ordinary.
        """
        random = np.random.default_rng(self.seed)
        others = self.by_run.index.drop(run).to_numpy()
        draws = [others, *random.choice(others, (DRAWS, len(others)))]
        parts = np.array([self._less_ordinary(run, drawn) for drawn in draws]) / 1e6
        return parts[0], parts[1:]

    def _less_ordinary(self, run: int, others: np.ndarray) -> np.ndarray:
        shares = share_out(self.times, self._fit(others))
        means = pd.DataFrame(self._mean_of_runs @ shares[list(PARTS)].to_numpy(), self.by_run.index)
        usual = others[np.isin(others, self.ordinary)]
        usual = usual if len(usual) else others
        return (means.loc[run] - means.loc[usual].mean()).to_numpy()

    @cached_property
    def _mean_of_runs(self) -> sparse.csr_array:
        """Turns a table with a row a thread into one with a row a run."""
        codes = pd.factorize(self.times["run"], sort=True)[0]
        weights = 1 / np.bincount(codes)[codes]
        return sparse.csr_array((weights, (codes, np.arange(len(codes)))))

    def _fit(self, runs: np.ndarray | None) -> Sensitivity:
        slower, log_ns = self._computing
        if runs is not None:
            slower, log_ns = slower.loc[runs], log_ns.loc[runs]
        return fit_sensitivity(slower.to_numpy(), log_ns.to_numpy())

    @cached_property
    def _computing(self) -> tuple[pd.DataFrame, pd.Series]:
        return computing_of_runs(self.times)

    def losses(self, run: int | None = None) -> pd.DataFrame:
        """When a run, or each run, lost time that a replay can take away again: the `losses` table.

        Returns
        -------
        One row an interval and CPU: `run`, `cpu`, `start_ns`, `end_ns`, `lost_ns`, `cause`
        (kernel, hypervisor, slow_core, slow_memory). Intervals without the CPU are lost whole,
        their edges included; between two samples a slower CPU loses a part.
        """
        runs = self.by_run.index if run is None else [run]
        parts = self._slow_phases(self.speed[self.speed["run"].isin(runs)])
        if self.occupied is not None:
            parts.insert(0, _taken_whole(self.occupied[self.occupied["run"].isin(runs)]))
        if self.held is not None:
            parts.append(self._held_losses(self.held[self.held["run"].isin(runs)]))
        return pd.concat([part for part in parts if len(part)], ignore_index=True)

    def _held_losses(self, held: pd.DataFrame) -> pd.DataFrame:
        """The share that threads were robbed of while others held a CPU."""
        robbed_ns = self.times.groupby("run")["robbed"].sum()
        share = (robbed_ns / held.groupby("run")["length_ns"].sum().clip(lower=1)).clip(upper=1)
        lost_ns = held["length_ns"] * held["run"].map(share).fillna(0)
        rows = held[["run", "cpu", "start_ns", "end_ns"]].assign(
            lost_ns=lost_ns.round().astype(np.int64), cause="kernel"
        )
        return rows[lost_ns > 0]

    def _slow_phases(self, samples: pd.DataFrame) -> list[pd.DataFrame]:
        factors = self.sensitivity.log_factor(_smoothed(slower_by(samples)))
        total = factors.sum(axis=1)
        away = samples["place"].isin(["openmp", "mpi"])
        computing_ns = samples["cpu_ns"].fillna(samples["wall_ns"]).mask(away, 0)
        lost_ns = computing_ns * -np.expm1(-total)
        kinds = {"slow_core": factors["clock"] + factors["core"], "slow_memory": factors["memory"]}
        bounds = samples[["run", "cpu"]].assign(
            start_ns=samples["start_ns"] - samples["wall_ns"], end_ns=samples["start_ns"]
        )
        share = {name: (kind / total).where(total > 0, 0.0) for name, kind in kinds.items()}
        return [
            bounds.assign(lost_ns=np.round(lost_ns * share[name]).astype(np.int64), cause=name)
            for name in kinds
        ]

    def corrected(self) -> pd.Series:
        """The time at full speed and without what was taken, in seconds, by `run`: the run's
        region less what its threads lost and less the waiting beyond the ordinary
        runs' that such losses can have caused.
        """
        lost = self.table[list(LOST)].sum(axis=1).groupby(self.table["run"])
        mean, most = lost.mean(), lost.max()
        usual = self.by_run.loc[self.ordinary, "waiting"].mean()
        waited = (self.by_run["waiting"] - usual).clip(lower=0)
        region = self.by_run.sum(axis=1)
        return ((region - mean - np.minimum(waited, most)) / 1e9).rename("corrected_seconds")


def share_out(times: pd.DataFrame, sensitivity: Sensitivity) -> pd.DataFrame:
    """PARTS of each row of `thread_times`, ns, by a program's sensitivity."""
    factors = times[list(SLOWER)].to_numpy() * sensitivity.values
    total, computing = factors.sum(axis=1), times["computing"].to_numpy()
    swift_ns = computing * np.exp(-total)  # as it would have been at full speed
    slow_ns = computing - swift_ns
    of_memory = np.divide(factors[:, -1], total, out=np.zeros_like(total), where=total > 0)
    # the program's work is the same in each run, whichever thread does it
    codes = pd.factorize(times["run"])[0]
    useful = swift_ns * (sensitivity.full_ns / np.bincount(codes, swift_ns)[codes])
    return pd.DataFrame(
        {
            "useful": useful,
            **{name: times[name].to_numpy() for name in TAKEN},
            "slow_core": slow_ns * (1 - of_memory),
            "slow_memory": slow_ns * of_memory,
            "waiting": times["waiting"].to_numpy(),
            "unexplained": swift_ns - useful,
        }
    )


def _taken_whole(taken: pd.DataFrame) -> pd.DataFrame:
    return taken[["run", "cpu", "start_ns", "end_ns"]].assign(
        lost_ns=taken["end_ns"] - taken["start_ns"],
        cause=np.where(taken["hypervisor_ns"] > taken["kernel_ns"], "hypervisor", "kernel"),
    )


def _intervals(drawn: np.ndarray) -> tuple[list[float], list[float]]:
    """Low and high ends of 95 %, of each column."""
    low, high = zip(*(percentile_interval(column) for column in drawn.T))
    return list(low), list(high)


def _smoothed(samples: pd.DataFrame, over: int = 3) -> pd.DataFrame:
    """The median of each sample and its neighbours in time: single ones are hit by interrupts."""
    names = list(SLOWER)
    groups = samples.groupby(["run", "thread"])[names]
    return groups.transform(lambda column: column.rolling(over, 1, center=True).median())
