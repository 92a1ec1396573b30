"""Every reader of a file from outside: a damaged or hostile one is read, or refused in words."""

import gzip
import os
import struct
from hashlib import sha256

import pandas as pd
import pytest

from nbhelpers.errors import InputError, NoisebookError
from nbhelpers.measurement._knowledge import read_layer
from nbhelpers.measurement.other_tools import read_benchmark
from nbhelpers.mpi._records import read_rank
from nbhelpers.mpi.pingpong import COLUMNS as PINGPONG
from nbhelpers.mpi.pingpong import read_pingpong
from nbhelpers.noise import NoiseConfig
from nbhelpers.places import shipped
from nbhelpers.profiles import _read as read_profile
from nbhelpers.reading import read_bytes, read_csv, read_json, read_parquet, read_yaml
from nbhelpers.simulation.goal import read_goal
from nbhelpers.speed.samples import content_of
from nbhelpers.tracing.netgauge import read_netgauge
from nbhelpers.tracing.osnoise import read_osnoise
from nbhelpers.tracing.text import read_text
from nbhelpers.workbench.recorded import runs_of
from nbhelpers.workloads.description import read_description

from .test_bombs import MANIFEST, listing, whole

_TABLE = pd.DataFrame({"seconds": [1.0, 2.0, 4.0], "count": [1, 2, 3]})
_CSV = _TABLE.to_csv(index=False).encode()
_PARQUET = _TABLE.to_parquet()
_LAYER = (shipped() / "data/knowledge/metrics/rusage.yml").read_bytes()
_PROGRAM = next(iter(sorted((shipped() / "data/knowledge/programs").glob("*.yml")))).read_bytes()
_NOISE = b'{"0": [[0.001, 0.0001, 0], [0.002, 0.0001, 1]]}'
_DETOURS = b"# detours\n1000 50\n2000 60\n"
_GOAL = b"num_ranks 2\nrank 0 {\nl1: send 8b to 1\n}\nrank 1 {\nl1: recv 8b from 0\n}\n"
_PINGPONG = " ".join(PINGPONG).encode() + b"\nroundtrip 1 1 0 0 500 20\nburst 1 10 0 0 90 30\n"
_CALLS = struct.pack("=8s4i8q64s128s", b"nbtrace1", 0, 2, 3, 0, 0, *range(7), b"host", b"MPI")
_CALLS = (_CALLS + b"MPI_Send\nMPI_Recv\0").ljust(8192, b"\0") + bytes(range(1, 97)) * 4
_SWITCH = b"a-1 [000] d..2. 1.000001: sched_switch: a:1 [120] S ==> b:2 [120]\n"
_LTTNG = b'[1.000000001] h irq_handler_entry: { cpu_id = 0 }, { irq = 7, name = "eth0" }\n'
_HYPERFINE = b'{"results": [{"command": "a", "times": [0.5, 0.25], "exit_codes": [0, 1]}]}'
_PYPERF = b'{"benchmarks": [{"metadata": {"name": "a"}, "runs": [{"values": [0.5, 0.25]}]}]}'
_GOOGLE = b'{"context": {}, "benchmarks": [{"name": "a", "real_time": 5, "cpu_time": 4}]}'
_DIGEST = sha256(MANIFEST).hexdigest().encode()
_ZIP = listing(b'{"@id": "artifact.json", "sha256": "%s"}]}' % _DIGEST)
READERS = {
    "yaml": (lambda path: read_yaml(path, "list", fast=True), ".yml", b"a: [1, 2]\nb: {c: 3}\n"),
    "json": (read_json, ".json", b'{"a": [1, 2.5], "b": {"c": "d"}}'),
    "csv": (read_csv, ".csv", _CSV),
    "parquet": (read_parquet, ".parquet", _PARQUET),
    "layer": (read_layer, ".yml", _LAYER),
    "program": (read_description, ".yml", _PROGRAM),
    "profile": (read_profile, ".yml", b"30-injection: {runs: 3}\n"),
    "noise": (NoiseConfig.read, ".json", _NOISE),
    "workbench csv": (runs_of, ".csv", _CSV),
    "workbench parquet": (runs_of, ".parquet", _PARQUET),
    "netgauge": (read_netgauge, ".txt", _DETOURS),
    "osnoise": (read_osnoise, ".txt", b"# tracer: osnoise\n"),
    "text": (read_text, ".txt", _SWITCH * 2),
    "lttng": (read_text, ".txt", _LTTNG * 2),
    "hyperfine": (read_benchmark, ".json", _HYPERFINE),
    "pyperf": (read_benchmark, ".json", _PYPERF),
    "google": (read_benchmark, ".json", _GOOGLE),
    "goal": (read_goal, ".goal", _GOAL),
    "ping-pong": (read_pingpong, ".txt", _PINGPONG),
    "MPI calls": (read_rank, ".calls", _CALLS),
    "shared study": (whole, ".zip", _ZIP),
    "speed": (content_of, ".gz", gzip.compress(b'{"format": "noisebook speed 2", "run": 1}\n')),
}
MUTATIONS = {
    "as it is": lambda data: data,
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "one short": lambda data: data[:-1],
    "bit at the begin": lambda data: bytes([data[0] ^ 4]) + data[1:],
    "bit in the middle": lambda data: _with_bit(data, len(data) // 2),
    "bit near the end": lambda data: _with_bit(data, -len(data) // 8),
    "no UTF-8": lambda data: data[:9] + b"\xe4\xff" + data[9:],
    "NUL": lambda data: data[:9] + b"\0" + data[9:],
    "BOM": lambda data: b"\xef\xbb\xbf" + data,
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "huge numbers": lambda data: _digits(data, b"9" * 5000),
    "beyond int64": lambda data: _digits(data, b"99999999999999999999"),
    "negative": lambda data: _digits(data, b"-7"),
    "NaN": lambda data: _digits(data, b"NaN"),
    "infinite": lambda data: _digits(data, b"1e999"),
    "text": lambda data: _digits(data, b'"x"'),
    "null": lambda data: b"null",
    "a list": lambda data: b"[1, {}]",
    "braces": lambda data: data.replace(b"a", b"{a!x}%s"),
    "deep": lambda data: b"[" * 200_000,
    "deep blocks": lambda data: b"- " * 50_000,
    "long line": lambda data: b"x" * 1_000_000,
    "laughs": lambda data: _laughs(),
    "damaged gzip": lambda data: gzip.compress(data)[:-9],
    "packed": lambda data: gzip.compress(data),
    "twice": lambda data: data + data,
}


def _with_bit(data, at):
    changed = bytearray(data)
    changed[at] ^= 0x10
    return bytes(changed)


def _digits(data, by):
    import re

    return re.sub(rb"\d+", by, data, count=6)


def _laughs():
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40)]
    return "\n".join(lines).encode()


@pytest.mark.parametrize("name", READERS)
def test_whatever_is_in_a_file_it_is_read_or_refused_by_its_name(name, tmp_path):
    read, ending, sample = READERS[name]
    wrong = {}
    for mutation, change in MUTATIONS.items():
        path = tmp_path / f"input{ending}"
        path.write_bytes(change(sample))
        try:
            read(path)
        except NoisebookError as error:
            if "input" not in str(error) and "rank 0, line" not in str(error):
                wrong[mutation] = f"names no file: {error}"
        except Exception as error:
            wrong[mutation] = repr(error)[:200]
    assert not wrong


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_a_folder_and_nothing_are_refused_at_once(name, tmp_path):
    read, ending, _ = READERS[name]
    os.mkfifo(tmp_path / f"pipe{ending}")
    (tmp_path / f"folder{ending}").mkdir()
    for kind in ("pipe", "folder", "nothing"):
        with pytest.raises(NoisebookError, match=kind):
            read(tmp_path / f"{kind}{ending}")


def test_an_archive_is_unpacked_up_to_the_bound_only(tmp_path):
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(bytes(50_000_000)))
    with pytest.raises(InputError, match="larger than 1,000,000 bytes"):
        read_bytes(tmp_path / "bomb.json.gz", most=1_000_000)
