"""libFuzzer on what our C parts get from outside: plans, GOAL files, schedules, networks, noise.

Minutes instead of seconds: NOISEBOOK_FUZZ_SECONDS=600. Findings stay in the test's folder, and the
failure names them.
"""

import pytest

from nbhelpers.injection import make_plan
from nbhelpers.injection._native import ffi
from nbhelpers.injection.replay import PLAN_COLUMNS, Replay
from nbhelpers.noise import NoiseConfig

from ..injection.helpers import CPU_COUNT, make_config, mixed_config
from .libfuzzer import SECONDS, built, fuzzed

GOAL = b"""num_ranks 2
rank 0 {
l1: send 8b to 1 tag 3 cpu 1 nic 0
l2: calc 5
l2 requires l1 /* a comment */
}
rank 1 {
l1: recv 8b from 0 tag 3 // another
l2: calc 7
l2 irequires l1
}
"""
pytestmark = pytest.mark.timeout(120 + 2 * SECONDS)


def plan_seed(config: NoiseConfig, **options) -> bytes:
    """A plan as the harness takes it: numbers of events and lanes, rules, lanes, columns."""
    replay = Replay(make_plan(config, **options))
    count, lanes = len(replay.plan.events), replay._run.lane_count
    assert count < 32 and lanes < 8
    columns = b"".join(replay._columns[name].tobytes() for name in PLAN_COLUMNS)
    return (
        bytes([count, lanes])
        + bytes(ffi.buffer(ffi.addressof(replay._run.rules)))
        + bytes(ffi.buffer(replay._run.lanes, lanes * ffi.sizeof("struct nb_lane")))
        + columns
    )


@pytest.mark.long
def test_the_check_of_plans(tmp_path):
    program = built(tmp_path, "plan.c", "injector_c")
    seeds = [
        plan_seed(make_config([(0, "irq", 1, 1), (0, "thread", 3, 1)])),
        plan_seed(mixed_config(1, count=7, cpus=[0])),
        plan_seed(mixed_config(2, count=5, cpus=range(min(CPU_COUNT, 2))), placement="origin"),
    ]
    assert fuzzed(tmp_path, program, seeds, 2048) > 10_000


@pytest.mark.long  # the simulator's C parts are compiled anew
def test_the_readers_of_goal(tmp_path):
    """A byte of the input says in pieces of how many bytes the text comes."""
    program = built(tmp_path, "goal.c", "simulator_c")
    seeds = [piece + GOAL for piece in (b"\x01", b"\x10", b"\x00")]
    assert fuzzed(tmp_path, program, seeds, 4096) > 10_000


@pytest.mark.long  # the simulator's C parts are compiled anew
def test_the_core_of_the_simulator(tmp_path):
    program = built(tmp_path, "engine.c", "simulator_c")
    seeds = [bytes(range(256)), bytes(200), bytes(range(0, 250, 7)) * 8]
    assert fuzzed(tmp_path, program, seeds, 1024) > 500
