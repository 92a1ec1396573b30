"""Config files with the seventh column: kinds of noise that do more than occupy a CPU."""

import json

import jsonschema
import numpy as np
import pytest

from nbhelpers.noise import NoiseConfig
from nbhelpers.noise._reading import SCHEMA
from nbhelpers.noise._vocabulary import ALL_KINDS, KINDS

from .test_config import COLUMNS, OWN, changed, folder, read, refused  # noqa: F401

FULL = {
    "format": "noisebook noise config 1",
    "provenance": {},
    "window_ns": 1_000_000,
    "columns": [*COLUMNS, "intensity"],
    "cpus": {
        "0": [
            [120, 50, "SCHED_FIFO", 50, "irq", "local_timer", None],
            [130, 800, "SCHED_OTHER", 0, "memory_read", "hog", 1e9],
            [130, 90, "SCHED_OTHER", 0, "io_write", "hog", 5_000_000],
            [930, 9, "SCHED_OTHER", 5, "memory_read", "hog", 0.5],
        ],
        "1": [[7, 7, "SCHED_OTHER", 0, "thread", "x", None]],
    },
}
EVENT = ["cpus", "0", 1]
DAMAGE = [
    ([*EVENT, 6], None, "event 1, intensity", "positive number: None"),
    ([*EVENT, 6], 0, "event 1, intensity", "positive number: 0"),
    ([*EVENT, 6], -2.5, "event 1, intensity", "positive number: -2.5"),
    ([*EVENT, 6], "1", "event 1, intensity", "positive number: '1'"),
    ([*EVENT, 6], True, "event 1, intensity", "positive number: True"),
    ([*EVENT, 6], float("nan"), "event 1, intensity", "positive number: nan"),
    ([*EVENT, 6], float("inf"), "event 1, intensity", "positive number: inf"),
    ([*EVENT, 6], 10**400, "event 1, intensity", "positive number: 1000"),
    (["cpus", "0", 0, 6], 5, "event 0, intensity", "irq noise has no intensity: 5"),
    ([*EVENT, 4], "memory", "event 1, kind", "unknown kind 'memory'"),
    (EVENT, FULL["cpus"]["0"][1][:6], "event 1", "not a list of 7 fields"),
    (["columns"], COLUMNS, "event 0", "not a list of 6 fields"),
    (["columns"], [*COLUMNS, "strength"], "columns", "is not one of"),
    (["cpus", "0", 3, 0], 900, "event 3, start_ns", "overlaps an event before"),
    ([*EVENT, 0], 110, "event 1, start_ns", "begins before the event before"),
    (["cpus", "0", 2, 4], "duty", "event 2, start_ns", "begins before"),
    (["cpus", "0", 2, 4], "thread", "event 2, intensity", "thread noise has no intensity"),
    (["window_ns"], 930, "event 3, start_ns", "after the window"),
]


def test_there_and_back(folder):  # noqa: F811
    config = read(folder, FULL)
    table = config.events()
    assert table["kind"].tolist() == ["irq", "memory_read", "io_write", "memory_read", "thread"]
    assert np.array_equal(table["intensity"], [np.nan, 1e9, 5e6, 0.5, np.nan], equal_nan=True)
    assert tuple(table["kind"].cat.categories) == ALL_KINDS
    path = config.write(folder / "full.json")
    again = NoiseConfig.read(path)
    assert (
        again == config
        and again.digest == config.digest
        and again.write(path).read_bytes() == path.read_bytes()
    )
    assert json.loads(path.read_text()) == FULL
    jsonschema.validate(FULL, json.loads(SCHEMA.read_text()), jsonschema.Draft202012Validator)


def test_a_column_of_nulls_is_none(folder):  # noqa: F811
    nulls = OWN | {
        "columns": FULL["columns"],
        "cpus": {cpu: [[*row, None] for row in rows] for cpu, rows in OWN["cpus"].items()},
    }
    config = read(folder, nulls)
    assert config.digest == read(folder, OWN).digest and config == read(folder, OWN)
    assert (
        "intensity" not in config.events()
        and tuple(config.events()["kind"].cat.categories) == KINDS
    )


@pytest.mark.parametrize("place, value, where, message", DAMAGE)
def test_damage_is_named_by_cpu_event_and_field(folder, place, value, where, message):  # noqa: F811
    refused(folder, changed(place, value, FULL), where, message)


@pytest.mark.parametrize("place, value, where, message", DAMAGE)
def test_the_schema_refuses_what_a_schema_can(place, value, where, message):
    """All but order, the window, fields that are too many for the columns, and numbers beyond a
    float.
    """
    beyond = ("overlaps", "begins before", "after the window", "not a list of 6")
    accepted = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).is_valid(
        changed(place, value, FULL)
    )
    unbounded = (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and (value != value or value > 1e308)
    )
    assert accepted == (message.startswith(beyond) or unbounded)
