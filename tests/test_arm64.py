"""The C parts on arm64: cross-compiled, and run by an emulator of that processor (qemu-user).

What depends on scheduling or on perf is not shown by an emulator; that the code is right there is.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nbhelpers.simulation import patterns, write_goal

from .processes import run
from .simulation.test_goal import binary_of

REPOSITORY = Path(__file__).resolve().parents[1]
COMPILER, EMULATOR, ROOT = "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"
STRICT = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not (shutil.which(COMPILER) and shutil.which(EMULATOR)),
        reason="no cross-compiler or no emulator: apt-get install gcc-aarch64-linux-gnu"
        " libc6-dev-arm64-cross qemu-user",
    ),
]


def emulated(*words: object, **options) -> subprocess.CompletedProcess:
    return run(EMULATOR, "-L", ROOT, *words, **options)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All programs and libraries of workloads, and the injector, for arm64."""
    folder = tmp_path_factory.mktemp("arm64")
    values = (f"BIN={folder}", f"CC={COMPILER}", "CFLAGS=-O2", "first")
    done = run("make", "-C", "workloads", *values, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr
    return folder


def test_everything_is_built(programs: Path) -> None:
    built = {path.name for path in programs.iterdir() if not path.name.startswith(".")}
    assert {"nbstart", "nbinject", "noisebook-priv", "libnbstart.so", "libnbspeed.so"} <= built
    for path in programs.glob("[a-z]*"):
        content = path.read_bytes()
        assert not content.startswith(b"\x7fELF") or content[18:20] == b"\xb7\x00", path.name


@pytest.mark.parametrize(
    "words",
    [
        ["nbody", "--bodies", "400", "--steps", "3"],
        ["minife", "--nx", "8", "--ny", "8", "--nz", "8", "--iterations", "20"],
        ["stream", "--elements", "20000", "--repeats", "3"],
    ],
)
def test_programs_compute_the_same(programs: Path, binaries: Path, words: list[str]) -> None:
    arm = emulated(programs / words[0], *words[1:], timeout=120)
    here = run(binaries / words[0], *words[1:])
    assert arm.returncode == 0, arm.stderr
    assert "verified=yes" in arm.stdout.splitlines()[-1]
    names = [re.findall(r"(\w+)=", text.splitlines()[-1]) for text in (arm.stdout, here.stdout)]
    assert names[0] == names[1]


def test_the_launcher_executes_a_program(programs: Path) -> None:
    """The program is one of arm64, too: by the kernel's handler, or a static one by itself."""
    done = emulated(programs / "nbstart", "--", "/no/such/program")
    assert done.returncode == 127 and "/no/such/program" in done.stderr
    assert emulated(programs / "nbstart", "--cpus", "x", "--", "true").returncode == 125


def test_helper_and_injector_refuse_what_is_no_request(programs: Path) -> None:
    done = emulated(programs / "noisebook-priv", stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and "is started by Noisebook" in done.stderr
    assert emulated(programs / "nbinject").returncode == 3  # NB_OTHER_BUILD


def built(folder: Path, compiler: str, name: str, *words: str | Path) -> Path:
    program = folder / f"{name}-{compiler}"
    subprocess.run([compiler, *STRICT, "-o", program, *words, "-lm"], check=True)
    return program


def test_the_reader_of_goal_judges_twenty_thousand_inputs_alike(tmp_path: Path) -> None:
    source = REPOSITORY / "simulator_c"
    words = [f"-I{source}", *sorted(source.glob("goal*.c"))]
    words.append(REPOSITORY / "tests/simulation/goal_driver.c")
    schedule = patterns.loop(patterns.halo((2, 2), 100), 2, 50)
    seeds = [
        write_goal(schedule, tmp_path / "seed.goal"),
        binary_of(schedule, tmp_path / "seed.bin"),
    ]
    arm = emulated(built(tmp_path, COMPILER, "goal", *words), "20000", *seeds, timeout=200)
    here = run(built(tmp_path, "gcc", "goal", *words), "20000", *seeds)
    assert (arm.returncode, arm.stderr) == (0, "")
    assert arm.stdout == here.stdout and int(arm.stdout.split()[0]) > 1000


@pytest.mark.parametrize("words", [(50_000, 100, 20_000), (60_000, 2**40, 9000)])
def test_events_come_in_order(tmp_path: Path, words: tuple[int, ...]) -> None:
    source = REPOSITORY / "tests/simulation/queue_driver.c"
    include = f"-I{REPOSITORY / 'simulator_c'}"
    driver = built(tmp_path, COMPILER, "queue", include, source)
    done = emulated(driver, 1, *words, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("folder", ["injector_c", "simulator_c"])
def test_the_cores_compile_without_a_warning(tmp_path: Path, folder: str) -> None:
    for source in sorted((REPOSITORY / folder).glob("[!_]*.c")):
        command = [COMPILER, *STRICT, "-c", "-o", tmp_path / "part.o", source]
        subprocess.run(command, check=True, cwd=REPOSITORY / folder)
