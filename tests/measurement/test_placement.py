"""Placement: real programs really placed, and real programs placed otherwise than their
configuration says.
"""

import os
from dataclasses import replace

import pytest

from nbhelpers.machine import topology
from nbhelpers.measurement import PlacementCheck, run_once
from nbhelpers.measurement.placement import WRONG, Thread, misplaced
from nbhelpers.workloads import Region, configurations, existing_configurations, nbody, sycl
from nbhelpers.workloads import program as workload_of

USABLE = tuple(sorted(os.sched_getaffinity(0)))
two_cpus = pytest.mark.skipif(len(USABLE) < 2, reason="needs two CPUs")


def program(threads: int = 2):
    return nbody(256, 2, threads=threads)


@two_cpus
@pytest.mark.parametrize(
    "configuration",
    existing_configurations(configurations(topology(), USABLE)),
    ids=lambda configuration: configuration.name,
)
def test_each_configuration_of_this_machine_takes_effect(configuration):
    row = run_once(configuration.of(program()), [PlacementCheck()])
    assert (row["status"], row["placement_ok"]) == ("ok", True), row["placement"]
    assert set(map(int, row["last_cpus"].split(","))) <= set(configuration.cpus)
    assert row["threads"] == configuration.threads


@two_cpus
def test_threads_that_roam_though_pinning_was_requested_are_excluded():
    row = run_once(replace(program(), config="TP"), [PlacementCheck()])
    assert row["status"] == WRONG
    assert row["placement_ok"] is False
    assert "threads share a place" in row["message"]


@two_cpus
def test_threads_that_are_held_though_they_should_roam_are_no_data():
    held = replace(
        program(), env=dict(program().env) | {"OMP_PROC_BIND": "close", "OMP_PLACES": "threads"}
    )
    assert run_once(held, [PlacementCheck()])["status"] == WRONG


def test_a_thread_beyond_its_cpus_or_one_too_few_is_seen():
    confined = replace(program(), config="RmHK", cpus=(1,))
    assert "beyond 1" in misplaced([Thread((0, 1), 0), Thread((1,), 1)], confined, True)
    assert "1 threads run; 2" in misplaced([Thread((1,), 1)], confined, True)
    assert misplaced([Thread((1,), 1), Thread((1,), 1)], confined, True) == ""
    assert misplaced([], confined, True) == "no thread was seen"


def test_pinned_threads_must_not_overlap_and_a_waiting_thread_of_sycl_is_let_be():
    pinned = replace(program(), config="TP", cpus=(0, 1, 2))
    assert "overlap" in misplaced([Thread((0, 1), 0), Thread((1, 2), 2)], pinned, True)
    assert misplaced([Thread((0,), 0), Thread((2,), 2)], pinned, True) == ""
    one, two = (
        replace(pinned, model="sycl", env={"DPCPP_CPU_NUM_CUS": count}) for count in ("1", "2")
    )
    assert misplaced([Thread((1,), 1), Thread((1,), 1)], one, True) == ""
    assert "1 threads run; 2" in misplaced([Thread((1,), 1)], two, True)


@pytest.mark.long
@pytest.mark.skipif(not sycl.available(), reason="the SYCL programs are not installed")
@pytest.mark.parametrize(
    "configuration",
    existing_configurations(configurations(topology(), USABLE)),
    ids=lambda configuration: configuration.name,
)
def test_each_configuration_takes_effect_on_a_sycl_program(configuration):
    row = run_once(configuration.of(nbody(64, 1, model="sycl")), [PlacementCheck()])
    assert (row["status"], row["placement_ok"]) == ("ok", True), row["placement"] + row["message"]


def test_a_program_that_waits_before_its_threads_exist_is_only_checked_for_its_confinement():
    early = replace(program(), config="TP", start="main", region=Region(), cpus=(0, 1))
    assert misplaced([Thread((0, 1), 0)], early, False) == ""


def test_a_promised_place_without_a_thread_is_seen():
    env = {"OMP_NUM_THREADS": "2", "OMP_PLACES": "{0},{2}"}
    pinned = replace(program(), config="TP", cpus=(0, 1, 2), env=env)
    assert misplaced([Thread((0,), 0), Thread((2,), 2)], pinned, True) == ""
    assert "no thread has the place 2" in misplaced(
        [Thread((0,), 0), Thread((1,), 1)], pinned, True
    )


def foreign(words: str, binaries, **env: str):
    """A program that waits before its threads exist, as other people's do."""
    command = [str(binaries / "stream"), *words.split()]
    return workload_of(command, name="foreign", model="omp", threads=2, env=env)


@two_cpus
def test_threads_of_other_peoples_programs_are_where_they_were_put(binaries):
    program = foreign("--elements 1000 --repeats 1", binaries)
    for configuration in existing_configurations(configurations(topology(), USABLE)):
        row = run_once(configuration.of(program), [PlacementCheck()])
        assert (row["status"], row["placement_ok"]) == ("ok", True), row["message"]
        assert len(row["placement"].split("+")) == (
            configuration.threads if configuration.base == "TP" else 1
        )
