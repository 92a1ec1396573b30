"""C code of ours built under the compiler's sanitizers, and run without Python."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
WARNINGS = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]


def build_checked(
    folder: Path, *words: str | Path, sanitizer: str = "address,undefined", name: str = "driver"
) -> Path:
    """A program of that name, built in a folder from sources and flags (`words`); the test is
    skipped where the compiler has no such sanitizer.
    """
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not compiler:
        pytest.skip("no C compiler")
    program, empty = folder / name, folder / "empty.c"
    command = [compiler, *WARNINGS, f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
    empty.write_text("int main(void) { return 0; }\n")
    if subprocess.run([*command, "-o", program, empty], capture_output=True).returncode:
        pytest.skip(f"the compiler has no sanitizer '{sanitizer}'")
    subprocess.run([*command, "-o", program, *words], check=True)
    return program


def build_checked_injector(folder: Path, sanitizer: str, driver: str) -> Path:
    """The injector's C core with a driver of tests/injection."""
    source = REPOSITORY / "injector_c"
    return build_checked(
        folder,
        f"-I{source}",
        *sorted(source.glob("[!_]*.c")),
        REPOSITORY / "tests/injection" / driver,
        "-lm",
        "-pthread",
        sanitizer=sanitizer,
    )


def assert_clean(folder: Path, *command: str | Path, seconds: float, thread: str = "") -> None:
    """Run a checked program: status 0, nothing on standard error, and no report. `thread`: further
    options of the thread sanitizer.
    """
    reports = {f"{name}_OPTIONS": f"log_path={folder}/report" for name in ("ASAN", "UBSAN", "TSAN")}
    reports["TSAN_OPTIONS"] += thread
    done = subprocess.run(
        command, env=os.environ | reports, capture_output=True, text=True, timeout=seconds
    )
    found = "".join(path.read_text() for path in folder.glob("report*"))
    assert (done.returncode, done.stderr, found) == (0, "", "")
