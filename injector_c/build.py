"""Builds nbhelpers.injection._injector (API mode, limited ABI); run by setup.py only."""

import re
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).resolve().parent
SOURCES = [  # of the owner; supervisor and lanes are the program nbinject (workloads/Makefile)
    "injector_c/check.c",
    "injector_c/limits.c",
    "injector_c/owner.c",
    "injector_c/scratch.c",
    "injector_c/observe_losses.c",
]


def declarations() -> str:
    """`kinds.h` and `injector.h` as cffi reads them: of the lines with # only the numbers."""
    text = "\n".join((HERE / name).read_text() for name in ("kinds.h", "injector.h"))
    without_comments = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"^#(?!define \w+ +-?\d).*$", "", without_comments, flags=re.MULTILINE)


ffibuilder = FFI()
ffibuilder.cdef(declarations())
ffibuilder.set_source(
    "nbhelpers.injection._injector",
    '#include "injector.h"',
    sources=SOURCES,
    include_dirs=[str(HERE)],
    depends=[
        "injector_c/injector.h",
        "injector_c/internal.h",
        "injector_c/kinds.h",
        "injector_c/kinds_internal.h",
    ],
    extra_compile_args=["-std=c11", "-O2", "-Wall", "-Wextra"],
)
