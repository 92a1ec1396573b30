"""Noise configs as files: both formats, the schema, errors that name their place, thousands of
damaged files.
"""

import copy
import gzip
import json

import jsonschema
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.noise import NoiseConfig
from nbhelpers.noise._reading import SCHEMA

from .independent import event_table

COLUMNS = ["start_ns", "duration_ns", "policy", "priority", "kind", "source"]
OWN = {
    "format": "noisebook noise config 1",
    "provenance": {"run": 7, "seconds": 0.001},
    "window_ns": 1_000_000,
    "columns": COLUMNS,
    "cpus": {
        "0": [
            [120, 50, "SCHED_FIFO", 50, "irq", "local_timer"],
            [400, 90, "SCHED_OTHER", 0, "thread", "kworker/0:1"],
            [490, 10, "SCHED_OTHER", -5, "thread", 'a "b"'],
        ],
        "1": [],
        "10": [[0, 7, "SCHED_RR", 99, "thread", "ütil"]],
    },
}
PUBLISHED = {
    "0": [[120, 50, -1], [400, 90, 0], [1000, 0, 0]],
    "1": [[0, 10, -50], [900, 200, 0], [1000.0, 0, 0]][:2] + [[1100, 0, 0]],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("configs")


def read(folder, document) -> NoiseConfig:
    path = folder / "config.json"
    path.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
    return NoiseConfig.read(path)


def changed(place: list, value: object, document: dict = OWN) -> dict:
    """The document with another value at a place."""
    document = copy.deepcopy(document)
    at = document
    for step in place[:-1]:
        at = at[step]
    at[place[-1]] = value
    return document


def test_own_format_there_and_back(folder):
    config = read(folder, OWN)
    assert (
        config.cpus == (0, 1, 10)
        and config.window_ns == 1_000_000
        and config.provenance == OWN["provenance"]
    )
    for name in ("own.json", "own.json.gz"):
        path = config.write(folder / name)
        assert NoiseConfig.read(path) == config
        first = path.read_bytes()
        assert config.write(path).read_bytes() == first
    assert json.loads((folder / "own.json").read_text()) == OWN
    assert (
        gzip.decompress((folder / "own.json.gz").read_bytes()) == (folder / "own.json").read_bytes()
    )
    assert (
        '\n   [120, 50, "SCHED_FIFO", 50, "irq", "local_timer"],\n'
        in (folder / "own.json").read_text()
    )


rows = st.lists(
    st.tuples(
        st.just(0),
        st.sampled_from([0, 1, 7, 12]),
        st.sampled_from(["nmi", "irq", "softirq", "thread", "hardware"]),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
        st.integers(0, 2**40),
        st.integers(1, 2**40),
    ),
    min_size=1,
    max_size=25,
)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows, st.sampled_from(["improved", "pessimistic", "compat"]))
def test_any_config_survives_the_file_and_fits_the_schema(folder, rows, merge):
    config = NoiseConfig.from_events(event_table(rows), merge=merge, provenance={"name": "x"})
    path = config.write(folder / "any.json")
    again = NoiseConfig.read(path)
    assert again == config and again.digest == config.digest
    jsonschema.validate(
        json.loads(path.read_text()),
        json.loads(SCHEMA.read_text()),
        jsonschema.Draft202012Validator,
    )
    back = NoiseConfig.read(config.write_published(folder / "published.json"))
    same = ["cpu", "start_ns", "duration_ns"]
    assert back.window_ns == config.window_ns and back.cpus == config.cpus
    pd.testing.assert_frame_equal(back.events()[same], config.events()[same])
    if merge == "compat":
        assert back.events()["policy"].tolist() == config.events()["policy"].tolist()


def test_the_published_format_is_read_and_written_back(folder):
    config = read(folder, PUBLISHED)
    assert config.window_ns == 1100
    assert config.events()[
        ["cpu", "start_ns", "duration_ns", "policy", "priority"]
    ].values.tolist() == [
        [0, 120, 50, "SCHED_FIFO", 1],
        [0, 400, 90, "SCHED_OTHER", 0],
        [1, 0, 10, "SCHED_FIFO", 50],
        [1, 900, 200, "SCHED_OTHER", 0],
    ]
    path = config.write_published(folder / "back.json")
    assert NoiseConfig.read(path) == config
    written = json.loads(path.read_text())
    assert {cpu: rows[:-1] for cpu, rows in written.items()} == {
        cpu: rows[:-1] for cpu, rows in PUBLISHED.items()
    }
    assert all(rows[-1] == [1100, 0, 0] for rows in written.values())


def test_a_published_file_whose_sentinel_was_swallowed_or_rounded(folder):
    assert read(folder, {"3": [[10, 20.6, -1]]}).window_ns == 31
    assert read(folder, {"3": [[10, 0, 0], [20, 5, 0], [100, 0, 0]]}).events()[
        "start_ns"
    ].tolist() == [20]


@pytest.mark.parametrize(
    "document, where, message",
    [
        ({"0": [[5, 1], [9, 0]]}, "CPU 0", "old version .* without priorities"),
        (
            {"0": [{"start_time": 0.0, "duration": 5e9}]},
            "CPU 0",
            "old version .* without priorities",
        ),
        ({"0": [[5, 1, 0], [9, 0, 3]]}, "CPU 0, event 1, priority", "priority 3 is unknown"),
        ({"0": [[5, 1, -100]]}, "CPU 0, event 0, priority", "priority -100 is unknown"),
        ({"0": [[5, 9, 0], [9, 4, 0]]}, "CPU 0, event 1, start_ns", "overlaps"),
        ({"0": [[50, 9, 0], [9, 4, 0]]}, "CPU 0, event 1, start_ns", "begins before"),
        ({"0": [[5, -9, 0]]}, "CPU 0, event 0, duration_ns", "negative"),
        ({"0": [[5, float("nan"), 0]]}, "CPU 0, event 0, duration_ns", "not a number: nan"),
        ({"0": [[5, 1, 0], [6, True, 0]]}, "CPU 0, event 1, duration_ns", "not a number: True"),
        ({"0": [[1e300, 1, 0]]}, "CPU 0, event 0, start_ns", "huge"),
        ({"0": [[5, 1, 0], [9, 1, 0, 0]]}, "CPU 0, event 1", "not a list of 3 fields"),
        ({"0": []}, "config.json", "empty config"),
        ({"0": [[10, 0, 0]]}, "config.json", "empty config"),
        ({"0": [[10, 0, 0]], "1": [[90, 5, 0]]}, "CPU 1, event 0, start_ns", "after the window"),
        ({"0": 5}, "CPU 0", "not a list of events"),
        ([], "config.json", "not a noise config"),
        ({}, "config.json", "not a noise config"),
        ({"00": []}, "config.json", "not a noise config"),
    ],
)
def test_published_files_that_cannot_be_replayed(folder, document, where, message):
    refused(folder, document, where, message)


def refused(folder, document, where, message):
    with pytest.raises(InputError, match=message) as caught:
        read(folder, document)
    assert str(caught.value.where).startswith(str(folder / "config.json")) and where in str(
        caught.value.where
    )


EVENT = ["cpus", "0", 1]
DAMAGE = [
    ([*EVENT, 0], -1, "event 1, start_ns", "negative"),
    ([*EVENT, 0], 130, "event 1, start_ns", "overlaps the event before"),
    ([*EVENT, 0], 100, "event 1, start_ns", "begins before the event"),
    ([*EVENT, 0], 2.5, "event 1, start_ns", "whole number: 2.5"),
    ([*EVENT, 0], 400.0, "event 1, start_ns", "whole number: 400.0"),
    ([*EVENT, 0], float("nan"), "event 1, start_ns", "whole number: nan"),
    ([*EVENT, 0], float("inf"), "event 1, start_ns", "whole number: inf"),
    ([*EVENT, 0], 2**62, "event 1, start_ns", "huge"),
    ([*EVENT, 0], 10**30, "event 1, start_ns", "huge"),
    ([*EVENT, 0], "5", "event 1, start_ns", "whole number: '5'"),
    ([*EVENT, 0], None, "event 1, start_ns", "whole number: None"),
    ([*EVENT, 0], True, "event 1, start_ns", "whole number: True"),
    ([*EVENT, 1], 0, "event 1, duration_ns", "no length"),
    ([*EVENT, 1], -3, "event 1, duration_ns", "negative"),
    ([*EVENT, 1], [9], "event 1, duration_ns", "whole number"),
    ([*EVENT, 1], 2**63, "event 1, duration_ns", "huge"),
    ([*EVENT, 2], "FIFO", "event 1, policy", "unknown policy 'FIFO'"),
    ([*EVENT, 2], [], "event 1, policy", "not a text"),
    ([*EVENT, 2], "SCHED_FIFO", "event 1, priority", "priority 0 is none of SCHED_FIFO's"),
    ([*EVENT, 3], 20, "event 1, priority", "priority 20"),
    ([*EVENT, 3], -21, "event 1, priority", "priority -21"),
    ([*EVENT, 3], 0.5, "event 1, priority", "whole number"),
    ([*EVENT, 4], "smi", "event 1, kind", "unknown kind 'smi'"),
    ([*EVENT, 5], 7, "event 1, source", "not a text: 7"),
    ([*EVENT, 5], "\ud800", "event 1, source", "not a text"),
    (EVENT, [1, 2, 3], "event 1", "not a list of 6 fields"),
    (EVENT, {}, "event 1", "not a list of 6 fields"),
    (["cpus", "0"], {}, "CPU 0", "not a list of events"),
    (["cpus"], {}, "cpus", "non-empty|not have enough"),
    (["cpus"], [], "cpus", "not of type"),
    (["cpus", "0\n"], [], "cpus", "whole number"),
    (["cpus", "x"], [], "cpus", "does not match"),
    (["cpus", "-1"], [], "cpus", "does not match"),
    (["cpus"], {"0": []}, "config.json", "empty config"),
    (["window_ns"], 400, "CPU 0, event 1, start_ns", "after the window of 400"),
    (["window_ns"], 0, "window_ns", "minimum"),
    (["window_ns"], 1e6, "window_ns", "not a whole number"),
    (["window_ns"], None, "window_ns", "not of type"),
    (["format"], "noisebook noise config 2", "format", "noise config 1"),
    (["columns"], COLUMNS[::-1], "columns", "is not one of"),
    (["provenance"], [], "provenance", "not of type"),
    (["provenance"], {"a": float("nan")}, "provenance", "JSON"),
    (["extra"], 1, "config.json", "extra"),
]


@pytest.mark.parametrize("place, value, where, message", DAMAGE)
def test_damage_is_named_by_file_cpu_event_and_field(folder, place, value, where, message):
    refused(folder, changed(place, value), where, message)


@pytest.mark.parametrize("place, value, where, message", DAMAGE)
def test_the_schema_refuses_what_a_schema_can(place, value, where, message):
    """All but order, the window, whole floats, lone surrogates, emptiness and NaN in free text."""
    beyond = ("overlaps", "begins before", "after the window", "empty config", "JSON")
    document = changed(place, value)
    whole = isinstance(value, float) and value.is_integer()
    accepted = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).is_valid(document)
    assert accepted == (
        message.startswith(beyond) or whole or value == "\ud800" or place[-1] == "0\n"
    )


@pytest.mark.parametrize(
    "data, message",
    [
        (b"", "not JSON"),
        (b"{", "not JSON.*\n.*line 1, column 2"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 100_000, "usable JSON"),
        (b'{"0": [], "0": [[1, 2, 0]]}', "'0' occurs twice"),
        (b'{"0": [[' + b"9" * 5000 + b", 1, 0]]}", "usable JSON"),
        (gzip.compress(json.dumps(OWN).encode())[:-20], "damaged packed file"),
        (b"\x1f\x8bxx", "damaged packed file"),
        (b"null", "not a noise config"),
    ],
)
def test_files_that_are_no_json(folder, data, message):
    with pytest.raises(InputError, match=message):
        read(folder, data)


def test_no_such_file(folder):
    with pytest.raises(InputError, match="cannot read the noise config: No such file"):
        NoiseConfig.read(folder / "missing.json")
    with pytest.raises(InputError, match="no regular file"):
        NoiseConfig.read(folder)


TEXTS = [
    json.dumps(OWN).encode(),
    json.dumps(PUBLISHED).encode(),
    gzip.compress(json.dumps(OWN).encode(), mtime=0),
]
SNIPPETS = [
    b"NaN",
    b"-1",
    b"1e400",
    b'"7"',
    b"null",
    b"[]",
    b"{}",
    b"9" * 25,
    b"0.5",
    b"-",
    b"true",
    b",",
    b"]",
    b'"0":',
    b"\xff",
    b"\\ud800",
]


def readable(folder, data: bytes) -> None:
    """Whatever the bytes: an InputError, or a config that survives being written."""
    try:
        config = read(folder, data)
    except InputError as error:
        assert str(error)
    else:
        assert NoiseConfig.read(config.write(folder / "again.json")) == config
        config.summary()


@settings(
    max_examples=500,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.sampled_from(TEXTS), st.data())
def test_mutated_bytes_give_an_error_or_a_config(folder, text, data):
    changed_text = bytearray(text)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        how = data.draw(st.sampled_from(["flip", "cut", "insert", "replace"]))
        if how == "flip":
            changed_text[min(at, len(changed_text) - 1)] ^= 1 << data.draw(st.integers(0, 7))
        elif how == "cut":
            del changed_text[at:]
        else:
            length = data.draw(st.integers(1, 6)) if how == "replace" else 0
            changed_text[at : at + length] = data.draw(st.sampled_from(SNIPPETS))
        if not changed_text:
            break
    readable(folder, bytes(changed_text))


def places(value: object, here: tuple = ()) -> list[tuple]:
    steps = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [
        place for step, inner in steps for place in [(*here, step), *places(inner, (*here, step))]
    ]


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 2000),
    st.integers(2**60, 2**65),
    st.floats(),
    st.text(max_size=4),
    st.sampled_from(
        [
            "SCHED_FIFO",
            "SCHED_OTHER",
            "irq",
            "thread",
            [],
            {},
            [1],
            [[1, 2, 0]],
            [1, 2, 0],
            [5, 5, "SCHED_OTHER", 0, "thread", "x"],
        ]
    ),
)


@settings(
    max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from([OWN, PUBLISHED]), st.data())
def test_replaced_and_swapped_fields_give_an_error_or_a_config(folder, document, data):
    for _ in range(data.draw(st.integers(1, 2))):
        place, other = (data.draw(st.sampled_from(places(document))) for _ in range(2))
        value = data.draw(VALUES)
        if data.draw(st.booleans()) and other[: len(place)] != place:
            value = document
            for step in other:
                value = value[step]
        document = changed(list(place), value, document)
        if not places(document):
            break
    readable(folder, json.dumps(document).encode())


def test_summary_says_what_will_be_injected(folder):
    summary = read(folder, OWN).summary().set_index(["cpu", "kind", "policy"])
    assert summary.loc[(0, "thread", "SCHED_OTHER")].to_dict() == pytest.approx(
        {"events": 2, "total_ms": 100e-6, "share": 100 / 1e6, "longest_block_ms": 100e-6}
    )  # two that touch
    assert summary.loc[(0, "irq", "SCHED_FIFO"), "longest_block_ms"] == pytest.approx(50e-6)
    assert len(summary) == 3


def test_repr_is_a_line_and_html_a_table(folder):
    config = read(folder, OWN)
    assert (
        repr(config)
        == f"NoiseConfig(3 CPUs, 4 events, 0.000 ms = 0.01% of 3 × 1.000 ms, {config.digest})"
    )
    assert "<table" in config._repr_html_() and "longest stretch" in config._repr_html_()


def test_the_digest_names_the_noise_and_not_its_story(folder):
    config = read(folder, OWN)
    other_story = read(folder, changed(["provenance"], {}))
    assert other_story.digest == config.digest and other_story != config
    for place, value in (
        ([*EVENT, 0], 401 - 1 - 1),
        ([*EVENT, 5], "other"),
        ([*EVENT, 3], 1),
        (["window_ns"], 999_999),
    ):
        assert read(folder, changed(place, value)).digest != config.digest
    assert len({config, read(folder, OWN)}) == 1


def test_a_machine_with_too_few_cpus(folder):
    config = read(folder, OWN)
    assert config.for_machine(11) is config and config.for_machine([0, 1, 10]) is config
    with pytest.raises(InputError, match=r"for 3 CPUs \(0-1,10\), here are 2 \(0-1\)") as caught:
        config.for_machine(2)
    assert "config.mapped({0: 0, 10: 1})" in caught.value.fix
    moved = config.mapped({0: 1, 10: 0})
    assert moved.for_machine(2) is moved and moved.provenance["left_out_cpus"] == [1]
    assert moved.events()[["cpu", "event", "start_ns"]].values.tolist() == [
        [0, 0, 0],
        [1, 0, 120],
        [1, 1, 400],
        [1, 2, 490],
    ]
    assert NoiseConfig.read(moved.write(folder / "moved.json")) == moved
    assert config.mapped({0: 0, 1: 1, 10: 10}).digest == config.digest
    assert config.mapped({10: 4}).events()["source"].tolist() == ["ütil"]


@pytest.mark.parametrize(
    "mapping, message",
    [
        ({5: 0}, "no CPU 5"),
        ({}, "no CPU would be left"),
        ({0: 1, 10: 1}, "two CPUs"),
        ({0: -1}, "none of a CPU"),
    ],
)
def test_impossible_mappings(folder, mapping, message):
    with pytest.raises(InputError, match=message):
        read(folder, OWN).mapped(mapping)


def test_events_is_a_copy(folder):
    config = read(folder, OWN)
    table = config.events()
    table["start_ns"] = 0
    assert table["start_ns"].sum() == 0
    assert config.events()["start_ns"].tolist() == [120, 400, 490, 0]
    assert np.issubdtype(config.events()["start_ns"].dtype, np.int64)
