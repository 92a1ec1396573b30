"""Files from elsewhere are read by `nbhelpers.reading` and by nothing else."""

import ast
from collections.abc import Iterator

from nbhelpers.places import PACKAGE

# what reads a file, or unpacks it, as far as it goes: module and function
DIRECT = {
    "pd": ("read_csv", "read_parquet", "read_json"),
    "pandas": ("read_csv",),
    "np": ("load", "loadtxt", "genfromtxt"),
    "yaml": ("load", "safe_load"),
    "json": ("load",),
    "gzip": ("open", "decompress"),
    "lzma": ("decompress",),
    "tarfile": ("open",),
    "zipfile": ("ZipFile",),
    "csv": ("read_csv",),
    "parquet": ("read_table", "ParquetFile"),
}
EXPLAINED = {
    "reading.py": "the bounded readers themselves",
    "artifact/crate.py zipfile.ZipFile": "writes",
    "artifact/names.py gzip.decompress": "what we packed, of a campaign that was read before",
    "artifact/unpack.py zipfile.ZipFile": "in a child, and it bounds what is written",
    "machine/description.py gzip.decompress": "the kernel's own configuration",
    "machine/guardian.py json.load": "our own journal, whose owner is checked",
    "simulation/goal.py gzip.open": "in a child, piece by piece",
    "tracing/netgauge.py pd.read_csv": "text that was read before",
}


def calls() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            # called here, or handed on to be called
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                of, name = node.value.id, node.attr
                if name in DIRECT.get(of, ()):
                    yield path.relative_to(PACKAGE).as_posix(), f"{of}.{name}"


def test_whatever_reads_a_file_itself_is_explained():
    direct = list(calls())
    assert {("reading.py", "pd.read_csv"), ("reading.py", "parquet.read_table")} <= set(direct)
    found = {f"{path} {call}" for path, call in direct if path != "reading.py"}
    unexplained = found - EXPLAINED.keys()
    assert not unexplained, f"use nbhelpers.reading, or explain why not: {sorted(unexplained)}"
    assert not EXPLAINED.keys() - found - {"reading.py"}
