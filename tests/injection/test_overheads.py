"""The machine's costs: measured for real, kept, and estimated as other code would."""

import json
import sys

import numpy as np
import pytest

from nbhelpers.injection import Overheads, measure_overheads
from nbhelpers.injection._machine_state import machine_state
from nbhelpers.injection.costs import ExitCost
from nbhelpers.injection.rules import may_realtime
from nbhelpers.reading import read_json

from .helpers import run_unprivileged

pytestmark = pytest.mark.flaky(reruns=2)

module = sys.modules["nbhelpers.injection.overheads"]
needs_realtime = pytest.mark.skipif(not may_realtime(50), reason="SCHED_FIFO is not permitted here")


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The overheads of this machine, measured, and their file."""
    path = tmp_path_factory.mktemp("overheads") / "overheads.json"
    return measure_overheads(path), path


@needs_realtime
def test_the_costs_of_this_machine_make_sense(measured):
    costs, _ = measured
    assert costs.measured and costs.n >= 100 and costs.cpu >= 0 and costs.cpu in costs.cpus
    assert 0 <= costs.age_s() < 600 and costs.state == machine_state()
    assert costs.exit_us > 0 and 0 <= costs.exit_per_wake <= 1
    assert costs.wake_us < costs.floor_us <= costs.shortest_us
    assert costs.wake_us <= costs.wake_most_us
    assert 0 < costs.ordinary_floor_us <= costs.shortest_ordinary_us
    for name, (low, high) in costs.intervals.items():
        assert low <= getattr(costs, name) <= high


@needs_realtime
def test_the_exit_cost_is_measured_at_lengths_up_to_10_ms(measured):
    rows = measured[0].exit_by_length
    lengths = [row.length_us for row in rows]
    assert lengths == sorted(lengths) and {100, 300, 1000, 3000} <= set(lengths)
    assert all(row.low_us <= row.cost_us <= row.high_us and row.events >= 10 for row in rows)
    at_100 = next(row for row in rows if row.length_us == 100)
    assert at_100.cost_us == measured[0].exit_us


@needs_realtime
def test_they_are_measured_once(measured, monkeypatch):
    costs, path = measured
    monkeypatch.setattr(module, "measure_on", lambda cpu: pytest.fail("measured again"))
    assert measure_overheads(path) == costs


@pytest.mark.parametrize("content", ["", "[]", '{"wake_us": 3}', "foreign"])
@needs_realtime
def test_what_was_kept_elsewhere_or_is_damaged_is_measured_anew(
    measured, content, monkeypatch, tmp_path
):
    costs, path = measured
    fresh = Overheads(wake_us=7.0, measured=True, exit_by_length=(ExitCost(100, 5, 4, 6, 60),))
    kept = tmp_path / "overheads.json"
    foreign = json.dumps(read_json(path) | {"state": {"boot": "?"}})
    kept.write_text(foreign if content == "foreign" else content)
    monkeypatch.setattr(module, "measure_on", lambda cpu: fresh)
    found = measure_overheads(kept)
    assert found == measure_overheads(kept) and found.exit_by_length == fresh.exit_by_length
    assert read_json(kept)["wake_us"] == 7.0


@needs_realtime
def test_each_kind_of_core_is_measured_on_a_cpu_of_its_own(monkeypatch, tmp_path):
    kinds = {"performance": (0, 1, 2, 3), "efficiency": (4, 5)}
    monkeypatch.setattr(module, "core_kinds", lambda: kinds)
    of_cpu = {cpu: Overheads(exit_us=cpu, cpu=cpu, measured=True) for cpu in (3, 5)}
    monkeypatch.setattr(module, "measure_on", of_cpu.get)
    costs = measure_overheads(tmp_path / "overheads.json")
    assert {own.core_kind: own.cpus for own in costs.kinds} == kinds
    assert [own.cpu for own in costs.kinds] == [3, 5]
    assert costs.kind_of([0, 3, 4, 5, 77, -1]).tolist() == [0, 0, 1, 1, 0, 0]
    assert costs == measure_overheads(tmp_path / "overheads.json"), "as cached"


def test_without_permission_typical_numbers_are_used_and_nothing_is_kept(tmp_path):
    script = (
        "from nbhelpers.injection import measure_overheads;"
        f" c = measure_overheads({str(tmp_path / 'overheads.json')!r});"
        " assert not c.measured and c.exit_us > 0, c"
    )
    done = run_unprivileged(script)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "overheads.json").exists()


@pytest.mark.parametrize("scale", [0.1, 3.0, 10.0])
def test_the_shortest_event_takes_at_most_one_per_cent_more_than_it_asks_for(scale):
    costs = 20 + np.random.default_rng(1).gamma(2, scale, 500)
    shortest = module._shortest(costs)
    kept = np.minimum(costs, np.quantile(costs, 0.98))

    def over(length):
        return np.mean([max(cost, length) for cost in kept]) / length - 1

    assert over(shortest) <= 0.01 and (over(shortest - 0.5) > 0.01 or shortest <= np.median(costs))


def test_one_stop_of_the_hypervisor_changes_nothing():
    costs = np.full(200, 25.0)
    costs[0] = 5000.0
    assert module._shortest(costs) == 25.0
