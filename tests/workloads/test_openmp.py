"""The OpenMP programs of the studies: against NumPy and SciPy, on one and more threads, by each
compiler. That wrong programs are found is in test_seeded_faults.py.
"""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, kron
from scipy.sparse.linalg import cg

from nbhelpers.attribution.known_counters import known_names
from nbhelpers.errors import InputError, RunError
from nbhelpers.measurement import run_once
from nbhelpers.measurement.calibration import delay_steps
from nbhelpers.workloads import compilers, minife, nbody, stream, syncbench
from nbhelpers.workloads.openmp import CONSTRUCTS, SCHEDULES, schedbench

KERNELS = ("copy", "mul", "add", "triad", "dot")


def run(*words, threads=2, **options):
    """Threads that wait sleep: spinning ones keep each other from CPUs that others use, too."""
    return subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        timeout=120,
        env={"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"},
        **options,
    )


def values(done) -> dict[str, str]:
    assert done.stdout.splitlines(), done.stderr
    return dict(word.split("=") for word in done.stdout.splitlines()[-1].split()[2:])


def series(done) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for words in (text.split() for text in done.stdout.splitlines()):
        if words[0] == "noisebook-series:":
            found.setdefault(words[1], []).extend(map(float, words[3:]))
    return found


@pytest.fixture(params=["gcc", "clang"])
def folder(request, binaries) -> Path:
    if request.param not in compilers():
        pytest.skip(f"no programs by {request.param} here")
    return compilers()[request.param]


REALS = {"double": (np.float64, 1e-12), "single": (np.float32, 1e-3)}


@pytest.mark.parametrize("precision", REALS)
@pytest.mark.parametrize("elements, repeats, threads", [(1, 1, 2), (1001, 7, 1), (65537, 3, 3)])
def test_stream_does_what_numpy_does(folder, elements, repeats, threads, precision):
    real, tolerance = REALS[precision]
    words = ("--elements", elements, "--repeats", repeats, "--precision", precision)
    done = run(folder / "stream", *words, threads=threads)
    a, b, c = (np.full(elements, value, real) for value in (0.1, 0.2, 0))
    for _ in range(repeats):
        c = a.copy()
        b = real(0.4) * c
        c = a + b
        a = b + real(0.4) * c
    line = values(done)
    assert float(line["sum"]) == pytest.approx(float(a @ b), rel=tolerance)
    assert line["verified"] == "yes" and line["threads"] == str(threads)
    assert line["precision"] == precision


def test_dot_adds_in_order(folder):
    """As BabelStream's flags have it: a sum of equal numbers is off by what one order gives."""
    words = ("--elements", 2**20, "--repeats", 1, "--precision", "single")
    line = values(run(folder / "stream", *words, threads=1))
    a, b = np.float32(0.096), np.float32(0.04)
    c = np.float32(0.1) + np.float32(0.4) * np.float32(0.1)
    b = np.float32(0.4) * np.float32(0.1)
    a = b + np.float32(0.4) * c
    in_order = np.cumsum(np.full(2**20, a * b, np.float32))[-1]
    best = float(a) * float(b) * 2**20
    assert float(line["sum"]) == pytest.approx(float(in_order), rel=1e-5)
    assert abs(float(in_order) - best) / best > 1e-4


def test_stream_keeps_every_repetition(binaries):
    done = run(binaries / "stream", "--elements", 5000, "--repeats", 1203)
    line, printed = values(done), series(done)
    assert list(printed) == list(KERNELS) and line["series_values"] == str(5 * 1203)
    for kernel, times in printed.items():
        assert len(times) == 1203
        assert float(line[f"{kernel}_min_s"]) == pytest.approx(min(times), abs=1e-9)
        assert float(line[f"{kernel}_max_s"]) == pytest.approx(max(times), abs=1e-9)
        assert float(line[f"{kernel}_avg_s"]) == pytest.approx(np.mean(times), rel=1e-3, abs=1e-9)
    assert sum(map(sum, printed.values())) <= float(line["seconds"])
    assert {name for name in line if name.endswith("_s")} <= known_names("run_time"), "no causes"


def line_matrices(n):
    """Stiffness and mass of linear elements on [0, 1]."""
    stiffness, mass = np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1))
    for e in range(n):
        stiffness[e : e + 2, e : e + 2] += n * np.array([[1, -1], [-1, 1]])
        mass[e : e + 2, e : e + 2] += np.array([[2, 1], [1, 2]]) / 6 / n
    return csr_array(stiffness), csr_array(mass)


def poisson(nx, ny, nz):
    """The same system by tensor products, x fastest, with SciPy."""
    (kx, mx), (ky, my), (kz, mz) = map(line_matrices, (nx, ny, nz))
    matrix = kron(mz, kron(my, kx)) + kron(mz, kron(ky, mx)) + kron(kz, kron(my, mx))
    load = -12.0 * (kron(mz, kron(my, mx)) @ np.ones(matrix.shape[0]))
    z, y, x = np.meshgrid(*(np.arange(n + 1) / n for n in (nz, ny, nx)), indexing="ij")
    exact = (x**2 + 2 * y**2 + 3 * z**2 + x * y * z + x - y + 2 * z).ravel()
    fixed = ((x == 0) | (x == 1) | (y == 0) | (y == 1) | (z == 0) | (z == 1)).ravel()
    dense = matrix.toarray()
    rhs = np.where(fixed, exact, load - dense[:, fixed] @ exact[fixed])
    dense[fixed] = 0
    dense[:, fixed] = 0
    dense[fixed, fixed] = 1
    return dense, rhs, exact


@pytest.mark.parametrize("sizes, threads", [((2, 2, 2), 1), ((5, 4, 3), 2), ((8, 3, 7), 3)])
def test_minife_solves_what_scipy_solves(folder, sizes, threads):
    matrix, rhs, exact = poisson(*sizes)
    solved = np.linalg.solve(matrix, rhs)  # the exact solution is the discrete one
    np.testing.assert_allclose(solved, exact, rtol=1e-9, atol=1e-12)
    steps = []
    cg(matrix, rhs, rtol=1e-10, atol=0, callback=steps.append)
    words = (word for pair in zip(("--nx", "--ny", "--nz"), sizes) for word in pair)
    done = run(folder / "minife", *words, threads=threads)
    line = values(done)
    assert line["verified"] == "yes", done.stderr
    assert float(line["matrix_norm"]) == pytest.approx(np.linalg.norm(matrix), rel=1e-12)
    assert int(line["nonzeros"]) == np.prod([3 * n + 1 for n in sizes])
    assert int(line["rows"]) == len(exact)
    assert abs(int(line["iterations"]) - len(steps)) <= 1
    assert len(series(done)["iteration"]) == int(line["iterations"]) == int(line["series_values"])
    parts_s = float(line["assembly_s"]) + float(line["cg_s"])
    assert parts_s == pytest.approx(float(line["seconds"]), abs=1e-8)
    assert {"assembly_s", "cg_s"} <= known_names("run_time"), "no causes of it"


def test_minife_does_the_same_arithmetic_on_any_number_of_threads(folder):
    lines = [values(run(folder / "minife", "--nx", 17, threads=threads)) for threads in (1, 2, 5)]
    for key in ("iterations", "residual", "error", "matrix_norm"):
        assert len({line[key] for line in lines}) == 1


@pytest.mark.parametrize(
    "words", ["minife --nx 12 --iterations 3", "nbody --bodies 100 --time-step 0.5"]
)
def test_a_wrong_result_is_not_verified(binaries, words):
    name, *options = words.split()
    done = run(binaries / name, *options)
    assert done.returncode == 1
    assert values(done)["verified"] == "no" and "not verified" in done.stderr


def check_overheads(done, name):
    line, printed = values(done), series(done)
    assert line["verified"] == "yes", done.stderr
    assert list(printed) == [name, "reference"] and len(printed[name]) == int(line["outer"])
    assert float(line["mean_us"]) == pytest.approx(np.mean(printed[name]), rel=1e-6)
    assert float(line["median_us"]) == pytest.approx(np.median(printed[name]), rel=1e-6)
    assert float(line["sd_us"]) == pytest.approx(np.std(printed[name], ddof=1), rel=1e-4)
    assert float(line["overhead_us"]) == pytest.approx(
        np.mean(printed[name]) - np.median(printed["reference"]), rel=1e-5, abs=1e-6
    )


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_syncbench_measures_each_construct(folder, construct, threads):
    words = f"--construct {construct} --inner 7 --outer 4 --delay 10".split()
    check_overheads(run(folder / "syncbench", *words, threads=threads), construct)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("chunk", [0, 1, 5])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedbench_measures_each_schedule(folder, schedule, chunk, threads):
    words = f"--schedule {schedule} --chunk {chunk} --iterations-per-thread 37 --delay 10"
    done = run(folder / "schedbench", *words.split(), "--outer", 3, "--inner", 2, threads=threads)
    check_overheads(done, f"{schedule}_{chunk}" if chunk else schedule)


@pytest.mark.parametrize(
    "make, options, message",
    [
        (stream, {"repeats": 0}, "repeats is 0"),
        (schedbench, {"schedule": "auto"}, "static, dynamic, guided"),
        (syncbench, {"construct": "task"}, "reduction"),
        (stream, {"model": "mpi"}, "omp, sycl"),
        (stream, {"compiler": "icx"}, "gcc, clang"),
        (nbody, {"model": "sycl", "compiler": "gcc"}, "SYCL"),
        (nbody, {"bodies": 3}, "16 to"),
    ],
)
def test_a_constructor_refuses_what_is_not_possible(make, options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        make(**options)


def test_each_program_runs_as_a_workload_by_each_compiler(folder, binaries):
    compiler = next(name for name, place in compilers().items() if place == folder)
    for workload in (
        nbody(64, 2, threads=2, compiler=compiler),
        stream(3, 1001, threads=2, compiler=compiler),
        minife(5, threads=2, compiler=compiler),
        schedbench(9, threads=2, delay=10, outer=3, compiler=compiler),
        syncbench(5, threads=2, delay=10, outer=3, compiler=compiler),
    ):
        row = run_once(workload)
        assert row["status"] == "ok" and row["threads"] == 2, row["message"]
        assert row.get("compiler", compiler).startswith(compiler)
        assert workload.name.endswith(f"-{compiler}")


def test_a_compiler_that_is_not_here_is_said_when_it_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("NOISEBOOK_BIN", str(tmp_path))
    shutil.copy("/bin/true", tmp_path / "nbstart")
    with pytest.raises(RunError, match="libomp-dev"):
        run_once(stream(compiler="clang"))
    assert stream(compiler="gcc").command[0] == str(tmp_path / "stream")


def test_steps_of_a_delay_are_measured_once_and_kept(tmp_path, binaries):
    cache = tmp_path / "delay.json"
    short = delay_steps(0.1, cache)
    before = cache.read_bytes()
    assert delay_steps(15, cache) == pytest.approx(150 * short, rel=0.02)
    assert cache.read_bytes() == before and 5 <= short <= 1000
    cache.write_text("[]")
    assert delay_steps(1, cache) > 0
    assert len(list(tmp_path.glob("aside/*/why.txt"))) == 1, "damaged: put aside, measured anew"
    with pytest.raises(InputError):
        delay_steps(0)
