"""The study of Cui et al. 2023: how much the OpenMP runtime's own operations vary, within a run and
from run to run.

Owns its campaign (schedbench, syncbench and BabelStream × compilers × configurations) and its
tables; the outer repetitions are kept one by one.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..measurement import Campaign, Cell, FrequencyLogger, PlacementCheck, calibrate, metrics
from ..workloads import Configuration, Workload, delay_steps
from .design import COMPILERS, Design, cached_design
from .findings import CUI, PERSSON, Finding

SCHEDULES = ("static", "dynamic", "guided")
THROUGHOUT = ("dynamic_1", "reduction", "stream")  # in every configuration, as in Cui et al. 2023
OUTER = 100  # repetitions of a micro-benchmark in a run (Table 1)
SCHED_DELAY_US, SYNC_DELAY_US = 15.0, 0.1
FAMILIES = ("mitigation", "threads", "nodes")  # of configurations
STREAM_TIMES = 5  # its runs are longer: with a few repetitions least and greatest say nothing
REFERENCE = "reference"
_KEYS = ["benchmark", "compiler", "config"]
_TO_US = {"s": 1e6, "us": 1.0}


def runtime_design(
    folder: str | Path,
    names: Sequence[str],
    target_seconds: float,
    compilers: Sequence[str] = COMPILERS,
    elements: int = 2**21,
    chunks: Sequence[int] = (1,),
    constructs: Sequence[str] = ("reduction",),
    recorded_only: bool = False,
) -> Design:
    """Schedbench (three schedules), syncbench and BabelStream with each compiler, with the
    parameters of Cui et al. 2023, Table 1.

    The delays and the outer repetitions are the paper's; the iterations a thread (8192 there, 12 s
    a run) and the executions of each construct are chosen so that a run takes about
    `target_seconds`, and kept.

    Parameters
    ----------
    folder, names, target_seconds, measure, errors : see `cached_design`. compilers : gcc, clang. elements : of BabelStream's arrays (2**25 there).
    chunks
        Sizes of the schedules' chunks; 1 is always there (Persson et al. 2025, figure 1).
    constructs
        Of syncbench; reduction is always there.
    """
    folder = Path(folder)
    design = cached_design(
        folder,
        names,
        target_seconds,
        programs=(),
        models=compilers,
        families=FAMILIES,
        recorded_only=recorded_only,
    )
    wanted, made = None if recorded_only else target_seconds, {}
    for compiler in design.models:
        common = {"target_seconds": wanted, "recorded_only": recorded_only, "compiler": compiler}
        made |= {
            (name, compiler): workload
            for name, workload in _schedules(folder, (1, *chunks), common).items()
        }
        made |= {
            (name, compiler): workload
            for name, workload in _constructs(folder, ("reduction", *constructs), common).items()
        }
        made["stream", compiler] = calibrate(
            "stream",
            file=folder / "stream.json",
            elements=elements,
            **common | {"target_seconds": wanted and STREAM_TIMES * wanted},
        )
    return replace(design, workloads=made)


def _schedules(folder: Path, chunks: Sequence[int], common: dict) -> dict[str, Workload]:
    """All of one size, or their times could not be compared."""
    delay = delay_steps(SCHED_DELAY_US, folder / "delay.json")
    return {
        f"{schedule}_{chunk}": calibrate(
            "schedbench",
            file=folder / "schedbench.json",
            schedule=schedule,
            chunk=chunk,
            delay=delay,
            outer=OUTER,
            **common,
        )
        for chunk in dict.fromkeys(chunks)
        for schedule in SCHEDULES
    }


def _constructs(folder: Path, names: Sequence[str], common: dict) -> dict[str, Workload]:
    """Each of its own size: a repetition of each takes as long, as EPCC's test time has it."""
    delay = delay_steps(SYNC_DELAY_US, folder / "delay.json")
    files = {
        name: folder / ("syncbench.json" if name == "reduction" else f"syncbench-{name}.json")
        for name in names
    }
    return {
        name: calibrate("syncbench", file=path, construct=name, delay=delay, outer=OUTER, **common)
        for name, path in files.items()
    }


def runtime_campaign(
    folder: str | Path, design: Design, runs: int, seed: int = 0, recorded_only: bool = False
) -> Campaign:
    """The benchmarks by each compiler in the configurations that a figure needs them in (`runs_in`),
    in random order.
    """
    cells = [
        Cell(" ".join(key), workload)
        for key, workload in design.placed().items()
        if runs_in(key[0], design.configuration(key[2]))
    ]
    return Campaign(
        folder,
        cells,
        runs=runs,
        seed=seed,
        recorded_only=recorded_only,
        attachments=()
        if recorded_only
        else (PlacementCheck(), FrequencyLogger(), *metrics("kernel")),
    )


def benchmark_names(chunks: Sequence[int], constructs: Sequence[str]) -> list[str]:
    """Names of the benchmarks of one compiler: schedules with their chunks, constructs, and stream."""
    schedules = [
        f"{schedule}_{chunk}" for chunk in dict.fromkeys((1, *chunks)) for schedule in SCHEDULES
    ]
    return [*schedules, *dict.fromkeys(("reduction", *constructs)), "stream"]


def runs_in(benchmark: str, configuration: Configuration) -> bool:
    """Whether a benchmark is run in a configuration.

    dynamic_1, reduction and BabelStream: everywhere. Other schedules and chunks: roaming, with and
    without housekeeping (Persson et al. 2025, figure 1). Other constructs: pinned, for each number
    of threads (Cui et al. 2023, figures 1 and 5).
    """
    if benchmark in THROUGHOUT:
        return True
    if benchmark.split("_")[0] in SCHEDULES:
        return configuration.family == "mitigation" and configuration.base == "Rm"
    return configuration.family == "threads" or configuration.name == "TP"


def parameter_table(design: Design) -> pd.DataFrame:
    """Table 1: `parameter`, `schedbench`, `syncbench`: what they ran with here."""
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
    own = series[series["name"] != REFERENCE].merge(data, on="run", validate="many_to_one")
    return own.assign(value_us=own["value"] * own["unit"].map(_TO_US), benchmark=own["name"])[
        ["benchmark", "compiler", "config", "round", "run", "threads", "index", "value_us"]
    ]


def run_statistics(repeated: pd.DataFrame) -> pd.DataFrame:
    """One row a run and benchmark: `mean_us`, `min_normalised` and `max_normalised` (over the run's
    mean; figures 3 to 5), `cv` (within the run).
    """
    grouped = repeated.groupby([*_KEYS, "threads", "round", "run"], sort=False)["value_us"]
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
    """
    grouped = statistics.groupby([*_KEYS, "threads"], sort=False)
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
        _KEYS, ignore_index=True
    )


def clock_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Figures 6 and 7 in numbers: the clock during the runs of each configuration, and what else
    moved beside it.

    `config`, `runs`, `frequency_samples`, `frequency_mhz` (mean), `frequency_min_mhz`,
    `frequency_max_mhz`, `busy_mhz` (by APERF and MPERF), `temperature_c`, `steal_ms` (a run);
    missing where the machine tells nothing: a virtual machine has no frequency of its own.
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
    """
    own = statistics[
        (statistics["benchmark"] == "dynamic_1")
        & (statistics["compiler"] == compiler)
        & statistics["config"].str.startswith("TP")
    ]
    ours = own.assign(
        platform="this machine, " + own["config"], run=own.groupby("config").cumcount() + 1
    )
    columns = ["platform", "threads", "run", "mean_us"]
    return pd.concat(
        [ours.sort_values(["platform", "run"])[columns], published[columns]], ignore_index=True
    )


def runtime_findings(statistics: pd.DataFrame, design: Design) -> list[Finding]:
    """The findings of Cui et al. 2023, section 5, and the motivation of Persson et al. 2025,
    section 3.

    Variability is the coefficient of variation of the repetitions of a run, as in figure 5; what is
    compared are runs of the same round, benchmark and compiler.
    """
    spread, time = (
        np.log(statistics.set_index([*_KEYS, "round"])[name].replace(0, np.nan)).dropna()
        for name in ("cv", "mean_us")
    )
    sched = time[time.index.get_level_values("benchmark") == "dynamic_1"]
    few, many = "TP-ST1", "TP"
    st, mt, no_pair = _smt_pair(design)
    return [
        Finding(
            "more threads vary more (CV, TP / one thread)",
            CUI + "5.1",
            "above",
            _pairs(spread, many, few),
            _lacking(design, many, few),
        ),
        Finding(
            "a schedule costs more with more threads (time of dynamic_1, TP / one thread)",
            CUI + "5.1",
            "above",
            _pairs(sched, many, few),
            _lacking(design, many, few),
        ),
        Finding(
            "pinned threads vary less (CV, TP / Rm)",
            CUI + "5.2",
            "below",
            _pairs(spread, "TP", "Rm"),
            _lacking(design, "TP", "Rm"),
        ),
        Finding(
            f"one thread a core is steadier than two (CV, {st or 'ST'} / {mt or 'MT'})",
            CUI + "5.3",
            "below",
            _pairs(spread, st, mt),
            no_pair,
        ),
        Finding(
            "threads on two NUMA nodes vary more than on one (CV)",
            CUI + "5.4",
            "above",
            _pairs(spread, "TP-two-nodes", "TP-one-node"),
            _lacking(design, "TP-two-nodes", "TP-one-node"),
        ),
        Finding(
            "with a core reserved for the system programs vary less (CV, RmHK / Rm)",
            PERSSON + "3",
            "below",
            _pairs(spread, "RmHK", "Rm"),
            _lacking(design, "RmHK", "Rm"),
        ),
    ]


def _pairs(logs: pd.Series, first: str, second: str) -> np.ndarray:
    table = logs.unstack("config")
    return (
        (table[first] - table[second]).dropna().to_numpy()
        if {first, second} <= set(table.columns)
        else np.empty(0)
    )


def _lacking(design: Design, *names: str) -> str:
    """Why a comparison can't be made: the machine lacks a configuration, or it was not measured."""
    for name in names:
        known = next((one for one in design.listed if one.name == name), None)
        if known is None or known.missing:
            return known.missing if known else f"this machine has no {name}"
        if name not in design.chosen:
            return f"{name} was not measured"
    return ""


def _smt_pair(design: Design) -> tuple[str, str, str]:
    """The measured configurations with the most threads of which there is one with one thread a
    core and one with two.
    """
    counts = sorted(
        (
            int(name[5:])
            for name in design.chosen
            if name.startswith("TP-MT") and f"TP-ST{name[5:]}" in design.chosen
        ),
        reverse=True,
    )
    if counts:
        return f"TP-ST{counts[0]}", f"TP-MT{counts[0]}", ""
    has_smt = any(one.name.startswith("TP-MT") and not one.missing for one in design.listed)
    return "", "", "no such pair was measured" if has_smt else "each core runs one thread"
