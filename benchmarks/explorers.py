"""How long a view of each explorer takes on the recorded campaign: median and maximum in ms.

python benchmarks/explorers.py [states an explorer]
"""

import statistics
import sys
import time

import numpy as np

from nbhelpers import delta_noise, explorers, finished, recorded_runs
from nbhelpers.measurement import rates
from nbhelpers.studies.account_study import AccountStudy
from nbhelpers.studies.baseline import Baseline
from nbhelpers.study import Study

HIDDEN = ("hog_ns", "hog_planned_ns")


def explorers_of_recorded() -> dict[str, tuple]:
    """Each explorer by name, with states to draw: as many as are asked for."""
    study = Study("50-attribution", "recorded")
    stage10 = Baseline(study.of("10-trace-collection").data, True)
    planted = finished(recorded_runs(study.of("35-planted-anomaly").data / "replayed"))
    planted = rates(planted)
    planted = planted[planted.cell.str.startswith(("undisturbed", "disturbed"))]
    delta = delta_noise(stage10.events, stage10.average, stage10.traced)
    made = {
        "cutoff": explorers.explore_cutoff(planted, exclude=HIDDEN),
        "trace": explorers.explore_trace(stage10.events, stage10.traced),
        "account": explorers.explore_account(AccountStudy(stage10).account),
        "config": explorers.explore_config(delta),
        "scale": explorers.explore_scale(),
    }
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    return {name: (explorer, states(explorer, count)) for name, explorer in made.items()}


def states(explorer, count: int) -> list[dict]:
    """Values drawn along all controls."""
    random = np.random.default_rng(0)
    return [
        {control.name: drawn(control, random) for control in explorer.controls()}
        for _ in range(count)
    ]


def drawn(control, random):
    """A value of a control."""
    if hasattr(control, "options"):
        return control.options[random.integers(len(control.options))]
    if isinstance(control.start, tuple):
        return tuple(sorted(random.uniform(control.low, control.high, 2)))
    return random.uniform(control.low, control.high)


def main() -> None:
    print("explorer  median_ms  max_ms  views")
    for name, (explorer, chosen) in explorers_of_recorded().items():
        explorer.view()
        ms = []
        for state in chosen:
            began = time.perf_counter()
            explorer.view(state)
            ms.append((time.perf_counter() - began) * 1e3)
        print(f"{name:8} {statistics.median(ms):10.0f} {max(ms):7.0f} {len(ms):6}", flush=True)


if __name__ == "__main__":
    main()
