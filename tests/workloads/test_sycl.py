"""The SYCL programs against their OpenMP twins and NumPy, where their threads may run, their cache,
and the message where something is missing.
"""

import os
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from nbhelpers.errors import InputError, RunError
from nbhelpers.measurement import Attachment
from nbhelpers.measurement.run import run_once
from nbhelpers.workloads import Workload, binary_folder, minife, nbody, program_path, stream, sycl
from nbhelpers.workloads._cpus import usable_cpus

REPOSITORY = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.long  # an optional part: 482 MB
extra = pytest.mark.skipif(not sycl.available(), reason="make sycl ACCEPT_LICENCE=yes")
two_cpus = pytest.mark.skipif(len(usable_cpus()) < 2, reason="needs two CPUs")


def run(*words, **options):
    options["env"] = {"PATH": os.environ["PATH"], **options.get("env", {})}
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=60, **options
    )


def program(name, *words, **options):
    return run(binary_folder() / "sycl" / name, *words, **options)


def values(output: str) -> dict[str, str]:
    line = output.splitlines()[-1]
    assert line.startswith("noisebook: ")
    return dict(word.split("=") for word in line.split()[2:])


@extra
class TestAnswers:
    @pytest.mark.parametrize(
        "words",
        [
            ("--bodies", 501, "--steps", 7),
            ("--bodies", 200, "--steps", 50, "--time-step", 2e-3, "--seed", 7),
        ],
    )
    def test_nbody_agrees_with_its_twin(self, binaries, words):
        ours = values(program("nbody", *words).stdout)
        twin = values(run(binaries / "nbody", *words).stdout)
        assert float(ours["energy"]) == pytest.approx(float(twin["energy"]), rel=1e-12)
        assert float(ours["energy_drift"]) == pytest.approx(float(twin["energy_drift"]), rel=1e-2)
        assert set(twin) <= set(ours) and ours["verified"] == "yes"

    @pytest.mark.parametrize(
        "words", ["nbody --bodies 100 --time-step 0.5", "minife --nx 10 --iterations 3"]
    )
    def test_a_wrong_result_is_not_verified(self, words):
        done = program(*words.split())
        assert done.returncode == 1
        assert values(done.stdout)["verified"] == "no" and "not verified" in done.stderr

    @pytest.mark.parametrize("elements", [1, 1000, 16384, 100_003])
    def test_stream_agrees_with_the_recursion(self, elements):
        done = program("stream", "--elements", elements, "--repeats", 7)
        a, b, c = 0.1, 0.2, 0.0
        for _ in range(7):
            c = a
            b = 0.4 * c
            c = a + b
            a = b + 0.4 * c
        line = values(done.stdout)
        assert float(line["sum"]) == pytest.approx(a * b * elements, rel=1e-12)
        assert line["verified"] == "yes"

    @pytest.mark.parametrize(
        "words", [("--nx", 12), ("--nx", 5, "--ny", 8, "--nz", 3), ("--nx", 2)]
    )
    def test_minife_agrees_with_its_twin(self, binaries, words):
        done, twin = program("minife", *words), values(run(binaries / "minife", *words).stdout)
        line = values(done.stdout)
        for key in ("rows", "nonzeros"):
            assert line[key] == twin[key]
        assert abs(int(line["iterations"]) - int(twin["iterations"])) <= 1
        assert float(line["matrix_norm"]) == pytest.approx(float(twin["matrix_norm"]), rel=1e-10)
        assert float(line["error"]) < 1e-6 and line["verified"] == "yes" and set(twin) <= set(line)
        assert line["iterations"] == line["series_values"]


class Threads(Attachment):
    """Where each thread may run, read by the harness while the program waits at the barrier."""

    def armed(self, pid):
        tasks = sorted(Path(f"/proc/{pid}/task").iterdir(), key=lambda task: int(task.name))
        self.allowed = [
            re.search(r"Cpus_allowed_list:\s*(\S+)", (task / "status").read_text())[1]
            for task in tasks
        ]


def placed(workload: Workload, config: str, **options) -> tuple[list[str], dict]:
    threads = Threads()
    row = run_once(workload.placed(config, **options), [threads])
    assert row["status"] == "ok", row
    return threads.allowed, row


SMALL = {
    "nbody": partial(nbody, 1000, 5, model="sycl"),
    "stream": partial(stream, 3, 100_000, model="sycl"),
    "minife": partial(minife, 8, model="sycl"),
}


@extra
@two_cpus
class TestPlacement:
    @pytest.mark.parametrize("name", SMALL)
    def test_all_threads_are_there_before_the_start_and_roam(self, binaries, name):
        allowed, row = placed(SMALL[name](), "Rm")
        mine = re.search(r"Cpus_allowed_list:\s*(\S+)", Path("/proc/self/status").read_text())[1]
        assert len(allowed) >= len(usable_cpus()) == row["threads"]
        assert set(allowed) == {mine} and "affinity_at_end" not in row

    @pytest.mark.parametrize("name", SMALL)
    def test_pinned_threads_have_a_cpu_each(self, binaries, name):
        allowed, row = placed(SMALL[name](), "TP", cpus=usable_cpus()[:2])
        assert sorted(allowed) == [str(cpu) for cpu in usable_cpus()[:2]]
        assert "affinity_at_end" not in row and row["model"] == "sycl" and row["config"] == "TP"

    def test_variables_of_the_user_do_not_change_a_placement(self, binaries, monkeypatch):
        monkeypatch.setenv("DPCPP_CPU_CU_AFFINITY", "close")
        monkeypatch.setenv("DPCPP_CPU_PLACES", "cores")
        monkeypatch.setenv("ONEAPI_DEVICE_SELECTOR", "opencl:cpu")
        allowed, _ = placed(nbody(1000, 5, model="sycl"), "Rm")
        assert len(set(allowed)) == 1 and allowed[0] not in map(str, usable_cpus())


def runtime_libraries() -> Path:
    folder = binary_folder() / "sycl"
    return (folder / (folder / ".runtime").read_text().strip()).resolve()


class TestFailures:
    def test_without_the_programs(self, tmp_path, monkeypatch):
        monkeypatch.setenv("NOISEBOOK_BIN", str(tmp_path))
        with pytest.raises(RunError, match="make sycl"):
            program_path(nbody(model="sycl").command[0])

    @extra
    def test_without_a_device(self, tmp_path):
        """A runtime whose OpenCL driver is gone."""
        for library in runtime_libraries().iterdir():
            if library.is_file() and library.name != "libintelocl.so":
                (tmp_path / library.name).symlink_to(library)
        shutil.copy(runtime_libraries() / "libsycl.so", tmp_path / "sycl")
        (tmp_path / "libsycl.so.9").unlink()
        (tmp_path / "sycl").rename(tmp_path / "libsycl.so.9")
        done = program("nbody", "--bodies", 64, env={"LD_LIBRARY_PATH": str(tmp_path)})
        assert done.returncode == 1
        assert "no CPU among the SYCL devices" in done.stderr
        assert "make sycl" in done.stderr


class TestEnvironment:
    def test_roaming_and_pinned(self, tmp_path):
        cpus = tuple(range(os.cpu_count()))
        roaming = sycl.placed_env(
            {"DPCPP_CPU_CU_AFFINITY": "close", "X": "1"}, "Rm", cpus, sysfs=tmp_path
        )
        assert roaming == {"X": "1", "NOISEBOOK_PLACES": "all"}
        pinned = sycl.placed_env(roaming, "TP", cpus, sysfs=tmp_path)
        assert pinned["NOISEBOOK_PLACES"] == ":".join(map(str, cpus))
        assert pinned["DPCPP_CPU_CU_AFFINITY"] == "close"
        assert sycl.placed_env(pinned, "Rm", cpus, sysfs=tmp_path) == roaming

    def test_a_part_of_the_machine(self, tmp_path):
        part = tuple(range(os.cpu_count() + 3))[3:]
        env = sycl.placed_env({"DPCPP_CPU_NUM_CUS": "900"}, "TP", (*part, 999), sysfs=tmp_path)
        assert env["DPCPP_CPU_NUM_CUS"] == str(len(part) + 1) and "DPCPP_CPU_CU_AFFINITY" not in env
        assert env["NOISEBOOK_PLACES"].split(":")[-1] == "999"
        with pytest.raises(InputError, match="does not pin"):
            sycl.placed_env({}, "TP", (*part, 999), ours=False, sysfs=tmp_path)

    @two_cpus
    def test_a_placement_replaces_another(self):
        workload = nbody(model="sycl")
        for before in ("TPHK", "RmHK"):
            for config in ("Rm", "TP", "RmHK", "TPHK"):
                assert workload.placed(before).placed(config) == workload.placed(config)

    @pytest.mark.parametrize(("threads", "places"), [("2", "0,4:1,5"), ("6", "0:4:1:5:2:6")])
    def test_siblings_share_a_place_while_there_are_cores(self, threads, places, tmp_path):
        """Four cores of two: CPU n and n + 4."""
        for cpu in range(8):
            folder = tmp_path / f"cpu{cpu}/topology"
            folder.mkdir(parents=True)
            (folder / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
        env = {"DPCPP_CPU_NUM_CUS": threads}
        env = sycl.placed_env(env, "TP", tuple(range(8)), sysfs=tmp_path)
        assert env["NOISEBOOK_PLACES"] == places
