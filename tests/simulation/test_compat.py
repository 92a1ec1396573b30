"""`compat` against the reference simulator: its recorded results, to the nanosecond."""

import hashlib

import numpy as np
import pytest

from nbhelpers.simulation.engine import simulate
from nbhelpers.simulation.loggops import LogGOPS
from nbhelpers.simulation.noise import Noise

from . import trace_of
from .cases import reference_cases, reference_folder
from .programs import to_schedule
from .reference import Reference, parse_goal

CASES = reference_folder()
FOUND = reference_cases()


def noise_of(case: dict) -> Noise | None:
    if not case["noise"]:
        return None
    noise = case["noise"]
    start, duration = np.loadtxt(CASES / noise["trace"], unpack=True)
    trace = trace_of(start, duration, start[-1])
    assert trace.compat_table[1] == noise["period_ns"]
    if noise["seed"] is not None:
        drawn = Noise.on_ranks(
            trace, case["num_ranks"], seed=noise["seed"], cosched=noise["cosched"]
        )
        assert drawn.phase_ns.tolist() == (noise.get("phases_ns") or drawn.phase_ns.tolist())
        return drawn
    return Noise.on_ranks(trace, case["num_ranks"], phases_ns=np.array(noise["phases_ns"]))


@pytest.mark.parametrize("case", FOUND, ids=lambda case: case["id"])
def test_equals_the_reference_simulator(case: dict):
    schedule = to_schedule(parse_goal(CASES / case["goal"]))
    result = simulate(schedule, LogGOPS(**case["params"]), noise_of(case), mode="compat")
    expected = {
        **case,
        **case.get("stable_order", {}),
    }  # file order kept where the shipped binary scrambles it
    finish = result.finish_ns.astype(np.int64)
    assert schedule.events == case["events"]
    found = {
        "max_finish": int(finish.max()),
        "max_host": int(finish.argmax()),
        "min_finish": int(finish.min()),
        "sum_finish": int(finish.sum()),
        "sha256_finish": hashlib.sha256(",".join(map(str, finish)).encode()).hexdigest(),
    }
    assert found == {name: expected[name] for name in found}
    if expected.get("finish"):
        assert finish.tolist() == expected["finish"]
    if case["noise"] and case["noise"].get("noise_injected_ns"):
        assert result.noise_ns.astype(np.int64).tolist() == case["noise"]["noise_injected_ns"]


@pytest.mark.parametrize(
    "case", [case for case in FOUND if case["events"] < 3000][::3], ids=lambda case: case["id"]
)
def test_the_slow_implementation_equals_it_too(case: dict):
    """So that the property tests compare with something that is itself held against the reference
    simulator.
    """
    noise = noise_of(case)
    traces = phases = None
    if noise is not None:
        table, period, _ = noise.traces[0].compat_table
        traces, phases = [(*table.T.tolist(), period)] * case["num_ranks"], noise.phase_ns.tolist()
    network = tuple(case["params"][name] for name in "LogGOS")
    program = parse_goal(CASES / case["goal"])
    finish, _ = Reference(program, network, traces, phases, "compat").run()
    assert int(sum(finish)) == {**case, **case.get("stable_order", {})}["sum_finish"]
