"""Measuring beside the notebook: runs that are stopped and go on, mitigations that are undone."""

import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from nbhelpers.measurement import finished, recorded_runs
from nbhelpers.statistics import stopping
from nbhelpers.workbench import Session
from nbhelpers.workbench.measuring import Measuring
from nbhelpers.workbench.session import TRIAL

JITTER = "sh -c 'sleep 0.0$(($$ % 5 + 1))'"

pytestmark = pytest.mark.long


@pytest.fixture
def session(tmp_path):
    return Session(str(tmp_path / "bench"), JITTER, runs=6, layers=("software",), rounds=3)


def test_it_measures_as_many_runs_as_were_chosen(session):
    seen = []
    end = Measuring(session, on_run=seen.append).wait()
    assert (end.done, end.error, end.says) == (6, "", "6 of 6 runs")
    assert [at.done for at in seen[:6]] == [1, 2, 3, 4, 5, 6]
    assert len(session.measured()) == 6 and "page_faults" in session.metrics()


@pytest.fixture
def as_in_an_idle_kernel():
    """SIGINT is ignored between cells, which what is started inherits."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_stop_leaves_the_finished_runs_and_the_next_call_goes_on(session, as_in_an_idle_kernel):
    long = replace(session, runs=500)
    third = threading.Event()
    measuring = Measuring(long, on_run=lambda at: at.done >= 3 and third.set())
    assert third.wait(60)
    measuring.stop()
    end = measuring.wait()
    assert end.ended and not end.error and "stopped" in end.says
    before = session.measured()
    assert 3 <= len(before) == end.done < 500
    more = replace(session, runs=len(before) + 2)
    assert Measuring(more).wait().done == len(before) + 2
    after = more.measured()
    assert after["run"].tolist()[: len(before)] == before["run"].tolist()
    assert after["began_unix_s"].tolist()[: len(before)] == before["began_unix_s"].tolist()


def test_a_rule_of_another_kind_ends_it_where_it_is_content(tmp_path):
    session = Session(str(tmp_path), "sleep 0.001", rule="seen", runs=200, layers=())
    end = Measuring(session).wait()
    rule = stopping.RULES["seen"]
    needed = next(count for count in range(1, 200) if rule.decide([1.0] * count).stop)
    assert not end.error and end.done == needed == len(session.measured())


def test_what_goes_wrong_is_said(tmp_path):
    end = Measuring(Session(str(tmp_path), "false", runs=2, layers=())).wait()
    assert "failed 5 times in a row" in end.error


def test_a_mitigation_is_tried_in_turn_and_undone(session):
    aslr = Path("/proc/sys/kernel/randomize_va_space").read_text()
    personality = Path("/proc/self/personality").read_text()
    chosen = replace(session, mitigation="aslr-off")
    end = Measuring(chosen, TRIAL).wait()
    assert not end.error, end.error
    table = finished(recorded_runs(chosen.place / "trial-aslr-off"))
    assert table.groupby(["round", "cell"]).size().tolist() == [1] * 6
    assert set(table["mitigation"]) == {"none", "aslr-off"}
    assert Path("/proc/sys/kernel/randomize_va_space").read_text() == aslr
    assert Path("/proc/self/personality").read_text() == personality
    Measuring(session).wait()
    assert chosen.tried().loc["aslr-off", "verdict"] == "too few rounds"
