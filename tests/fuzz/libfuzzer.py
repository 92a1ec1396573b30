"""libFuzzer on our C parts, under clang's address and undefined-behaviour sanitizers."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SECONDS = int(os.environ.get("NOISEBOOK_FUZZ_SECONDS", "4"))
FLAGS = [
    "-std=c11",
    "-O1",
    "-g",
    "-fsanitize=fuzzer,address,undefined",
    "-fno-sanitize-recover=all",
]
_NOTHING = """#include <stddef.h>
int LLVMFuzzerTestOneInput(const void *data, size_t size)
{
    return !data && size;
}
"""


def _compiler(folder: Path) -> str:
    """clang with libFuzzer, or a skip that says what is missing."""
    names = "clang", *(f"clang-{number}" for number in range(21, 11, -1))
    compiler = next((path for name in names if (path := shutil.which(name))), None)
    if not compiler:
        pytest.skip(
            "libFuzzer is a part of clang, which is not installed: apt-get install clang-14"
            " libclang-rt-14-dev"
        )
    (folder / "empty.c").write_text(_NOTHING)
    command = [compiler, *FLAGS, "-o", folder / "empty", folder / "empty.c"]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip(f"{compiler} has no libFuzzer: apt-get install libclang-rt-14-dev")
    return compiler


def built(folder: Path, harness: str, part: str) -> Path:
    """The program that gives inputs to a part (the folder of its C files), as the harness says."""
    program = folder / "fuzz"
    sources = sorted((REPOSITORY / part).glob("[!_]*.c"))
    place = REPOSITORY / "tests/fuzz" / harness
    command = [_compiler(folder), *FLAGS, f"-I{REPOSITORY / part}", "-o", program, place, *sources]
    subprocess.run([*command, "-lm", "-pthread"], check=True)
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
        errors="replace",
        timeout=SECONDS + 60,
    )
    assert done.returncode == 0, f"{sorted(folder.glob('found-*'))}\n{done.stderr[-6000:]}"
    return int(done.stderr.partition("stat::number_of_executed_units:")[2].split()[0])
