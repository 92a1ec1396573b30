"""Tables kept as CSV: read back to the last bit, and only where the same was asked for."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from nbhelpers.simulation import Detours, LogGOPS, patterns, periodic
from nbhelpers.simulation.noisy_cases import cases, slowdowns
from nbhelpers.slow_tables import cached_table

NOISE = {"1000 Hz x 100 us": periodic(1000, 100)}
ASKED = (cases(noise=NOISE, network=[""], ranks=[2, 8]), patterns.dissemination, NOISE)


def key_of(folder: Path, *arguments, **options) -> str:
    path = folder / "key.csv"
    cached_table(path, lambda *_, **__: pd.DataFrame({"x": [1]}), *arguments, **options)
    return path.read_text().split("\n", 1)[0]


def test_tables_come_back_to_the_last_bit(tmp_path):
    options = {"networks": {"": LogGOPS()}, "seeds": 3}
    made = cached_table(tmp_path / "t.csv", slowdowns, *ASKED, **options)
    pd.testing.assert_frame_equal(made, slowdowns(*ASKED, **options), check_exact=True)


def test_a_recorded_table_is_read_and_one_of_something_else_is_not(tmp_path):
    asked = []

    def study(value: int, noise: Detours | None = None) -> pd.DataFrame:
        asked.append(value)
        return pd.DataFrame({"value": [value + 0.25], "text": [""]})

    path = tmp_path / "t.csv"
    cached_table(path, study, 1, noise=periodic(10, 5))
    before = path.read_bytes()
    again = cached_table(path, study, 1, noise=periodic(10, 5), recorded_only=True)
    assert again["value"].tolist() == [1.25] and again["text"].tolist() == [""] and asked == [1]
    for arguments in ((2, periodic(10, 5)), (1, periodic(10, 6))):
        cached_table(path, study, arguments[0], noise=arguments[1], recorded_only=True)
    cached_table(tmp_path / "other.csv", study, 1, recorded_only=True)
    assert asked == [1, 2, 1, 1] and path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["t.csv"]


def test_the_key_does_not_depend_on_the_last_bits_of_a_trace_but_on_what_is_varied(tmp_path):
    near = replace(NOISE["1000 Hz x 100 us"], duration_ns=np.array([1e5]) * (1 + 1e-15))
    varied = ASKED[0]
    same = [
        key_of(tmp_path, varied, noise, seeds=n)
        for noise, n in ((near, np.int64(3)), (NOISE["1000 Hz x 100 us"], 3))
    ]
    assert same[0] == same[1]
    others = [
        key_of(tmp_path, varied.assign(ranks=4), near, seeds=3),
        key_of(tmp_path, varied, near, seeds=4),
        key_of(tmp_path, varied, near, LogGOPS(L=1), seeds=3),
    ]
    assert len({*others, same[0]}) == 4


def test_the_key_has_what_a_schedule_does_and_not_its_name_alone(tmp_path):
    barrier = patterns.barrier(8)
    steps = [
        patterns.compose([barrier] * 2, [length] * 2, name="loop") for length in (500_000, 100_000)
    ]
    assert steps[0].name == steps[1].name
    assert len({key_of(tmp_path, ASKED[0], {"loop": one}) for one in (*steps, steps[0])}) == 2
