"""The questions of fairness of Persson et al. 2025, section 5.2: whose trace disturbs whom, and
what a fixed length of noise does to longer runs.

Owns the traces of planted disturbances (the same hogs for each model, so that nothing but the
traced program differs), and the contrasts of slow-downs.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ...files import digest
from ...injection import random_schedule
from ...injection.hog import Schedule
from ...measurement import Campaign, Cell, finished
from ...statistics.claims import Claim
from ..design import Design
from ..findings import Finding
from ..planted_anomalies import real_time_hog
from .campaigns import TRACED, WorstTrace, attachments, trace_configs
from .claims import by_round

PLANTED_SHARE = 0.25  # of each disturbed CPU's time in a run of the target length
MOST_CPUS = 4
SHORTEST_MS, LONGEST_MS = 1.0, 20.0


def planted_traces(
    folder: str | Path,
    design: Design,
    baseline: pd.DataFrame,
    traces: str | Path,
    programs: Sequence[str],
    seed: int = 0,
    recorded_only: bool = False,
) -> list[WorstTrace]:
    """One traced run of each program and model, disturbed by real-time hogs that follow one
    schedule a program, whatever the model.

    An anomaly of known size where natural ones are too weak to show anything. What is replayed is
    made of the trace alone: its noise less what the configuration has on average, as of any other
    trace. The schedule lasts as long as the first model's run on average; in it each of at most
    four CPUs is taken for a quarter of the time, in blocks of 1 to 20 ms.

    Parameters
    ----------
    folder
        Folder of this campaign.
    design
        Design of the study; the runs are in its first configuration.
    baseline
        Runs of `baseline_campaign`, through `label_runs`.
    traces
        Its folder of traces.
    programs
        Names of the programs for which traces are made.
    seed, recorded_only
        Seed of the campaign, and whether only recorded data are used.

    Returns
    -------
    A trace a program and model, in the first configuration; none where nothing was traced.
    """
    keys = [key for key in design.workloads if key[0] in programs]
    if "trace_events" not in baseline or not keys:
        return []
    config, folder = design.chosen[0], Path(folder)
    place = design.configuration(config)
    tracer, beside = attachments(folder, recorded_only)
    traced = baseline[(baseline["config"] == config) & (baseline["trace"] == TRACED)]
    usual = dict(list(traced.groupby(["program", "model"])))
    schedules: dict[str, Schedule] = {}
    cells = []
    for program, model in keys:
        if program not in schedules:
            seconds = float(usual[program, model]["seconds"].mean())
            schedules[program] = _schedule(seconds, place.cpus, seed + len(schedules))
        schedule, placed = schedules[program], place.of(design.workloads[program, model])
        hog = () if recorded_only else (real_time_hog(schedule), *tracer)
        cells.append(Cell(f"{program} {model}", placed, digest(str(schedule)), hog))
    runs = finished(Campaign(folder, cells, 1, seed, recorded_only, beside).run())
    found = []
    for key in keys:
        run = runs[runs["cell"] == " ".join(key)]
        number, seconds = int(run["run"].item()), float(run["seconds"].item())
        steal_ms = 1e3 * run["steal_s"].item() if "steal_s" in run else float("nan")
        configs = trace_configs(folder / "traces", run, number, usual[key], Path(traces))
        worst = WorstTrace(*key, config, 1, number, seconds, configs, steal_ms, planted=True)
        found += [worst] if configs else []
    return found


def _schedule(seconds: float, cpus: Sequence[int], seed: int) -> Schedule:
    chosen = sorted(cpus)[:MOST_CPUS]
    share = PLANTED_SHARE * len(chosen)
    return random_schedule(seconds, share, chosen, seed, SHORTEST_MS, LONGEST_MS)


def slowdowns(
    runs: pd.DataFrame, by: list[str], levels: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """Log slow-downs over the undisturbed run of the same round, and differences in stolen time: a
    row a pair of runs, columns by levels, then `log` and `steal_s`.

    Parameters
    ----------
    runs
        With `noise_kind` (undisturbed, and what disturbs), `seconds` and perhaps `steal_s`.
    by
        Columns that a pair agrees in, `round` among them.
    levels
        Columns that are compared, the last `noise_kind`, each with all its values; what was not
        measured is missing.

    Examples
    --------
    >>> kinds = ["undisturbed", "fixed", "scaled"]
    >>> runs = pd.DataFrame({"noise_kind": kinds, "round": 0, "seconds": [1, 1.25, 1.5]})
    >>> found = slowdowns(runs, ["round"], {"noise_kind": ["fixed", "scaled"]})
    >>> np.exp(found["scaled", "log"]).round(2).tolist()
    [1.5]
    """
    data = runs.assign(log=np.log(runs["seconds"]), steal_s=runs.get("steal_s", 0.0))
    values = data.groupby([*by, *levels], observed=True)[["log", "steal_s"]].mean()
    is_calm = values.index.get_level_values("noise_kind") == "undisturbed"
    calm, disturbed = values[is_calm].droplevel("noise_kind"), values[~is_calm]
    less = disturbed - calm.reindex(disturbed.index.droplevel("noise_kind")).to_numpy()
    wide = less.unstack(list(levels))
    wide.columns = wide.columns.reorder_levels([*levels, None])
    every = pd.MultiIndex.from_product([*levels.values(), ["log", "steal_s"]])
    return wide.reindex(columns=every.set_names([*levels, None]))


def contrast(claim: Claim, pairs: pd.DataFrame) -> Finding:
    """A claim about the mean of a contrast of slow-downs, to be judged with others.

    Parameters
    ----------
    claim
        What is claimed.
    pairs
        The contrast: `log` and `steal_s` of pairs, sums of columns of `slowdowns`.
    """
    pairs = pairs.dropna(subset="log")
    here = by_round(pairs, "" if len(pairs) else "the runs that it compares were not measured")
    return Finding(claim, here, steal=pairs["steal_s"].fillna(0).to_numpy())
