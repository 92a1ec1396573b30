"""The tables of Cui et al. 2023 with our runs: repetitions, their statistics, the clock.

Pure: runs and series in, tables out.
"""

import numpy as np
import pandas as pd

from ...workloads import Workload
from ..design import Design
from ..originals import CONSTRUCTS, ORIGINAL
from .campaign import SCHED_DELAY_US, SYNC_DELAY_US

REFERENCE = "reference"
KEYS = ["benchmark", "compiler", "config"]
_TO_US = {"s": 1e6, "us": 1.0}


def parameter_table(design: Design) -> pd.DataFrame:
    """Table 1: `parameter`, `schedbench`, `syncbench`: what they ran with here.

    Parameters
    ----------
    design
        Of `runtime_design`.
    """
    options = {
        name: _options(design.workloads[name, design.models[0]])
        for name in ("dynamic_1", "reduction")
    }
    sched, sync = options["dynamic_1"], options["reduction"]
    rows = [
        ("outer_repetitions", sched["outer"], sync["outer"]),
        ("delay_us", SCHED_DELAY_US, SYNC_DELAY_US),
        ("iterations_per_thread", sched["iterations-per-thread"], np.nan),
        ("executions_a_repetition", sched["inner"], sync["inner"]),
    ]
    return pd.DataFrame(rows, columns=["parameter", "schedbench", "syncbench"]).astype(
        {"schedbench": float, "syncbench": float}
    )


def _options(workload: Workload) -> dict[str, str]:
    words = workload.command[1:]
    return dict(zip((word.removeprefix("--") for word in words[::2]), words[1::2]))


def repetitions(runs: pd.DataFrame, series: pd.DataFrame) -> pd.DataFrame:
    """Every repetition: `benchmark` (static_1, …, reduction, copy, …), `compiler`, `config`,
    `round`, `run`, `threads`, `index`, `value_us`.

    Parameters
    ----------
    runs, series
        Of `runtime_campaign`. The serial reference is left out.
    """
    parts = runs["cell"].str.split(" ")
    data = runs.assign(compiler=parts.str[1])[["run", "compiler", "config", "round", "threads"]]
    measured = series[series["name"] != REFERENCE].merge(data, on="run", validate="many_to_one")
    return measured.assign(
        value_us=measured["value"] * measured["unit"].map(_TO_US), benchmark=measured["name"]
    )[["benchmark", "compiler", "config", "round", "run", "threads", "index", "value_us"]]


def run_statistics(repeated: pd.DataFrame, runs: pd.DataFrame | None = None) -> pd.DataFrame:
    """One row a run and benchmark: `mean_us`, `min_normalised` and `max_normalised` (over the run's
    mean; figures 3 to 5), `cv` (within the run; missing for the original BabelStream).

    Parameters
    ----------
    repeated
        Of `repetitions`.
    runs
        Of `runtime_campaign`, where originals are among them: they print these numbers, and not
        their repetitions.
    """
    table = _of_repetitions(repeated)
    theirs = None if runs is None else _of_originals(runs, repeated)
    if theirs is None or theirs.empty:
        return table
    return pd.concat([table, theirs.astype({"threads": table["threads"].dtype})], ignore_index=True)


_STATISTICS = ["mean_us", "min_normalised", "max_normalised", "cv"]


def _of_originals(runs: pd.DataFrame, repeated: pd.DataFrame) -> pd.DataFrame:
    """Of the benchmarks that ours have, from the columns of EPCC's and BabelStream's outputs."""
    cells = runs["cell"].str.split(" ", expand=True)
    theirs = runs[cells[1] == ORIGINAL]
    threads = runs.groupby("config")["threads"].max() if "threads" in runs else {}
    rows = [
        {
            "benchmark": benchmark,
            "compiler": ORIGINAL,
            "config": run["config"],
            "threads": threads[run["config"]],
            "round": run["round"],
            "run": run["run"],
            **found,
        }
        for run in theirs.to_dict("records")
        for benchmark in repeated["benchmark"].unique()
        if (found := _printed_statistics(run, benchmark))
    ]
    return pd.DataFrame(rows, columns=[*KEYS, "threads", "round", "run", *_STATISTICS])


def _printed_statistics(run: dict, benchmark: str) -> dict[str, float]:
    """Of one benchmark, as the run's output has it; nothing where it is not of this run."""
    column = CONSTRUCTS.get(benchmark, benchmark).lower()
    mean, unit = (
        (f"{column}_mean_us", "us") if f"{column}_mean_us" in run else (f"{column}_avg_s", "s")
    )
    if not np.isfinite(run.get(mean, np.nan)):
        return {}
    least, most, sd = (run.get(f"{column}_{name}_{unit}", np.nan) for name in ("min", "max", "sd"))
    values = [run[mean] * _TO_US[unit], least / run[mean], most / run[mean], sd / run[mean]]
    return dict(zip(_STATISTICS, values))


def _of_repetitions(repeated: pd.DataFrame) -> pd.DataFrame:
    grouped = repeated.groupby([*KEYS, "threads", "round", "run"], sort=False)["value_us"]
    table = grouped.agg(["mean", "min", "max", "std"]).reset_index()
    return table.assign(
        mean_us=table["mean"],
        min_normalised=table["min"] / table["mean"],
        max_normalised=table["max"] / table["mean"],
        cv=table["std"] / table["mean"],
    ).drop(columns=["mean", "min", "max", "std"])


def variability_table(statistics: pd.DataFrame) -> pd.DataFrame:
    """Table 2 and figures 1 to 5 in numbers: one row a benchmark, compiler and configuration.

    `threads`, `runs`, `mean_us`; `between_cv_percent` (of the runs' means), `within_cv_percent`
    (mean over the runs); `min_normalised`, `max_normalised` (means over the runs) and
    `worst_normalised` (the largest).

    Parameters
    ----------
    statistics
        Of `run_statistics`.
    """
    grouped = statistics.groupby([*KEYS, "threads"], sort=False)
    table = grouped.agg(
        runs=("mean_us", "size"),
        mean_us=("mean_us", "mean"),
        between=("mean_us", "std"),
        within_cv_percent=("cv", "mean"),
        min_normalised=("min_normalised", "mean"),
        max_normalised=("max_normalised", "mean"),
        worst_normalised=("max_normalised", "max"),
    ).reset_index()
    table.insert(6, "between_cv_percent", 100 * table.pop("between") / table["mean_us"])
    return table.assign(within_cv_percent=100 * table["within_cv_percent"]).sort_values(
        KEYS, ignore_index=True
    )


def clock_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Figures 6 and 7 in numbers: the clock during the runs of each configuration, and what else
    changed with it.

    `config`, `runs`, `frequency_samples`, `frequency_mhz` (mean), `frequency_min_mhz`,
    `frequency_max_mhz`, `busy_mhz` (by APERF and MPERF), `temperature_c`, `steal_ms` (a run);
    missing where the machine tells nothing: a virtual machine has no frequency of its own.

    Parameters
    ----------
    runs
        Of `runtime_campaign`.
    """
    columns = {
        "frequency_samples": "sum",
        "frequency_mhz": "mean",
        "frequency_min_mhz": "min",
        "frequency_max_mhz": "max",
        "busy_mhz": "mean",
        "temperature_c": "mean",
        "steal_s": "mean",
    }
    known = runs.reindex(columns=["config", *columns]).astype(dict.fromkeys(columns, "float64"))
    table = known.groupby("config").agg(columns)
    table.insert(0, "runs", known.groupby("config").size())
    return table.assign(steal_ms=1e3 * table.pop("steal_s")).reset_index()


def runs_of_dynamic(
    statistics: pd.DataFrame, published: pd.DataFrame, compiler: str
) -> pd.DataFrame:
    """Table 2: the mean of dynamic_1 of each run; theirs below ours: `platform`, `threads`, `run`
    (from 1), `mean_us`.

    Times of different iterations a thread are not to be compared with each other, only how much
    they vary.

    Parameters
    ----------
    statistics
        Of `run_statistics`.
    published
        The published table 2.
    compiler
        Whose runs are shown.
    """
    measured = statistics[
        (statistics["benchmark"] == "dynamic_1")
        & (statistics["compiler"] == compiler)
        & statistics["config"].str.startswith("TP")
    ]
    ours = measured.assign(
        platform="this machine, " + measured["config"],
        run=measured.groupby("config").cumcount() + 1,
    )
    columns = ["platform", "threads", "run", "mean_us"]
    return pd.concat(
        [ours.sort_values(["platform", "run"])[columns], published[columns]], ignore_index=True
    )
