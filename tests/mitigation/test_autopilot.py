"""The autopilot finds a planted cause and what fixes it, says so when there is none, and goes on
where it was stopped.
"""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribution import explain
from nbhelpers.errors import InputError
from nbhelpers.files import write_json
from nbhelpers.measurement import finished, recorded_runs
from nbhelpers.mitigation import autopilot, mitigations
from nbhelpers.mitigation.report import found_factors
from nbhelpers.reading import read_json
from nbhelpers.statistics import stopping

from ..record import pack

STORM = r"""
/* The planted cause: in half of the runs a block goes back to the kernel again and again,
   and each time every page of it faults anew. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
enum { SIZE = 4 << 20, TIMES = 25 };
static volatile unsigned sum;
static char *touched(char *block)
{
    for (long at = 0; at < SIZE; at += 4096)
        block[at] = (char)at;
    return block;
}
int main(void)
{
    struct timespec now;
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    clock_gettime(CLOCK_MONOTONIC, &now);
    int storm = (getpid() ^ now.tv_nsec >> 10) & 1;
    for (unsigned i = 0; i < 5000000; i++)
        sum += i;
    for (int i = 0; storm && i < TIMES; i++)
        free(touched(malloc(SIZE)));
    return 0;
}
"""

LOOP = """
import sys
from nbhelpers.mitigation import autopilot
autopilot(["sleep", "0.02"], 20, folder=sys.argv[1], metrics=(), candidates=["statistics-rarely"],
          progress=lambda sentence: print(sentence, file=sys.stderr, flush=True))
"""


@pytest.fixture(scope="module")
def storm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("storm")
    (folder / "storm.c").write_text(STORM)
    command = ["gcc", "-O1", "-fno-builtin-malloc", "-o", folder / "storm", folder / "storm.c"]
    subprocess.run(command, check=True)
    return str(folder / "storm")


@pytest.mark.alone
@pytest.mark.long
def test_finds_the_storm_of_page_faults_and_what_ends_it(storm, binaries, tmp_path, nothing_left):
    said = []
    report = autopilot(
        storm, 20, folder=tmp_path, rule=stopping.Count(40), risk="none", progress=said.append
    )
    assert report.explanation.found and "page-faults" in report.factors.index[:2], report.summary
    allocators = {"malloc-keeps-memory", "jemalloc", "tcmalloc", "mimalloc"}
    assert allocators & set(report.helped), report.summary
    assert report.tried.loc[report.helped[0], "mean_ratio"] < 0.9
    factor = report.tried.loc[report.helped[0], "factor"]
    assert factor in ("page-faults", "allocator", "system-calls")
    treated = report.trials["mitigation"] != "none"
    assert treated.sum() == (report.trials["cell"] != "baseline").sum() >= 12
    assert any("proving that" in sentence for sentence in said) and "counters" in report.layers
    assert "helps, shown twice" in report.summary
    seeds = {read_json(path)["seed"] for path in tmp_path.glob("*/campaign.json")}
    assert seeds == {1, 2}, "what is measured again has an order of its own"


@pytest.mark.long
def test_goes_on_where_it_stopped_and_gives_the_same_answer(binaries, tmp_path):
    arguments = dict(
        folder=tmp_path, rule=stopping.Count(30), candidates=["policy-batch"], metrics=()
    )
    first = autopilot("sleep 0.005", 6, **arguments)
    before = {path: path.read_bytes() for path in tmp_path.rglob("runs.jsonl")}
    again = autopilot("sleep 0.005", 6, **arguments)
    assert {path: path.read_bytes() for path in tmp_path.rglob("runs.jsonl")} == before
    pd.testing.assert_frame_equal(first.tried, again.tried)
    other = autopilot("sleep 0.005", 6, **arguments | {"candidates": ["aslr-off"]})
    assert set(other.tried.index) == {"aslr-off"}, "tried beside those that were"
    last = autopilot("sleep 0.005", 6, **arguments)
    pd.testing.assert_frame_equal(first.tried, last.tried)
    assert last.seconds > first.seconds, "the budget is for all calls into the same folder together"
    elsewhere = arguments | {"folder": tmp_path / "elsewhere"}
    with pytest.raises(InputError, match="step 'first' of the autopilot was not recorded"):
        autopilot("sleep 0.005", 6, **elsewhere, recorded_only=True)
    for path in before:
        pack(path, path)
        path.unlink()
    # what is only read needs neither the program nor the mitigation
    (tmp_path / "trial-policy-batch" / "campaign.json").unlink()
    recorded = autopilot("sleep 0.005", 6, **arguments, recorded_only=True)
    pd.testing.assert_frame_equal(first.tried, recorded.tried)
    assert recorded.seconds == last.seconds and recorded.summary == last.summary
    state = tmp_path / "autopilot.json"
    decisions = read_json(state)
    write_json(state, decisions | {"trial-policy-batch": {"rounds": 1000}})
    short = autopilot("sleep 0.005", 6, **arguments, recorded_only=True)
    assert short.tried.empty
    assert "fewer than 1000 runs" in short.not_tried.loc["policy-batch", "reason"]


@pytest.mark.long
def test_ctrl_c_leaves_the_machine_as_it_was(binaries, tmp_path):
    path = Path("/proc/sys/vm/stat_interval")
    if not mitigations()["statistics-rarely"].possible():
        pytest.skip("this user may not change sysctls")
    before = path.read_text()
    child = subprocess.Popen(
        [sys.executable, "-c", LOOP, str(tmp_path)], stderr=subprocess.PIPE, text=True
    )
    for line in child.stderr:
        if line.startswith("trying"):
            break
    until = time.monotonic() + 30
    while path.read_text() == before and child.poll() is None and time.monotonic() < until:
        time.sleep(0.002)
    child.send_signal(signal.SIGINT)
    _, complaint = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in complaint and path.read_text() == before
    assert child.returncode in (1, 130, -signal.SIGINT)
    assert list(tmp_path.glob("trial-*/runs.jsonl"))


def test_says_that_nothing_was_found_and_then_tries_only_what_it_is_asked_to(binaries, tmp_path):
    report = autopilot(
        "sleep 0.005", 20, folder=tmp_path, rule=stopping.Count(30), metrics=("software",)
    )
    if report.explanation.found:
        pytest.skip(f"others made this machine noisy: {report.explanation.summary}")
    assert report.factors.empty and report.tried.empty
    assert "No mitigation was tried" in report.summary
    assert len(finished(recorded_runs(tmp_path / "layers"))) >= 24
    assert "set of counters" in report.layers


def test_what_can_not_be_tried_is_listed_with_the_reason(binaries, tmp_path):
    words = {
        "openmp-passive": "no OpenMP runtime",
        "policy-fifo": "risk is high",
        "boot-isolation": "can't be automated",
        "pin-threads": "serial",
    }
    report = autopilot(
        "sleep 0.005",
        8,
        folder=tmp_path,
        rule=stopping.Count(30),
        metrics=(),
        risk="none",
        candidates=list(words),
    )
    reasons = report.not_tried["reason"].to_dict()
    assert report.tried.empty and set(reasons) == set(words)
    assert not [name for name, word in words.items() if word not in reasons[name]]
    assert "isolcpus" in report.not_tried.loc["boot-isolation", "fix"]


def test_each_group_that_separates_on_its_own_is_a_factor_to_try():
    random = np.random.default_rng(8)
    slow = random.permutation(np.arange(80) % 4 == 0)
    counters = {
        "irq_RES": 400 * slow,
        "minor_faults": slow * (150 + random.lognormal(5, 1.2, 80)),
        "major_faults": 0,
    }
    runs = pd.DataFrame(
        {name: random.poisson(50, 80) + extra for name, extra in counters.items()}
        | {"seconds": 0.1 + 0.03 * slow + 0.001 * random.random(80)}
    )
    explanation = explain(runs, cutoff=0.11)
    both = {"reschedule-interrupts", "page-faults"}
    assert set(found_factors(explanation).index) == both
    p_values = [0.01, *[0.2] * (len(explanation.factors) - 1)]
    weak = replace(explanation, factors=explanation.factors.assign(p_value=p_values))
    assert len(found_factors(weak)) == 1
