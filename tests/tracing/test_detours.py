"""The detour loop: what it saw against what was done to it, its file, and its use as a stand-in."""

import gzip
import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError, LostEvents, RunError
from nbhelpers.measurement import Campaign, Cell, run_once
from nbhelpers.tracing import (
    DetourTracer,
    Tracer,
    detour_workload,
    read_detours_run,
    read_traces,
    record_detours,
)
from nbhelpers.workloads import binary_folder, nbody, program

PROGRAM = binary_folder() / "detours"
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="workloads are not built: make env")


def test_detours_of_this_machine():
    cpus = sorted(os.sched_getaffinity(0))
    detours = record_detours(0.1)
    assert list(detours.columns) == ["cpu", "start_ns", "duration_ns", "end_ns"] and set(
        detours.cpu
    ) <= set(cpus)
    assert (detours.duration_ns > detours.attrs["threshold_ns"]).all() and 0 < detours.attrs[
        "resolution_ns"
    ] < detours.attrs["threshold_ns"]
    for _, one in detours.groupby("cpu"):
        assert (one.start_ns.to_numpy()[1:] >= one.end_ns.to_numpy()[:-1]).all()
    lost_s = detours.duration_ns.sum() / 1e9 / len(cpus)
    assert detours.attrs["seconds"] - lost_s == pytest.approx(
        0.1, abs=0.001
    )  # fixed work: the quantum, undisturbed
    assert detours.attrs["overhead"] == pytest.approx(lost_s / detours.attrs["seconds"])


def test_fixed_time_is_a_time():
    detours = record_detours(0.1, fixed="time")
    # the last detour may reach over the end
    assert 0 <= detours.attrs["seconds"] - 0.1 < 0.05 + detours["duration_ns"].max() / 1e9
    with pytest.raises(InputError, match="fixed"):
        record_detours(0.1, fixed="count")


def said(*words):
    """What the program prints, word by word, and its exit status."""
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=20)
    return dict(word.split("=", 1) for word in done.stdout.split() if "=" in word), done


def test_both_clocks_agree():
    """The monotonic clock costs more than the ticks it is made of."""
    words = {clock: said("--seconds", "0.02", "--clock", clock) for clock in ("monotonic", "tsc")}
    if words["tsc"][1].returncode == 2:
        pytest.skip("the kernel does not keep time by the TSC here")
    resolution = {clock: float(each["resolution_ns"]) for clock, (each, _) in words.items()}
    assert 1 < resolution["tsc"] <= resolution["monotonic"] < 1000
    for each, _ in words.values():
        assert each["verified"] == "yes" and int(each["end_ns"]) - int(each["start_ns"]) >= 20e6


@pytest.mark.alone
def test_being_stopped_is_seen(tmp_path):
    """A program that is stopped for 50 ms sees a detour of that length on each CPU, and takes as
    much longer.
    """
    process = subprocess.Popen(
        [PROGRAM, "--seconds", "0.4", "--out", tmp_path / "d"], stdout=subprocess.PIPE, text=True
    )
    threads = Path(f"/proc/{process.pid}/task")

    def stats():  # state, …, user time in ticks of 10 ms
        return [path.read_text().rpartition(") ")[2].split() for path in threads.glob("*/stat")]

    while (
        len(stats()) < len(os.sched_getaffinity(0)) or min(int(words[11]) for words in stats()) < 5
    ):
        time.sleep(0.01)
    process.send_signal(signal.SIGSTOP)
    while {words[0] for words in stats()} != {"T"}:
        time.sleep(0.001)
    begin = time.monotonic_ns()
    time.sleep(0.05)
    process.send_signal(signal.SIGCONT)
    stopped_ns = time.monotonic_ns() - begin
    output, _ = process.communicate()
    words = dict(word.split("=") for word in output.split() if "=" in word)
    assert words["verified"] == "yes" and float(words["seconds"]) > 0.4 + stopped_ns / 1e9 * 0.9
    path = tmp_path / "run-000000.detours.gz"
    line = json.dumps({"format": "noisebook detours 1", "run": 0}).encode() + b"\n"
    path.write_bytes(gzip.compress(line + (tmp_path / "d").read_bytes()))
    longest = read_detours_run(path).groupby("cpu").duration_ns.max()
    assert len(longest) == int(words["threads"]) and (longest > 0.9 * stopped_ns).all()


@pytest.fixture
def traced(tmp_path):
    row = run_once(detour_workload(0.05, tmp_path), [DetourTracer(tmp_path)], run=2)
    return row, tmp_path / "run-000002.detours.gz"


def test_a_traced_run(traced, tmp_path):
    row, path = traced
    assert row["status"] == "ok" and row["seconds"] >= 0.05
    assert row["detours"] == row["trace_events"] and row["trace_lost"] == 0
    events = read_traces(tmp_path, pd.DataFrame([row]))
    assert len(events) == row["trace_events"] and set(events.run) == {2}
    same = events[["kind", "source", "policy", "priority", "interrupted"]].drop_duplicates()
    assert same.values.tolist() == [["hardware", "detour", "SCHED_OTHER", 0, "workload"]]
    assert events.duration_ns.sum() <= row["detour_ns"]
    assert events.end_ns.max() <= row["end_ns"] - row["start_ns"]
    assert not (tmp_path / "detours.bin").exists()
    content = gzip.decompress(path.read_bytes()).partition(b"\n")[2]
    records = np.frombuffer(content, "<i8", -1, 56 + row["threads"] * 56).reshape(-1, 2)
    assert sorted(zip(events.start_ns, events.duration_ns)) == sorted(map(tuple, records.tolist()))


def test_other_workloads_cannot_be_traced_from_user_space(tmp_path):
    with pytest.raises(InputError, match="stand_in"):
        run_once(program(["true"]), [DetourTracer(tmp_path)])


def test_the_stand_in_takes_as_long_as_the_workload(tmp_path):
    workload = nbody(600, 5).placed("Rm", tuple(sorted(os.sched_getaffinity(0)))[:1])
    tracer = Tracer(tmp_path, source="detours")
    stand_in = tracer.stand_in(workload)
    assert stand_in.cpus == workload.cpus and stand_in == tracer.stand_in(workload)
    assert tracer.stand_in(workload, seconds=0.25).command[2] == "0.25"
    assert run_once(stand_in, [tracer])["threads"] == 1
    assert Tracer(tmp_path, source="tracepoints").stand_in(workload) is workload
    with pytest.raises(RunError, match="exit 1"):
        tracer.stand_in(program(["false"]))


def test_a_campaign_without_the_kernels_tracers_goes_on_and_is_read_again(tmp_path):
    """The loop also runs untraced, into a folder that no tracer has made; its length is the same in
    each later process.
    """

    def campaign(source, runs, recorded_only=False):
        tracer = Tracer(tmp_path / "traces", source, recorded_only=recorded_only)
        stand_in = tracer.stand_in(nbody(1000, 5))
        return Campaign(
            tmp_path,
            [Cell("untraced", stand_in), Cell("traced", stand_in, attachments=[tracer])],
            runs=runs,
            recorded_only=recorded_only,
        ).run()

    first, again = campaign("detours", 1), campaign("detours", 2)
    assert len(first) == 2 and len(again) == 4 and set(again.status) == {"ok"}
    assert again.run[:2].tolist() == first.run.tolist()
    assert len(campaign("auto", 2, recorded_only=True)) == 4
    others = [path.name for path in (tmp_path / "traces").glob("*[!z]")]
    assert others == ["stand-in.json"]
    with pytest.raises(InputError, match="no traces were recorded"):
        Tracer(tmp_path / "elsewhere", recorded_only=True)


def test_no_room_for_the_detours(tmp_path):
    folder = tmp_path / "t"
    workload = detour_workload(0.03, folder)
    small = replace(workload, command=(*workload.command, "--capacity", "2", "--threshold", "31"))
    row = run_once(small, [DetourTracer(folder)], run=1)
    assert row["trace_lost"] > 0 and row["status"] != "ok"
    with pytest.raises(LostEvents, match="run 1: .*no room"):
        read_traces(folder, pd.DataFrame([row | {"status": "ok"}]))


@pytest.mark.parametrize(
    "words", ["--seconds 0", "--seconds", "--cpus 99999", "--cpus ", "--cpus 1-0", "--nothing 1"]
)
def test_bad_arguments(words):
    _, done = said(*words.split(" "))
    assert done.returncode == 2 and "usage" in done.stderr


def test_a_failing_loop_is_told(tmp_path):
    with pytest.raises(RunError, match="usage"):
        record_detours(-1)
    words, done = said("--seconds", "0.001", "--out", tmp_path / "no/such")
    assert done.returncode == 1 and words["verified"] == "no"
    assert "No such file" in done.stderr


def test_a_threshold_below_the_clocks_own_step_ends():
    words, done = said("--seconds", "0.001", "--threshold", "1")
    assert done.returncode == 1 and words["verified"] == "no"


@pytest.mark.parametrize("cut", [10, 60, 100, -5])
def test_truncated_files(traced, cut):
    path = traced[1]
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())[:cut]))
    with pytest.raises(InputError, match=str(path)):
        read_detours_run(path)
