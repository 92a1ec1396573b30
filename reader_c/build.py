"""Builds nbhelpers.noise._reader: API mode, limited ABI; setup.py and nothing else runs this."""

from pathlib import Path

from cffi import FFI

HERE = Path(__file__).resolve().parent


def declarations() -> str:
    """`config_reader.h` without the three kinds of line that cffi's parser does not know."""
    skipped = ("#ifndef", "#include", "#endif", "#define NB_CONFIG_READER_H")
    return "\n".join(
        line
        for line in (HERE / "config_reader.h").read_text().splitlines()
        if not line.startswith(skipped)
    )


ffibuilder = FFI()
ffibuilder.cdef(declarations())
ffibuilder.set_source(
    "nbhelpers.noise._reader",
    '#include "config_reader.h"',
    sources=["reader_c/config_reader.c"],
    include_dirs=[str(HERE)],
    depends=["reader_c/config_reader.h"],
    extra_compile_args=["-std=c11", "-O2", "-Wall", "-Wextra"],
)
