"""How long `make paper` takes on this machine, and how much disk: from a profile's counts, this
machine's CPUs and parts.

Owns the arithmetic: which campaigns a stage measures (`campaigns`), what a run of each costs, and
what the analyses cost on top of it.
"""

import datetime
import math
import os
import shutil
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import NoisebookError
from .files import write_json
from .profiles import default_parameters
from .progress import readable
from .reading import read_json
from .records import read_records
from .study import Study

if TYPE_CHECKING:
    from .workloads import Configuration

# Costs of one run beyond its timed region, in s: start, reaping, and what accompanies it. Medians
# of data/recorded (n = 3 to 1000 a campaign), measured on two virtual cores. What is read for each
# CPU grows with their number.
RUN_S, LAYERS_S, LAYERS_CPU_S = 0.03, 0.03, 0.01  # LAYERS: with all metric layers
# the kernel's layer and the threads' places; what the runtime of SYCL takes to start
PLACED_S = 0.10
SYCL_S = 0.45
INJECTED_S = 0.06
READ_CPU_S = 0.035  # to read back a second of one CPU's trace
STAGE_S = 6.0  # a kernel starts, the library is imported, figures are drawn, the page is written
EXPLAIN_S, EXPLAIN_RUN_S = 1.0, 0.005  # an attribution with its null; a run more in it
# bytes that BabelStream's kernels move for an element; what a socket moves in a second, few threads
# and many together
STREAM_B, STREAM_B_S = 12 * 8, 40e9
SIZING_RUNS = 10  # until the size of a program is found
# the truth lies within this factor, mostly: see benchmarks and tests/test_estimate.py
UNCERTAIN = 2.0
EDGE_RUNS, EDGE_SECONDS = 10, 0.5  # of `account.measure_edges`
ROW_B, LAYERS_B, LAYERS_CPU_B = 1_500, 1_500, 450  # of a recorded run
TRACE_CPU_S_B = 35_000  # of a trace, packed: of one CPU, a second
RESULTS_B = 2_000_000  # tables, figures, notebook and page of a stage
ENVIRONMENT_B = 1_050_000_000
ENVIRONMENT_S = 75.0


@dataclass(frozen=True)
class Machine:
    """What the estimate has to know of a machine."""

    cpus: int  # that may be used
    configurations: "Collection[Configuration]"  # of the studies, also those that it lacks
    models: Collection[str] = ("omp",)  # of the OpenMP and SYCL programs
    compilers: Collection[str] = ("gcc",)  # that the OpenMP programs are built by
    allocators: Collection[str] = ()  # that can be put in place of malloc
    causes: Collection[str] = ()  # that are known
    cache_bytes: int = 0  # of all last-level caches


@dataclass(frozen=True)
class Planned:
    """A campaign of a stage.

    Parameters
    ----------
    folder
        Within the stage's data; a pattern where its name is a digest.
    runs
        Finished runs.
    run_s
        Length of the timed region.
    extra_s
        What a run costs beyond it.
    traced
        How many are traced.
    layers
        Whether all metric layers accompany the runs.
    """

    folder: str
    runs: int
    run_s: float
    extra_s: float = RUN_S
    traced: int = 0
    layers: bool = False

    def seconds(self, cpus: int) -> float:
        """Of all runs."""
        return self.runs * (
            self.run_s + self.extra_s + self.layers * (LAYERS_S + LAYERS_CPU_S * cpus)
        )

    def bytes(self, cpus: int) -> float:
        """That stay on disk."""
        row = ROW_B + self.layers * (LAYERS_B + LAYERS_CPU_B * cpus)
        return self.runs * row + self.traced * self.run_s * cpus * TRACE_CPU_S_B


@cache
def this_machine(names: tuple[str, ...] = ()) -> Machine:
    """What counts here; nothing is measured and nothing changed.

    Parameters
    ----------
    names
        Requested configurations (`nbhelpers.workloads.configurations`).
    """
    from .machine import topology
    from .machine.cpus import last_level_caches
    from .mitigation import mitigations
    from .studies.known_causes import causes
    from .workloads import compilers, configurations, sycl

    usable = os.sched_getaffinity(0)
    return Machine(
        len(usable),
        configurations(topology(), usable, names=names),
        ("omp", *(["sycl"] if sycl.available() else [])),
        tuple(compilers()),
        tuple(
            name for name in ("jemalloc", "tcmalloc", "mimalloc") if mitigations()[name].possible()
        ),
        tuple(causes()),
        last_level_caches(usable),
    )  # which can be planted is only known by trying, and trying measures


def campaigns(stage: str, all_parameters: Mapping[str, dict], machine: Machine) -> list[Planned]:
    """What a stage measures.

    Parameters
    ----------
    stage
        Name of the notebook.
    all_parameters
        Stage -> all its parameters, as the notebook gets them.
    machine
        Where.

    Returns
    -------
    A `Planned` a campaign; empty where nothing is measured. Replays of what is only found in the
    traces (how many slow runs have a part of the hypervisor's, which mitigations may help) are
    counted as they were in data/recorded.
    """
    known = _CAMPAIGNS.get(stage)
    return known(all_parameters[stage], all_parameters, machine) if known else []


def _traces(parameters: dict, all_parameters: Mapping, machine: Machine) -> list[Planned]:
    return [
        Planned(
            "baseline",
            2 * parameters["runs"],
            parameters["target_seconds"],
            traced=parameters["runs"],
            layers=True,
        ),
        Planned("edges", EDGE_RUNS, EDGE_SECONDS, RUN_S + 0.1, EDGE_RUNS),
    ]


def _injection(parameters: dict, all_parameters: Mapping, machine: Machine) -> list[Planned]:
    run_s = 1.12 * all_parameters["10-trace-collection"]["target_seconds"]
    return [
        Planned("*", 2 * parameters["runs"], run_s, RUN_S + INJECTED_S, layers=True),
        Planned(
            "*/retraced", parameters["retraced"], 1.2 * run_s, RUN_S + 0.2, parameters["retraced"]
        ),
    ]


def _planted(parameters: dict, all_parameters: Mapping, machine: Machine) -> list[Planned]:
    run_s = 1.4 * all_parameters["10-trace-collection"]["target_seconds"]
    traces = parameters["cases"] * parameters["traces"]
    # it stops somewhere between
    rounds = (parameters["runs"] + max(parameters["runs"], parameters["most_runs"])) / 2
    return [
        Planned("traced", traces, run_s, RUN_S + INJECTED_S, traces),
        Planned(
            "replayed",
            round((2 * parameters["cases"] + 1) * rounds),
            run_s,
            RUN_S + INJECTED_S,
            layers=True,
        ),
    ]


def _worst(parameters: dict, all_parameters: Mapping, machine: Machine) -> list[Planned]:
    run_s = 1.1 * all_parameters["10-trace-collection"]["target_seconds"]
    cells = 1 + math.ceil(2.5 * parameters["cases"])  # events, with gaps, losses; of some runs
    return [
        Planned(
            "loop",
            parameters["loop_runs"],
            parameters["loop_seconds"],
            RUN_S + 0.1,
            parameters["loop_runs"],
        ),
        Planned("calibration/*", 10, 1.5 * run_s, RUN_S + INJECTED_S),
        Planned("*", cells * parameters["runs"], run_s, RUN_S + PLACED_S),
    ]


def _mitigations(parameters: dict, all_parameters: Mapping, machine: Machine) -> list[Planned]:
    places = _places(parameters, machine, ("mitigation",))
    models = [model for model in parameters["models"].split() if model in machine.models]
    ours = len(models)
    models += ["original"] if parameters["originals"] else []
    planted = parameters["planted"].split()
    keys = 3 * len(models)  # nbody, stream and minife
    extra_s = RUN_S + PLACED_S + SYCL_S * ("sycl" in models) / len(models)
    # with fewer CPUs it takes longer
    run_s = _program_s(parameters) * (1.25 if len(places) > 1 else 1.05)
    traces = 3 * parameters["traces"] * (len(models) if parameters["each_model"] else 1)
    traces += len(planted) * len(models)
    injected = keys * len(places) + 2 * traces + len(places) * len(models) * traces
    lengths = 2 * 3 * len(planted) * ours  # two lengths, under no noise and two kinds of it
    return [
        Planned(
            "baseline",
            keys * (len(places) + 1) * parameters["baseline_runs"],
            run_s,
            extra_s,
            keys * len(places) * parameters["baseline_runs"],
        ),
        Planned(
            "planted", len(planted) * len(models), 1.3 * run_s, extra_s, len(planted) * len(models)
        ),
        Planned("injected/*", injected * parameters["runs"], 1.2 * run_s, extra_s + INJECTED_S),
        Planned(
            "lengths/*", lengths * parameters["length_runs"], 1.6 * run_s, extra_s + INJECTED_S
        ),
    ]


def _program_s(parameters: dict) -> float:
    """Length of a run, the mean of nbody, stream and minife."""
    from .studies.design import PUBLISHED_SECONDS

    if parameters["published_sizes"]:
        return sum(PUBLISHED_SECONDS.values()) / len(PUBLISHED_SECONDS)
    return parameters["target_seconds"]


def _places(parameters: dict, machine: Machine, families: Collection[str]) -> "list[Configuration]":
    from .workloads import existing_configurations

    return [
        one
        for one in existing_configurations(machine.configurations, parameters["configs"].split())
        if one.family in families
    ]


def _causes(parameters: dict, all_parameters: Mapping, machine: Machine) -> list[Planned]:
    names = [name for name in parameters["names"] or machine.causes if name in machine.causes]
    return [Planned(name, parameters["runs"], _VICTIM_S, 0.0, layers=True) for name in names]


def _remedies(parameters: dict, all_parameters: Mapping, machine: Machine) -> list[Planned]:
    allocators = [name for name in parameters["allocators"] if name in machine.allocators]
    # n**3, on all CPUs
    product_s = max(0.02, 2.7 * (parameters["elements"] / 25e6) ** 1.5 * 2 / machine.cpus)
    return [
        Planned("known-cause", (1 + _TRIED) * parameters["rounds"], 0.09),
        Planned("known-cause-again", (1 + _TRIED) * parameters["rounds"], 0.09),
        Planned(
            "matrix-product",
            (1 + len(allocators)) * parameters["product_rounds"],
            product_s,
            RUN_S + 0.3,
            layers=True,
        ),
        Planned("autopilot/*", round(parameters["budget_seconds"] / 0.07), 0.035, 0.035),
        Planned("proof/*", _doses(parameters["budget_seconds"]), 0.045, 0.035, layers=True),
    ]


def _doses(budget_seconds: float) -> int:
    """Runs of a sham and three doses, 8 to 60 rounds in a quarter of the budget."""
    return 4 * int(min(max(budget_seconds / 4 / 0.3, 8), 60))


_VICTIM_S = 0.055  # on average, where a quarter of the runs is disturbed
_TRIED = 5  # mitigations that may help against a known cause and can be done


def _openmp(parameters: dict, all_parameters: Mapping, machine: Machine) -> list[Planned]:
    """Cells as `nbhelpers.studies.cui.runtime_campaign` has them."""
    from .studies.cui import FAMILIES, benchmark_names, runs_in

    places = _places(parameters, machine, FAMILIES)
    compilers = [name for name in parameters["compilers"].split() if name in machine.compilers]
    names = benchmark_names(
        [int(chunk) for chunk in parameters["chunks"].split()], parameters["constructs"].split()
    )
    cells = [name for name in names for place in places if runs_in(name, place)] * len(compilers)
    lengths_s = [_operation_s(name, parameters, machine) for name in cells]
    if parameters["originals"]:
        theirs = benchmark_names([1], parameters["constructs"].split())
        cells = [name for name in theirs for place in places if runs_in(name, place)]
        lengths_s += [_original_s(name, parameters, machine) for name in cells]
    mean_s = sum(lengths_s) / max(1, len(lengths_s))
    return [Planned("runs", len(lengths_s) * parameters["runs"], mean_s, RUN_S + 0.01)]


# iterations a thread of EPCC's schedbench 4.0, and its chunk sizes, all in one run
_EPCC_ITERATIONS, _EPCC_CHUNKS = 1024, 11


_LOOP_MORE_S = 0.4  # until the loops know the length of a reading, and their injectors are ready


def _signatures(parameters: dict, all_parameters: Mapping, machine: Machine) -> list[Planned]:
    periodic = len(parameters["frequencies"].split())
    presets = len({"10", "100", "1000"} & set(parameters["frequencies"].split()))
    cells = 1 + periodic + 4 * parameters["randomised"]
    programs = 1 + presets + (2 + presets) * (machine.cpus > 1)
    extra_s = RUN_S + INJECTED_S
    return [
        Planned("loops", cells * parameters["rounds"], parameters["loop_seconds"], _LOOP_MORE_S),
        Planned(
            "programs",
            programs * parameters["program_rounds"],
            1.05 * parameters["program_seconds"],
            extra_s,
        ),
    ]


def _signatures_s(parameters: dict, machine: Machine) -> float:
    events = 50 * parameters["seeds"] * parameters["ranks"] * parameters["share"]
    return _sizing(2, parameters["program_seconds"]) + 3 + 0.008 * events * 2 / machine.cpus


def _original_s(benchmark: str, parameters: dict, machine: Machine) -> float:
    """Length of a run of an original; a repetition of EPCC's takes 1 ms, or 20 executions."""
    from .studies.cui import campaign

    published = parameters["published_sizes"]
    outer = campaign.OUTER if published else campaign.ORIGINAL_OUTER
    if benchmark == "stream":
        share = 1 if published else campaign.ORIGINAL_REPEATS / campaign.REPEATS
        return share * _operation_s(benchmark, parameters | {"published_sizes": True}, machine)
    if "_" not in benchmark:
        return 2 * outer * campaign.TEST_S
    delay_us = campaign.SCHED_DELAY_US if published else campaign.ORIGINAL_DELAY_US
    return _EPCC_CHUNKS * outer * 20 * _EPCC_ITERATIONS * delay_us * 1e-6


def _operation_s(benchmark: str, parameters: dict, machine: Machine) -> float:
    """Length of a run of a benchmark of the stage, its serial reference included."""
    from .studies.cui import campaign
    from .workloads.sizes import stream_elements

    if not parameters["published_sizes"]:
        return parameters["target_seconds"] * (8.6 if benchmark == "stream" else 1.1)
    if benchmark == "stream":
        elements = parameters["elements"] or stream_elements(machine.cache_bytes)
        return campaign.REPEATS * elements * STREAM_B / STREAM_B_S
    if "_" in benchmark:
        return 1.1 * campaign.OUTER * campaign.ITERATIONS * campaign.SCHED_DELAY_US * 1e-6
    return 1.1 * campaign.OUTER * campaign.TEST_S


def _loops(parameters: dict, all_parameters: Mapping, machine: Machine) -> list[Planned]:
    """A case of noise a folder; Python and NumPy start in half a second."""
    run_s = parameters["loop_steps"] * 0.0045
    runs = 2 * parameters["loop_runs"]
    cases = ("10-Hz-x-2500-us", "three-sources")
    return [Planned(f"loop/{case}", runs, run_s, RUN_S + INJECTED_S + 0.5) for case in cases]


# started by a launcher: MPI_Init, and the check of the result
RANKS_S = 0.8


def _ranks(parameters: dict, all_parameters: Mapping, machine: Machine) -> list[Planned]:
    """Where there is no MPI, nothing is measured."""
    from .studies.ferreira.ranks_at_work import LENGTH_S, why_not

    if why_not():
        return []
    programs, sizes = len(parameters["programs"]), len(parameters["ranks"].split())
    runs = (1 + len(parameters["signatures"])) * parameters["rounds"] * sizes
    run_s, extra_s = LENGTH_S * parameters["length"], RANKS_S + INJECTED_S
    # 13 sizes and operations; what they send is made and checked in twice the time of the calls
    collective_s = 13 * 3 * max(parameters["span_ms"] * 1e-3, parameters["calls"] * 20e-6)
    traced = parameters["traced_rounds"] * programs
    return [
        Planned("runs", runs * programs, run_s, extra_s),
        Planned("collectives", runs, collective_s, extra_s),
        Planned("traced", traced, run_s, RANKS_S),
    ]


_CAMPAIGNS = {
    "10-trace-collection": _traces,
    "30-injection": _injection,
    "35-planted-anomaly": _planted,
    "37-worst-runs": _worst,
    "40-mitigations": _mitigations,
    "52-known-causes": _causes,
    "55-mitigate-and-compare": _remedies,
    "60-openmp-variability": _openmp,
    "70-noise-signatures": _signatures,
    "75-mpi-at-scale": _ranks,
    "85-stragglers": _loops,
}


def analysis_seconds(stage: str, all_parameters: Mapping[str, dict], machine: Machine) -> float:
    """Seconds that a stage takes for all but its campaigns: calibration, reading of traces,
    statistics, simulation.
    """
    parameters, first = all_parameters.get(stage, {}), all_parameters["10-trace-collection"]
    # the traces of stage 10, read a single time
    read_s = READ_CPU_S * machine.cpus * first["runs"] * first["target_seconds"]
    reads = {
        "10-trace-collection": 1,
        "15-account": 2,
        "20-delta-config": 1,
        "30-injection": 1,
        "35-planted-anomaly": 1,
        "37-worst-runs": 2,
    }
    more_s = _ANALYSIS_S.get(stage, lambda parameters, machine: 0.0)(parameters, machine)
    return STAGE_S + reads.get(stage, 0) * read_s + more_s


def _sizing(programs: float, target_s: float) -> float:
    return programs * SIZING_RUNS * (target_s + 0.05)


def _mitigations_s(parameters: dict, machine: Machine) -> float:
    baseline, planted, *_ = _mitigations(parameters, {}, machine)
    models = len([model for model in parameters["models"].split() if model in machine.models])
    # each less the average of its configuration
    replayed = 3 * parameters["traces"] * (models if parameters["each_model"] else 1) + planted.runs
    read = replayed * parameters["baseline_runs"] * baseline.run_s
    return _sizing(3, _program_s(parameters)) + READ_CPU_S * machine.cpus * read + 12


def _causes_s(parameters: dict, machine: Machine) -> float:
    causes = len(_causes(parameters, {}, machine))
    return causes * (2 + parameters["shuffles"]) * (EXPLAIN_S + EXPLAIN_RUN_S * parameters["runs"])


def _openmp_s(parameters: dict, machine: Machine) -> float:
    compilers = [name for name in parameters["compilers"].split() if name in machine.compilers]
    programs = len(compilers) * (3 + len(parameters["constructs"].split()))
    return _sizing(programs, parameters["target_seconds"]) / 2 + 12


def _simulations_s(parameters: dict, machine: Machine) -> float:
    """On as many CPUs as there are; two points, quick and record, on two of them."""
    seeds = parameters["seeds"]
    events = seeds * (
        2 * parameters["code_ranks"] * parameters["share"]
        + parameters["pop_ranks"] * parameters["pop_share"]
        + 4 * parameters["program_ranks"] * parameters["share"]
    )
    large = seeds * parameters["large_ranks"] + parameters["large_seeds"] * parameters["ranks"]
    varied = min(seeds, 6) * (40 * parameters["code_ranks"] + 12 * parameters["growth_ranks"])
    simulated_s = 0.035 * events + 3e-6 * large * 20 / 15 + 6e-5 * varied
    return 6 + simulated_s * 2 / machine.cpus


def _this_machine_s(parameters: dict, machine: Machine) -> float:
    """As of `_simulations_s`; reading a run's trace takes some 0.07 s, a collective 6 µs a rank."""
    seeds, runs = parameters["seeds"], 0.07 * parameters["traced_runs"]
    collectives = 10 * seeds + 6 * parameters["resamples"]
    events = seeds * parameters["program_ranks"] * parameters["share"]
    simulated_s = 0.035 * events + 6e-6 * collectives * parameters["ranks"]
    return 10 + runs + 2 * parameters["detour_seconds"] + simulated_s / machine.cpus


def _stragglers_s(parameters: dict, machine: Machine) -> float:
    """A planted case takes 40 ms; a step of job AR takes 3 ms a replica to prepare and simulate."""
    sought = 7 * parameters["scaled_cases"] + 4 * parameters["seeds"]
    return 5 + 0.04 * parameters["cases"] + 3e-3 * sought * parameters["replicas"]


def _traced_ranks_s(parameters: dict, machine: Machine) -> float:
    """Reading traced runs, and simulations on more ranks: 5 ms a rank and draw of the phases."""
    from .studies.ferreira.ranks_at_work import why_not

    if why_not():
        return 1.0
    programs, drawn = len(parameters["programs"]), parameters["seeds"]
    read_s = 1.0 * parameters["traced_rounds"] * parameters["length"]
    ranks = sum(2 * int(word) for word in parameters["times"].split())
    draws = drawn * len(parameters["signatures"]) + 1
    return 6 + programs * (read_s + 5e-3 * ranks * draws * parameters["length"])


_ANALYSIS_S = {
    "00-machine": lambda parameters, machine: 4 + 2 * parameters["seconds"],
    "10-trace-collection": lambda parameters, machine: _sizing(1, parameters["target_seconds"]) + 3,
    "15-account": lambda parameters, machine: 6.0,
    "30-injection": lambda parameters, machine: 8.0,
    "35-planted-anomaly": lambda parameters, machine: 3.0,
    "40-mitigations": _mitigations_s,
    "50-attribution": lambda parameters, machine: 10.0,
    "52-known-causes": _causes_s,
    "55-mitigate-and-compare": lambda parameters, machine: 8.0,
    "60-openmp-variability": _openmp_s,
    "70-noise-signatures": _signatures_s,
    "75-mpi-at-scale": _traced_ranks_s,
    "80-noise-at-scale": _simulations_s,
    "82-this-machine-at-scale": _this_machine_s,
    "85-stragglers": _stragglers_s,
}


@dataclass(frozen=True)
class Estimate:
    """What is left to do of a stage. `seconds`, `runs` and `bytes`: of all of it; `seconds_left`,
    `runs_left`: of what is not done.
    """

    stage: str
    seconds: float
    seconds_left: float
    runs: int
    runs_left: int
    bytes: float


def stage_estimate(
    stage: str,
    all_parameters: Mapping[str, dict],
    machine: Machine,
    study: Study,
    done: bool = False,
) -> Estimate:
    """A stage's time and disk, here.

    Parameters
    ----------
    stage, all_parameters, machine
        See `campaigns`.
    study
        Of the stage.
    done
        Nothing of it runs again.
    """
    planned = [] if study.recorded_only else campaigns(stage, all_parameters, machine)
    analysis_s = (
        _shown_s(stage) if study.recorded_only else analysis_seconds(stage, all_parameters, machine)
    )
    missing = [max(0, one.runs - _recorded(study.data, one.folder, planned)) for one in planned]
    measuring_s = sum(one.seconds(machine.cpus) for one in planned)
    left_s = sum(
        one.seconds(machine.cpus) * few / one.runs for one, few in zip(planned, missing) if one.runs
    )
    return Estimate(
        stage,
        analysis_s + measuring_s,
        0.0 if done else analysis_s + left_s,
        sum(one.runs for one in planned),
        0 if done else sum(missing),
        RESULTS_B + sum(one.bytes(machine.cpus) for one in planned),
    )


def _shown_s(stage: str) -> float:
    """Of the recorded campaign: its size is always the same."""
    return STAGE_S + {
        "10-trace-collection": 12,
        "15-account": 6,
        "20-delta-config": 6,
        "30-injection": 15,
        "35-planted-anomaly": 12,
        "37-worst-runs": 30,
        "40-mitigations": 40,
        "50-attribution": 25,
        "52-known-causes": 130,
        "55-mitigate-and-compare": 15,
        "60-openmp-variability": 15,
        "70-noise-signatures": 15,
        "75-mpi-at-scale": 5,
        "80-noise-at-scale": 60,
        "82-this-machine-at-scale": 60,
        "85-stragglers": 30,
    }.get(stage, 0)


def _recorded(data: Path, folder: str, planned: Collection[Planned]) -> int:
    """Finished runs of a campaign; of several under a pattern, those of the one that was measured
    last, and of an autopilot's all.
    """
    others = {one.folder for one in planned if one.folder != folder}
    found = [
        path.parent
        for path in data.glob(f"{folder}/campaign.json")
        if str(path.parent.relative_to(data)) not in others
    ]
    found = (
        found
        if folder.startswith("autopilot")
        else sorted(found, key=lambda path: path.stat().st_mtime)[-1:]
    )
    return sum(row["status"] == "ok" for path in found for row in read_records(path / "runs.jsonl"))


def sentence(
    profile: str,
    estimates: Collection[Estimate],
    machine: Machine,
    folder: Path,
    now: datetime.datetime | None = None,
) -> str:
    """How long it will take and when it will be over, how much disk it needs and what is done
    already.
    """
    left_s = sum(one.seconds_left for one in estimates)
    whole_s = sum(one.seconds for one in estimates)
    runs, runs_left = sum(one.runs for one in estimates), sum(one.runs_left for one in estimates)
    stages_left = sum(one.seconds_left > 0 for one in estimates)
    end = (now or datetime.datetime.now()) + datetime.timedelta(seconds=left_s)
    size = sum(one.bytes for one in estimates)
    free = shutil.disk_usage(next(path for path in (folder, *folder.parents) if path.exists())).free
    done = runs - runs_left or len(estimates) - stages_left
    lines = [
        (
            f"PROFILE={profile}: about {readable(left_s)} on these {machine.cpus} CPUs"
            f" ({readable(left_s / UNCERTAIN)} to {readable(left_s * UNCERTAIN)} by how quiet they"
            f" are), until about {_clock(end)}."
        ),
        (
            f"{len(estimates)} stages, {runs:,} runs; {_size(size)} of disk in"
            f" {folder.name and os.path.relpath(folder)}, {_size(free)} are free."
        ),
    ]
    if done:
        lines.append(
            f"Done already: {len(estimates) - stages_left} stages and {runs - runs_left:,} runs;"
            f" all of it would take {readable(whole_s)}."
        )
    if free < size:
        lines.append(
            "The disk is too small for it: what was measured until it is full is kept, and the same"
            " command goes on."
        )
    return "\n".join(lines)


def _clock(end: datetime.datetime) -> str:
    today = datetime.datetime.now().date()
    return f"{end:%H:%M}" if end.date() == today else f"{end:%A %d %B, %H:%M}"


def _size(count: float) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{max(1, count / 1e6):.0f} MB"


def outlook(profile: str, parameters: Mapping[str, dict]) -> str:
    """The message before the first stage runs; empty where nothing is to be done. The plan is saved
    for the stages' lines.

    Parameters
    ----------
    profile
        Its name.
    parameters
        Stage -> its values in the profile, in the order of the stages.
    """
    studies = {stage: Study(stage, profile) for stage in parameters}
    done = _done(studies)
    if all(done.values()):
        return ""
    all_parameters = {
        stage: default_parameters(stage) | values for stage, values in parameters.items()
    }
    try:
        all_parameters["10-trace-collection"]["target_seconds"]  # in every time
        machine = this_machine(_requested(all_parameters))
        estimates = [
            stage_estimate(stage, all_parameters, machine, study, done[stage])
            for stage, study in studies.items()
        ]
    except (KeyError, AttributeError, NoisebookError):
        return ""  # a notebook with other parameters than ours: its time is not known
    build = next(iter(studies.values())).build
    plan = {
        "began_unix_s": time.time(),
        "over": False,
        "seconds_left": {one.stage: round(one.seconds_left, 1) for one in estimates},
    }
    write_json(_plan_path(profile), plan)
    return sentence(profile, estimates, machine, build)


def _requested(all_parameters: Mapping[str, dict]) -> tuple[str, ...]:
    """The configurations that any stage names."""
    words = (parameters.get("configs", "") for parameters in all_parameters.values())
    return tuple(dict.fromkeys(name for text in words for name in text.split()))


def _done(studies: Mapping[str, Study]) -> dict[str, bool]:
    """Whether a stage will not run again: it was made after what it rests on changed, and so was
    all before it.
    """
    done, before = {}, True
    for stage, study in studies.items():
        made, wanted = (study.build / "stamps" / f"{stage}.{kind}" for kind in ("done", "wanted"))
        before = (
            before
            and made.exists()
            and wanted.exists()
            and made.stat().st_mtime_ns >= wanted.stat().st_mtime_ns
        )
        done[stage] = before
    return done


def _plan_path(profile: str) -> Path:
    return Study("00-machine", profile).build / "stamps" / "plan.json"


@dataclass(frozen=True)
class Place:
    """Where a stage stands in the plan: number-th of total, how long it and those after it should
    take.
    """

    number: int = 1
    total: int = 1
    seconds: float | None = None
    seconds_after: float | None = None


def place(stage: str, profile: str) -> Place:
    """Of a stage in the plan; without a plan it stands alone."""
    path = _plan_path(profile)
    left = read_json(path)["seconds_left"] if path.exists() else {}
    if stage not in left:
        return Place()
    number = list(left).index(stage) + 1
    return Place(number, len(left), left[stage], sum(list(left.values())[number:]))


def account(profile: str) -> str:
    """The message at the end: how long it took, how long was expected, and where the page lies."""
    path = _plan_path(profile)
    page = os.path.relpath(Study("90-paper", profile).build / "paper" / "index.html")
    plan = read_json(path) if path.exists() else {}
    if plan.get("over", True):
        return f"Nothing was left to do. Open {page}"
    write_json(path, plan | {"over": True})
    took_s = time.time() - plan["began_unix_s"]
    return (
        f"It took {readable(took_s)}; about {readable(sum(plan['seconds_left'].values()))} were"
        f" expected. Open {page}"
    )
