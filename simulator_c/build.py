"""Builds nbhelpers.simulation._simulator (API mode, limited ABI); run by setup.py only.

Every .c file here is compiled. What Python calls is declared in HEADERS, which are real C; cffi
reads them without comments and without the lines that begin with '#'.
NB_SANITIZE=address,undefined builds with sanitizers.
"""

import os
import re
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).resolve().parent
SOURCES = sorted(path.name for path in HERE.glob("*.c") if not path.name.startswith("_"))
HEADERS = ["simulator.h", "engine.h", "goal.h", "schedule.h"]
SANITIZE = (
    ["-fsanitize=" + os.environ["NB_SANITIZE"], "-fno-omit-frame-pointer", "-g"]
    if os.environ.get("NB_SANITIZE")
    else []
)


def declarations() -> str:
    """The headers as cffi reads them: without comments and the preprocessor's lines."""
    text = "\n".join((HERE / name).read_text() for name in HEADERS)
    without_comments = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"^#.*$", "", without_comments, flags=re.MULTILINE)


ffibuilder = FFI()
ffibuilder.cdef(declarations())
ffibuilder.set_source(
    "nbhelpers.simulation._simulator",
    "\n".join(f'#include "{name}"' for name in HEADERS),
    sources=[f"simulator_c/{name}" for name in SOURCES],
    include_dirs=[str(HERE)],
    depends=[f"simulator_c/{path.name}" for path in sorted(HERE.glob("*.h"))],
    libraries=["m", "pthread"],
    extra_compile_args=["-std=c11", "-O3", "-fno-math-errno", "-Wall", "-Wextra", *SANITIZE],
    extra_link_args=SANITIZE,
)
