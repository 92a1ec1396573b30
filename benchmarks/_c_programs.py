"""Compiles the C programs that benchmarks bring with them."""

import shutil
import subprocess
from pathlib import Path

FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread")


def build(folder: Path, name: str) -> Path:
    """Compile benchmarks/NAME.c into a folder; the program's path."""
    program = folder / name
    source = Path(__file__).with_name(f"{name}.c")
    compiler = shutil.which("cc") or "gcc"
    subprocess.run([compiler, *FLAGS, "-o", program, source], check=True)
    return program
