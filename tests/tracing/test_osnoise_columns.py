"""The usual lines of osnoise text by columns: the same tables and the same errors as line by line,
whatever happened to a line.
"""

import gzip
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.tracing import _osnoise_columns, osnoise, read_osnoise

from .line_by_line import no_usual_lines

TRACES = ("osnoise-run-000", "osnoise-run-003", "vm-both", "vm-samples")
HEAD = "          <idle>-0       [001] dNh..    24.085870: "
LINES = [
    HEAD + "irq_noise: reschedule:253 start 24.085836767 duration 12880 ns",
    HEAD + "softirq_noise:      RCU:9 start 24.088136751 duration 150545 ns",
    HEAD + "thread_noise: kworker/u4:1:41 start 24.089199778 duration 153930 ns",
    HEAD + "nmi_noise: start 24.085836767 duration 1 ns",
    HEAD + "thread_noise: a start 1.000000000 duration 2 ns:7 start 24.089199778 duration 3 ns",
    HEAD + "irq_noise: a:1 start 0.000000000 duration 24089190665 ns",
    HEAD + "irq_noise: a:1 start 9999999.999999999 duration 9999999999 ns",
    HEAD + "irq_noise: a:1 start 1.000000000 duration 18446744072104321024 ns",
    "  (sd-pam) a-b:c-4194304 [127] dNh.. 4123456.999999: irq_noise: a:1 start 7.000000000"
    " duration 20 ns",
    "            bash-66      [000] d.h1     6.903860: irq_noise: ä:1 start 6.000000007 duration"
    " 5 ns",
    "            bash-66      [000] d....     6.903860: sched_process_fork: comm=a pid=66"
    " child_comm=a child_pid=67",
    "           a[0]-66      [000] d....     6.903860: irq_noise: a:1 start 6.000000007 duration"
    " 5 ns",
    "            bash-66      (     66) [000] d....     6.903860: irq_noise: a:1 start 6.000000007"
    " duration 5 ns",
]
BYTE = st.sampled_from([b"", b" ", b":", b"[", b"]", b"-", b".", b"0", b"9", b"\0", b"\t", b"a"])
CHANGE = st.tuples(st.integers(0, 130), st.integers(0, 3), st.one_of(BYTE, st.binary(max_size=2)))


def found_in(path, **how):
    """The table, or the words of the error."""
    try:
        return read_osnoise(path, **how)
    except InputError as error:
        return str(error)


def both_ways(path, monkeypatch, **how):
    ours = found_in(path, **how)
    with monkeypatch.context() as patch:
        patch.setattr(osnoise, "blocks_of_lines", no_usual_lines)
        plain = found_in(path, **how)
    return ours, plain


def assert_same(ours, plain):
    if isinstance(plain, str) or isinstance(ours, str):
        assert isinstance(ours, str) and ours == plain
        return
    pd.testing.assert_frame_equal(ours, plain)
    assert ours.attrs == plain.attrs
    assert list(ours["source"].cat.categories) == list(plain["source"].cat.categories)


@pytest.mark.parametrize("name", TRACES)
@pytest.mark.parametrize("workload", ["wl_omp", [103], None])
def test_recorded_traces(name, workload, data, monkeypatch):
    ours, plain = both_ways(data / f"{name}.trace.gz", monkeypatch, workload=workload)
    assert_same(ours, plain)
    assert len(ours) > 500


@pytest.mark.parametrize("name", TRACES)
def test_most_noise_lines_are_usual(name, data):
    """Otherwise the tests here would compare the regular expressions with themselves."""
    text = gzip.decompress((data / f"{name}.trace.gz").read_bytes())
    usual = sum(len(block.line) for block in _osnoise_columns.blocks_of_lines(text))
    assert usual > 0.95 * len(re.findall(rb"_noise: .* start \d", text)) - 5


@pytest.mark.parametrize("blocks", [1, 1000, 10**6])
def test_any_size_of_block(blocks, data, monkeypatch):
    path = data / "vm-samples.trace.gz"
    whole = read_osnoise(path)
    monkeypatch.setattr(_osnoise_columns, "_BLOCK_BYTES", blocks)
    assert_same(read_osnoise(path), whole)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.sampled_from(LINES), min_size=1, max_size=4),
    st.lists(CHANGE, max_size=3),
)
def test_changed_lines(tmp_path_factory, lines, changes):
    text = bytearray("".join(f"{line}\n" for line in lines).encode())
    for at, length, new in changes:
        text[at : at + length] = new
    # usual lines around them, so that the changed ones are not the block's last
    around = f"{LINES[0]}\n".encode() * 3
    path = tmp_path_factory.getbasetemp() / "changed.trace"
    path.write_bytes(around + bytes(text) + around)
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert_same(*both_ways(path, monkeypatch, window=(1, 10**17)))


def test_the_fields_of_a_usual_line():
    text = ("\n".join([LINES[2]] * 5) + "\n").encode()
    (block,) = _osnoise_columns.blocks_of_lines(text)
    assert block.bodies == [b"thread_noise: kworker/u4:1:41"] and len(block) == 5
    assert len(block.line) >= 3 and not np.intersect1d(block.line, block.others).size
    assert {name: column[0] for name, column in block.numbers.items()} == {
        "cpu": 1,
        "context_pid": 0,
        "stamp_ns": 24_085_870_000,
        "start_ns": 24_089_199_778,
        "duration_ns": 153_930,
    }
