"""Noise configs as files: both formats, the schema, errors that name their place, thousands of
damaged files.
"""

import copy
import gzip
import json

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.noise import NoiseConfig

from .independent import event_rows, event_table

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
    "1": [[0, 10, -50], [900, 200, 0], [1100, 0, 0]],
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


@pytest.mark.parametrize("name, columns", [("own.json", 6), ("own.json.gz", 7)])
def test_own_format_there_and_back(folder, name, columns):
    document = OWN if columns == 6 else FULL
    config = read(folder, document)
    assert list(config.cpus) == list(map(int, document["cpus"]))
    assert config.window_ns == 1_000_000 and config.provenance == document["provenance"]
    path = config.write(folder / name)
    assert NoiseConfig.read(path) == config
    first = path.read_bytes()
    assert config.write(path).read_bytes() == first
    text = gzip.decompress(first) if name.endswith("gz") else first
    assert json.loads(text) == document
    assert b'\n   [120, 50, "SCHED_FIFO", 50, "irq", "local_timer"' in text


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    event_rows(25, st.sampled_from([0, 1, 7, 12]), names, 2**40),
    st.sampled_from(["improved", "pessimistic", "compat"]),
)
def test_any_config_survives_the_file_in_both_formats(folder, rows, merge):
    config = NoiseConfig.from_events(event_table(rows), merge=merge, provenance={"name": "x"})
    path = config.write(folder / "any.json")
    again = NoiseConfig.read(path)
    assert again == config and again.digest == config.digest
    back = NoiseConfig.read(config.write_published(folder / "published.json"))
    same = ["cpu", "start_ns", "duration_ns"]
    assert back.window_ns == config.window_ns and back.cpus == config.cpus
    pd.testing.assert_frame_equal(back.events()[same], config.events()[same])
    if merge == "compat":
        assert back.events()["policy"].tolist() == config.events()["policy"].tolist()


def test_the_published_format_is_read_and_written_back(folder):
    config, columns = (
        read(folder, PUBLISHED),
        ["cpu", "start_ns", "duration_ns", "policy", "priority"],
    )
    assert config.window_ns == 1100
    assert config.events()[columns].values.tolist() == [
        [0, 120, 50, "SCHED_FIFO", 1],
        [0, 400, 90, "SCHED_OTHER", 0],
        [1, 0, 10, "SCHED_FIFO", 50],
        [1, 900, 200, "SCHED_OTHER", 0],
    ]
    path = config.write_published(folder / "back.json")
    assert NoiseConfig.read(path) == config
    for cpu, rows in json.loads(path.read_text()).items():
        assert rows == [*PUBLISHED[cpu][:-1], [1100, 0, 0]]


def test_a_published_file_whose_sentinel_was_swallowed_or_rounded(folder):
    assert read(folder, {"3": [[10, 20.6, -1]]}).window_ns == 31
    events = read(folder, {"3": [[10, 0, 0], [20, 5, 0], [100, 0, 0]]}).events()
    assert events["start_ns"].tolist() == [20]


@pytest.mark.parametrize(
    "document, where, message",
    [
        ({"0": [[5, 1], [9, 0]]}, "CPU 0", "old version .* without priorities"),
        ({"0": [{"start_time": 0.0}]}, "CPU 0", "old version .* without priorities"),
        ({"0": [[5, 1, 0], [9, 0, 3]]}, "CPU 0, event 1, priority", "priority 3 is unknown"),
        ({"0": [[5, 1, -100]]}, "CPU 0, event 0, priority", "priority -100 is unknown"),
        ({"0": [[5, 9, 0], [9, 4, 0]]}, "CPU 0, event 1, start_ns", "overlaps"),
        ({"0": [[50, 9, 0], [9, 4, 0]]}, "CPU 0, event 1, start_ns", "begins before"),
        ({"0": [[5, -9, 0]]}, "CPU 0, event 0, duration_ns", "bigger than"),
        ({"0": [[5, float("nan"), 0]]}, "config.json", "NaN is no number"),
        ({"0": [[5, 1, 0], [6, True, 0]]}, "CPU 0, event 1, duration_ns", "not a number: True"),
        ({"0": [[1e300, 1, 0]]}, "window_ns", "smaller than"),
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
    assert str(caught.value.where).startswith(str(folder / "config.json"))
    assert where in str(caught.value.where)


FULL = {
    "format": "noisebook noise config 1",
    "provenance": {},
    "window_ns": 1_000_000,
    "columns": [*COLUMNS, "intensity"],
    "cpus": {
        "0": [
            [120, 50, "SCHED_FIFO", 50, "irq", "local_timer", None],
            [130, 800, "SCHED_OTHER", 0, "memory_stream", "hog", 1e9],
            [130, 90, "SCHED_OTHER", 0, "io_sync", "hog", 5_000_000],
            [930, 9, "SCHED_OTHER", 5, "memory_stream", "hog", 0.5],
        ],
        "1": [[7, 7, "SCHED_OTHER", 0, "thread", "x", None]],
    },
}
EVENT = ["cpus", "0", 1]
BAD_FIELDS = [
    (OWN, 0, "start_ns", [-1, 130, 100, 2.5, 2**62, 10**30, "5", None, True]),
    (OWN, 1, "duration_ns", [0, -3, [9], 2**63]),
    (OWN, 2, "policy", ["FIFO", []]),
    (OWN, 3, "priority", [20, -21, 0.5]),
    (OWN, 5, "source", [7, "\ud800"]),
    (FULL, 0, "start_ns", [110]),
    (FULL, 4, "kind", ["memory"]),
    (FULL, 6, "intensity", [None, 0, -2.5, "1", True, 10**400]),
]
BAD_PARTS = [
    (OWN, [*EVENT, 2], "SCHED_FIFO", "event 1, priority"),
    (OWN, [*EVENT, 4], "smi", "event 1"),
    (OWN, EVENT, [1, 2, 3], "event 1"),
    (OWN, EVENT, {}, "event 1"),
    (OWN, ["cpus", "0"], {}, "CPU 0"),
    (OWN, ["cpus"], {}, "cpus"),
    (OWN, ["cpus"], [], "cpus"),
    (OWN, ["cpus", "0\n"], [], "cpus"),
    (OWN, ["cpus", "-1"], [], "cpus"),
    (OWN, ["cpus"], {"0": []}, "config.json"),
    (OWN, ["window_ns"], 400, "CPU 0, event 1, start_ns"),
    (OWN, ["window_ns"], 0, "window_ns"),
    (OWN, ["window_ns"], None, "window_ns"),
    (OWN, ["format"], "noisebook noise config 2", "format"),
    (OWN, ["columns"], COLUMNS[::-1], "columns"),
    (OWN, ["provenance"], [], "provenance"),
    (OWN, ["provenance"], {"a": float("nan")}, "config.json"),
    (OWN, [*EVENT, 0], float("inf"), "config.json"),
    (OWN, ["extra"], 1, "config.json"),
    (FULL, ["cpus", "0", 0, 6], 5, "event 0, intensity"),
    (FULL, EVENT, FULL["cpus"]["0"][1][:6], "event 1"),
    (FULL, ["columns"], COLUMNS, "event 0"),
    (FULL, ["cpus", "0", 3, 0], 900, "event 3, start_ns"),
    (FULL, ["cpus", "0", 2, 4], "duty", "event 2, start_ns"),
    (FULL, ["cpus", "0", 2, 4], "thread", "event 2, intensity"),
]


@pytest.mark.parametrize(
    "document, place, value, where",
    [
        (document, [*EVENT, field], value, f"event 1, {name}")
        for document, field, name, values in BAD_FIELDS
        for value in values
    ]
    + BAD_PARTS,
)
def test_damage_is_named_by_file_cpu_event_and_field(folder, document, place, value, where):
    refused(folder, changed(place, value, document), where, ".")


def test_a_column_of_nulls_is_none(folder):
    nulls = OWN | {
        "columns": FULL["columns"],
        "cpus": {cpu: [[*row, None] for row in rows] for cpu, rows in OWN["cpus"].items()},
    }
    config = read(folder, nulls)
    assert config == read(folder, OWN) and "intensity" not in config.events()


@pytest.mark.parametrize(
    "data, message",
    [
        (b"", "not JSON"),
        (b"{", "not JSON.*line 1 column 2"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 100_000, "not JSON"),
        (b'{"0": [], "0": [[1, 2, 0]]}', "'0' occurs twice"),
        (b'{"0": [[' + b"9" * 5000 + b", 1, 0]]}", "not JSON"),
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


def readable(folder, data: bytes) -> None:
    """Whatever the bytes: an InputError, or a config that survives being written."""
    try:
        config = read(folder, data)
    except InputError as error:
        assert str(error)
    else:
        assert NoiseConfig.read(config.write(folder / "again.json")) == config
        config.summary()


def places(value: object, here: tuple = ()) -> list[tuple]:
    inner = dict(enumerate(value)) if isinstance(value, list) else value
    if not isinstance(inner, dict):
        return []
    deeper = [place for step in inner for place in places(inner[step], (*here, step))]
    return [(*here, step) for step in inner] + deeper


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 2000),
    st.integers(2**60, 2**65),
    st.floats(),
    st.text(max_size=4),
    st.sampled_from(["SCHED_FIFO", "SCHED_OTHER", "irq", "thread", [], {}, [1]]),
    st.sampled_from([[[1, 2, 0]], [1, 2, 0], [5, 5, "SCHED_OTHER", 0, "thread", "x"]]),
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


def test_the_digest_names_the_noise_and_not_its_story(folder):
    config = read(folder, OWN)
    other_story = read(folder, changed(["provenance"], {}))
    assert other_story.digest == config.digest and other_story != config
    for field, value in ((0, 399), (3, 1), (5, "other")):
        assert read(folder, changed([*EVENT, field], value)).digest != config.digest
    assert read(folder, changed(["window_ns"], 999_999)).digest != config.digest
    assert len({config, read(folder, OWN)}) == 1


def test_events_is_a_copy(folder):
    config = read(folder, OWN)
    table = config.events()
    table["start_ns"] = 0
    assert config.events()["start_ns"].tolist() == [120, 400, 490, 0]
