"""Which probe a program gets, and what its samples say."""

import os
import shutil
import subprocess

import pandas as pd
import pytest

from nbhelpers.measurement import run_once
from nbhelpers.speed import SpeedProbe, read_speed
from nbhelpers.speed.samples import KINDS, content_of
from nbhelpers.workloads import nbody, program

pytestmark = pytest.mark.usefixtures("binaries", "nothing_left")
LOOP = "int main(void) { for (volatile long i = 0; i < 300000000; i++); }"


@pytest.fixture(scope="module")
def loop(tmp_path_factory):
    """A program that is linked statically."""
    if not shutil.which("gcc"):
        pytest.skip("gcc is not here")
    path = tmp_path_factory.mktemp("loop") / "loop"
    words = ["gcc", "-static", "-x", "c", "-", "-o", str(path)]
    if subprocess.run(words, input=LOOP, text=True, capture_output=True).returncode:
        pytest.skip("gcc cannot link statically here")
    return path


def sampled(workload, folder):
    probe = SpeedProbe(folder)
    try:
        row = run_once(workload, [probe])
    finally:
        probe.close()
    assert row["status"] == "ok", row["message"]
    return row, probe, read_speed(folder, pd.DataFrame([row]))


def test_inside(tmp_path):
    row, probe, table = sampled(nbody(4000, threads=2), tmp_path)
    assert row["speed_probe"] == "inside" and row["speed_samples"] >= len(table) > 4
    assert probe.notes == () and table["late_ns"].isna().all()
    assert table["thread"].nunique() == 2 and (table["thread"] > 0).all()
    assert (table["cpu_ns"] <= table["wall_ns"]).all()
    # a sample each 24 ms of a thread's CPU time, at a tick
    assert 0.012e9 < table["cpu_ns"].median() < 0.04e9


def test_beside_a_static_program(tmp_path, loop):
    workload = program([str(loop)])
    row, probe, table = sampled(workload, tmp_path)
    assert row["speed_probe"] == "beside" and "from beside" in " ".join(probe.notes)
    cpus = sorted(os.sched_getaffinity(0))
    assert set(table["cpu"]) == set(cpus) and (table["thread"] == -1 - table["cpu"]).all()
    assert (table["place"] == "beside").all() and table["cpu_ns"].isna().all()
    assert (table["late_ns"] >= 0).all()
    expected = row["wall_seconds"] / 0.016 * len(cpus)
    assert 0.5 * expected < len(table) <= expected + len(cpus)
    assert table[["latency", "throughput", "memory"]].gt(0).all(axis=None)


def test_beside_a_privileged_program(tmp_path, loop):
    path = tmp_path / "privileged"
    path.write_bytes(open(shutil.which("sleep"), "rb").read())
    path.chmod(0o4755)
    row, _, table = sampled(program([str(path), "0.2"]), tmp_path)
    assert row["speed_probe"] == "beside" and len(table) > 4


def test_the_two_probes_do_the_same_works(tmp_path, loop):
    """The least times of both agree: the program inside is the same loop, linked dynamically."""
    dynamic = tmp_path / "dynamic"
    subprocess.run(["gcc", "-x", "c", "-", "-o", dynamic], input=LOOP.encode(), check=True)
    least = {}
    for kind, path in {"inside": dynamic, "beside": loop}.items():
        row, _, _ = sampled(program([str(path)]), tmp_path / kind)
        assert row["speed_probe"] == kind
        samples = content_of(tmp_path / kind / "run-000000.speed.gz")[1]
        least[kind] = [samples[f"{work}_ns"].min() for work in KINDS]
    assert least["beside"] == pytest.approx(least["inside"], rel=0.4)
