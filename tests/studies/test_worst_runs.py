"""The study of natural worst runs: what is replayed of them, how their excess is split, and one
real case.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nbhelpers.answers import CANNOT_TELL
from nbhelpers.studies.known import UNNAMED, UNSEEN
from nbhelpers.tracing._table import noise_events
from nbhelpers.workloads import nbody
from tests.cells import run_cells
from tests.shown import Shown

MS = 1_000_000
KINDS = KERNEL, BOTH, LOSSES = "kernel", "kernel and hypervisor", "losses"
UNDISTURBED = "undisturbed"


def noise(rows):
    """Rows (run, kind, start_ms, length_ms)."""
    table = pd.DataFrame(rows, columns=["run", "kind", "start_ns", "duration_ns"])
    table["duration_ns"] *= MS
    table["start_ns"] *= MS
    table["end_ns"] = table["start_ns"] + table["duration_ns"]
    rest = {"cpu": 0, "source": table["kind"], "policy": "", "priority": 0, "pid": 0}
    return noise_events(table.assign(**rest, interrupted="workload").to_dict("list"))


SECONDS = [0.10, 0.13, 0.10, 0.11, 0.10, 0.10]
RUNS = pd.DataFrame({"run": range(6), "seconds": SECONDS, "status": "ok"})
USUAL = [(run, "irq", 10, 1) for run in range(6)]
EVENTS = noise([*USUAL, (1, "irq", 30, 8), (1, "thread", 50, 3)])
STOLEN = noise([(1, "hardware", 70, 12), (3, "hardware", 20, 9)])


NOTHING = pd.DataFrame(columns=["run", "cpu", "start_ns", "end_ns", "lost_ns", "cause"])


def slowest(events, stolen, losses, count, runs=RUNS, realtime=True) -> dict:
    """What page 37 chooses of traced runs, and what it replays of them."""
    known = {"traced": runs, "events": events, "stolen": stolen, "losses": losses, "count": count}
    known |= {"limits": {"realtime": realtime}, "method": "paper", "threads": "recorded"}
    found = run_cells("37-worst-runs", "slowest", **known)
    return {name: found[name] for name in ("slow", "configs", "shares", "kinds")}


def planned(cases: dict) -> pd.DataFrame:
    """The table `worst` of page 37."""
    return run_cells("37-worst-runs", "planned", **cases, study=Shown())["planned"]


def test_a_case_has_what_its_run_suffered_beyond_the_others():
    cases = slowest(EVENTS, STOLEN, NOTHING, 2)
    assert cases["slow"]["run"].tolist() == [1, 3]
    first, second = (cases["configs"][run] for run in (1, 3))
    assert sorted(first[KERNEL].events()["duration_ns"] // MS) == [3, 8], (
        "the millisecond that every run had is not in it"
    )
    hardware = first[BOTH].events().query("kind == 'hardware'")
    assert hardware["duration_ns"].tolist() == [12 * MS]
    assert hardware["policy"].tolist() == ["SCHED_FIFO"]
    assert [*second] == [BOTH] and set(second[BOTH].events()["kind"]) == {"hardware"}
    table = planned(cases)
    assert table["kernel_ms"].tolist() == [11, 0] and table["hypervisor_ms"].tolist() == [12, 9]
    assert [*slowest(EVENTS, STOLEN.iloc[:0], NOTHING, 1)["configs"][1]] == [KERNEL]


def test_what_only_a_loop_saw_is_not_taken_for_the_hypervisors():
    detours = noise([(run, "hardware", 10, 1) for run in range(6)] + [(1, "hardware", 30, 8)])
    [configs] = slowest(detours, STOLEN.iloc[:0], NOTHING, 1)["configs"].values()
    assert [*configs] == [KERNEL] and len(configs[KERNEL].events()) == 1


def measured(rounds: int = 100, spread: float = 0.002, **cells: float) -> pd.DataFrame:
    """Runs of each cell about these seconds."""
    random = np.random.default_rng(0)
    names = {"calm": UNDISTURBED, "kernel": f"{KERNEL} 1"}
    names |= {"both": f"{BOTH} 1", "both_2": f"{BOTH} 2"}
    names |= {"losses": f"{LOSSES} 1", "losses_2": f"{LOSSES} 2"}
    parts = [
        pd.DataFrame({"round": range(rounds), "seconds": random.normal(mean, spread, rounds)})
        for mean in cells.values()
    ]
    runs = pd.concat(parts, keys=[names[name] for name in cells], names=["cell"])
    return runs.reset_index("cell").reset_index(drop=True)


def page(runs: pd.DataFrame, cases: dict, traced: pd.DataFrame = RUNS) -> dict:
    """The cells of page 37 on these replays of runs among those that were traced."""
    known = {"ok": runs, "planned": planned(cases), "study": Shown(), "found": Shown()}
    return run_cells("37-worst-runs", "split", traced=traced, **known)


def test_the_excess_is_split_and_the_parts_add_up():
    cases = slowest(EVENTS, STOLEN, NOTHING, 2)
    runs = measured(calm=0.1, kernel=0.111, both=0.123, both_2=0.109)
    table = page(runs, cases)["split"].set_index("case")
    names = ["kernel_ms", "hypervisor_ms", "unexplained_ms"]
    assert np.allclose(table[names].sum(axis=1), table["excess_ms"])
    assert table.loc[1, names].tolist() == pytest.approx([11, 12, 7], abs=1)
    assert table.loc[2, names].tolist() == pytest.approx([0, 9, 1], abs=1)
    first, second = table.loc[1], table.loc[2]
    assert first["ratio"] == pytest.approx(0.123 / 0.13, abs=0.01)
    assert first["ratio_low"] < first["ratio"] < first["ratio_high"]
    assert first["kernel_ms_low"] < 11 < first["kernel_ms_high"]
    assert second["kernel_ms_low"] == second["kernel_ms_high"] == 0


def test_a_case_with_nothing_to_replay_is_all_unexplained():
    runs = RUNS.assign(seconds=[0.1] * 5 + [0.12])
    cases = slowest(noise(USUAL), STOLEN.iloc[:0], NOTHING, 1, runs)
    table = page(measured(calm=0.1), cases)["split"]
    assert table["unexplained_ms"][0] == pytest.approx(20, abs=1)
    assert table["kernel_ms"][0] == table["hypervisor_ms"][0] == 0


def lost(run, seconds, cause="slower"):
    """So many seconds, spread over 0.1 s."""
    rows = [
        (run, 0, start * MS, (start + 10) * MS, round(seconds * 1e8), cause)
        for start in range(0, 100, 10)
    ]
    return pd.DataFrame(rows, columns=NOTHING.columns)


LOSSES_TABLE = pd.concat([lost(1, 0.006), lost(3, 0.009), lost(0, 0.001)], ignore_index=True)


def test_a_run_that_can_be_replayed_stands_beside_the_worst_by_time():
    cases = slowest(EVENTS, STOLEN, LOSSES_TABLE, 1)
    slow, replayed = cases["slow"], cases["configs"][1][LOSSES]
    assert slow["run"].tolist() == [1, 3] and slow["chosen"].tolist() == ["by time", "replayable"]
    assert slow["replayable_share"].tolist() == pytest.approx([0.2, 0.9])
    assert replayed.events()["duration_ns"].sum() == 6 * MS
    assert replayed.provenance["run"] == 1 and replayed.window_ns == 130 * MS
    table = planned(cases).set_index("case")
    assert table["slower_lost_ms"].tolist() == pytest.approx([6, 9])
    assert table["unexplained_lost_ms"].tolist() == pytest.approx([24, 1])


def test_where_nothing_can_be_injected_only_the_worst_by_time_is_left():
    cases = slowest(EVENTS, STOLEN, LOSSES_TABLE, 1, realtime=False)
    assert len(cases["slow"]) == 1 and LOSSES not in cases["configs"][1]
    assert cases["slow"]["replayable_share"].tolist() == [0]
    nothing = slowest(EVENTS, STOLEN, NOTHING, 2)
    assert [*nothing["configs"]] == [1, 3] and LOSSES not in nothing["configs"][3]


def test_the_replay_of_losses_is_beside_the_parts():
    cases = slowest(EVENTS, STOLEN, LOSSES_TABLE, 1)
    runs = measured(calm=0.1, kernel=0.111, both=0.123, both_2=0.109, losses=0.106, losses_2=0.109)
    table = page(runs, cases)["split"].set_index("case")
    assert table["losses_ms"].tolist() == pytest.approx([6, 9], abs=1)
    assert table["missing_ms"].tolist() == pytest.approx([24, 1], abs=1)
    assert table.loc[2, "ratio_losses_low"] < 0.109 / 0.11 < table.loc[2, "ratio_losses_high"]


def answer(ratio: float, rounds: int = 20, later: float = 0.0):
    """What the page answers of two slow runs whose replays take this part of them, and as all runs
    of a later hour so much longer.
    """
    cases = slowest(EVENTS, STOLEN, LOSSES_TABLE, 1)
    times = {"losses": 0.13 * ratio, "losses_2": 0.11 * ratio, "calm": 0.06, "kernel": 0.06}
    runs = measured(rounds, 0.001, **{name: time + later for name, time in times.items()})
    known = page(runs, cases, RUNS.assign(seconds=0.06))
    page15 = Shown(handed_on=lambda name: Path("not made"))
    known |= {"study": Shown(of=lambda stage: page15)}
    return run_cells("37-worst-runs", "answer", **known)["found"].answer


def test_slow_runs_are_explained_by_the_share_of_their_excess_that_comes_back():
    found = answer(1.0)
    assert found.answer == UNNAMED and "what 2 slow runs took longer" in found.sentence
    assert found.value == pytest.approx(100, abs=1) and found.n == 20
    assert answer(1.0, later=0.02).value == pytest.approx(100, abs=1)
    assert answer(0.75).answer == f"{UNNAMED}: 49 %"
    assert answer(0.5).answer == UNSEEN
    assert answer(1.0, rounds=2).answer == CANNOT_TELL


@pytest.mark.alone
@pytest.mark.long
def test_real_replays_of_both_parts_interleaved_with_the_undisturbed_program(tmp_path, binaries):
    cases = slowest(EVENTS, STOLEN, NOTHING, 1)
    program = nbody(1000, 10, threads=2)
    known = {"study": Shown(data=tmp_path), "stage10": Shown(workload=program), **cases}
    known |= {"runs": 2, "seed": 0, "placement": "faithful"}
    runs = run_cells("37-worst-runs", "campaign", recorded_only=False, **known)["ok"]
    expected = dict.fromkeys([UNDISTURBED, f"{KERNEL} 1", f"{BOTH} 1"], 2)
    assert runs.groupby("cell").size().to_dict() == expected
    digests = [config.digest for config in cases["configs"][1].values()]
    assert set(runs["noise"]) == {"none", *digests}
    again = run_cells("37-worst-runs", "campaign", recorded_only=True, **known)["ok"]
    assert len(again) == 6 and len(page(runs, cases)["split"]) == 1
