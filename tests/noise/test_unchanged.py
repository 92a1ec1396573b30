"""Noise configs made of fixed tables are what they were."""

import json

import numpy as np
import pandas as pd
import pytest

from nbhelpers.noise import NoiseConfig, average_noise, delta_noise, presets, signature_noise
from nbhelpers.noise import stressors as s
from nbhelpers.noise.loss_deltas import loss_delta
from nbhelpers.noise.losses import (
    CAUSES,
    COLUMNS,
    cut_at_intervals,
    loss_config,
    replayable_shares,
    shares_sentences,
)
from nbhelpers.noise.signature import Signature

from ..unchanged import check
from .independent import event_table, runs_table

KINDS = ("irq", "softirq", "nmi", "thread")


def traced(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Events of six runs on three CPUs, and the runs."""
    random = np.random.default_rng(seed)
    rows = []
    for run in range(6):
        for _ in range(40 + 10 * run):
            kind = KINDS[random.choice(4, p=[0.4, 0.3, 0.05, 0.25])]
            source = f"{kind}-{random.integers(3)}"
            start, length = random.integers(0, 40_000_000), random.integers(500, 400_000)
            policy = ("", 0)
            if kind == "thread":
                policy = [("SCHED_OTHER", 0), ("SCHED_FIFO", 50)][random.integers(2)]
            rows.append((run, int(random.integers(3)), kind, source, start, length, *policy))
    return event_table(rows), runs_table([0.04, 0.042, 0.041, 0.04, 0.045, 0.052])


def described(config: NoiseConfig, folder) -> dict:
    """All that a config says of itself."""
    path = config.write(folder / "noise.json")
    return {
        "events": config.events(),
        "summary": config.summary(),
        "digest": config.digest,
        "words": [repr(config), config._repr_html_()],
        "file": len(path.read_text()),
        "again": NoiseConfig.read(path) == config,
    }


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_deltas(seed, tmp_path):
    events, runs = traced(seed)
    average = average_noise(events, runs)
    found: dict[str, object] = {"average": average}
    for method in ("paper", "compat"):
        delta = delta_noise(events, average, runs, method=method)
        found[method] = {"delta": delta, "about": delta.attrs}
        for merge in ("improved", "pessimistic", "compat"):
            config = NoiseConfig.from_events(delta, merge=merge)
            found[f"{method} {merge}"] = described(config, tmp_path)
    config = NoiseConfig.from_events(delta_noise(events, average, runs, run=3))
    found["of run 3"] = described(config, tmp_path)
    found["on eight"] = described(config.for_machine(8), tmp_path)
    found["mapped"] = described(config.mapped({0: 5, 1: 7, 2: 1}), tmp_path)
    config.write_published(tmp_path / "published.json")
    found["published"] = json.loads((tmp_path / "published.json").read_text())
    check(f"deltas-{seed}", found)


@pytest.mark.parametrize("seed", [1, 2])
def test_losses(seed):
    random = np.random.default_rng(seed)
    rows = []
    for run in range(5):
        for _ in range(30):
            start = random.integers(0, 95_000_000)
            length = random.integers(1_000, 12_000_000)
            cause = CAUSES[random.integers(len(CAUSES))]
            lost = int(length * random.uniform(0.1, 1.0))
            rows.append((run, int(random.integers(2)), start, start + length, lost, cause))
    table = pd.DataFrame(rows, columns=["run", *COLUMNS])
    runs = pd.DataFrame({"run": range(5), "region_seconds": [0.09, 0.1, 0.095, 0.12, 0.1]})
    delta = loss_delta(table, runs, [0, 1, 2])
    one = delta[delta["run"] == 3].drop(columns="run")
    shares = replayable_shares(one, 30e6, 100_000_000)
    found = {
        "delta": delta,
        "cut": cut_at_intervals(one["start_ns"], one["end_ns"] - one["start_ns"]),
        "config": loss_config(one, 100_000_000).events(),
        "few bursts": loss_config(one, 100_000_000, shortest_ns=50_000, bursts=2).events(),
        "shares": shares,
        "sentences": shares_sentences(shares),
        "ordinary": replayable_shares(one, 30e6, 100_000_000, realtime=False),
    }
    check(f"losses-{seed}", found)


def test_signatures_and_stressors():
    found: dict[str, object] = {}
    for distribution in ("periodic", "poisson"):
        for durations in ("fixed", "exponential"):
            for phase in ("aligned", "random"):
                noise = signature_noise(
                    200.0,
                    50.0,
                    0.5,
                    [0, 1],
                    distribution=distribution,
                    durations=durations,
                    phase=phase,
                    seed=4,
                )
                found[f"{distribution} {durations} {phase}"] = {
                    "events": noise.drop(columns="run"),
                    "about": {key: str(value)[:200] for key, value in noise.attrs.items()},
                }
    one = Signature(frequency_hz=100.0, share=0.025, phase="random", ranks=[1, 3])
    found["signature"] = [
        one.label,
        one.local_slowdown,
        one.simultaneous,
        repr(one),
        one.with_(seed=3).label,
        one.events(0.3, [0, 1, 2, 3]),
    ]
    found["presets"] = [
        [repr(value) for value in presets.constant_share().values()],
        [repr(value) for value in presets.increasing_share(50.0).values()],
        presets.published_noise(),
        [repr(value) for value in presets.machine_signatures().values()],
    ]
    table = s.stressor_table()
    found["stressors"] = table
    for kind in table.index if table.index.name else table["kind"]:
        for ramp_s in (0.0, 0.1) if kind != "memory_hold" else (0.0,):
            found[f"{kind} {ramp_s}"] = s.stressor_noise(
                kind,
                0.5 if kind == "duty" else 10.0,
                1.0,
                [0, 1],
                start_s=0.2,
                duration_s=0.5,
                ramp_s=ramp_s,
            )
    found["together"] = s.combined_noise(
        s.stressor_noise("memory_read", 1e9, 1.0, [0], start_s=0.1),
        signature_noise(100.0, 50.0, 1.0, [1]),
    )
    check("signatures", found)
