"""What the doctor promises of each stage: on machines that are described by hand, and in the words
that a page repeats.
"""

from dataclasses import replace

import pytest

from nbhelpers.machine import doctor
from nbhelpers.machine.checks import Capabilities, Doctor
from nbhelpers.promise import LEFT_OUT, REPLACED, promises

from .promised import STAGES

MAY = ("fifo", "rt_throttling_liftable", "perf_software", "perf_hardware")
ALL = Capabilities(tracer="osnoise", fair_server="absent", **dict.fromkeys(MAY, True))
NOTHING = Capabilities(tracer="detours", fair_server="locked", **dict.fromkeys(MAY, False))


@pytest.fixture(scope="module")
def checks():
    return doctor().checks


@pytest.mark.parametrize("can", [ALL, NOTHING], ids=["all", "nothing"])
def test_every_stage_has_a_line_and_every_part_its_own(can, checks):
    made = promises("smoke", found=Doctor(checks, can))
    assert list(dict.fromkeys(one.stage for one in made)) == STAGES
    for stage in STAGES:
        own = [one for one in made if one.stage == stage]
        assert len(own) == 1 or all(one.state in (REPLACED, LEFT_OUT) for one in own)


@pytest.mark.parametrize(
    "can, stage, parts",
    [
        (ALL, "10-trace-collection", {""}),
        (ALL, "37-worst-runs", {"time of the hypervisor"}),  # osnoise alone does not tell it
        (replace(ALL, tracer="tracepoints"), "37-worst-runs", {"kernel tracer"}),
        (NOTHING, "00-machine", {""}),
        (NOTHING, "30-injection", {"real-time scheduling", "hardware counters"}),
        (replace(ALL, rt_throttling_liftable=False), "30-injection", {"real-time throttling"}),
        (replace(ALL, fair_server="locked"), "30-injection", {"fair server"}),
        (replace(ALL, fair_server="liftable"), "30-injection", {""}),
        (replace(ALL, perf_hardware=False), "50-attribution", {"hardware counters"}),
    ],
)
def test_what_is_replaced_or_left_out_follows_from_what_the_machine_can(can, stage, parts, checks):
    made = promises("smoke", [stage], Doctor(checks, can))
    assert {one.part for one in made} == parts and all(one.sentence for one in made)


def test_asking_measures_nothing(tmp_path, monkeypatch, checks):
    monkeypatch.setenv("NOISEBOOK_STATE", str(tmp_path))
    promises("full", found=Doctor(checks, ALL))
    assert list(tmp_path.iterdir()) == [], "nothing is calibrated, the machine's lock not asked for"
