"""What others see of a replay: a loop in the program's place, and the kernel's trace."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.injection import Injector, Rules, observe_loss, read_logs
from nbhelpers.injection.log import DONE, noise_ns
from nbhelpers.injection.observed_loss import _lost_ns, meets_an_event
from nbhelpers.injection.rules import may_realtime
from nbhelpers.machine import doctor
from nbhelpers.measurement import Attachment, Campaign, Cell, finished
from nbhelpers.noise import NoiseConfig
from nbhelpers.tracing import Tracer, read_traces
from nbhelpers.workloads import nbody

from .helpers import CPU_COUNT, make_config

pytestmark = pytest.mark.flaky(reruns=2)

LENGTHS_US = (50, 100, 200, 500, 1000, 1500, 2000, 3000, 4000, 8000)
needs_realtime = pytest.mark.skipif(not may_realtime(51), reason="SCHED_FIFO is not permitted here")


def ten_events_a_cpu() -> NoiseConfig:
    table = {
        "cpu": np.repeat(range(CPU_COUNT), len(LENGTHS_US)),
        "start_ns": np.tile(np.arange(len(LENGTHS_US)) * 14_000_000 + 2_000_000, CPU_COUNT),
        "duration_ns": np.tile(LENGTHS_US, CPU_COUNT) * 1000,
    }
    return NoiseConfig.from_events(pd.DataFrame(table).assign(run=0, kind="irq", source="known"))


@needs_realtime
def test_what_a_shielded_loop_lost_is_what_was_injected(tmp_path, binaries):
    config = ten_events_a_cpu()
    table = observe_loss(tmp_path, config, rules=Rules(shortest_us=0))
    seen = table.dropna(subset="observed_us")
    assert len(table) == 10 * CPU_COUNT and len(seen) >= 8 * CPU_COUNT
    more_us = seen["observed_us"] - seen["planned_us"]
    assert (more_us >= -30).all(), "the loop is without its CPU while an event has it"
    assert more_us.median() < 100
    planned_us = config.events()["duration_ns"].sum() / 1e3
    assert table["injected_us"].sum() == pytest.approx(planned_us, rel=0.2)
    again = observe_loss(tmp_path, config, recorded_only=True)
    pd.testing.assert_frame_equal(again, table, check_categorical=False)
    with pytest.raises(InputError, match="shielded"):
        observe_loss(tmp_path, make_config([(0, "thread", 1, 1)]))


def test_an_event_loses_the_whole_of_each_gap_that_it_meets_and_others_are_the_machines():
    events = pd.DataFrame({"taken_ns": [100, 500], "end_ns": [200, 600], "ran_on": 0})
    gaps = pd.DataFrame({"start_ns": [50, 90, 190, 300], "end_ns": [60, 110, 230, 310], "cpu": 0})
    assert _lost_ns(events, gaps["start_ns"], gaps["end_ns"]).tolist() == [20 + 40, 0]
    assert meets_an_event(events, gaps).tolist() == [False, True, True, False]


class Lanes(Attachment):
    """Notes the injector's processes."""

    def __init__(self, injector: Injector):
        self.injector, self.pids = injector, {}

    def released(self, t0_ns: int) -> None:
        self.now = self.injector.pids

    def after(self, run: dict) -> dict:
        self.pids[run["run"]] = set(self.now[1:])
        return {}


@pytest.mark.long
@needs_realtime
@pytest.mark.skipif(doctor().capabilities.tracer == "detours", reason="no kernel tracer here")
def test_the_time_of_the_lanes_in_the_trace_is_that_of_the_log(tmp_path, binaries):
    rows = [(cpu, "irq", 5 + 12 * at, 2) for cpu in range(CPU_COUNT) for at in range(4)]
    rules, logs = Rules(shortest_us=0), tmp_path / "logs"
    injector = Injector(make_config(rows), "origin", rules=rules, log_folder=logs)
    lanes, tracer = Lanes(injector), Tracer(tmp_path / "traces")
    program = nbody(2000, 100, threads=2)  # outlasts the events on any machine
    cell = Cell("replayed", program, attachments=[injector, lanes, tracer])
    runs = finished(Campaign(tmp_path, [cell], runs=2).run())
    log, events = read_logs(logs, runs), read_traces(tmp_path / "traces", runs)
    for run, pids in lanes.pids.items():
        done = log[(log["run"] == run) & log["outcome"].isin(DONE)]
        mine = events[(events["run"] == run) & events["pid"].isin(pids)]
        assert len(done) and mine["duration_ns"].sum() == pytest.approx(
            noise_ns(done).sum(), rel=0.25
        )
