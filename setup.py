"""Builds the C parts; everything else stands in pyproject.toml.

A wheel also holds what a study needs beside the library: nbhelpers/_shipped has the notebooks, the
knowledge, the published numbers and the C sources of the checkout, and in `bin` the programs.
They are built for any CPU of the architecture. NOISEBOOK_MARCH=native (or another -march) builds
them for one kind of CPU: such a wheel is for machines of that kind only.
"""

import os
import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
FOLDERS = (
    "notebooks",
    "data/knowledge",
    "data/published",
    "injector_c",
    "simulator_c",
    "workloads",
)
UNWANTED = shutil.ignore_patterns("__pycache__", ".*", "_*.c", "*.o", "*.so")


class BuildWithShipped(build_py):
    """The library, and beside it what it needs of the repository; an editable one uses the
    checkout.
    """

    def run(self):
        super().run()
        if not self.editable_mode:
            _ship(Path(self.build_lib).resolve() / "nbhelpers" / "_shipped")


def _ship(target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    for folder in FOLDERS:
        shutil.copytree(HERE / folder, target / folder, ignore=UNWANTED)
    shutil.copy2(HERE / "Makefile", target)
    march = os.environ.get("NOISEBOOK_MARCH", "")
    flags = " ".join(["-O3", *([f"-march={march}"] if march else []), "-ffast-math"])
    made = HERE / "build" / "wheel-bin"  # make takes no blank in a name: a relative one has none
    shutil.rmtree(made, ignore_errors=True)
    subprocess.run(
        ["make", "-C", HERE / "workloads", "first", "BIN=../build/wheel-bin", f"CFLAGS={flags}"],
        check=True,
    )
    shutil.copytree(made, target / "bin")


setup(
    cmdclass={"build_py": BuildWithShipped},
    cffi_modules=[
        "injector_c/build.py:ffibuilder",
        "simulator_c/build.py:ffibuilder",
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},  # one wheel for Python 3.11 and later
)
