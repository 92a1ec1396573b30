"""Made-up labelled runs whose slowdowns are known, for the tables and findings; and what the cells
of the pages claim of them.
"""

from functools import cache
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd

from nbhelpers.report import published_table
from nbhelpers.studies.design import Design
from nbhelpers.studies.findings import Finding

from ..cells import run_cells
from .simulated import CONFIGS, PROGRAMS


def made_runs(
    slowdown: dict,
    rounds: int = 8,
    spread: float = 0.01,
    seconds: dict | None = None,
    models=("omp", "sycl"),
    seed: int = 0,
    spreads: dict | None = None,
) -> pd.DataFrame:
    """Undisturbed and injected runs; slowdown: (model, config) -> ratio; seconds: (program, model,
    config) -> undisturbed time, default 1; spreads: config -> spread.
    """
    random, spreads = np.random.default_rng(seed), spreads or {}
    cells = product(range(rounds), PROGRAMS, models, CONFIGS, ("undisturbed", "#1"))
    runs = pd.DataFrame(cells, columns=["round", "program", "model", "config", "trace"])
    where = [*zip(runs["program"], runs["model"], runs["config"])]
    base = np.array([(seconds or {}).get(one, 1.0) for one in where])
    noisy = np.array([slowdown.get(one[1:], 1.0) for one in where])
    calm = runs["trace"] == "undisturbed"
    noise = random.normal(1, runs["config"].map(lambda config: spreads.get(config, spread)))
    runs["seconds"] = base * np.where(calm, 1.0, noisy) * noise
    runs["steal_s"] = 0.01 * random.integers(0, 4, len(runs))
    return runs.assign(run=runs.index, mode=np.where(calm, "", "improved"), status="ok", epoch=0)


@cache
def printed_tables() -> list[pd.DataFrame]:
    """Tables 3 to 5 of Persson et al. 2025."""
    return [published_table(f"persson2025-table{number}") for number in (3, 4, 5)]


def persson_findings(runs: pd.DataFrame, design: Design) -> list[Finding]:
    """What page 40 claims of undisturbed and injected runs."""
    given = {"injected": runs, "design": design, "tables": printed_tables()}
    return run_cells("40-mitigations", "claims", **given)["findings"]


def fairness(runs: pd.DataFrame, worst: pd.DataFrame, lengths: pd.DataFrame | None = None) -> dict:
    """What page 42 makes of injected runs and of runs of two lengths: `contrasts`, `of_lengths` and
    `findings` among others.
    """
    if lengths is None:
        names = ["run", "program", "model", "length", "noise_kind", "round", "seconds", "steal_s"]
        lengths = pd.DataFrame(columns=names)
    given = {"injected": runs, "worst": worst, "lengths": lengths}
    study = SimpleNamespace(table=lambda table, name, **how: table)
    return run_cells("42-fairness", "claims", study=study, **given)


def cui_statistics(runs: pd.DataFrame, series: pd.DataFrame) -> dict:
    """`repeated` and `statistics` of page 60."""
    return run_cells("60-openmp-variability", "statistics", ok=runs, series=series)


def cui_findings(statistics: pd.DataFrame, design: Design) -> list[Finding]:
    """What page 60 claims of the statistics of runs."""
    given = {"statistics": statistics, "design": design}
    return run_cells("60-openmp-variability", "claims", **given)["findings"]
