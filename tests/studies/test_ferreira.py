"""Noise signatures, measured: tables against plain sums, the whole study on real CPUs."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.answers import CANNOT_TELL
from nbhelpers.errors import InputError
from nbhelpers.noise.presets import PRESETS
from nbhelpers.noise.signature import Signature
from nbhelpers.studies import ferreira
from nbhelpers.studies.ferreira.design import QUIET, staggered
from nbhelpers.studies.ferreira.loops import Loops
from nbhelpers.studies.ferreira.programs import ALONE, TEAM

CPUS = [0, 1]


@pytest.mark.parametrize("seconds", [0.1, 0.2, 0.8])
@pytest.mark.parametrize("name", PRESETS)
def test_a_staggered_window_has_the_exact_share_on_every_cpu(name, seconds):
    for signature in (PRESETS[name], PRESETS[name].with_(phase="aligned", coscheduled=True)):
        events = staggered(signature, [0, 1, 4]).events(seconds, [0, 1, 4])
        taken_ns = events.groupby("cpu")["duration_ns"].sum()
        assert (taken_ns - 0.025e9 * seconds).abs().max() < 1000
        starts = events.groupby("cpu")["start_ns"].apply(tuple)
        assert (len(set(starts)) == 1) == signature.simultaneous


def test_a_loop_must_hold_whole_periods():
    assert len(ferreira.measured_signatures([10, 25, 1000], 0.8)) == 7
    with pytest.raises(InputError, match="whole number of periods of 25 Hz"):
        ferreira.measured_signatures([10, 25], 0.1)
    with pytest.raises(InputError, match="none of the frequencies"):
        ferreira.program_signatures([25])


def made_loops(tmp_path, more, quiet, met):
    """A study whose runs are invented: shares that are known."""
    loops = Loops(tmp_path, {"daemon": Signature(10)}, CPUS, len(more), 0.8)
    rounds = np.arange(len(more))
    noisy = pd.DataFrame({"cell": "daemon", "round": rounds, "lost_share": more, "met_share": met})
    noisy["injected_ns"], noisy["injected_events"] = 0.026 * 1.6e9, 8
    plain = pd.DataFrame({"cell": QUIET, "round": rounds, "lost_share": quiet})
    loops.__dict__["runs"] = pd.concat([noisy, plain], ignore_index=True)
    return loops


def test_the_difference_pairs_runs_of_one_round(tmp_path):
    quiet = np.array([0.01, 0.05, 0.03, 0.09])
    loops = made_loops(tmp_path, quiet + 0.0255, quiet, np.full(4, 0.031))
    row = ferreira.share_table(loops, ranks=2).iloc[0]
    assert row["loop_share"] == pytest.approx(0.0255)
    assert row["loop_low_share"] == pytest.approx(row["loop_high_share"])
    assert row["by_difference"] == "within 0.1" and row["by_events"] == "not within 0.1"
    assert row["log_share"] == pytest.approx(0.026) and row["own_events_share"] == 0.5
    answer = ferreira.share_answer(ferreira.share_table(loops, ranks=2))
    config = loops.configs["daemon"].summary()["share"].mean()
    assert answer.answer == "no" and answer.n == 4
    assert answer.value == pytest.approx(100 * (0.031 - config))


def test_an_interval_across_the_limit_tells_nothing(tmp_path):
    quiet = np.zeros(4)
    loops = made_loops(tmp_path, quiet + [0.02, 0.03, 0.02, 0.03], quiet, np.full(4, 0.025))
    table = ferreira.share_table(loops, ranks=2)
    assert table["by_difference"].tolist() == ["cannot tell"]
    assert ferreira.share_answer(table).answer == "yes", "all detours meet what was asked for"
    assert ferreira.share_answer(table.assign(by_events="cannot tell")).answer == CANNOT_TELL
    assert ferreira.share_sentence(table).startswith("**0 of 1** signatures")
    assert ferreira.share_answer(table.head(0)).answer == CANNOT_TELL
    errors = ferreira.share_errors(table).set_index("measured")
    assert errors["error_percent"].tolist() == pytest.approx([0.0, 0.0], abs=1e-9)
    assert errors.loc["by difference", "error_percent_high"] > 0.1


def test_accumulated_is_the_slow_down_less_the_net_noise():
    quiet = np.array([1.0, 2.0, 1.5, 1.2])
    parts = []
    for program, factor, threads in ((ALONE, 1.05, 1), (TEAM, 1.01, 2)):
        plain = pd.DataFrame({"signature": QUIET, "seconds": quiet, "round": range(4)})
        noisy = plain.assign(signature="daemon", seconds=quiet * factor)
        noisy["injected_ns"] = 0.025 * threads * noisy["seconds"] * 1e9
        both = pd.concat([plain, noisy]).assign(program=program, threads=threads)
        parts.append(both.assign(region_seconds=both["seconds"]))
    table = ferreira.program_table(pd.concat(parts), {"daemon": PRESETS["daemon"]})
    assert table["program"].tolist() == [ALONE, TEAM] and (table["pairs"] == 4).all()
    assert table["net_percent"].tolist() == pytest.approx([2.5, 2.5])
    assert table["accumulated_percent"].tolist() == pytest.approx([2.5, -1.5])
    assert table["verdict"].tolist() == ["amplified", "absorbed"]


def test_the_increasing_families_are_the_papers():
    table = ferreira.increasing_slowdown(8, 0.01, 2)
    assert table.groupby(["application", "duration"]).size().eq(5).all()
    longest = table[table["duration"] == "50 µs"]
    assert longest["net_percent"].unique().tolist() == pytest.approx([5, 10, 15, 20, 25])
    assert longest["local_percent"].iloc[-1] == pytest.approx(100 * (1 / 0.75 - 1.25))
    assert len(ferreira.increasing_sentences(table)) == 2
