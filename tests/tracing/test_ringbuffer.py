"""Pages of the ring buffer: hand-made ones with every kind of record, and recorded ones against the
kernel's own text.
"""

import gzip
import json
import struct

import numpy as np
import pytest

from nbhelpers.errors import InputError, LostEvents
from nbhelpers.tracing import read_recording
from nbhelpers.tracing._formats import EventFormat, texts
from nbhelpers.tracing._ringbuffer import PageLayout, decode_pages
from nbhelpers.tracing.text import tracepoints_of_text

LAYOUT = PageLayout(8, 8, 16, 4096)


def page(*records, time=1000, flags=0, layout=LAYOUT):
    body = b"".join(records)
    head = struct.pack("<QQ" if layout.commit_bytes == 8 else "<QI", time, len(body) | flags)
    return np.frombuffer((head + body).ljust(layout.page_bytes, b"\xee"), np.uint8)


def event(delta, data, long=False):
    if long:
        return struct.pack("<II", delta << 5, len(data) + 4) + data
    return struct.pack("<I", delta << 5 | len(data) // 4) + data


def extend(delta):
    return struct.pack("<II", (delta & (1 << 27) - 1) << 5 | 30, delta >> 27)


def stamp(time):
    return struct.pack("<II", (time & (1 << 27) - 1) << 5 | 31, time >> 27 & 0xFFFFFFFF)


def padding(delta, size):
    return struct.pack("<II", delta << 5 | 29, size - 4) + b"\xee" * (size - 8)


def decoded(*pages, layout=LAYOUT):
    data = np.concatenate(pages)
    found = decode_pages(data, layout)
    return [
        (int(time), data[at : at + size].tobytes())
        for time, at, size in zip(found.time_ns, found.offset, found.size)
    ]


A, B, C = b"aaaa", b"bbbbbbbb", b"c" * 200


def test_every_kind_of_record():
    records = (
        event(5, A),
        extend(1 << 30),
        event(1, B),
        padding(3, 24),
        event(0, C, long=True),
        stamp((1 << 59) - 7),
        event(2, A),
    )
    assert decoded(page(*records)) == [
        (1005, A),
        (1006 + (1 << 30), B),
        (1009 + (1 << 30), C),
        ((1 << 59) - 5, A),
    ]


def test_pages_follow_each_other_in_order():
    first, second = page(event(1, A), event(1, B), time=10), page(event(1, C, long=True), time=20)
    assert decoded(first, second) == [(11, A), (12, B), (21, C)]


def test_the_rest_of_a_page_may_be_padding():
    assert decoded(page(event(1, A), struct.pack("<I", 29) + b"\xee" * 40)) == [(1001, A)]


def test_absolute_stamps_take_their_top_bits_from_the_page():
    """59 bits are stored; past the round the stamp is smaller than the time before it, and one is
    carried.
    """
    before = (1 << 59) * 3 + 100
    assert decoded(page(stamp(200), event(1, A), time=before)) == [((1 << 59) * 3 + 201, A)]
    assert decoded(page(stamp(50), event(1, A), time=before)) == [((1 << 59) * 4 + 51, A)]


def test_small_commits_and_large_pages():
    layout = PageLayout(8, 4, 12, 65536)
    assert decoded(
        page(event(1, A), event(1, b"d" * 60000, long=True), layout=layout), layout=layout
    ) == [(1001, A), (1002, b"d" * 60000)]


def test_no_page_and_an_empty_page():
    assert decoded(np.zeros(0, np.uint8)) == [] == decoded(page())


@pytest.mark.parametrize("flags", [1 << 31, 3 << 30])
def test_missed_events_are_told_from_the_commit_word(flags):
    with pytest.raises(LostEvents, match="page 1"):
        decoded(page(event(1, A)), page(event(1, A), flags=flags))


@pytest.mark.parametrize(
    "bad",
    [
        page(struct.pack("<I", 1 << 5 | 28) + b"x" * 8),
        page(struct.pack("<II", 1 << 5, 5000)),
        page(struct.pack("<II", 1 << 5, 0)),
        page(flags=5000),
        page(flags=6),
        page(event(1, A), time=(1 << 64) - 5),
        page(event(1, A))[:4000],
    ],
)
def test_damage_is_refused(bad):
    with pytest.raises(InputError, match="damaged|truncated|claims"):
        decoded(bad)


def test_the_layout_is_read_from_the_kernel(data):
    known = json.loads(gzip.decompress((data / "contended.formats.json.gz").read_bytes()))
    assert PageLayout.parse(known["header_page"]) == LAYOUT
    for text in (
        "",
        known["header_page"].replace("4080", "4081"),
        known["header_page"].replace("offset:16", "offset:15"),
    ):
        with pytest.raises(InputError):
            PageLayout.parse(text)


def test_recorded_pages_against_the_kernels_own_text(recorded, data):
    """Event by event: CPU, time (to 1 µs), who ran, name and every field of 2867 events, by the
    readers of pages and of text.
    """
    raw = read_recording(recorded("contended"))[1].reset_index(drop=True)
    text = tracepoints_of_text(data / "contended.trace.txt.gz")
    text = text.sort_values("cpu", kind="stable", ignore_index=True)
    assert len(text) == len(raw) == 2867
    assert (raw["time_ns"] - text["time_ns"]).abs().max() <= 500
    sleeps = (one.pop("prev_state") & 0xFF != 0 for one in (raw, text))
    assert next(sleeps).equals(next(sleeps))
    for name in raw.columns.drop("time_ns"):
        assert raw[name].astype(str).tolist() == text[name].astype(str).tolist(), name


FORMAT = """name: x
ID: 9
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;
\tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;
\tfield:__rel_loc char[] other;\toffset:12;\tsize:4;\tsigned:0;
\tfield:char comm[16];\toffset:16;\tsize:16;\tsigned:0;
"""


def test_texts_in_and_outside_of_the_fields():
    known = EventFormat.parse("x", FORMAT)
    record = (
        struct.pack("<HHiII16s", 9, 0, 77, 5 << 16 | 32, 3 << 16 | 21, b"comm\0left over")
        + b"name\0ot\0\0"
    )
    data = np.frombuffer(record * 3, np.uint8)
    at, size = np.arange(3) * len(record), np.full(3, len(record))
    for field, wanted in (("name", "name"), ("other", "ot"), ("comm", "comm")):
        assert texts(data, at, size, known.field(field)).tolist() == [wanted] * 3
    with pytest.raises(InputError, match="outside"):
        texts(data, at, np.full(3, 34), known.field("name"))
    with pytest.raises(InputError, match="no field 'nothing'"):
        known.field("nothing")
