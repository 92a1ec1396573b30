"""Small files that would become large, or take for ever: each is read, or refused in words, within
300 MB of memory, of this process or of the child that reads.
"""

import functools
import gzip
import io
import json
import lzma
import os
import random
import resource
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from nbhelpers.artifact.unpack import checked_files, looked_at
from nbhelpers.errors import NoisebookError
from nbhelpers.measurement.other_tools import read_benchmark
from nbhelpers.mpi._records import HEADER_BYTES, read_rank
from nbhelpers.noise import NoiseConfig
from nbhelpers.reading import read_csv, read_json, read_parquet, read_yaml
from nbhelpers.records import read as read_records
from nbhelpers.simulation.goal import read_goal
from nbhelpers.speed.samples import content_of
from nbhelpers.tracing.detours import read_detours_run
from nbhelpers.tracing.netgauge import read_netgauge
from nbhelpers.tracing.osnoise import read_osnoise
from nbhelpers.tracing.text import read_text
from nbhelpers.tracing.tracepoints import FORMAT, read_recording
from nbhelpers.verify import examine

MOST_KIB = 300_000
ZEROS = bytes(80_000_000)
PADDING = random.Random(1).randbytes(750_000).hex().encode()  # packs to a half
MANIFEST = b'{"format": "noisebook artifact 1"}'
LISTED = b'{"@id": "a", "sha256": "b"},' * 100_000 + b"{}]}"
packed = functools.partial(gzip.compress, compresslevel=1)
list_of = functools.partial(read_yaml, what="list")
fast_list_of = functools.partial(read_yaml, what="list", fast=True)


def table(**columns: object) -> bytes:
    """Parquet of plain columns: the schema of Arrow is not stored."""
    file = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), file, compression="zstd", store_schema=False)
    return file.getvalue()


def same(text: str, rows: int) -> pyarrow.Array:
    """A text so many times, stored one time."""
    return pyarrow.DictionaryArray.from_arrays(np.zeros(rows, "int32"), [text])


def deep(levels: int) -> pyarrow.Array:
    kind = pyarrow.int8()
    for _ in range(levels):
        kind = pyarrow.list_(kind)
    return pyarrow.nulls(10, kind)


def study(change: Callable[[zipfile.ZipFile], object], listed: bytes = b"") -> bytes:
    """A zip as of `make artifact`, with something more in it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("artifact.json", MANIFEST)
        archive.writestr("ro-crate-metadata.json", listed or b'{"@graph": []}')
        change(archive)
    return file.getvalue()


def holding(content: bytes) -> bytes:
    return study(lambda archive: archive.writestr("data/a", content))


def listing(text: bytes) -> bytes:
    """One whose list of files begins so."""
    return study(lambda archive: None, b'{"@graph": [' + text)


def again_and_again(archive: zipfile.ZipFile) -> None:
    """One content under many names, as in Fifield's bomb."""
    archive.writestr("data/0", ZEROS[:2_000_000])
    archive.filelist += [archive.filelist[-1]] * 10_000


def lying(content: bytes) -> bytes:
    """Of the last entry the directory says that it becomes 9 bytes long."""
    at = content.rindex(b"PK\1\2") + 24
    return content[:at] + struct.pack("<I", 9) + content[at + 4 :]


def linked(archive: zipfile.ZipFile) -> None:
    link = zipfile.ZipInfo("data/link")
    link.external_attr = 0o120777 << 16
    archive.writestr(link, "/etc/passwd")


def whole(path: Path) -> None:
    looked_at(path, lambda source: sum(1 for _ in checked_files(source)))


def padded_lists() -> bytes:
    """Lists that pack as little as our data do."""
    return packed(b'["' + PADDING + b'"' + b",[]" * 12_000_000 + b"]\n")


def speed(header: dict) -> bytes:
    return packed(json.dumps({"format": "noisebook speed 3", "run": 1} | header).encode() + b"\n")


def line(fields: bytes, event: bytes = b"sched_switch") -> tuple[Callable, str, Callable]:
    """A trace in text whose second line has these fields."""
    switch = b"a-1 [000] d..2. 1.000001: sched_switch: a:1 [120] S ==> b:2 [120]\n"
    head = b"a-1 [000] d..2. 1.000002: " + event + b": " if event else b""
    return read_text, ".txt", lambda: switch + head + fields + b"\n"


JSON, CSV, YAML, PARQUET, ZIP = ".json", ".csv", ".yml", ".parquet", ".zip"
BOMBS: dict[str, tuple[Callable, str, Callable[[], bytes]]] = {
    "zeros": (read_json, JSON, lambda: packed(ZEROS)),
    "empty lists": (read_json, JSON, lambda: packed(b"[" + b"[]," * 30_000_000)),
    "packed twice": (read_json, JSON, lambda: packed(packed(ZEROS))),
    "many members": (read_json, JSON, lambda: packed(b" " * 9) * 10_000),
    "a tail": (read_json, JSON, lambda: packed(b"{}") + ZEROS[:500_000]),
    "deep lists": (read_json, JSON, lambda: b"[" * 1_000_000),
    "deep objects": (read_json, JSON, lambda: b'{"a":' * 1_000_000),
    "one long number": (read_json, JSON, lambda: b"9" * 1_000_000),
    "escapes": (read_json, JSON, lambda: b'"' + b"\\ud83d" * 1_000_000 + b'"'),
    "laughs": (
        fast_list_of,
        YAML,
        lambda: "\n".join(["a0: &a0 [x, x]"] + [f"a{n}: [*a{n - 1}]" for n in range(40)]).encode(),
    ),
    "deep YAML": (list_of, YAML, lambda: b"? " * 100_000),
    "many values": (fast_list_of, YAML, lambda: b"- a\n" * 60_000),
    "sixty times sixty": (fast_list_of, YAML, lambda: b"a: 1" + b":1" * 100_000),
    "many digits": (list_of, YAML, lambda: b"a: " + b"7" * 200_000),
    "many columns": (read_csv, CSV, lambda: packed(b"a," * 4_000_000)),
    "many cells": (read_csv, CSV, lambda: packed(b"a\n" + b"1e9\n" * 12_000_000)),
    "an open quote": (read_csv, CSV, lambda: b'a\n"' + b"x\n" * 4_000_000),
    "one text": (read_parquet, PARQUET, lambda: table(a=same("x" * 18_000, 65_000))),
    "one text, several batches": (
        read_parquet,
        PARQUET,
        lambda: table(a=same("x" * 900, 300_000), b=same("y" * 900, 300_000)),
    ),
    "one number": (read_parquet, PARQUET, lambda: table(a=np.zeros(20_000_000, "int64"))),
    "nothing": (read_parquet, PARQUET, lambda: table(a=pyarrow.nulls(20_000_000))),
    "deep Parquet": (read_parquet, PARQUET, lambda: table(a=deep(60))),
    "wide Parquet": (read_parquet, PARQUET, lambda: table(**{f"a{n}": [1] for n in range(1000)})),
    "zeros in a zip": (examine, ZIP, lambda: holding(ZEROS)),
    "one file, many names": (whole, ZIP, lambda: study(again_and_again)),
    "a list of files": (whole, ZIP, lambda: listing(b"[]," * 15_000_000)),
    "one id, many times": (whole, ZIP, lambda: listing(LISTED)),
    "a size that lies": (whole, ZIP, lambda: lying(holding(ZEROS))),
    "outside": (whole, ZIP, lambda: study(lambda zip: zip.writestr("../../a", "x"))),
    "a link": (whole, ZIP, lambda: study(linked)),
    "many ranks": (read_goal, ".goal", lambda: b"num_ranks 2000000000\nrank 0 {\n}\n"),
    "many operations": (
        read_goal,
        ".goal",
        lambda: packed(b"num_ranks 1\nrank 0 {\n") + packed(b"l1: calc 9\n" * 1_000_000) * 40,
    ),
    "many operations, xz": (
        read_goal,
        ".goal",
        lambda: lzma.compress(b"num_ranks 1\nrank 0 {\n" + b"l1: calc 9\n" * 40_000_000, preset=0),
    ),
    "a packed schedule": (
        read_goal,
        ".goal",
        lambda: packed(struct.pack("<QI", 4223, 1 << 31) + ZEROS),
    ),
    "speed": (content_of, ".gz", lambda: packed(b"{}\n" + ZEROS)),
    "many marks": (content_of, ".gz", lambda: speed({"marks": 10**18, "threads": -(10**18)})),
    "MPI calls": (
        read_rank,
        ".calls",
        lambda: (
            struct.pack("=8s4i8q64s128s", b"nbtrace1", 0, *[2**31 - 1] * 3, 0, *range(7), b"", b"")
            + bytes(HEADER_BYTES)
        ),
    ),
    "osnoise": (read_osnoise, ".txt", lambda: b"# tracer: osnoise\n" + b"x" * 9_000_000),
    "tracepoints": (
        read_recording,
        ".gz",
        lambda: packed(
            json.dumps(
                {"format": FORMAT, "lost": 0, "buffers": [{"cpu": 0, "bytes": 10**18}]}
            ).encode()
            + b"\n"
        ),
    ),
    "padded lists": (read_json, JSON, padded_lists),
    "a padded header, tracepoints": (read_recording, ".gz", padded_lists),
    "a padded header, detours": (read_detours_run, ".gz", padded_lists),
    "a padded header, speed": (content_of, ".gz", padded_lists),
    "padded records": (read_records, ".jsonl.gz", lambda: packed(PADDING + b"\n{}" * 12_000_000)),
    "runs of one letter": (
        read_benchmark,
        JSON,
        lambda: b'{"results": [{"command": "a", "times": [0.5' + b",1" * 1_900_000 + b"]}]}",
    ),
    "blanks": line(b" " * 200_000, b""),
    "a long word": line(b"x" * 1_000_000, b"event"),
    "the same fields": line(
        b"prev_comm=a" + b" prev_pid=1 prev_prio=1 prev_state=S next_comm=" * 20_000
    ),
    "woken again and again": line(b"pid=1 " * 100_000, b"sched_wakeup"),
    "a period": (read_netgauge, ".txt", lambda: b"#" + b"period" * 100_000 + b"\n1 2\n"),
    "open brackets": line(
        b"[1.000000001] h irq_handler_entry: { cpu_id = 0 }, { " + b"a = ( " * 100_000, b""
    ),
    "a long noise": (NoiseConfig.read, JSON, lambda: b'{"0": [' + b"[1e308,1e308,1e308]," * 50_000),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_takes_little_memory_and_time(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, ending, content = BOMBS[name]
    children = [0]

    def waitpid(pid: int, options: int) -> tuple[int, int]:
        pid, status, used = os.wait4(pid, options)
        children.append(used.ru_maxrss)
        return pid, status

    monkeypatch.setattr(os, "waitpid", waitpid)
    path = tmp_path / f"input{ending}"
    path.write_bytes(content())
    assert path.stat().st_size < 10_000_000
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, limit = kib_of("VmRSS"), resource.getrlimit(resource.RLIMIT_AS)
    try:
        read(path)
    except NoisebookError as error:
        assert "input" in str(error)
    assert max(kib_of("VmHWM"), *children) - before < MOST_KIB
    assert resource.getrlimit(resource.RLIMIT_AS) == limit


def kib_of(name: str) -> int:
    rows = Path("/proc/self/status").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith(name))
