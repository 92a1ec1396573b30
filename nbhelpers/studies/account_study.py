"""The account of the runs that stage 10 traced: tables, and the sentences that read them.

Owns nothing of its own: `nbhelpers.account` does the sums.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from ..account import Account, measure_edges
from ..account.table import FEWEST_RUNS, PARTS
from ..empty import because
from ..files import write_json
from ..injection import Overheads, measure_overheads
from ..injection.rules import may_realtime
from ..noise.loss_deltas import loss_delta
from ..noise.losses import replayable_shares, shares_sentences
from ..reading import read_json
from ..speed import read_speed, read_waits
from ..statistics import percentile_interval
from .baseline import Baseline

NOT_RECORDED = (
    f"the speed of the CPUs was not recorded in {FEWEST_RUNS} runs or more: they are older than the"
    " probe or shorter than 0.1 s, or the program does not load libraries"
)
WORDS = {
    "kernel": "kernel events",
    "edges": "ways into the kernel and out",
    "hypervisor": "the hypervisor",
    "slow_core": "a slower core",
    "slow_memory": "slower memory",
    "waiting": "waiting for other threads",
    "unexplained": "nothing that was recorded",
}
SAMPLED = "sampled"  # cell of runs whose program could not be traced
_REPEATS = 2000


@dataclass(frozen=True)
class AccountStudy:
    """The account of the traced runs of stage 10, or where nothing could be traced of its sampled
    ones.

    Parameters
    ----------
    baseline
        What stage 10 measured.
    """

    baseline: Baseline

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Finished runs of one cell, all of them traced or none."""
        if self._is_sampled:
            runs = self.baseline.runs
            return runs[runs["cell"] == SAMPLED].reset_index(drop=True)
        return self.baseline.traced

    @cached_property
    def _is_sampled(self) -> bool:
        return bool((self.baseline.runs["cell"] == SAMPLED).any())

    @cached_property
    def speed(self) -> pd.DataFrame:
        """Samples of the speed probe; no rows where there was none."""
        if "speed_samples" not in self.runs:
            return _nothing("run", "thread", "cpu", "latency", "throughput", "memory")
        return read_speed(self.baseline.folder / "speed", self.runs)

    @cached_property
    def account(self) -> Account | None:
        """None where the speed was not recorded."""
        sampled = self.runs[self.runs["run"].isin(self.speed["run"])].reset_index(drop=True)
        if len(sampled) < FEWEST_RUNS:
            return None
        waits = read_waits(self.baseline.folder / "speed", sampled)
        if self._is_sampled:
            return Account(sampled, None, self.speed, waits)
        edges = measure_edges(self.baseline.data / "edges", recorded_only=True)
        events, stolen = self.baseline.events, self.baseline.stolen
        return Account.of_events(sampled, events, stolen, edges, self.speed, waits)

    def sampled(self) -> pd.DataFrame:
        """One row a kind of the probe's work: share of full speed, by quantile of all samples."""
        kinds = ["latency", "throughput", "memory"]
        quantiles = [0.01, 0.1, 0.5, 0.9]
        table = self.speed[kinds].astype(float).quantile(quantiles).T
        table.columns = [f"p{100 * quantile:.0f}" for quantile in quantiles]
        table = table.rename_axis("work").reset_index()
        if self.speed.empty:
            return because(table.head(0), NOT_RECORDED)
        return table.assign(samples=len(self.speed), runs=self.speed["run"].nunique())

    def bars(self, count: int) -> pd.DataFrame:
        """What `figure_account` draws: the mean of the ordinary runs, and the slowest."""
        if self.account is None:
            return _nothing("label", "seconds", *PARTS)
        by_run, ordinary = self.account.by_run, self.account.ordinary
        rows = [("ordinary runs", by_run.loc[ordinary].mean())]
        rows += [(f"run {run}", by_run.loc[run]) for run in self.account.slowest(count)]
        return pd.DataFrame(
            [{"label": label, "seconds": parts.sum() / 1e9, **parts / 1e6} for label, parts in rows]
        )

    def excess(self, count: int = 1) -> pd.DataFrame:
        """`Account.excess` of the slowest runs together."""
        if self.account is None:
            return _nothing("part", "ms", "low", "high", "share", "share_low", "share_high")
        if count not in self._excesses:
            excess = self.account.excess(self.account.slowest(count))
            self._excesses[count] = excess[excess["part"] != "useful"]
        return self._excesses[count]

    @cached_property
    def _excesses(self) -> dict[int, pd.DataFrame]:
        """Tables of `excess` that were computed, by the number of runs."""
        return {}

    def losses(self) -> pd.DataFrame:
        """When the slowest run lost its time (`Account.losses`)."""
        if self.account is None:
            return _nothing("run", "cpu", "start_ns", "end_ns", "lost_ns", "cause")
        return self.account.losses(self.account.slowest(1)[0])

    @cached_property
    def beyond_ordinary(self) -> pd.DataFrame | None:
        """What each run lost more than ordinary ones, to be replayed (`loss_delta`); None where no
        speed was recorded, or no trace says what was taken whole.
        """
        if self.account is None or self.account.occupied is None:
            return None
        return loss_delta(self.account.losses(), self.account.runs, self.account.ordinary)

    def replayable(self, count: int) -> pd.DataFrame:
        """Of each of the slowest runs, how much of its excess a replay on this machine can reach:
        `run`, `excess_ms`, `replayable_ms`, `replayable_share`, `not_replayable`.
        """
        losses, account = self.beyond_ordinary, self.account
        if losses is None or account is None:
            columns = ("excess_ms", "replayable_ms", "replayable_share", "not_replayable")
            return _nothing("run", *columns)
        limits = self.gate()
        return pd.DataFrame(
            [
                self._share(run, losses[losses["run"] == run], limits)
                for run in account.slowest(count)
            ]
        )

    def gate(self) -> dict:
        """What decides whether a loss can be replayed where these runs were measured: arguments of
        `replayable_shares`; none where nothing is known of losses.

        They are recorded with the runs: a recorded campaign's replays are found again by them.
        """
        if self.beyond_ordinary is None:
            return {}
        file = self.baseline.data / "replay-limits.json"
        if self.baseline.recorded_only and file.exists():
            return read_json(file)
        overheads = Overheads() if self.baseline.recorded_only else measure_overheads()
        limits = {"realtime": may_realtime(50), "shortest_ns": round(overheads.shortest_us * 1e3)}
        if not self.baseline.recorded_only:
            write_json(file, limits)
        return limits

    def _share(self, run: int, losses: pd.DataFrame, limits: dict) -> dict:
        regions = self.runs.set_index("run")["region_seconds"] * 1e9
        excess_ns = float(regions[run] - regions.median())
        shares = replayable_shares(losses, excess_ns, round(regions[run]), **limits)
        sentences = shares_sentences(shares)
        return {
            "run": run,
            "excess_ms": excess_ns / 1e6,
            "replayable_ms": shares["replayable_ms"].sum(),
            "replayable_share": shares["share"].sum(),
            "not_replayable": sentences[1] if len(sentences) > 1 else "",
        }

    def corrected(self, seed: int = 0) -> pd.DataFrame:
        """Spread of run times, raw and corrected: `time`, `cv` and its 95 % interval (bootstrap of
        runs); the last row is the ratio of the two, of the same resamples.
        """
        columns = ["time", "cv", "low", "high", "runs"]
        if self.account is None:
            return _nothing(*columns)
        corrected = self.account.corrected()
        raw = self.runs.set_index("run")["seconds"].loc[corrected.index]
        random = np.random.default_rng(seed)
        chosen = random.integers(len(raw), size=(_REPEATS + 1, len(raw)))
        chosen[0] = np.arange(len(raw))
        cv = {"raw": _spread(raw, chosen), "corrected": _spread(corrected, chosen)}
        cv["corrected / raw"] = cv["corrected"] / cv["raw"]
        rows = [
            (name, drawn[0], *percentile_interval(drawn[1:]), len(raw))
            for name, drawn in cv.items()
        ]
        return pd.DataFrame(rows, columns=columns)

    def sentences(self, count: int) -> list[str]:
        """What the tables say."""
        if self.account is None:
            return []
        together = self.excess(count).set_index("part")
        rest = together.loc["unexplained"]
        by = ", ".join(
            f"{row['ms']:.1f} ms {WORDS[part]}"
            for part, row in together.sort_values("ms", ascending=False).iterrows()
            if part != "unexplained"
        )
        ratio = self.corrected().set_index("time").loc["corrected / raw"]
        proven = "proven smaller" if ratio["high"] < 1 else "not proven smaller"
        return [
            f"The {count} slowest runs took {together['ms'].sum():.1f} ms more than ordinary ones:"
            f" {by}; unexplained: {rest['share']:.1%} ({rest['share_low']:.1%} to"
            f" {rest['share_high']:.1%}).",
            f"Corrected run times spread {ratio['cv']:.2f} times as much as raw ones"
            f" ({ratio['low']:.2f} to {ratio['high']:.2f}): {proven}.",
        ]


def _nothing(*columns: str) -> pd.DataFrame:
    return because(pd.DataFrame(columns=list(columns)), NOT_RECORDED)


def _spread(seconds: pd.Series, chosen: np.ndarray) -> np.ndarray:
    values = seconds.to_numpy()[chosen]
    return values.std(axis=1) / values.mean(axis=1)
