"""The package is pure: nothing that it exports changes its inputs, touches a file (but for read and
write), or gives another result for the same input.
"""

import copy
import sys

import pandas as pd
import pytest

from nbhelpers import noise
from nbhelpers.noise import (
    NoiseConfig,
    average_noise,
    delta_noise,
    signature_noise,
    stressor_noise,
    stressor_table,
)
from nbhelpers.noise.stressors import combined_noise, stressor_pattern

# What a process cannot do without one of these audit events: open or change a file, start a
# process, connect a socket.
OUTSIDE = (
    "open",
    "os.",
    "shutil.",
    "socket.",
    "subprocess.",
    "tempfile.",
)
_seen: list[str] | None = None


def _audit(event: str, arguments: tuple) -> None:
    if _seen is not None and event.startswith(OUTSIDE):
        _seen.append(f"{event} {arguments}"[:200])


sys.addaudithook(_audit)


@pytest.fixture
def outside():
    """What is done outside of this process's memory from now on, as a list that grows."""
    global _seen
    _seen = []
    yield _seen
    _seen = None


def events() -> pd.DataFrame:
    """A thread, interrupts that overlap with it and with each other, on two CPUs in two runs."""
    table = pd.DataFrame(
        {
            "run": [0, 0, 0, 0, 1, 1],
            "cpu": [0, 0, 0, 1, 0, 1],
            "kind": ["thread", "irq", "softirq", "irq", "irq", "thread"],
            "source": ["kworker/0:1", "local_timer", "SCHED", "local_timer", "local_timer", "sshd"],
            "start_ns": [10_000, 40_000, 41_000, 500_000, 20_000, 700_000],
            "duration_ns": [100_000, 5_000, 3_000, 2_000, 2_500, 30_000],
            "policy": ["SCHED_OTHER", "", "", "", "", "SCHED_FIFO"],
            "priority": [0, 0, 0, 0, 0, 5],
            "pid": [7, 0, 0, 0, 0, 9],
        }
    ).astype({"kind": "category", "source": "category"})
    table.attrs = {"seconds": 0.001, "tracer": "osnoise"}
    return table.assign(end_ns=table["start_ns"] + table["duration_ns"])


def runs() -> pd.DataFrame:
    return pd.DataFrame({"run": [0, 1], "seconds": [0.001, 0.0009], "status": "ok"})


def config() -> NoiseConfig:
    return NoiseConfig.from_events(delta_noise(events(), average_noise(events(), runs()), runs()))


def stressing() -> pd.DataFrame:
    return stressor_noise("memory_read", 2e9, 0.5, [0, 1], ramp_s=0.1)


CALLS = {
    "average_noise": (average_noise, lambda: (events(), runs())),
    "combined_noise": (combined_noise, lambda: (events()[:4], stressing())),
    "signature_noise": (
        lambda phases: signature_noise(100, 50, 0.1, [0, 1], distribution="poisson", phase=phases),
        lambda: ({0: 10.0, 1: 20.0},),
    ),
    "stressor_noise": (lambda cpus: stressor_noise("duty", 0.5, 1.0, cpus), lambda: ([1, 0],)),
    "stressor_pattern": (
        lambda cpus: stressor_pattern(
            "ipi", 100, frequency_hz=10, duration_us=5, seconds=1.0, cpus=cpus, phase="random"
        ),
        lambda: ([1, 0],),
    ),
    "stressor_table": (stressor_table, lambda: ()),
    "NoiseConfig.events": (NoiseConfig.events, lambda: (config(),)),
    "NoiseConfig.summary": (NoiseConfig.summary, lambda: (config(),)),
    "NoiseConfig.mapped": (NoiseConfig.mapped, lambda: (config(), {0: 3})),
    "NoiseConfig.for_machine": (NoiseConfig.for_machine, lambda: (config(), [0, 1])),
    "NoiseConfig.digest": (lambda of: of.digest, lambda: (config(),)),
} | {
    f"delta_noise {method}": (
        lambda *tables, method=method: delta_noise(*tables, method=method),
        lambda: (events(), average_noise(events(), runs()), runs()),
    )
    for method in ("paper", "compat")
}
CALLS |= {
    f"NoiseConfig.from_events {merge}": (
        lambda table, facts, merge=merge: NoiseConfig.from_events(table, merge, provenance=facts),
        lambda: (events()[:4], {"of": ["a", "test"]}),
    )
    for merge in ("improved", "pessimistic", "compat")
}
FILES = {"read", "write", "write_published"}


def same(one: object, other: object) -> bool:
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other)
        return one.attrs == other.attrs
    return one == other


def test_every_exported_function_and_method_is_called_here():
    exported = set(noise.__all__) | {"combined_noise", "stressor_pattern"}
    methods = {name for name in vars(NoiseConfig) if not name.startswith("_")} - FILES
    fields = {"cpus", "window_ns", "provenance"}
    wanted = exported - {"NoiseConfig"} | {f"NoiseConfig.{name}" for name in methods - fields}
    assert wanted == {name.partition(" ")[0] for name in CALLS}


@pytest.mark.parametrize("name", CALLS)
def test_inputs_stay_results_repeat_and_no_file_is_touched(name, outside):
    call, make_inputs = CALLS[name]
    call(*make_inputs())  # what is imported late, or computed one time, is done now
    inputs = make_inputs()
    before = copy.deepcopy(inputs)
    outside.clear()
    result = call(*inputs)
    assert not outside
    assert same(inputs, before), "the inputs changed"
    again = call(*inputs)
    assert same(result, again), "another result for the same input"
    assert not outside


def test_a_result_can_be_changed_without_changing_the_config():
    of = config()
    digest, table = of.digest, of.events()
    table["duration_ns"] = 1
    table.attrs["seconds"] = 2
    assert of.events()["duration_ns"].max() > 1 and of.digest == digest


def test_reading_and_writing_are_seen(tmp_path, outside):
    of, path = config(), tmp_path / "noise.json"
    outside.clear()
    of.write(path)
    assert any(event.startswith("open") for event in outside)
    outside.clear()
    assert NoiseConfig.read(path) == of and outside
