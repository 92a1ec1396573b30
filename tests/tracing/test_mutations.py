"""Thousands of damaged files thrown at each reader: a clear error or a sound table, never anything
else.
"""

import gzip
import json
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.tracing import read_detours_run, read_osnoise, read_tracepoints, write_tracepoints
from nbhelpers.tracing.foreign import window_from_workload

from .conftest import WHOLE, osnoise_file

EXAMPLES = settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

PLACE = st.floats(0, 1, exclude_max=True)
DAMAGE = st.lists(
    st.one_of(
        st.tuples(st.just("cut"), PLACE),
        st.tuples(st.just("flip"), PLACE, st.integers(0, 255)),
        st.tuples(st.just("bit"), PLACE, st.integers(0, 7)),
        st.tuples(st.just("delete"), PLACE, st.integers(1, 40)),
        st.tuples(st.just("double"), PLACE, st.integers(1, 40)),
        st.tuples(st.just("word"), PLACE, st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**30])),
        st.tuples(st.just("insert"), PLACE, st.binary(max_size=20)),
        st.tuples(st.just("line"), PLACE, st.sampled_from(["delete", "double", "first"])),
    ),
    min_size=1,
    max_size=4,
)


def damaged(content, damage):
    for kind, place, *how in damage:
        if not content:
            return content
        at = int(place * len(content))
        if kind == "cut":
            content = content[:at]
        elif kind == "flip":
            content = content[:at] + bytes(how) + content[at + 1 :]
        elif kind == "bit":
            content = content[:at] + bytes([content[at] ^ 1 << how[0]]) + content[at + 1 :]
        elif kind == "delete":
            content = content[:at] + content[at + how[0] :]
        elif kind == "double":
            content = content[:at] + content[at : at + how[0]] + content[at:]
        elif kind == "word":
            content = content[: at & ~3] + how[0].to_bytes(4, "little") + content[(at & ~3) + 4 :]
        elif kind == "insert":
            content = content[:at] + how[0] + content[at:]
        else:
            lines = content.split(b"\n")
            row = int(place * len(lines))
            lines = {
                "delete": lines[:row] + lines[row + 1 :],
                "double": [*lines[:row], lines[row], *lines[row:]],
                "first": [lines[row], *lines],
            }[how[0]]
            content = b"\n".join(lines)
    return content


def sound_or_refused(read, path):
    """Read; on success the table must keep its promises."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            events = read(path)
        except InputError as error:
            assert str(path) in str(error)
            return
    assert (
        (events.duration_ns >= 0).all()
        and (events.start_ns >= 0).all()
        and (events.end_ns >= events.start_ns).all()
    )
    assert events.end_ns.max() <= 1 << 62 if len(events) else True
    assert (
        events.notna().all().all()
        and (events.cpu >= 0).all()
        and events.dtypes["duration_ns"] == np.int64
    )


@pytest.fixture(scope="module")
def originals(data, recorded, tmp_path_factory):
    """Small true files: unpacked content by kind."""
    text = gzip.decompress((data / "osnoise-run-003.trace.gz").read_bytes()).split(b"\n")
    samples = gzip.decompress((data / "vm-samples.trace.gz").read_bytes()).split(b"\n")
    known = json.loads(gzip.decompress((data / "contended.formats.json.gz").read_bytes()))
    pages = {
        cpu: gzip.decompress((data / f"contended.cpu{cpu}.raw.gz").read_bytes())[:8192]
        for cpu in (0, 1)
    }
    header = WHOLE | {
        "off_ns": 2335 * 10**9,
        "start_ns": 2334600000000,
        "end_ns": 2334900000000,
        "workload_pids": [21737],
        "excluded_pids": [5],
    }
    small = write_tracepoints(tmp_path_factory.mktemp("small") / "x.gz", header | known, pages)
    return Originals(
        {
            "osnoise": b"\n".join(text[:150]) + b"\n",
            "samples": b"\n".join(samples[:60] + samples[1640:1660]) + b"\n",
            "our osnoise": osnoise_file(
                b"\n".join(text[:100]) + b"\n",
                clock="mono",
                start_ns=24 * 10**9,
                end_ns=26 * 10**9,
                workload_pids=[103],
            ),
            "tracepoints": gzip.decompress(small.read_bytes()),
            "detours": _detours(),
        }
    )


class Originals(dict):
    def __repr__(self):
        return "originals"  # hypothesis prints it with every failure


def _detours():
    header = np.array(
        [(b"nbdetour", 1, 2, 1000, 10**9, 10**8, 30, 300)], dtype="S8,u4,u4,i8,i8,i8,i8,i8"
    )
    threads = np.array(
        [(cpu, 1, 3, 0, 10, 10**8, 10**8, 10**6) for cpu in (0, 1)], dtype="i4,i4,i8,i8,i8,i8,i8,i8"
    )
    detours = np.array([(i * 10**6, 500 + i) for i in (1, 2, 3, 1, 2, 3)], dtype="i8,i8")
    return (
        json.dumps({"format": "noisebook detours 1", "run": 4}).encode()
        + b"\n"
        + header.tobytes()
        + threads.tobytes()
        + detours.tobytes()
    )


READERS = {
    "osnoise": lambda path: read_osnoise(path, workload="wl_omp"),
    "samples": read_osnoise,
    "our osnoise": read_osnoise,
    "tracepoints": read_tracepoints,
    "detours": read_detours_run,
}


@pytest.mark.parametrize("kind", READERS)
def test_the_undamaged_files_are_read(kind, originals, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(originals[kind])
    assert len(READERS[kind](path)) > 5


@pytest.mark.parametrize("kind", READERS)
@EXAMPLES
@given(damage=DAMAGE)
def test_damaged_content(kind, originals, tmp_path, damage):
    path = tmp_path / "file"
    path.write_bytes(damaged(originals[kind], damage))
    sound_or_refused(READERS[kind], path)


@pytest.mark.parametrize("kind", READERS)
@settings(EXAMPLES, max_examples=100)
@given(damage=DAMAGE)
def test_damaged_archives(kind, originals, tmp_path, damage):
    path = tmp_path / "file.gz"
    path.write_bytes(damaged(gzip.compress(originals[kind], mtime=0), damage))
    sound_or_refused(READERS[kind], path)


HEADER_VALUE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.one_of(st.integers(-5, 2**40), st.none()), max_size=3),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
)


@pytest.mark.parametrize("kind", ["tracepoints", "our osnoise", "detours"])
@settings(EXAMPLES, max_examples=200)
@given(change=st.data())
def test_damaged_headers(kind, originals, tmp_path, change):
    line, _, body = originals[kind].partition(b"\n")
    mark, header = line[: line.index(b"{")], json.loads(line[line.index(b"{") :])
    for key in change.draw(st.lists(st.sampled_from(sorted(header)), min_size=1, max_size=2)):
        header[key] = change.draw(HEADER_VALUE)
        if change.draw(st.booleans()):
            header.pop(key)
    path = tmp_path / "file"
    path.write_bytes(mark + json.dumps(header).encode() + b"\n" + body)
    sound_or_refused(READERS[kind], path)


@settings(EXAMPLES, max_examples=100)
@given(damage=DAMAGE)
def test_damaged_traces_and_the_window(originals, tmp_path, damage):
    path = tmp_path / "a.trace"
    path.write_bytes(damaged(originals["osnoise"], damage))
    path.with_suffix(".out").write_text("Total Duration: 1.0 seconds\n")
    try:
        begin, end = window_from_workload(path, "bash")
    except InputError as error:
        assert str(path) in str(error)
        return
    assert 0 < begin < end
