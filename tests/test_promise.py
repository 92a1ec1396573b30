"""What the doctor promises of each stage: on machines that are described by hand, and in the words
that a page repeats.
"""

from dataclasses import replace

import pytest

from nbhelpers.machine import doctor
from nbhelpers.machine.checks import Capabilities, Doctor
from nbhelpers.promise import FULL, LEFT_OUT, REPLACED, promises, replaced_or_left_out, text
from nbhelpers.study import Header, Study

from .promised import STAGES

MAY = ("fifo", "rt_throttling_liftable", "perf_software", "perf_hardware")
ALL = Capabilities(tracer="osnoise", fair_server="absent", **dict.fromkeys(MAY, True))
NOTHING = Capabilities(tracer="detours", fair_server="locked", **dict.fromkeys(MAY, False))


@pytest.fixture(scope="module")
def checks():
    return doctor().checks


def of(profile, capabilities, checks):
    return promises(profile, found=Doctor(checks, capabilities))


def test_every_stage_has_a_line_and_every_part_its_own(checks):
    for capabilities in (ALL, NOTHING):
        made = of("smoke", capabilities, checks)
        stages = [promise.stage for promise in made]
        assert sorted(set(stages)) == list(dict.fromkeys(stages)) and len(set(stages)) == len(
            STAGES
        )
        for stage in set(stages):
            own = [promise for promise in made if promise.stage == stage]
            assert len(own) == 1 or all(promise.state in (REPLACED, LEFT_OUT) for promise in own)


def test_what_a_machine_with_everything_lacks_is_only_what_is_not_installed(checks):
    tracing = [
        promise
        for promise in of("smoke", ALL, checks)
        if promise.part in ("kernel tracer", "real-time scheduling", "hardware counters")
    ]
    assert tracing == []


def test_an_ordinary_user_is_told_of_the_loop_of_the_scheduler_and_of_the_counters(checks):
    made = of("smoke", NOTHING, checks)
    parts = {
        promise.stage: {one.part for one in made if one.stage == promise.stage} for promise in made
    }
    assert {"real-time scheduling", "hardware counters"} <= parts["30-injection"]
    assert "time of the hypervisor" in parts["37-worst-runs"] and parts["00-machine"] == {""}


def test_osnoise_alone_does_not_tell_the_hypervisor(checks):
    made = of("smoke", ALL, checks)
    assert [one.state for one in made if one.part == "time of the hypervisor"] == [LEFT_OUT]


def test_the_text_is_a_line_a_stage_with_every_reason_once_and_fits_a_terminal(checks):
    found = Doctor(checks, NOTHING)
    told = text("full", found)
    assert max(map(len, told.splitlines())) <= 100
    words = " ".join(told.split())
    for promise in promises("full", found=found):
        assert promise.stage in words and (
            promise.state == FULL or words.count(" ".join(promise.sentence.split())) == 1
        ), promise
        assert " ".join(promise.fix.split()) in words


def test_the_paper_says_what_concerned_which_stages(checks):
    told = replaced_or_left_out("smoke", "90-paper", Doctor(checks, NOTHING))
    assert any(
        "SCHED_OTHER" in sentence and "(stage 30, 35, 37, 40, " in sentence for sentence in told
    )
    assert len(told) == len(set(told))


def test_the_top_of_a_page_repeats_the_promises_of_its_stage():
    page = Header(Study("60-openmp-variability", "smoke"))._repr_html_()
    made = promises("smoke", ["60-openmp-variability"])
    from html import escape

    assert all(escape(str(promise)) in page for promise in made if promise.state != FULL)


def test_a_check_without_a_mend_leaves_the_sentence_alone(checks):
    without = tuple(replace(check, fix="") for check in checks)
    made = promises("smoke", ["10-trace-collection"], Doctor(without, NOTHING))
    assert all("To change that" not in str(promise) for promise in made)


def test_asking_measures_nothing(tmp_path, monkeypatch, checks):
    monkeypatch.setenv("NOISEBOOK_STATE", str(tmp_path))
    of("full", ALL, checks)
    assert list(tmp_path.iterdir()) == [], (
        "nothing was calibrated, and the machine's lock was not asked for"
    )
