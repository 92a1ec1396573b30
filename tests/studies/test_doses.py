"""Random doses: what costs time is named, what does not is not, and slow runs carry what was
planted in them.
"""

import os
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from nbhelpers.answers import CANNOT_TELL
from nbhelpers.studies.doses import possible_doses
from nbhelpers.studies.graded_injection import SHAM
from nbhelpers.workloads import Workload, binary_folder
from tests.cells import run_cells
from tests.shown import Shown

STAGE = "57-random-doses"
AMOUNTS = {"cpu-contention": 0.05, "timer-interrupts": 4000.0, "page-faults": 65536.0}
AMOUNTS |= {"cache-misses": 1.0, "memory-bandwidth": 1.0}
DOSED = pd.DataFrame({"factor": list(AMOUNTS), "dose": AMOUNTS.values()})
DOSED = DOSED.assign(name=DOSED.factor, unit="", tried=True)
PLANTED = ("competitor", "more work")


def rows_of_the_design() -> pd.DataFrame:
    design = run_cells(STAGE, "design", dosed=DOSED, study=Shown())["design"]
    together = design.T @ design
    assert np.array_equal(together, 4 + 4 * np.eye(6)), "8 of 16 rows, any two together in 4"
    return pd.concat([design, pd.DataFrame(0, ["undisturbed", *PLANTED], design.columns)])


def runs_of_a_program(rows: pd.DataFrame, seed: int, cost: float) -> pd.DataFrame:
    """Runs that a competitor lengthens by `cost` times its share, with waits that are counted;
    timers are counted and cost nothing.
    """
    random, runs = np.random.default_rng(seed), []
    for turn in range(6):
        for cell in random.permutation(rows.index):
            level = rows.loc[cell]
            share = 0.05 * level["cpu-contention"] + 0.1 * (cell == "competitor")
            work = (0.165 if cell == "more work" else 0.15) * random.normal(1, 0.01)
            seconds = work * (1 + cost * share)
            counts = {"process_runqueue_wait_ns": 1e9 * work * share + random.exponential(1e6)}
            counts["irq_LOC"] = random.poisson((250 + 4000 * level["timer-interrupts"]) * seconds)
            counts |= {"wall_seconds": seconds, "region_seconds": seconds, "run": len(runs)}
            runs.append({"cell": cell, "round": turn, "seconds": seconds, **counts})
    return pd.DataFrame(runs)


def analysed(rows: pd.DataFrame, seed: int, cost: float) -> dict:
    known = {"runs": runs_of_a_program(rows, seed, cost), "rows": rows, "amounts": AMOUNTS}
    known |= {"planted": dict.fromkeys(PLANTED), "dosed": DOSED, "seed": 1, "rounds": 6}
    return run_cells(STAGE, "analysis", study=Shown(), found=Shown(), **known)


@pytest.mark.long
def test_what_costs_time_is_named_and_slow_runs_carry_what_was_planted():
    rows = rows_of_the_design()
    page = analysed(rows, 1, cost=1.0)
    assert list(page["causes"].index) == ["cpu-contention"]
    assert page["causes"].percent.item() == pytest.approx(5, abs=1)
    assert page["found"].answer.answer == "cpu-contention"
    carried = page["mixture"].set_index(["slow_runs", "carries"]).ms
    assert carried["competitor", "cpu-contention"] == pytest.approx(15, abs=3)
    assert carried["more work", "none of these"] == pytest.approx(15, abs=3)
    assert carried["more work"].drop("none of these").sum() < 3
    nothing = [analysed(rows, seed, cost=0.0) for seed in range(10)]
    assert sum(len(page["causes"]) for page in nothing) <= 2
    assert nothing[0]["found"].answer.answer == CANNOT_TELL


@pytest.mark.alone
def test_a_dose_is_there_only_in_the_rows_that_have_it(tmp_path, binaries, nothing_left):
    command = (str(binary_folder() / "victim"), "compute", "9000", "0")
    cpus = (max(os.sched_getaffinity(0)),)
    program = Workload("v", "external", command, start="mark", cpus=cpus)
    most = {"cpu-contention": 0.5, "page-faults": 65536.0}
    assert possible_doses(program, most)["tried"].all()
    rows = pd.DataFrame({name: [1, 0] for name in (*most, SHAM)}, ["all", "none"])
    names = {"study": SimpleNamespace(data=tmp_path), "program": program, "rows": rows}
    names |= {"amounts": most, "planted": {}, "rounds": 3, "seed": 1, "recorded_only": False}
    runs = run_cells(STAGE, "runs", **names)["runs"]
    if "process_runqueue_wait_ns" not in runs:
        pytest.skip("what a program waits for a CPU is not counted for this user")
    waits = runs.groupby("cell")["process_runqueue_wait_ns"].median()
    assert waits["all"] > waits["none"] + 2e6
