"""The C core without Python, under the address, undefined-behaviour and thread sanitizers."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
FLAGS = [
    "-std=c11",
    "-O1",
    "-g",
    "-Wall",
    "-Wextra",
    "-Werror",
    f"-I{REPOSITORY / 'injector_c'}",
    "-fno-sanitize-recover=all",
]


@pytest.mark.long
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_the_core_is_clean(tmp_path, sanitizer):
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not compiler:
        pytest.skip("no C compiler")
    (tmp_path / "empty.c").write_text("int main(void) { return 0; }\n")
    flags = [*FLAGS, f"-fsanitize={sanitizer}", "-o", str(tmp_path / "driver")]
    if subprocess.run(
        [compiler, *flags, str(tmp_path / "empty.c")], capture_output=True
    ).returncode:
        pytest.skip(f"the compiler has no sanitizer '{sanitizer}'")
    sources = [str(path) for path in sorted((REPOSITORY / "injector_c").glob("[!_]*.c"))]
    subprocess.run(
        [
            compiler,
            *flags,
            *sources,
            str(REPOSITORY / "tests/injection/driver.c"),
            "-lm",
            "-pthread",
        ],
        check=True,
    )
    reports = {
        f"{name}_OPTIONS": f"log_path={tmp_path}/report" for name in ("ASAN", "UBSAN", "TSAN")
    }
    done = subprocess.run(
        [tmp_path / "driver"], env=os.environ | reports, capture_output=True, text=True, timeout=60
    )
    found = "".join(path.read_text() for path in tmp_path.glob("report*"))
    assert (done.returncode, done.stderr, found) == (0, "", "")
