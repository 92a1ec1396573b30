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

from .conftest import WHOLE, osnoise_file, pages_of

EXAMPLES = settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

PLACE = st.floats(0, 1, exclude_max=True)
WORDS = [word.to_bytes(4, "little") for word in (0, 1, 2**30, 2**31, 2**32 - 1)]
# where, at a word's begin or not; how many bytes go; what stands there instead
SPLICE = st.tuples(
    PLACE,
    st.booleans(),
    st.sampled_from([0, 1, 4, 40, 1 << 30]),
    st.one_of(st.binary(max_size=20), st.sampled_from([*WORDS, b"\n"])),
)
DAMAGE = st.lists(SPLICE, min_size=1, max_size=4)


def damaged(content, damage):
    for place, aligned, removed, inserted in damage:
        at = int(place * len(content)) & (~3 if aligned else ~0)
        content = content[:at] + inserted + content[at + removed :]
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
    assert (events[["start_ns", "duration_ns", "cpu"]] >= 0).all(axis=None)
    assert (events.end_ns >= events.start_ns).all() and not (events.end_ns > 1 << 62).any()
    assert events.notna().all(axis=None) and events.dtypes["duration_ns"] == np.int64


@pytest.fixture(scope="module")
def originals(data, recorded, tmp_path_factory):
    """Small true files: unpacked content by kind."""
    text = gzip.decompress((data / "osnoise-run-003.trace.gz").read_bytes()).split(b"\n")
    samples = gzip.decompress((data / "vm-samples.trace.gz").read_bytes()).split(b"\n")
    known, pages = pages_of("contended")
    region = {"off_ns": 2335 * 10**9, "start_ns": 2334600000000, "end_ns": 2334900000000}
    header = WHOLE | region | {"workload_pids": [21737], "excluded_pids": [5]} | known
    small = {cpu: content[:8192] for cpu, content in pages.items()}
    path = write_tracepoints(tmp_path_factory.mktemp("small") / "x.gz", header, small)
    of_ours = {"clock": "mono", "start_ns": 24 * 10**9, "end_ns": 26 * 10**9}
    plain = b"\n".join(text[:150]) + b"\n"
    return Originals(
        {
            "osnoise": plain,
            "published": plain + b"Total Duration: 1.0 seconds\n",
            "samples": b"\n".join(samples[:60] + samples[1640:1660]) + b"\n",
            "our osnoise": osnoise_file(plain, workload_pids=[103], **of_ours),
            "tracepoints": gzip.decompress(path.read_bytes()),
            "detours": _detours(),
        }
    )


class Originals(dict):
    def __repr__(self):
        return "originals"  # hypothesis prints it with every failure


def _detours():
    head = np.array(
        [(b"nbdetour", 1, 2, 1000, 10**9, 10**8, 30, 300)], dtype="S8,u4,u4,i8,i8,i8,i8,i8"
    )
    threads = np.array(
        [(cpu, 1, 3, 0, 10, 10**8, 10**8, 10**6) for cpu in (0, 1)], dtype="i4,i4,i8,i8,i8,i8,i8,i8"
    )
    detours = np.array([(i * 10**6, 500 + i) for i in (1, 2, 3, 1, 2, 3)], dtype="i8,i8")
    line = json.dumps({"format": "noisebook detours 1", "run": 4}).encode() + b"\n"
    return line + head.tobytes() + threads.tobytes() + detours.tobytes()


def _read_published(path):
    return read_osnoise(path, window=window_from_workload(path, "rcu_sched"), workload="rcu_sched")


READERS = {
    "osnoise": lambda path: read_osnoise(path, workload="wl_omp"),
    "published": _read_published,
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


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", READERS)
@EXAMPLES
@given(damage=DAMAGE)
def test_damaged_content(kind, packed, originals, tmp_path, damage):
    path = tmp_path / ("file.gz" if packed else "file")
    content = gzip.compress(originals[kind], mtime=0) if packed else originals[kind]
    path.write_bytes(damaged(content, damage))
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
@EXAMPLES
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
