"""Noise that does more than occupy a CPU: events, their place on a time line, and the config that
holds them.
"""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.noise import NoiseConfig, stressor_noise
from nbhelpers.noise._reading import SCHEMA
from nbhelpers.noise._vocabulary import ALL_KINDS, KINDS, STRESSORS

from ..combined import combined, made_noise

HEADER = Path(__file__).parents[2] / "injector_c" / "kinds.h"


def config_of(*parts: pd.DataFrame) -> NoiseConfig:
    return NoiseConfig.from_events(combined(*parts))


def plain() -> pd.DataFrame:
    return made_noise(100, 300, seconds=0.5, cpus=[0, 1])


# The vocabulary
# --------------------------------------------------------------------------------------------------


def test_the_codes_are_those_of_the_c_core():
    defined = {
        name.lower(): int(code)
        for name, code in re.findall(r"#define NB_(\w+) (\d+)", HEADER.read_text())
    }
    assert {kind: defined[kind] for kind in STRESSORS} == {
        kind: stressor.code for kind, stressor in STRESSORS.items()
    }
    assert defined["kind_count"] == max(one.code for one in STRESSORS.values()) + 1


def test_the_schema_knows_the_same_kinds():
    fields = json.loads(SCHEMA.read_text())["definitions"]["event"]["items"]
    assert next(field["enum"] for field in fields if field["title"] == "kind") == list(ALL_KINDS)


# Events
# --------------------------------------------------------------------------------------------------


def test_a_stretch_on_several_cpus():
    noise = stressor_noise("timer", 2000, 1.0, [4, 2], start_s=0.25)
    assert noise[["cpu", "start_ns", "end_ns", "intensity"]].values.tolist() == [
        [2, 25e7, 1e9, 2000],
        [4, 25e7, 1e9, 2000],
    ]
    assert set(noise["policy"]) == {"SCHED_OTHER"} and noise.attrs["seconds"] == 1.0


@pytest.mark.parametrize(
    "change, match",
    [
        ({"kind": "coffee"}, "unknown kind 'coffee'"),
        ({"kind": "irq"}, "unknown kind 'irq'"),
        ({"intensity": 0}, "intensity of memory_stream noise is 0"),
        ({"intensity": -1.0}, "intensity of memory_stream noise is -1"),
        ({"intensity": float("nan")}, "is nan"),
        ({"intensity": float("inf")}, "is inf"),
        ({"start_s": 1.0}, "noise from 1.0 s"),
        ({"start_s": -0.1}, "noise from -0.1"),
        ({"start_s": 0.6, "duration_s": 0.6}, "to 1.2 s in a window of 1.0"),
        ({"priority": 20}, "priority 20 is none of SCHED_OTHER's"),
        ({"policy": "FIFO"}, "unknown policy 'FIFO'"),
        ({"cpus": []}, "cpus is"),
        ({"cpus": [0, 0]}, "cpus is"),
        ({"seconds": float("inf")}, "in a window of inf"),
    ],
)
def test_what_cannot_be_is_refused(change, match):
    arguments = {"kind": "memory_stream", "intensity": 1e9, "seconds": 1.0, "cpus": [0]} | change
    with pytest.raises(InputError, match=match):
        NoiseConfig.from_events(stressor_noise(**arguments))


# The config
# --------------------------------------------------------------------------------------------------


def test_kinds_overlap_with_each_other_and_occupation_stays_what_it_was():
    alone = config_of(plain())
    config = config_of(
        plain(),
        stressor_noise("memory_stream", 1e9, 0.5, [0, 1]),
        stressor_noise("ipi", 500, 0.5, [1], start_s=0.1, duration_s=0.2),
    )
    events = config.events()
    occupying = events[events["intensity"].isna()].reset_index(drop=True)
    expected = alone.events().drop(columns="event")
    pd.testing.assert_frame_equal(
        occupying[expected.columns], expected, check_dtype=False, check_categorical=False
    )
    assert sorted(events["intensity"].dropna()) == [500, 1e9, 1e9]
    assert (events.groupby("cpu")["start_ns"].diff().dropna() >= 0).all()
    assert "103 events of" not in repr(config) and "3 events of other kinds" in repr(config)
    summary = config.summary().set_index(["cpu", "kind"])
    assert summary.loc[(1, "memory_stream"), "longest_block_ms"] == 500


def test_a_config_without_them_is_the_same_bytes_as_ever(tmp_path):
    events = plain()
    bare = NoiseConfig.from_events(events)
    column = NoiseConfig.from_events(events.assign(intensity=np.nan))
    assert bare == column and bare.digest == column.digest
    assert bare.write(tmp_path / "a").read_bytes() == column.write(tmp_path / "b").read_bytes()
    assert b"intensity" not in (tmp_path / "a").read_bytes()
    assert bare.events()["kind"].cat.categories.tolist() == list(KINDS)


@pytest.mark.parametrize("name", ["config.json", "config.json.gz"])
def test_a_config_comes_back_from_its_file(tmp_path, name):
    config = config_of(plain(), *(stressor_noise(kind, 0.678, 0.5, [0]) for kind in STRESSORS))
    back = NoiseConfig.read(config.write(tmp_path / name))
    assert back == config and back.digest == config.digest
    pd.testing.assert_frame_equal(back.events(), config.events())
    document = json.loads(config.write(tmp_path / "plain.json").read_text())
    assert document["columns"][-1] == "intensity"
    assert {row[6] for row in document["cpus"]["1"]} == {None}


def test_the_digest_tells_intensities_apart():
    configs = [config_of(stressor_noise("timer", rate, 0.1, [0])) for rate in (1000, 1001)]
    assert configs[0].digest != configs[1].digest


def test_a_kind_needs_the_column():
    with pytest.raises(InputError, match="lacks intensity"):
        NoiseConfig.from_events(stressor_noise("timer", 1000, 0.1, [5]).drop(columns="intensity"))


def test_two_of_a_kind_on_a_cpu_do_not_overlap():
    first, second = (
        stressor_noise("timer", 1000, 1.0, [0], start_s=at, duration_s=0.5) for at in (0.0, 0.4)
    )
    with pytest.raises(InputError, match="two events of timer noise overlap"):
        config_of(first, second)
    assert len(config_of(first, stressor_noise("timer", 1000, 1.0, [0], start_s=0.5)).events()) == 2
    assert len(config_of(first, second.assign(cpu=1)).events()) == 2


def test_the_published_format_has_no_words_for_them(tmp_path):
    with pytest.raises(InputError, match="can only occupy CPUs"):
        config_of(stressor_noise("timer", 1000, 0.1, [0])).write_published(tmp_path / "p.json")
