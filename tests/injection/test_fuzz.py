"""libFuzzer on the plan that the C core gets from outside. Seeds are real ones.

Minutes instead of seconds: NOISEBOOK_FUZZ_SECONDS=600. Findings stay in the test's folder, and the
failure names them.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from nbhelpers.injection import make_plan
from nbhelpers.injection._native import ffi
from nbhelpers.injection.replay import PLAN_COLUMNS, Replay
from nbhelpers.noise import NoiseConfig

from .helpers import CPU_COUNT, make_config, mixed_config

REPOSITORY = Path(__file__).parents[2]
SECONDS = int(os.environ.get("NOISEBOOK_FUZZ_SECONDS", "4"))
FLAGS = [
    "-std=c11",
    "-O1",
    "-g",
    "-fsanitize=fuzzer,address,undefined",
    "-fno-sanitize-recover=all",
]


def built(folder: Path, harness: str, sources: list[Path], include: Path) -> Path:
    """The program to fuzz, or a skip that says what is missing."""
    compiler = next(
        (
            path
            for name in ("clang", *(f"clang-{number}" for number in range(21, 11, -1)))
            if (path := shutil.which(name))
        ),
        None,
    )
    if not compiler:
        pytest.skip(
            "libFuzzer is a part of clang, which is not installed: apt-get install clang-14"
            " libclang-rt-14-dev"
        )
    (folder / "empty.c").write_text(
        "#include <stddef.h>\nint LLVMFuzzerTestOneInput(const void *data, size_t size)\n{\n   "
        " return !data && size;\n}\n"
    )
    if subprocess.run(
        [compiler, *FLAGS, "-o", folder / "empty", folder / "empty.c"], capture_output=True
    ).returncode:
        pytest.skip(f"{compiler} has no libFuzzer: apt-get install libclang-rt-14-dev")
    program = folder / "fuzz"
    subprocess.run(
        [
            compiler,
            *FLAGS,
            f"-I{include}",
            "-o",
            program,
            REPOSITORY / "tests/injection" / harness,
            *sources,
            "-lm",
        ],
        check=True,
    )
    return program


def fuzzed(folder: Path, program: Path, seeds: list[bytes], longest: int) -> int:
    """How many inputs were tried; a finding fails the test and shows the report."""
    (folder / "seeds").mkdir()
    (folder / "new").mkdir()
    for number, seed in enumerate(seeds):
        (folder / f"seeds/{number:03d}").write_bytes(seed)
    done = subprocess.run(
        [
            program,
            f"-max_total_time={SECONDS}",
            f"-max_len={longest}",
            "-timeout=5",
            "-rss_limit_mb=1024",
            f"-artifact_prefix={folder}/found-",
            "-print_final_stats=1",
            folder / "new",
            folder / "seeds",
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS + 60,
    )
    assert done.returncode == 0, f"{sorted(folder.glob('found-*'))}\n{done.stderr[-6000:]}"
    return int(done.stderr.partition("stat::number_of_executed_units:")[2].split()[0])


def plan_seed(config: NoiseConfig, **options) -> bytes:
    """A plan as the harness takes it: numbers of events and lanes, rules, lanes, columns."""
    replay = Replay(make_plan(config, **options))
    count, lanes = len(replay.plan.events), replay._run.lane_count
    assert count < 32 and lanes < 8
    columns = b"".join(replay._columns[name].tobytes() for name in PLAN_COLUMNS)
    return (
        bytes([count, lanes])
        + bytes(ffi.buffer(ffi.addressof(replay._run.rules)))
        + bytes(ffi.buffer(replay._run.lanes, lanes * ffi.sizeof("struct nb_lane")))
        + columns
    )


@pytest.mark.timeout(120 + 2 * SECONDS)
def test_the_check_of_plans(tmp_path):
    sources = sorted((REPOSITORY / "injector_c").glob("[!_]*.c"))
    program = built(tmp_path, "fuzz_plan.c", sources, REPOSITORY / "injector_c")
    seeds = [
        plan_seed(make_config([(0, "irq", 1, 1), (0, "thread", 3, 1)])),
        plan_seed(mixed_config(1, count=7, cpus=[0])),
        plan_seed(mixed_config(2, count=5, cpus=range(min(CPU_COUNT, 2))), placement="origin"),
    ]
    assert fuzzed(tmp_path, program, seeds, 2048) > 10_000
