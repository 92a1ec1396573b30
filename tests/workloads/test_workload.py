"""Workload records, placements and programs by name."""

import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from nbhelpers.errors import InputError, RunError
from nbhelpers.workloads import Workload, nbody, program, workload
from nbhelpers.workloads._cpus import cores, keep_house
from nbhelpers.workloads.binaries import elf_interpreter, takes_preload


def test_record_is_hashable_and_normalised():
    one = Workload("w", "omp", ["a", "b"], env={"Z": 1, "A": "2"}, cpus=[3, 1, 1])
    assert (one.env, one.command, one.cpus) == ((("A", "2"), ("Z", "1")), ("a", "b"), (1, 3))
    assert one == Workload("w", "omp", ("a", "b"), env=one.env, cpus=(1, 3))
    assert len({one, replace(one)}) == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("command", ()),
        ("command", ("a\0",)),
        ("model", "openmp"),
        ("start", "now"),
        *(("timeout_s", value) for value in (0, float("nan"), float("inf"))),
        ("outcome", "speed"),
        *(("cpus", value) for value in ((), (-1,))),
        *(("env", value) for value in ({"A=B": "1"}, {"A": "x\0y"})),
    ],
)
def test_fields_that_cannot_be_used(field, value):
    with pytest.raises(InputError, match="nbody"):
        replace(nbody(), **{field: value})


def test_a_core_each_before_two_threads_share_one(monkeypatch):
    monkeypatch.setattr(workload, "usable_cpus", lambda: tuple(range(8)))
    monkeypatch.setattr(
        workload, "cores", lambda cpus: [tuple(c for c in cpus if c % 4 == k) for k in range(4)]
    )  # 2 threads a core
    places = "{0},{1},{2},{3},{4},{5},{6},{7}"
    assert dict(nbody().placed("TP").env) == {"OMP_PLACES": places, "OMP_PROC_BIND": "close"}
    assert dict(nbody(threads=9).placed("TP").env)["OMP_NUM_THREADS"] == "8"
    halves = [cpu for pair in ((0, 4), (1, 5)) for cpu in pair]
    assert dict(nbody().placed("TP", cpus=halves).env)["OMP_PLACES"] == "{0},{1},{4},{5}"


@pytest.mark.parametrize(
    ("count", "share", "reserved"), [(2, 0.125, 1), (8, 0.25, 2), (12, 0.125, 2), (3, 0.25, 1)]
)
def test_housekeeping_shares(count, share, reserved, monkeypatch):
    """Persson et al. 2025, sec. 5: 12.5 % and 25 % of the cores; on their 8 and 16 cores 1, 2 and
    2, 4.
    """
    monkeypatch.setattr("nbhelpers.workloads._cpus.cores", lambda cpus: [(cpu,) for cpu in cpus])
    assert keep_house(tuple(range(count)), share, "RmHK") == tuple(range(reserved, count))


def test_housekeeping_takes_whole_cores(tmp_path):
    for cpu in range(8):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
    assert cores(tuple(range(8)), tmp_path) == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert cores((1, 5, 6), tmp_path) == [(1, 5), (6,)]
    assert cores((1, 9), tmp_path / "hidden") == [(1,), (9,)]


def test_placements_that_cannot_be():
    with pytest.raises(InputError, match="no placement 'Roam'"):
        nbody().placed("Roam")
    with pytest.raises(InputError, match="at least 2 cores"):
        nbody().placed("RmHK", cpus=(0,))
    with pytest.raises(InputError, match="CPUs 9999"):
        nbody().placed("TP", cpus=(0, 9999))
    with pytest.raises(InputError, match="how to pin"):
        program("true").placed("TP")
    assert program("true").placed("Rm", cpus=(0,)).cpus == (0,)


def test_external_commands(tmp_path):
    assert program("sh -c 'exit 3'").command[1:] == ("-c", "exit 3")
    assert program(["echo", "a b"]).name == "echo" and program("echo", name="other").name == "other"
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o755)
    assert program(str(script)).start == "exec" and program([sys.executable]).start == "main"


@pytest.mark.parametrize("bad", ["", "'", "no-such-program-anywhere", "/no/such"])
def test_commands_that_cannot_be(bad):
    with pytest.raises((InputError, RunError)):
        program(bad)


def test_static_programs_wait_before_they_are_executed(binaries, tmp_path):
    assert takes_preload(binaries / "nbody")
    source = tmp_path / "static.c"
    source.write_text("int main(void) { return 0; }")
    if subprocess.run(
        ["cc", "-static", source, "-o", tmp_path / "static"], capture_output=True
    ).returncode:
        pytest.skip("this machine has no static C library")
    assert elf_interpreter(tmp_path / "static") is None and not takes_preload(tmp_path / "static")
    assert program(str(tmp_path / "static")).start == "exec"


def test_interpreter_agrees_with_readelf(binaries):
    if not shutil.which("readelf"):
        pytest.skip("there is no readelf (binutils) on this machine")
    words = ["readelf", "-l", binaries / "nbody"]
    output = subprocess.run(words, capture_output=True, text=True).stdout
    assert f"interpreter: {elf_interpreter(binaries / 'nbody')}]" in output


def test_privileged_programs_ignore_preloads(tmp_path):
    copy = tmp_path / "true"
    shutil.copy(shutil.which("true"), copy)
    assert takes_preload(copy)
    copy.chmod(0o4755)
    assert not takes_preload(copy)


def test_damaged_elf_files(tmp_path):
    whole = open(sys.executable, "rb").read(4096)
    for cut in (0, 4, 5, 63, 64, 200):
        (tmp_path / "cut").write_bytes(whole[:cut])
        assert elf_interpreter(tmp_path / "cut") is None
