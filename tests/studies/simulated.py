"""Whole campaigns as they might have been measured, with and without effects: runs tables of
the studies of Persson et al. 2025 and Cui et al. 2023.

Runs of a round share what disturbed the machine in it; the machine drifts within and between
rounds; single runs have heavy tails, and some are slow by a third.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from nbhelpers.machine import Cpu, Topology
from nbhelpers.studies.design import Design
from nbhelpers.workloads import configurations

CONFIGS = ("Rm", "RmHK", "TP")
MODELS = ("omp", "sycl")
PROGRAMS = ("nbody", "stream", "minife")
# 16 cores: housekeeping takes 12.5 % of them, as in the paper
SIXTEEN = Topology(tuple(Cpu(cpu, cpu, 0, 0, ()) for cpu in range(16)))
DESIGN = Design(configurations(SIXTEEN), CONFIGS, MODELS, {}, {})
TRACES = {1: ("planted-omp",), 2: ("planted-omp", "planted-sycl"), 4: ("#1", "#2", "#3", "#4")}
WORST = pd.MultiIndex.from_product([PROGRAMS, MODELS], names=["program", "model"]).to_frame(False)
WORST = WORST.assign(config="Rm", trace="planted-" + WORST["model"], run=0)


def machine_noise(rounds: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Logs of what a machine makes of run times, in the order of the runs."""
    size = rounds.size
    of_rounds = 0.05 * random.standard_t(4, rounds.max() + 1)[rounds]
    drift = np.cumsum(random.normal(0, 0.003, size))
    slow = np.where(random.random(size) < 0.05, np.log(4 / 3), 0)
    return of_rounds + drift + slow + 0.04 * random.standard_t(4, size)


def in_random_order(cells: pd.DataFrame, rounds: int, random: np.random.Generator) -> pd.DataFrame:
    """Every cell in every round, shuffled within it, with the machine's noise as `log`."""
    parts = [
        cells.iloc[random.permutation(len(cells))].assign(round=number) for number in range(rounds)
    ]
    runs = pd.concat(parts, ignore_index=True)
    noise = machine_noise(runs["round"].to_numpy(), random)
    return runs.assign(log=noise, run=range(len(runs)), status="ok", steal_s=0.0)


def persson_runs(
    random: np.random.Generator,
    traces: int,
    slowdown: float = 1.0,
    rounds: int = 8,
    effects: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Undisturbed and injected runs; noise slows every program, model and configuration alike.

    effects: query of the runs -> factor of their run times.
    """
    names = ["program", "model", "config", "trace"]
    kinds = ("undisturbed", *TRACES[traces])
    cells = pd.MultiIndex.from_product([PROGRAMS, MODELS, CONFIGS, kinds], names=names)
    runs = in_random_order(cells.to_frame(index=False), rounds, random)
    calm = runs["trace"] == "undisturbed"
    seconds = np.exp(runs["log"] + np.where(calm, 0, np.log(slowdown)))
    for query, factor in (effects or {}).items():
        seconds = seconds.where(~runs.eval(query), seconds * factor)
    return runs.assign(seconds=seconds, mode=np.where(calm, "", "improved"), epoch=0)


def length_runs(
    random: np.random.Generator, slowdown: float = 1.0, rounds: int = 8
) -> pd.DataFrame:
    """Runs of two lengths; noise slows each by the same factor, whether it ends or lasts."""
    names = ["program", "model", "length", "noise_kind"]
    kinds = ("undisturbed", "fixed", "scaled")
    cells = pd.MultiIndex.from_product([PROGRAMS, MODELS, ("x1", "x2"), kinds], names=names)
    runs = in_random_order(cells.to_frame(index=False), rounds, random)
    calm = runs["noise_kind"] == "undisturbed"
    factor = np.where(runs["length"] == "x2", 2.0, 1.0) * np.where(calm, 1, slowdown)
    return runs.assign(seconds=factor * np.exp(runs["log"]), injected_ns=0.0)


CUI_CONFIGS = ("Rm", "RmHK", "TP", "TP-ST1", "TP-one-node", "TP-two-nodes")
CUI_BENCHMARKS = ("dynamic_1", "reduction", "barrier", "copy", "dot")
# two NUMA nodes of 32 cores; housekeeping takes 12.5 %
SIXTY_FOUR = Topology(tuple(Cpu(cpu, cpu, cpu // 32, cpu // 32, ()) for cpu in range(64)))
CUI_DESIGN = Design(configurations(SIXTY_FOUR), CUI_CONFIGS, ("gcc",), {}, {})


def cui_series(
    random: np.random.Generator, rounds: int = 10, repetitions: int = 20
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Runs and repetitions of every benchmark, compiler and configuration, all alike."""
    names = ["benchmark", "compiler", "config"]
    cells = pd.MultiIndex.from_product([CUI_BENCHMARKS, ("gcc", "clang"), CUI_CONFIGS], names=names)
    runs = in_random_order(cells.to_frame(index=False), rounds, random)
    runs["cell"] = runs["benchmark"] + " " + runs["compiler"] + " " + runs["config"]
    runs["threads"] = np.where(runs["config"] == "TP-ST1", 1, 2)
    # how much repetitions vary is the matter of the round, of the run, and of chance
    of_round = random.normal(0, 0.3, rounds)[runs["round"].to_numpy()]
    spread = 0.05 * np.exp(of_round + random.normal(0, 0.3, len(runs)))
    each = random.standard_t(4, (len(runs), repetitions)) * spread[:, None]
    values = np.exp(runs["log"].to_numpy()[:, None] + each)
    repeated = runs[["run", "benchmark"]].loc[runs.index.repeat(repetitions)]
    series = repeated.rename(columns={"benchmark": "name"}).reset_index(drop=True)
    index = np.tile(np.arange(repetitions), len(runs))
    return runs, series.assign(unit="us", index=index, value=values.ravel())
