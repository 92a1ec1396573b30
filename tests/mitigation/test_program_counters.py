"""A counter that the program reports itself leads to its own paths and parameters, and a seed among
its options is fixed and proved to be.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribution import explain
from nbhelpers.measurement import run_once
from nbhelpers.mitigation import mitigations, treat_workload
from nbhelpers.mitigation.choice import wanted_mitigations
from nbhelpers.mitigation.parameter import seed_option
from nbhelpers.mitigation.program_counters import is_of_program, program_parameters
from nbhelpers.mitigation.report import Report, as_table, found_factors, tried_table
from nbhelpers.workloads import Report as Number
from nbhelpers.workloads import program

PROBE = """import random, sys, time
seed = sys.argv[sys.argv.index("--seed") + 1]
random.seed(None if seed == "random" else seed)
probes = 40_000 if random.random() < 0.5 else 4_000
sum(number * number for number in range(10 * probes))
print("probes=%d" % probes)"""


def runs_with_probes() -> pd.DataFrame:
    """The program reports its probes; softirqs and forks are there, too, and rise with them."""
    random = np.random.default_rng(1)
    slow = random.random(60) < 1 / 3
    probes = 400 + 900 * slow + random.integers(0, 50, 60)
    return pd.DataFrame(
        {
            "seconds": 0.1 + 0.05 * slow + 0.001 * random.random(60),
            "probes": probes,
            "softirq_RCU": probes // 10 + random.integers(0, 8, 60),
            "machine_forks": random.poisson(3, 60) + 2 * slow,
        }
    )


@pytest.fixture(scope="module")
def explained():
    runs = runs_with_probes()
    return runs, explain(runs, seed=1)


def test_the_programs_counter_comes_before_what_the_system_did_for_it(explained):
    _, explanation = explained
    factors = found_factors(explanation)
    assert factors.index[0] == "program-paths"
    assert factors["columns"].iloc[0][0].removesuffix("_per_s") == "probes"


def test_the_page_says_where_to_look_and_what_to_fix(explained):
    runs, explanation = explained
    factors = found_factors(explanation)
    report = Report(
        "probe --seed random",
        runs,
        explanation,
        "enough",
        factors,
        tried_table({}, {}),
        as_table([], ["name", "reason", "fix"]),
        {},
        pd.DataFrame(),
        parameters=("--seed random",),
    )
    page = report.markdown()
    assert "The program itself reports probes" in page and "first at `--seed random`" in page
    places = [page.index(f"**{name}**") for name in factors["name"]]
    assert places == sorted(places) and len(places) > 1
    assert "fix-seed" in wanted_mitigations(None, list(factors.index), False)


def test_what_we_count_is_not_the_programs():
    names = ["probes", "retries", "minor_faults", "vm_pgfault", "irq_LOC", "cgroup_memory_max"]
    assert [name for name in names if is_of_program(name)] == ["probes", "retries"]


def test_the_seed_is_found_among_the_options():
    assert seed_option(("p", "--rng-seed=random", "7")) == 1
    assert seed_option(("p", "-seed", "x")) == 2 and seed_option(("p", "--seedling")) is None
    workload = program(["sleep", "0.01"], env={"HASH_SEED": "7"})
    assert program_parameters(workload) == ("HASH_SEED=7",)
    listed = program_parameters(replace(workload, command=("p", "--input", "a b", "--seed=1")))
    assert listed == ("--input 'a b'", "--seed=1", "HASH_SEED=7")


def test_a_fixed_seed_reaches_the_program_and_is_proved(binaries):
    probe = program(
        ["python3", "-S", "-c", PROBE, "--seed", "random"],
        reports=[Number("probes", r"probes=(?P<value>\d+)")],
    )
    assert mitigations()["fix-seed"].possible(probe)
    assert not mitigations()["fix-seed"].possible(program("sleep 0.01"))
    workload, attachments = treat_workload("fix-seed", probe)
    rows = [run_once(workload, attachments) for _ in range(6)]
    assert {row["status"] for row in rows} == {"ok"} and len({row["probes"] for row in rows}) == 1
    other, _ = treat_workload("fix-seed", probe)
    wrong = run_once(replace(other, command=probe.command), attachments)
    assert wrong["status"] == "mitigation not in effect" and "random" in wrong["message"]
