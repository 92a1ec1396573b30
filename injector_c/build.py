"""Builds nbhelpers.injection._injector: API mode, limited ABI; setup.py and nothing else runs this."""

from pathlib import Path

from cffi import FFI

HERE = Path(__file__).resolve().parent
SOURCES = [
    "injector_c/owner.c",
    "injector_c/supervisor.c",
    "injector_c/lane.c",
    "injector_c/prepare.c",
    "injector_c/feel.c",
    "injector_c/kinds.c",
    "injector_c/kinds_memory.c",
    "injector_c/kinds_io.c",
    "injector_c/kinds_interrupts.c",
]


def declarations() -> str:
    """`kinds.h` and `injector.h` without the three kinds of line that cffi's parser does not know."""
    skipped = ("#ifndef", "#include", "#endif", "#define NB_INJECTOR_H", "#define NB_KINDS_H")
    lines = [
        line
        for name in ("kinds.h", "injector.h")
        for line in (HERE / name).read_text().splitlines()
    ]
    return "\n".join(line for line in lines if not line.startswith(skipped))


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
