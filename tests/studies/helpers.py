"""Made-up labelled runs whose slowdowns are known, for the tables and findings."""

import numpy as np
import pandas as pd

CONFIGS = ("Rm", "RmHK", "TP")


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
    random, rows, seconds = np.random.default_rng(seed), [], seconds or {}
    for round_number in range(rounds):
        for program in ("nbody", "stream", "minife"):
            for model in models:
                for config in CONFIGS:
                    base = seconds.get((program, model, config), 1.0)
                    for trace, mode, ratio in (
                        ("undisturbed", "", 1.0),
                        ("#1", "improved", slowdown.get((model, config), 1.0)),
                    ):
                        rows.append(
                            {
                                "program": program,
                                "model": model,
                                "config": config,
                                "trace": trace,
                                "mode": mode,
                                "round": round_number,
                                "seconds": (
                                    base
                                    * ratio
                                    * random.normal(1, (spreads or {}).get(config, spread))
                                ),
                                "steal_s": 0.01 * random.integers(0, 4),
                            }
                        )
    return pd.DataFrame(rows).assign(run=range(len(rows)), status="ok")
