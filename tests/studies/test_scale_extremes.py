"""What the page on this machine's noise says of how sure it is."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.empty import why_empty
from nbhelpers.places import shipped
from nbhelpers.simulation import Detours
from nbhelpers.studies.scale.extremes import (
    PIECES,
    TailTables,
    deciding_sentence,
    deciding_table,
    foretold_sentence,
    foretold_table,
    recorded_traces,
    returns_sentence,
    spreads_sentence,
    spreads_table,
    tail_tables,
)
from nbhelpers.studies.scale.this_machine import LOOP, TRACED

DETOURS = shipped() / "data" / "recorded" / "00-machine" / "detours.json"


def traced(runs: int, seed: int = 0) -> list[Detours]:
    """A run has a timer and, on CPU 0, a daemon of exponential length, 1 ms in the mean."""
    rng = np.random.default_rng(seed)
    sources = ("timer", "daemon")
    return [
        Detours(
            np.append(np.arange(20) * 4e6, 50e6),
            np.append(rng.normal(3000, 100, 20), 1e6 * rng.exponential() if cpu == 0 else 10.0),
            1e8,
            np.append(np.zeros(20, np.int32), np.int32(1)),
            sources,
            f"run {run}, CPU {cpu}",
        )
        for run in range(runs)
        for cpu in (0, 1)
    ]


@pytest.fixture(scope="module")
def recorded() -> dict[str, list[Detours]]:
    return recorded_traces({LOOP: DETOURS, TRACED: traced(60)})


def test_units_are_runs_and_pieces_of_a_loop(recorded):
    assert len(recorded[LOOP]) == 2 * PIECES
    assert [trace.name for trace in recorded[TRACED][:2]] == ["run 0, CPU 0", "run 0, CPU 1"]


class TestSpreads:
    def test_a_row_a_recording_and_a_sentence_with_both_intervals(self, recorded):
        table = spreads_table(recorded, 64, seeds=4, resamples=4, phases=1)
        assert table["recording"].tolist() == [LOOP, TRACED]
        assert table["units"].tolist() == [2 * PIECES, 60]
        said = spreads_sentence(table)
        row = table.iloc[1]
        assert said.startswith("On 64 CPUs as noisy as this machine's, an all-reduce takes **")
        assert (
            f"**{row['recording_low']:.1f} to " in said or f"**{row['recording_low']:,.0f}" in said
        )
        assert "n = 60 runs" in said and "n = 80 pieces of time" in said

    def test_of_one_run_nothing_can_be_said(self):
        table = spreads_table({TRACED: traced(1)}, 64, seeds=2, resamples=2, phases=1)
        assert table.empty and "recording_low" in table
        assert spreads_sentence(table).startswith("Cannot tell here")


class TestDeciding:
    def test_the_sentence_names_the_source(self, recorded):
        table = deciding_table({TRACED: recorded[TRACED]}, 1024, seeds=4)
        assert "without **daemon**" in deciding_sentence(table)
        assert "without the longest detour (daemon, run " in deciding_sentence(table)

    def test_of_few_detours_nothing_can_be_said(self):
        few = [Detours(np.zeros(2), np.ones(2), 1e6, name="run 1, CPU 0")]
        table = deciding_table({TRACED: few}, 64, seeds=2)
        assert table.empty and "Too few" in deciding_sentence(table)


class TestTails:
    def test_a_second_on_100000_cpus_where_that_is_in_reach(self, recorded):
        tables = tail_tables({LOOP: recorded[LOOP], TRACED: traced(600)})
        reached = tables.returns.groupby("recording")["cpu_seconds"].max()
        assert reached[TRACED] == 100_000, "833 times the recording"
        assert reached[LOOP] < 1000
        said = returns_sentence(tables)
        assert f"For a second on 100,000 CPUs {LOOP} cannot tell" in said
        assert "**daemon** has it in" in said
        assert set(tables.curve["recording"]) == set(tables.points["recording"]) == {LOOP, TRACED}

    def test_of_a_short_recording_the_reason_is_said(self):
        tables = tail_tables({TRACED: traced(5)})
        assert isinstance(tables, TailTables)
        assert "too few units" in why_empty(tables.returns)
        assert "No tail was fitted" in returns_sentence(tables)


class TestForetold:
    def test_counts_add_up(self):
        table = foretold_table({TRACED: traced(80)}, splits=4)
        assert (table["inside"] + table["longer"] + table["shorter"] == table["splits"]).all()
        assert set(table["in_time"]) <= {"yes", "no", "no tail"}
        pooled = table[table["source"] == "all sources"].iloc[0]
        assert f"{pooled['inside']} of 4 halves" in foretold_sentence(table)

    def test_of_a_short_recording_the_reason_is_said(self):
        table = foretold_table({TRACED: traced(5)}, splits=2)
        assert isinstance(table, pd.DataFrame) and table.empty
        assert "not tried" in foretold_sentence(table)
