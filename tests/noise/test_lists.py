"""The reader of lists in C: it is really used, in any layout, and whatever the text, both ways tell
the same.
"""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.noise import NoiseConfig, _lists, _reading

from .independent import event_table
from .test_config import OWN, PUBLISHED, SNIPPETS, VALUES, changed, places

pytestmark = pytest.mark.skipif(_lists.lib is None, reason="the reader is not built: make env")
UNUSUAL = [
    b" ",
    b"\n\t",
    b".0",
    b".00",
    b'"cpus": {}',
    b'"cpus": ',
    b'"lists, read apart"',
    b"\\",
    b'\\"',
    b"[[",
    b"]]",
    b"{",
    b"}",
    b"-0",
    b"00",
    b"4611686018427387904",
    b"4611686018427387903",
    b"9007199254740993.0",
    b'"7": [], ',
    b'"11": [[1,1,0]], ',
    "ü".encode(),
    b"\x00",
    b'"',
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("lists") / "config.json"


def told(path) -> object:
    """The config, or the words of the error."""
    try:
        return NoiseConfig.read(path)
    except InputError as error:
        return str(error)


def both_ways(path, data: bytes) -> object:
    """What the reader makes of the bytes, with the lists read in C and without."""
    path.write_bytes(data)
    fast = told(path)
    lib, _lists.lib = _lists.lib, None
    try:
        slow = told(path)
    finally:
        _lists.lib = lib
    assert fast == slow
    if isinstance(fast, NoiseConfig):
        assert fast.digest == slow.digest and fast.events().dtypes.equals(slow.events().dtypes)
    return fast


def layouts(document: dict) -> list[bytes]:
    one_a_line = json.dumps(document).replace("], [", "],\n   [")
    tabs = json.dumps(document, indent="\t", separators=(" ,\r\n", " :\t"))
    return [
        text.encode()
        for text in (
            one_a_line,
            tabs,
            json.dumps(document, separators=(",", ":")),
            f"\n {json.dumps(document)}\n\n",
            json.dumps(document, indent=3, ensure_ascii=False),
            json.dumps(dict(reversed(document.items()))),
        )
    ]


@pytest.mark.parametrize("document", [OWN, PUBLISHED], ids=["own", "published"])
def test_any_layout_of_json_is_read_in_c(path, document):
    for data in layouts(document):
        assert _lists.read_lists(data) is not None
        config = both_ways(path, data)
        assert isinstance(config, NoiseConfig) and _reading._from_lists(data, path)[:2] == (
            config.cpus,
            config.window_ns,
        )


def test_what_is_written_is_read_in_c(path, tmp_path):
    config = NoiseConfig.from_events(
        event_table(
            [
                (0, cpu, kind, 'a "]\\ü', 10 * at, 7)
                for cpu in (12, 0, 3)
                for at, kind in enumerate(["irq", "thread"] * 9)
            ]
        )
    )
    for written in (
        config.write(tmp_path / "own.json"),
        config.write_published(tmp_path / "published.json"),
    ):
        data = written.read_bytes()
        assert _reading._from_lists(data, written) is not None and isinstance(
            both_ways(path, data), NoiseConfig
        )


def test_lists_in_any_order_of_cpus(path):
    turned = OWN | {"cpus": dict(reversed(OWN["cpus"].items()))}
    assert _reading._from_lists(json.dumps(turned).encode(), path) is not None
    assert both_ways(path, json.dumps(turned).encode()) == both_ways(path, json.dumps(OWN).encode())


def test_lists_are_columns_and_tails_are_kept_once():
    lists = _lists.read_lists(
        b'{"3": [[1, 2, "x"], [4611686018427387903,0, "x"]], "0": [], "1": [[7.00, 8, "]", 5]]}'
    )
    assert (
        lists.frame == b""
        and lists.fractions
        and lists.cpus.tolist() == [3, 0, 1]
        and lists.lengths.tolist() == [2, 0, 1]
    )
    assert lists.start_ns.tolist() == [1, 2**62 - 1, 7] and lists.duration_ns.tolist() == [2, 0, 8]
    assert lists.tail.tolist() == [0, 0, 1] and lists.tails == [["x"], ["]", 5]]
    turned = lists.by_cpu()
    assert (
        turned.cpus.tolist() == [0, 1, 3]
        and turned.start_ns.tolist() == [7, 1, 2**62 - 1]
        and turned.tail.tolist() == [1, 0, 0]
    )


def test_more_different_tails_than_the_table_holds_are_read_in_the_slow_way(path):
    rows = [
        [2 * at, 1, "SCHED_OTHER", 0, "thread", f"t{at}"] for at in range(_lists.lib.NB_TAILS + 1)
    ]
    data = json.dumps(changed(["cpus"], {"0": rows})).encode()
    assert _lists.read_lists(data) is None and len(both_ways(path, data).events()) == len(rows)
    assert (
        len(_lists.read_lists(json.dumps(changed(["cpus"], {"0": rows[:-1]})).encode()).tails)
        == len(rows) - 1
    )


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"{}",
        b"[]",
        b'{"0"',
        b'{"0": [',
        b'{"0": [[1, 2',
        b'{"0": [[1, 2, ',
        b'{"0": [[1, 2, "',
        b'{"0": [[1, 2, "\\',
        b'{"0": [[1, 2, 0]]',
        b'{"0": [[1, 2, 0]]} x',
        b'{"0": [[1, 2, 0],]}',
        b'{"0": [[1, 2, 0]],}',
        b'{"0": [[01, 2, 0]]}',
        b'{"0": [[1, -2, 0]]}',
        b'{"0": [[1, 2]]}',
        b'{"00": []}',
        b'{"100000": []}',
        b'{"0": [[4611686018427387904, 2, 0]]}',
        b'{"0": [[1.5, 2, 0]]}',
        b'{"0": [[1e3, 2, 0]]}',
        b'{"0": [[1, 2, [0]]]}',
        b'{"0": [[1, 2, {}]]}',
        b'{"cpus": {"0": []}, "cpus": {"0": []}}',
        b'{"a": 1}',
        b'{"cpus": []}',
        b'{"a": {"cpus": {"0": []}}}',
        b"\xef\xbb\xbf{}",
    ],
)
def test_texts_that_are_left_to_the_slow_way(text):
    assert _lists.read_lists(text) is None


TEXTS = [data for document in (OWN, PUBLISHED) for data in layouts(document)]


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.sampled_from(TEXTS),
    st.lists(
        st.tuples(st.integers(0, 2000), st.integers(0, 4), st.sampled_from(SNIPPETS + UNUSUAL)),
        min_size=1,
        max_size=3,
    ),
)
def test_both_ways_tell_the_same_of_mutated_bytes(path, text, changes):
    for at, length, snippet in changes:
        at %= len(text) + 1
        text = text[:at] + snippet + text[at + length :]
    both_ways(path, text)


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from([OWN, PUBLISHED]), st.data())
def test_both_ways_tell_the_same_of_replaced_values(path, document, data):
    document = changed(
        list(data.draw(st.sampled_from(places(document)))), data.draw(VALUES), document
    )
    both_ways(path, json.dumps(document).encode())


def test_a_large_config_is_the_same_in_both_ways(path):
    random = np.random.default_rng(5)
    kinds, count = ["nmi", "irq", "softirq", "thread", "hardware"], 4000
    rows = [
        (0, int(cpu), kinds[kind], f"source {kind}", int(start), int(length))
        for cpu, kind, start, length in zip(
            random.integers(0, 5, count),
            random.integers(0, 5, count),
            random.integers(0, 10**9, count),
            random.integers(1, 10**6, count),
        )
    ]
    config = NoiseConfig.from_events(event_table(rows))
    assert both_ways(path, config.write(path).read_bytes()) == config
    assert isinstance(both_ways(path, config.write_published(path).read_bytes()), NoiseConfig)
