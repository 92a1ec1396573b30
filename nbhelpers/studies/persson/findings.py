"""The findings of Persson et al. 2025, sections 5 and 6, as comparisons of our runs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...statistics.claims import Claim, Evidence
from ...statistics.variation import variation_evidence
from ..design import Design
from ..dose import other_housekeeping
from ..findings import MARGIN, PERSSON, Finding
from .campaigns import MODE, UNDISTURBED
from .published import Published

_CELL = ["program", "model", "config", "trace"]
UNMET = "that the noise replayed here is heavy is not shown: it changed the time of Rm"


def persson_findings(
    runs: pd.DataFrame, design: Design, published: pd.DataFrame | None = None
) -> list[Finding]:
    """The findings of Persson et al. 2025, sections 5 and 6.

    What heavy noise does is judged by the planted traces where there are any, by their design and
    not by what they did; else by all. That the noise is heavy (it slows roaming programs down) is
    judged first.

    Parameters
    ----------
    runs
        Of `injected_campaign`, through `label_runs`.
    design
        Of the study: what was not measured, and the dose of housekeeping.
    published
        The published tables 3 to 5, one below the other; None: none.
    """
    logs = _Logs.of(runs, design)
    paper = Published.of(published)
    return [
        *_under_heavy_noise(logs, paper),
        *_of_models(logs, paper),
        *_in_average_noise(logs, paper),
        _of_variation(runs, logs),
    ]


@dataclass(frozen=True, eq=False)
class _Logs:
    """Logs of run times, and why some comparisons cannot be made.

    `undisturbed`, `disturbed`: of such runs; `slowdown`: of disturbed runs, less those of the
    undisturbed run of the same program, model, configuration and round; `steal` is subtracted
    likewise. `heavy`: the condition that roaming programs are slowed down. `reasons`: why models
    and configurations cannot be judged, those there are.
    """

    undisturbed: pd.DataFrame
    disturbed: pd.DataFrame
    slowdown: pd.DataFrame
    heavy: tuple[Claim, Evidence]
    reasons: dict[str, str]

    @classmethod
    def of(cls, runs: pd.DataFrame, design: Design) -> "_Logs":
        undisturbed = _values(runs[runs["trace"] == UNDISTURBED])
        heaviest = _heaviest(runs)
        disturbed = _values(heaviest[heaviest["mode"] == MODE])
        slowdown = _minus(disturbed, undisturbed)
        roaming = slowdown[slowdown.index.get_level_values("config") == "Rm"]
        heavy = Claim("the replayed noise is heavy (slowdown of Rm)", "above"), _evidence(roaming)
        return cls(undisturbed, disturbed, slowdown, heavy, _reasons(runs, design))

    def why_not(self, *names: str) -> str:
        """Why these models or configurations cannot be compared; empty if they can."""
        return "; ".join(self.reasons[name] for name in names if name in self.reasons)


def _reasons(runs: pd.DataFrame, design: Design) -> dict[str, str]:
    configs, models = set(runs["config"]), set(runs["model"])
    unmeasured = {
        name: f"{name} was not measured" for name in ("Rm", "RmHK", "TP") if name not in configs
    }
    absent = {model: f"no {model.upper()} runs" for model in ("omp", "sycl") if model not in models}
    dose = other_housekeeping(design, "RmHK")
    other = {"RmHK": dose} if dose else {}
    return other | absent | dict(design.absent) | unmeasured


def _under_heavy_noise(logs: _Logs, paper: Published) -> list[Finding]:
    return [
        _heavy(
            logs,
            Claim(
                "housekeeping helps under heavy noise (slowdown RmHK / Rm)",
                "below",
                source=PERSSON + "6 (1)",
            ),
            ("config", "RmHK", "Rm"),
            paper.slowdown("config", "RmHK", "Rm"),
        ),
        _heavy(
            logs,
            Claim(
                "pinning alone does not help (slowdown TP / Rm)",
                "not below",
                MARGIN,
                PERSSON + "5.2",
            ),
            ("config", "TP", "Rm"),
            paper.slowdown("config", "TP", "Rm"),
        ),
    ]


def _of_models(logs: _Logs, paper: Published) -> list[Finding]:
    slower = Claim("SYCL is slower (undisturbed, SYCL / OpenMP)", "above", source=PERSSON + "5.1")
    pairs = _differences(logs.undisturbed, "model", "sycl", "omp")
    return [
        _finding(slower, pairs, logs.why_not("sycl"), paper.undisturbed("model", "SYCL", "OMP")),
        _heavy(
            logs,
            Claim(
                "SYCL is more resilient (slowdown SYCL / OpenMP)", "below", source=PERSSON + "5.2"
            ),
            ("model", "sycl", "omp"),
            paper.slowdown("model", "SYCL", "OMP"),
        ),
    ]


def _in_average_noise(logs: _Logs, paper: Published) -> list[Finding]:
    comparisons = [
        (
            "a memory-bound program gains by housekeeping even in average noise (Babelstream, RmHK"
            " / Rm)",
            "6 (2)",
            "below",
            "stream",
            "RmHK",
        ),
        (
            "a compute-bound program is slower with housekeeping in average noise (N-body, RmHK"
            " / Rm)",
            "6 (3)",
            "above",
            "nbody",
            "RmHK",
        ),
        (
            "a compute-bound program gains by pinning in average noise (N-body, TP / Rm)",
            "6 (3)",
            "below",
            "nbody",
            "TP",
        ),
    ]
    return [
        _finding(
            Claim(text, direction, source=PERSSON + section),
            _differences(_of_program(logs.undisturbed, program), "config", config, "Rm"),
            logs.why_not(config, "Rm"),
            paper.undisturbed("config", config, "Rm", program),
        )
        for text, section, direction, program, config in comparisons
    ]


def _of_variation(runs: pd.DataFrame, logs: _Logs) -> Finding:
    claim = Claim(
        "cores that are left free make runs steadier (variation of run times, RmHK / Rm)",
        "below",
        MARGIN,
        PERSSON + "6 (4)",
    )
    strata = [*(name for name in _CELL if name != "config"), "epoch"]
    pairs = _side_by_side(runs, "RmHK", "Rm", strata)
    here = variation_evidence(pairs, strata, unmeasurable=logs.why_not("RmHK", "Rm"))
    why = "table 2 prints standard deviations averaged over programs, without their spread"
    return Finding(claim, here, paper=Evidence(unmeasurable=why))


def _side_by_side(runs: pd.DataFrame, first: str, second: str, strata: list[str]) -> pd.DataFrame:
    """Run times of two configurations in the same round, program, model and trace."""
    chosen = runs[runs["mode"].isin(["", MODE])]
    chosen = chosen if "epoch" in chosen else chosen.assign(epoch=0)
    sides = [
        chosen[chosen["config"] == config].set_index([*strata, "round"])["seconds"].rename(name)
        for name, config in (("first", first), ("second", second))
    ]
    return pd.concat(sides, axis=1, join="inner").reset_index()


def _heavy(logs: _Logs, claim: Claim, sides: tuple[str, str, str], paper: Evidence) -> Finding:
    """A finding on slowdowns, which means something under heavy noise only."""
    pairs, run_times = (_differences(table, *sides) for table in (logs.slowdown, logs.disturbed))
    return _finding(
        claim,
        pairs,
        logs.why_not(*sides[1:]),
        paper,
        condition=logs.heavy,
        unmet=UNMET,
        run_times=_evidence(run_times),
    )


def _finding(
    claim: Claim, pairs: pd.DataFrame, unmeasurable: str, paper: Evidence, **more: Any
) -> Finding:
    known = pairs["steal"].notna().all()
    steal = pairs["steal"].to_numpy() if known else None
    return Finding(claim, _evidence(pairs, unmeasurable), paper=paper, steal=steal, **more)


def _evidence(pairs: pd.DataFrame, unmeasurable: str = "") -> Evidence:
    """Pairs of a round are one unit; program, model, configuration and trace are strata."""
    strata = pairs.index.droplevel("round").to_numpy()
    rounds = pairs.index.get_level_values("round").to_numpy()
    return Evidence(pairs["log"].to_numpy(), rounds, strata, unmeasurable)


def _heaviest(runs: pd.DataFrame) -> pd.DataFrame:
    planted = runs["trace"].str.startswith("planted")
    return runs[planted] if planted.any() else runs


def _values(runs: pd.DataFrame) -> pd.DataFrame:
    """`log` (of the run time) and `steal` by program, model, config, trace and round."""
    steal = runs.get("steal_s", np.nan)
    table = runs.assign(log=np.log(runs["seconds"]), steal=steal)
    return table.set_index([*_CELL, "round"])[["log", "steal"]]


def _minus(disturbed: pd.DataFrame, undisturbed: pd.DataFrame) -> pd.DataFrame:
    """Of each disturbed run, less those of the undisturbed run of the same round."""
    same_round = undisturbed.droplevel("trace").reindex(disturbed.index.droplevel("trace"))
    return (disturbed - same_round.to_numpy()).dropna(subset="log")


def _of_program(values: pd.DataFrame, program: str) -> pd.DataFrame:
    return values[values.index.get_level_values("program") == program]


def _differences(values: pd.DataFrame, level: str, first: str, second: str) -> pd.DataFrame:
    """First less second of all pairs that agree in everything else."""
    if not {first, second} <= set(values.index.get_level_values(level)):
        return values.iloc[:0]
    return (values.xs(first, level=level) - values.xs(second, level=level)).dropna(subset="log")
