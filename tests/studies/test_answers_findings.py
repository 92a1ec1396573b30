"""Answers on causes, mitigations and scale: each word is reached, the numbers are the tables'."""

from types import SimpleNamespace

import pandas as pd

from nbhelpers.answers import CANNOT_TELL, NO, YES

from ..cells import run_cells


def codes(*rows: tuple) -> pd.DataFrame:
    columns = ["application", "noise", "median", "low", "high"]
    return pd.DataFrame(rows, columns=columns).assign(overhead_share=0.025, ranks=2500, seeds=30)


def test_noise_slows_programs_by_more_than_its_share_or_not():
    columns = ["result", "published", "source"]
    results = pd.DataFrame([["POP 10 Hz", "20–21", "Ferreira et al. 2008"]], columns=columns)
    shown = []
    for rows in (
        [("POP", "10 Hz", 22, 21, 23), ("CTH", "1 kHz", 1.03, 1.02, 1.04)],
        [("CTH", "1 kHz", 1.026, 1.025, 1.027)],
        [("CTH", "1 kHz", 1.1, 1.0, 1.2)],
    ):
        found = SimpleNamespace(show=lambda answer, *sentences: shown.append(answer))
        names = {"codes": codes(*rows), "results": results, "verdicts": "", "rho": ""}
        run_cells("80-noise-at-scale", "answer", found=found, **names)
    more, no, wide = shown
    assert (more.answer, more.value, more.n) == (YES, 22, 30)
    assert more.published == "20–21 times (Ferreira et al. 2008)"
    assert (no.answer, no.published, wide.answer) == (NO, "", CANNOT_TELL)


def test_the_cost_at_scale_is_the_range_of_the_recordings():
    shown = []
    many = [("kernel events", 982.0, 672.0, 1145.0, 200), ("a loop", 96.3, 34.2, 127.3, 80)]
    for rows in (many, [("a loop", 1.5, 1.0, 2.0, 8)], [("a loop", 1.5, 1.2, 2.0, 8)]):
        columns = ["recording", "median", "recording_low", "recording_high", "units"]
        spreads = pd.DataFrame(rows, columns=columns)
        found = SimpleNamespace(show=lambda answer, *sentences: shown.append(answer))
        texts = dict.fromkeys(["thousands", "decides"], "")
        names = texts | {"spreads": spreads, "ranks": 131072, "found": found}
        run_cells("82-this-machine-at-scale", "answer", **names)
    assert shown[0].answer == "all-reduce: 96.3 to 982 times as long"
    first = shown[0]
    assert (first.value, first.low, first.high, first.n) == (96.3, 34.2, 127.3, 80)
    assert [each.answer for each in shown[1:]] == [CANNOT_TELL, "all-reduce: 1.5 times as long"]


def test_a_state_without_a_detour_lost_nothing():
    about = {"seconds": 0.5, "cpus": [0, 1], "resolution_ns": 20}
    columns = {"start_ns": [0, 900_000], "duration_ns": [2_000_000, 4_000_000], "cpu": [0, 1]}
    states = {"quiet": pd.DataFrame(columns).head(0), "loaded": pd.DataFrame(columns)}
    for table in states.values():
        table.attrs = about
    detours = pd.concat(states, names=["state"])
    given = {"states": states, "detours": detours}
    ours = run_cells("82-this-machine-at-scale", "detours", **given)["ours"]
    assert ours["overhead_percent"].to_dict() == {"quiet": 0.0, "loaded": 0.6}
    assert ours["detours_per_s"].to_dict() == {"quiet": 0.0, "loaded": 2.0}
    assert ours["max_us"].isna().to_dict() == {"quiet": True, "loaded": False}
