"""The SYCL programs against their OpenMP twins and NumPy, where their threads may run, their cache,
and the message where something is missing.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nbhelpers.errors import InputError, RunError, Unavailable
from nbhelpers.measurement import Attachment
from nbhelpers.measurement.run import run_once
from nbhelpers.workloads import Workload, binary_folder, program_path, sycl, sycl_env
from nbhelpers.workloads._cpus import usable_cpus

REPOSITORY = Path(__file__).resolve().parents[2]
HERE = sycl.available()
extra = pytest.mark.skipif(not HERE, reason=f"{HERE.reason}: {HERE.fix}")
AHEAD = shutil.which("icpx") or shutil.which("acpp")
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


def assert_not_verified(done):
    assert done.returncode == 1
    assert values(done.stdout)["verified"] == "no" and "not verified" in done.stderr


def series(output: str) -> dict[str, list[float]]:
    found = {}
    for line in output.splitlines():
        if line.startswith("noisebook-series: "):
            _, name, unit, *numbers = line.split()
            assert unit == "s"
            found.setdefault(name, []).extend(map(float, numbers))
    return found


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

    def test_nbody_gives_the_same_bits_on_any_number_of_threads_and_local_size(self):
        lines = [
            values(
                program(
                    "nbody",
                    "--bodies",
                    501,
                    "--steps",
                    5,
                    "--local-size",
                    local,
                    env={"DPCPP_CPU_NUM_CUS": str(threads)},
                ).stdout
            )
            for threads, local in ((1, 64), (2, 16), (2, 1024))
        ]
        assert len({line["checksum"] for line in lines}) == 1
        assert (
            values(program("nbody", "--bodies", 501, "--steps", 5, "--seed", 2).stdout)["checksum"]
            != lines[0]["checksum"]
        )

    def test_nbody_refuses_a_result_that_drifts(self):
        done = program("nbody", "--bodies", 100, "--time-step", 0.5)
        assert_not_verified(done)

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
        assert (
            float(line["sum"]) == pytest.approx(a * b * elements, rel=1e-12)
            and line["verified"] == "yes"
        )

    def test_stream_keeps_each_repetition(self, binaries):
        words = ("--elements", 50_000, "--repeats", 9)
        done, twin = program("stream", *words), values(run(binaries / "stream", *words).stdout)
        line, times = values(done.stdout), series(done.stdout)
        assert {name: len(found) for name, found in times.items()} == dict.fromkeys(
            ("copy", "mul", "add", "triad", "dot"), 9
        )
        assert line["series_values"] == "45" and set(twin) <= set(line)
        assert sum(map(sum, times.values())) == pytest.approx(float(line["seconds"]), rel=0.05)
        for name, found in times.items():
            assert float(line[f"{name}_min_s"]) == pytest.approx(min(found), abs=1e-9)
            assert float(line[f"{name}_avg_s"]) == pytest.approx(np.mean(found), abs=1e-9)

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
        assert (
            len(series(done.stdout)["iteration"])
            == int(line["iterations"])
            == int(line["series_values"])
        )

    def test_minife_gives_the_same_answer_on_any_number_of_threads(self):
        lines = [
            values(program("minife", "--nx", 14, env={"DPCPP_CPU_NUM_CUS": str(threads)}).stdout)
            for threads in (1, 2)
        ]
        assert (
            len(
                {
                    (line["iterations"], line["residual"], line["error"], line["matrix_norm"])
                    for line in lines
                }
            )
            == 1
        )

    def test_minife_refuses_a_result_that_did_not_converge(self):
        done = program("minife", "--nx", 10, "--iterations", 3)
        assert_not_verified(done)

    @pytest.mark.parametrize(
        "name, words",
        [
            ("nbody", ["--bodies", "3.5"]),
            ("nbody", ["--nope"]),
            ("stream", ["--elements", "0"]),
            ("stream", ["7"]),
            ("minife", ["--nx", "401"]),
            ("minife", ["--tolerance", "nan"]),
        ],
    )
    def test_usage(self, name, words):
        done = program(name, *words)
        assert done.returncode == 2 and f"usage: {name}" in done.stderr and not done.stdout


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
    "nbody": lambda **options: sycl.nbody(1000, 5, **options),
    "stream": lambda **options: sycl.stream(3, 100_000, **options),
    "minife": lambda **options: sycl.minife(8, **options),
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

    @pytest.mark.parametrize("config", ["RmHK", "TPHK"])
    def test_housekeeping_leaves_a_cpu_out(self, binaries, config):
        cpus = usable_cpus()[:2]
        allowed, row = placed(sycl.nbody(1000, 5), config, cpus=cpus)
        assert set(allowed) == {str(cpus[1])} and row["threads"] == 1

    def test_fewer_threads_are_as_many(self, binaries):
        allowed, row = placed(sycl.nbody(4000, 10, threads=1), "TP")
        assert row["threads"] == 1 and len(set(allowed)) == 1
        assert row["cpu_ns"] < 1.3 * row["seconds"] * 1e9

    def test_variables_of_the_user_do_not_change_a_placement(self, binaries, monkeypatch):
        monkeypatch.setenv("DPCPP_CPU_CU_AFFINITY", "close")
        monkeypatch.setenv("DPCPP_CPU_PLACES", "cores")
        monkeypatch.setenv("ONEAPI_DEVICE_SELECTOR", "opencl:cpu")
        allowed, _ = placed(sycl.nbody(1000, 5), "Rm")
        assert len(set(allowed)) == 1 and allowed[0] not in map(str, usable_cpus())

    def test_it_says_where_its_threads_may_run(self):
        first, second = usable_cpus()[:2]
        assert (
            values(
                program(
                    "nbody", "--bodies", 64, env={"NOISEBOOK_PLACES": f"{first}:{second}"}
                ).stdout
            )["affinity"]
            == f"{first}+{second}"
        )
        assert (
            values(program("nbody", "--bodies", 64, env={"NOISEBOOK_PLACES": f"{second}"}).stdout)[
                "affinity"
            ]
            == f"{second}*2"
        )
        done = program("nbody", "--bodies", 64, env={"NOISEBOOK_PLACES": "0:x"})
        assert done.returncode == 1 and "no CPU number at 'x'" in done.stderr


@extra
class TestCache:
    def test_kernels_are_compiled_once(self, tmp_path):
        env = {"SYCL_CACHE_DIR": str(tmp_path), "SYCL_CACHE_TRACE": "7"}
        first, second, third = (program("minife", "--nx", 3, env=env) for _ in range(3))
        assert "kernel_compiler Persistent Cache]: cache miss" in first.stderr and list(
            tmp_path.rglob("*.bin")
        )
        assert "cache miss" not in second.stderr and "using cached device code IR" in second.stderr
        assert (
            "using cached device code IR" in third.stderr
            and "using cached device binary" in third.stderr
        )
        assert len({values(done.stdout)["residual"] for done in (first, second, third)}) == 1

    @pytest.mark.parametrize(
        "name, words",
        [("nbody", ("--bodies", 70)), ("stream", ("--elements", 50)), ("minife", ("--nx", 3))],
    )
    def test_what_make_sycl_left_is_used(self, name, words):
        done = program(name, *words, env={"SYCL_CACHE_TRACE": "7"})
        assert (
            "using cached device code IR" in done.stderr
            and "using cached device binary" in done.stderr
        )


def runtime_libraries() -> Path:
    folder = binary_folder() / "sycl"
    return (folder / (folder / ".runtime").read_text().strip()).resolve()


class TestFailures:
    def test_without_the_programs(self, tmp_path, monkeypatch):
        monkeypatch.setenv("NOISEBOOK_BIN", str(tmp_path))
        here = sycl.available()
        assert (
            not here and "not built" in here.reason and "make sycl ACCEPT_LICENCE=yes" in here.fix
        )
        with pytest.raises(Unavailable, match="make sycl"):
            sycl.require()
        with pytest.raises(RunError, match="make sycl"):
            program_path(sycl.nbody().command[0])

    @extra
    def test_without_the_runtime(self, tmp_path, monkeypatch):
        shutil.copytree(binary_folder() / "sycl", tmp_path / "bin/sycl")
        monkeypatch.setenv("NOISEBOOK_BIN", str(tmp_path / "bin"))
        here = sycl.available()
        assert not here and "libsycl.so" in here.reason and here.fix == sycl.INSTALL
        assert "libsycl" in program("nbody").stderr

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
        assert (
            done.returncode == 1
            and "no CPU among the SYCL devices" in done.stderr
            and "make sycl" in done.stderr
        )

    @extra
    @pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("unshare"),
        reason="hides /usr/include in a mount namespace: needs root and unshare",
    )
    def test_without_headers(self, tmp_path):
        """Kernels that are in no cache, where the C++ library's headers are gone."""
        (tmp_path / "empty").mkdir()
        hide = (
            f"mount --bind {tmp_path}/empty /usr/include && exec {binary_folder()}/sycl/nbody"
            " --bodies 64"
        )
        done = run(
            "unshare", "--mount", "sh", "-c", hide, env={"SYCL_CACHE_DIR": str(tmp_path / "cache")}
        )
        assert (
            done.returncode == 1
            and "could not be compiled" in done.stderr
            and "apt-get install g++" in done.stderr
        ), done.stderr

    def test_workloads_refuse_what_cannot_be(self):
        for wrong in (
            lambda: sycl.nbody(15),
            lambda: sycl.nbody(local_size=8),
            lambda: sycl.stream(0),
            lambda: sycl.minife(1),
            lambda: sycl.minife(4, nz=500),
            lambda: sycl.nbody(threads=0),
            lambda: sycl.stream(2.5),
        ):
            with pytest.raises(InputError, match="must be a whole number"):
                wrong()


class TestEnvironment:
    def test_roaming_and_pinned(self, tmp_path):
        cpus = tuple(range(os.cpu_count()))
        roaming = sycl_env.placed_env(
            {"DPCPP_CPU_CU_AFFINITY": "close", "X": "1"}, "Rm", cpus, sysfs=tmp_path
        )
        assert roaming == {"X": "1", "NOISEBOOK_PLACES": "all"}
        pinned = sycl_env.placed_env(roaming, "TP", cpus, sysfs=tmp_path)
        assert (
            pinned["NOISEBOOK_PLACES"] == ":".join(map(str, cpus))
            and pinned["DPCPP_CPU_CU_AFFINITY"] == "close"
        )
        assert sycl_env.placed_env(pinned, "Rm", cpus, sysfs=tmp_path) == roaming

    def test_a_part_of_the_machine(self, tmp_path):
        part = tuple(range(os.cpu_count() + 3))[3:]
        env = sycl_env.placed_env({"DPCPP_CPU_NUM_CUS": "900"}, "TP", (*part, 999), sysfs=tmp_path)
        assert env["DPCPP_CPU_NUM_CUS"] == str(len(part) + 1) and "DPCPP_CPU_CU_AFFINITY" not in env
        assert env["NOISEBOOK_PLACES"].split(":")[-1] == "999"
        with pytest.raises(InputError, match="does not pin"):
            sycl_env.placed_env({}, "TP", (*part, 999), ours=False, sysfs=tmp_path)

    @two_cpus
    def test_a_placement_replaces_another(self):
        workload = sycl.nbody()
        for config in ("Rm", "TP", "RmHK", "TPHK"):
            assert (
                workload.placed("TPHK").placed(config)
                == workload.placed(config)
                == workload.placed("RmHK").placed(config)
            )

    def test_siblings_share_a_place_while_there_are_cores(self, tmp_path):
        """Four cores of two: CPU n and n + 4."""
        for cpu in range(8):
            folder = tmp_path / f"cpu{cpu}/topology"
            folder.mkdir(parents=True)
            (folder / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
        env = {"DPCPP_CPU_NUM_CUS": "2"}
        assert (
            sycl_env.placed_env(env, "TP", tuple(range(8)), sysfs=tmp_path)["NOISEBOOK_PLACES"]
            == "0,4:1,5"
        )
        env = {"DPCPP_CPU_NUM_CUS": "6"}
        assert (
            sycl_env.placed_env(env, "TP", tuple(range(8)), sysfs=tmp_path)["NOISEBOOK_PLACES"]
            == "0:4:1:5:2:6"
        )


class TestInstalling:
    LOCK = (REPOSITORY / "requirements-sycl.lock").read_text()

    def test_every_wheel_has_a_hash_and_no_address(self):
        for block in re.split(r"\n(?=[A-Za-z0-9])", self.LOCK.strip()):
            assert "--hash=sha256:" in block, block.splitlines()[0]
        assert {"intel-sycl-rt", "intel-opencl-rt"} <= set(
            re.findall(r"^([a-z-]+)==", self.LOCK, re.M)
        )
        assert not re.search(r"https?://|--index|--extra-index|--find-links|\s@\s", self.LOCK)

    def install(self, tmp_path, **env):
        """The script in a copy of what it needs; the folder has no runtime."""
        shutil.copytree(REPOSITORY / "workloads", tmp_path / "workloads")
        shutil.copy(REPOSITORY / "requirements-sycl.lock", tmp_path)
        return run("sh", "workloads/sycl/install.sh", cwd=tmp_path, env=env)

    @pytest.mark.skipif(
        not (shutil.which("g++") or shutil.which("clang++")),
        reason="no C++ compiler is installed, and the licence comes after it",
    )
    def test_without_consent_it_shows_the_licence_and_installs_nothing(self, tmp_path):
        done = self.install(tmp_path, SYCLCXX="")
        assert done.returncode == 1 and "make sycl ACCEPT_LICENCE=yes" in done.stderr
        assert "Intel End User License Agreement" in done.stdout and "482 MB" in done.stdout
        assert not (tmp_path / "build").exists()

    def test_without_a_compiler_it_names_the_package(self, tmp_path):
        done = self.install(tmp_path, SYCLCXX="", CXX="false", ACCEPT_LICENCE="yes")
        assert (
            done.returncode == 1
            and "apt-get install g++" in done.stderr
            and not (tmp_path / "build").exists()
        )

    def test_a_folder_with_a_blank_is_refused_before_the_download(self, tmp_path):
        """Intel's OpenCL finds no device there: it reads /proc/self/maps, it seems."""
        folder = tmp_path / "a b"
        folder.mkdir()
        done = self.install(folder, SYCLCXX="", ACCEPT_LICENCE="yes")
        assert done.returncode == 1 and "holds a blank" in done.stderr
        assert "Licence" not in done.stdout and not (folder / "build").exists()

    def test_again_does_nothing_where_nothing_is(self, tmp_path):
        shutil.copytree(REPOSITORY / "workloads", tmp_path / "workloads")
        done = run("sh", "workloads/sycl/install.sh", "again", cwd=tmp_path)
        assert (
            done.returncode == 0
            and not done.stdout + done.stderr
            and not (tmp_path / "build").exists()
        )

    @extra
    @pytest.mark.parametrize("name", sycl.PROGRAMS)
    def test_the_sources_for_a_sycl_compiler_are_valid(self, name):
        """The host's side only: there may be no icpx and no acpp here to compile the device's."""
        done = run(
            "g++",
            "-std=c++17",
            "-fsyntax-only",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-DNB_AHEAD_OF_TIME",
            "-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING",
            "-isystem",
            runtime_libraries().parent / "include",
            "-I",
            binary_folder() / "sycl" / ".parts",
            REPOSITORY / "workloads/sycl" / f"{name}.cpp",
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.skipif(AHEAD is None, reason="no SYCL compiler here (icpx, acpp)")
def test_the_same_sources_compile_ahead_of_time_and_give_the_twins_answers(binaries, tmp_path):
    built = subprocess.run(
        [
            "make",
            "-s",
            "-C",
            REPOSITORY / "workloads" / "sycl",
            f"SYCLCXX={AHEAD}",
            f"BIN={tmp_path}",
        ],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert built.returncode == 0, built.stderr
    words = ("--bodies", 501, "--steps", 7)
    ours = values(run(tmp_path / "nbody", *words).stdout)
    twin = values(run(binaries / "nbody", *words).stdout)
    assert ours["verified"] == "yes" and float(ours["energy"]) == pytest.approx(
        float(twin["energy"]), rel=1e-6
    )
