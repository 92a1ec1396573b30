"""A training loop under injected noise of its host, beside what its quiet steps predict.

Owns the campaign of stage 85 and the comparison of its step times.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from nbhelpers.injection import injection_campaign
from nbhelpers.measurement import finished
from nbhelpers.noise.config import NoiseConfig
from nbhelpers.noise.signature import Signature
from nbhelpers.places import shipped
from nbhelpers.workloads import Workload, program

from .prediction import ks_distance, predicted_steps, price_by_source

PAPER, SOURCES = "10 Hz × 2500 µs", "three sources"
STEP_MS = 4.0  # about, on a CPU of 2020: how long the noise must be able to last
DRAWS = 40
REAL_TIME = "SCHED_FIFO"


def loop_configs(steps: int, cpu: int, seed: int = 0) -> dict[str, NoiseConfig]:
    """Noise for one CPU, as long as the slowest loop may take, by case."""
    seconds = 4 * steps * STEP_MS / 1e3
    parts = {
        "timer": (Signature(100, 100, seed=seed), "irq", None, None),
        "worker": (Signature(40, 500, distribution="poisson", seed=seed), "softirq", None, None),
        "daemon": (
            Signature(5, 4000, distribution="poisson", seed=seed),
            "thread",
            REAL_TIME,
            2,  # above the loop's own
        ),
    }
    events = [
        signature.events(seconds, [cpu], kind, policy, priority).assign(source=source)
        for source, (signature, kind, policy, priority) in parts.items()
    ]
    three = pd.concat(events, ignore_index=True).sort_values("start_ns", ignore_index=True)
    window_ns = round(seconds * 1e9)
    return {
        PAPER: Signature(10, 2500, seed=seed).config(seconds, [cpu]),
        SOURCES: NoiseConfig.from_events(three, window_ns=window_ns),
    }


def training_loop(steps: int, cpu: int) -> Workload:
    """The loop of workloads/training_loop.py on one CPU, undisturbed by ordinary programs."""
    path = shipped() / "workloads" / "training_loop.py"
    sizes = ["--steps", steps, "--cpu", cpu, "--width", 384, "--batch", 512]
    words = map(str, [sys.executable, path, *sizes, "--realtime"])
    return program(list(words), name="training-loop", region="symbols", threads=1)


def measured_steps(
    folder: Path, steps: int, runs: int, seed: int = 0, recorded_only: bool = False
) -> tuple[pd.DataFrame, dict[str, NoiseConfig]]:
    """Run the loop with and without each noise, in random order.

    Parameters
    ----------
    folder
        Holds the campaigns, one a case; the noise is stored beside its campaign.
    steps, runs
        Steps of a run, and runs of each cell.
    recorded_only
        True: use recorded data, measure nothing.

    Returns
    -------
    (pandas.DataFrame, dict)
        One row a step: `case`, `cell` (baseline, injected), `run`, `step_ms`; the noise of each
        case.
    """
    cpu = min(os.sched_getaffinity(0))
    configs = loop_configs(steps, cpu, seed)
    tables = []
    for case, config in configs.items():
        place = Path(folder) / case.replace(" ", "-").replace("µ", "u").replace("×", "x")
        stored = place / "noise.json"
        if recorded_only:
            configs[case] = config = NoiseConfig.read(stored)
        else:
            place.mkdir(parents=True, exist_ok=True)
            config.write(stored)
        campaign = injection_campaign(
            place,
            training_loop(steps, cpu),
            config,
            runs,
            seed,
            recorded_only,
            placement="origin",
        )
        ok = finished(campaign.run())[["run", "cell"]]
        values = campaign.series().merge(ok, on="run")
        tables.append(
            values.assign(case=case, step_ms=1e3 * values["value"])[
                ["case", "cell", "run", "step_ms"]
            ]
        )
    return pd.concat(tables, ignore_index=True), configs


def predicted_and_measured(
    steps: pd.DataFrame, configs: Mapping[str, NoiseConfig]
) -> dict[str, pd.DataFrame]:
    """All injected steps by case: `side` ("measured" or "predicted") and `step_ms`."""
    tables = {}
    for case, config in configs.items():
        quiet, noisy = _cells(steps, case)
        ours = _predicted_ms(quiet, config, noisy).ravel()
        tables[case] = pd.DataFrame(
            {
                "side": np.repeat(["measured", "predicted"], [noisy.size, ours.size]),
                "step_ms": np.concatenate([noisy.ravel(), ours]),
            }
        )
    return tables


def distances(steps: pd.DataFrame, configs: Mapping[str, NoiseConfig]) -> pd.DataFrame:
    """How far the predicted distribution of step times is from the measured one.

    Returns
    -------
    pandas.DataFrame
        One row a case: `case`, `runs`, `steps` (measured under noise), mean and 99th percentile as
        measured (`mean_ms`, `p99_ms`), predicted (`predicted_mean_ms`, `predicted_p99_ms`) and
        without noise (`quiet_mean_ms`, `quiet_p99_ms`), `ks` (the Kolmogorov–Smirnov distance) with
        its 95 % interval over runs (`ks_low`, `ks_high`), `ks_quiet` (of quiet steps from the
        noisy: what no prediction would give) and `ks_repeat` (of one half of the quiet runs from
        the other: what the machine changes by itself).
    """
    return pd.DataFrame([_row(case, *_cells(steps, case), configs[case]) for case in configs])


def prices(steps: pd.DataFrame, configs: Mapping[str, NoiseConfig]) -> pd.DataFrame:
    """`price_by_source` of the case with three sources."""
    quiet, noisy = _cells(steps, SOURCES)
    return price_by_source(quiet.ravel() / 1e3, configs[SOURCES].events(), noisy.shape[1], DRAWS)


def _cells(steps: pd.DataFrame, case: str) -> tuple[np.ndarray, np.ndarray]:
    """Step times without and with noise, float64 [runs, steps]."""
    its = steps[steps["case"] == case]
    quiet, noisy = (
        np.stack([run["step_ms"].to_numpy() for _, run in its[its["cell"] == cell].groupby("run")])
        for cell in ("baseline", "injected")
    )
    return quiet, noisy


def _predicted_ms(quiet: np.ndarray, config: NoiseConfig, noisy: np.ndarray) -> np.ndarray:
    return 1e3 * predicted_steps(quiet.ravel() / 1e3, config.events(), noisy.shape[1], DRAWS)


def _row(case: str, quiet: np.ndarray, noisy: np.ndarray, config: NoiseConfig) -> dict[str, object]:
    ours = _predicted_ms(quiet, config, noisy)
    numbers = np.arange(len(noisy))

    def distance(chosen: np.ndarray) -> float:
        return ks_distance(noisy[chosen.astype(int)].ravel(), ours.ravel())

    rng = np.random.default_rng(0)
    redrawn = [distance(rng.choice(numbers, len(numbers))) for _ in range(400)]
    low, high = np.quantile(redrawn, [0.025, 0.975])
    figures = {
        f"{name}{what}_ms": value
        for name, times in (("", noisy), ("predicted_", ours), ("quiet_", quiet))
        for what, value in (("mean", times.mean()), ("p99", np.quantile(times, 0.99)))
    }
    return {
        "case": case,
        "runs": len(noisy),
        "steps": noisy.size,
        **figures,
        "ks": distance(numbers),
        "ks_low": low,
        "ks_high": high,
        "ks_quiet": ks_distance(noisy.ravel(), quiet.ravel()),
        "ks_repeat": ks_distance(quiet[::2].ravel(), quiet[1::2].ravel())
        if len(quiet) > 1
        else np.nan,
    }
