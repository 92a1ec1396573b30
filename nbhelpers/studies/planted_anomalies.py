"""The study of planted anomalies: schedules, a traced run of each, its config, and the campaign
that compares hog and replay.

Owns the design of that study. A case's truth is the schedule of a real hog; the replay knows only
what the trace of one run says: of several traced runs the one of median run time, since a run that
the hypervisor or a neighbour disturbed besides is no picture of the schedule.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from ..injection.accuracy import workload_accuracy
from ..injection.hog import Hog, Schedule, random_schedule
from ..injection.injector import Injector
from ..machine import doctor
from ..measurement import Campaign, Cell, finished
from ..noise import NoiseConfig, delta_noise
from ..statistics import mean_interval, mean_ratio, same_epochs
from ..tracing import Tracer, read_traces
from ..workloads import Workload

LOWEST_SHARE, HIGHEST_SHARE = 0.2, 1.0  # of the undisturbed run time, over all CPUs together
MOST_CPUS = 4
NARROW = 0.015  # half of the 95 % interval of a disturbed mean; a wider one needs more runs


def planted_schedules(cases: int, seconds: float, cpus: int, seed: int = 0) -> list[Schedule]:
    """Schedules whose blocks sum to 20 to 100 % of an undisturbed run, evenly spread over the
    cases.

    Parameters
    ----------
    cases
        How many.
    seconds
        Of an undisturbed run.
    cpus
        Of the machine; each case disturbs one to four of them, drawn at random.
    seed
        Equal seeds give equal schedules.
    """
    random = np.random.default_rng(seed)
    shares = (
        np.linspace(LOWEST_SHARE, HIGHEST_SHARE, cases)
        if cases > 1
        else [(LOWEST_SHARE + HIGHEST_SHARE) / 2]
    )
    return [
        random_schedule(
            seconds,
            float(share),
            _draw_cpus(random, cpus, float(share)),
            seed=int(random.integers(2**31)),
        )
        for share in shares
    ]


def _draw_cpus(random: np.random.Generator, cpus: int, share: float) -> list[int]:
    """Enough of them that none is taken for more than 90 % of the time."""
    fewest = int(share // 0.9) + 1
    count = int(random.integers(fewest, max(fewest, min(cpus, MOST_CPUS)) + 1))
    return sorted(random.choice(cpus, count, replace=False).tolist())


def describe_schedules(schedules: list[Schedule], seconds: float) -> pd.DataFrame:
    """One row a case: `case`, `cpus`, `blocks`, `total_ms`, `share` (of an undisturbed run),
    `longest_ms`.

    Parameters
    ----------
    schedules
        Of `planted_schedules`.
    seconds
        Of an undisturbed run.
    """
    return pd.DataFrame(
        [_describe(case, schedule, seconds) for case, schedule in enumerate(schedules, start=1)]
    )


def _describe(case: int, schedule: Schedule, seconds: float) -> dict:
    lengths = np.array([length for blocks in schedule.values() for _, length in blocks]) / 1e6
    return {
        "case": case,
        "cpus": " ".join(map(str, schedule)),
        "blocks": lengths.size,
        "total_ms": lengths.sum(),
        "share": lengths.sum() / 1e3 / seconds,
        "longest_ms": lengths.max(),
    }


def traced_configs(
    folder: Path,
    workload: Workload,
    schedules: list[Schedule],
    average: pd.DataFrame,
    seed: int = 0,
    recorded_only: bool = False,
    merge: str = "improved",
    traces: int = 5,
) -> list[NoiseConfig]:
    """Trace runs under each schedule and turn the one of median run time into a noise config;
    nothing of the schedule itself is used.

    Parameters
    ----------
    folder
        Of the campaign, with its traces in ``traces``.
    workload
        The program.
    schedules
        Of `planted_schedules`.
    average
        Average noise of undisturbed runs (`average_noise`).
    seed, recorded_only
        Of the campaign.
    merge
        As of `NoiseConfig.from_events`.
    traces
        Traced runs of each case, in rounds of random order; of recorded ones as many as there are,
        but no more.

    Returns
    -------
    A config a case; its provenance names the case, the `run` and its `seconds`, and the
    `seconds_of_all` traced runs in order of size.
    """
    tracer = Tracer(folder / "traces", recorded_only=recorded_only)
    program = tracer.stand_in(workload)
    cells = [
        Cell(f"case {case}", program, attachments=(real_time_hog(schedule), tracer))
        for case, schedule in enumerate(schedules, start=1)
    ]
    runs = finished(
        Campaign(
            folder,
            cells,
            runs=1 if recorded_only else traces,
            seed=seed,
            recorded_only=recorded_only,
        ).run()
    )
    runs = runs[runs["round"] < traces]
    return [
        _config(folder / "traces", runs[runs["cell"] == cell.name], average, merge)
        for cell in cells
    ]


def real_time_hog(schedule: Schedule) -> Hog:
    """A hog at real-time priority where this user may have it, else at ordinary priority."""
    return Hog(schedule) if doctor().capabilities.fifo else Hog(schedule, priority=0)


def _config(traces: Path, runs: pd.DataFrame, average: pd.DataFrame, merge: str) -> NoiseConfig:
    run = median_run(runs)
    provenance = {
        "case": run["cell"].iloc[0],
        "run": int(run["run"].iloc[0]),
        "seconds": float(run["seconds"].iloc[0]),
        "seconds_of_all": sorted(map(float, runs["seconds"])),
    }
    return NoiseConfig.from_events(
        delta_noise(read_traces(traces, run), average, run), merge=merge, provenance=provenance
    )


def median_run(runs: pd.DataFrame) -> pd.DataFrame:
    """The row of the run of median run time; of an even number the faster of the two middle
    ones.
    """
    return runs.sort_values(["seconds", "run"]).iloc[[(len(runs) - 1) // 2]]


def describe_configs(configs: list[NoiseConfig]) -> pd.DataFrame:
    """What the trace of each case's run says.

    Parameters
    ----------
    configs
        Of `traced_configs`.

    Returns
    -------
    One row a case: `traced` (runs), `seconds` of the one that was chosen, between those of the
    fastest and the slowest (`fastest`, `slowest`), and of its config `events`, `total_ms`,
    `realtime_ms`, `longest_ms`.
    """
    return pd.DataFrame(
        [_describe_config(case, config) for case, config in enumerate(configs, start=1)]
    )


def _describe_config(case: int, config: NoiseConfig) -> dict:
    events, seconds = config.events(), config.provenance["seconds_of_all"]
    lengths = events["duration_ns"] / 1e6
    return {
        "case": case,
        "traced": len(seconds),
        "fastest": seconds[0],
        "seconds": config.provenance["seconds"],
        "slowest": seconds[-1],
        "events": len(events),
        "total_ms": lengths.sum(),
        "realtime_ms": lengths[events["policy"] == "SCHED_FIFO"].sum(),
        "longest_ms": lengths.max(),
    }


def planted_campaign(
    folder: Path,
    workload: Workload,
    schedules: list[Schedule],
    configs: list[NoiseConfig],
    runs: int,
    seed: int = 0,
    recorded_only: bool = False,
    attachments: tuple = (),
    **options,
) -> Campaign:
    """In each block one undisturbed run, and for each case one run with the hog and one with the
    replay, in random order.

    Parameters
    ----------
    folder, runs, seed, recorded_only, attachments
        Of the campaign.
    workload
        The program.
    schedules
        Of `planted_schedules`.
    configs
        Of `traced_configs`, in the same order.
    options
        Of `Injector`.
    """
    cells = [Cell("undisturbed", workload)]
    for case, (schedule, config) in enumerate(zip(schedules, configs), start=1):
        # nothing is planned, or calibrated, for runs that were recorded
        injector = () if recorded_only else (Injector(config, **options),)
        cells += [
            Cell(f"disturbed {case}", workload, attachments=(real_time_hog(schedule),)),
            Cell(f"replayed {case}", workload, noise=config.digest, attachments=injector),
        ]
    return Campaign(
        folder, cells, runs=runs, seed=seed, recorded_only=recorded_only, attachments=attachments
    )


def narrow_means(runs: pd.DataFrame) -> bool:
    """Whether the mean run time of each disturbed case is known to ± 1.5 % (half of its 95 %
    interval): enough runs of `planted_campaign`.

    Parameters
    ----------
    runs
        Finished runs of `planted_campaign`.
    """
    samples = [
        cell_runs["seconds"]
        for cell, cell_runs in runs.groupby("cell")
        if cell.startswith("disturbed")
    ]
    return all(mean_interval(seconds).half_width_share <= NARROW for seconds in samples)


def planted_table(runs: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """How well each planted anomaly was reproduced.

    Parameters
    ----------
    runs
        Finished runs of `planted_campaign`.
    seed
        Of the bootstrap.

    Returns
    -------
    One row a case: `case`, `runs`, `ratio` (replayed / disturbed) with its 95 % bootstrap interval
    (`ratio_low`, `ratio_high`), `baseline_outside` (whether the undisturbed program's interval lies
    outside of the disturbed one's), and the mean seconds `disturbed`, `replayed`, `baseline` with
    their 95 % t-intervals (`…_low`, `…_high`); and how far the run times under the replay are
    distributed from those under the hog: `wasserstein_share`, `wasserstein_chance`, `ks` (see
    `workload_accuracy`), and the same of the undisturbed control (`baseline_wasserstein_share`,
    `baseline_ks`).
    """
    cases = sorted(
        int(cell.split()[1]) for cell in runs["cell"].unique() if cell.startswith("disturbed")
    )
    return pd.DataFrame([_case(case, runs, seed) for case in cases])


def _case(case: int, runs: pd.DataFrame, seed: int) -> dict:
    cells = {
        "baseline": "undisturbed",
        "disturbed": f"disturbed {case}",
        "replayed": f"replayed {case}",
    }
    tables = same_epochs(*(runs[runs["cell"] == cell] for cell in cells.values()))
    parts = {name: table["seconds"].to_numpy() for name, table in zip(cells, tables)}
    ratio = mean_ratio(parts["replayed"], parts["disturbed"], seed=seed)
    means: dict[str, float] = {}
    for name in ("disturbed", "replayed", "baseline"):
        interval = mean_interval(parts[name])
        means |= {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}
    outside = (
        means["baseline_high"] < means["disturbed_low"]
        or means["baseline_low"] > means["disturbed_high"]
    )
    distance = workload_accuracy(parts["disturbed"], parts["replayed"], parts["baseline"], seed)
    distances = {
        name: distance.loc["replayed", name]
        for name in ("wasserstein_share", "wasserstein_chance", "ks")
    }
    control = {
        f"baseline_{name}": distance.loc["undisturbed", name]
        for name in ("wasserstein_share", "ks")
    }
    return (
        {
            "case": case,
            "runs": min(len(parts["disturbed"]), len(parts["replayed"])),
            "ratio": ratio.value,
            "ratio_low": ratio.low,
            "ratio_high": ratio.high,
            "baseline_outside": outside,
        }
        | means
        | distances
        | control
    )


def planted_sentences(table: pd.DataFrame) -> list[str]:
    """What the table says, in sentences.

    Parameters
    ----------
    table
        Of `planted_table`.
    """
    error = (table["ratio"] - 1).abs()
    widths = (table["disturbed_high"] - table["disturbed_low"]) / 2 / table["disturbed"]
    holds = int(((table["ratio_low"] <= 1) & (table["ratio_high"] >= 1)).sum())
    return [
        (
            f"Over {len(table)} planted anomal{'y' if len(table) == 1 else 'ies'},"
            f" {table['runs'].min()} runs each, the replay's mean run time was off by"
            f" **{error.mean():.1%}** on average and {error.max():.1%} at most; the published"
            " injector's was off by 8.6 % on average (natural anomalies, Table 7)."
        ),
        (
            f"In {holds} of {len(table)} cases the 95 % interval of replayed / disturbed contains"
            f" 1; the intervals of the disturbed means reach ± {widths.max():.1%} (at most ±"
            f" {NARROW:.1%} in {int((widths <= NARROW).sum())} of {len(table)})."
        ),
        (
            "The distribution of replayed run times is as near to that of the disturbed ones"
            " as chance allows in"
            f" {int((table['wasserstein_share'] <= table['wasserstein_chance']).sum())} of"
            f" {len(table)} cases. The Wasserstein distance is"
            f" {table['wasserstein_share'].mean():.1%} of the run time on average; of the"
            f" undisturbed program it is {table['baseline_wasserstein_share'].mean():.1%}."
        ),
        (
            "The undisturbed program lies outside of the disturbed interval in"
            f" {int(table['baseline_outside'].sum())} of {len(table)} cases."
        ),
    ]
