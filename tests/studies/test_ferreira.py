"""Noise signatures that are measured: exact shares in a window of whole periods."""

import pandas as pd
import pytest

from nbhelpers.answers import CANNOT_TELL
from nbhelpers.errors import InputError
from nbhelpers.noise.presets import PRESETS
from nbhelpers.studies.ferreira.noises import staggered
from tests.cells import run_cells
from tests.shown import Shown


@pytest.mark.parametrize("seconds", [0.1, 0.2, 0.8])
@pytest.mark.parametrize("name", PRESETS)
def test_a_staggered_window_has_the_exact_share_on_every_cpu(name, seconds):
    for signature in (PRESETS[name], PRESETS[name].with_(phase="aligned", coscheduled=True)):
        events = staggered(signature, [0, 1, 4]).events(seconds, [0, 1, 4])
        taken_ns = events.groupby("cpu")["duration_ns"].sum()
        assert (taken_ns - 0.025e9 * seconds).abs().max() < 1000
        starts = events.groupby("cpu")["start_ns"].apply(tuple)
        assert (len(set(starts)) == 1) == signature.simultaneous


def page_signatures(frequencies: str, seconds: float) -> dict:
    """What the page measures."""
    known = {"frequencies": frequencies, "loop_seconds": seconds, "randomised": True}
    return run_cells("70-noise-signatures", "signatures", **known)["signatures"]


def test_a_loop_must_hold_whole_periods():
    assert len(page_signatures("10 25 1000", 0.8)) == 7
    with pytest.raises(InputError, match="whole number of periods of 25 Hz"):
        page_signatures("10 25", 0.1)


def test_without_a_finished_run_under_noise_the_page_still_answers():
    """Only loops and programs without noise have finished: nothing is told of any signature."""
    signatures = page_signatures("10 1000", 0.1)
    configs = {name: one.config(0.1, [0, 1]) for name, one in signatures.items()}
    shown = Shown()
    quiet = pd.Series([0.01, 0.01], name="quiet").rename_axis("round")
    columns = ["cell", "round", "lost_share", "met_share", "injected_ns", "injected_events"]
    runs = pd.DataFrame({"cell": "none", "round": [0, 1], "lost_share": 0.01}, columns=columns)
    names = {"study": shown, "found": shown, "configs": configs, "signatures": signatures}
    names |= {"cpus": [0, 1], "loop_seconds": 0.1, "runs": runs, "quiet": quiet}
    known = run_cells("70-noise-signatures", "shares", **names)
    assert (shown.tables["shares"]["by_events"] == "cannot tell").all()
    assert shown.texts[-1] == "No run under noise has finished."
    run_cells("70-noise-signatures", "answer", **{**known, "study": shown})
    assert shown.answer.answer == CANNOT_TELL
    columns = ["program", "signature", "round", "threads", "seconds", "region_seconds"]
    one = {"program": "team", "signature": "none", "round": [0], "seconds": 1.0}
    runs = pd.DataFrame(one, columns=[*columns, "injected_ns"])
    more = {"runs": runs, "injected": signatures, "study": shown, "program_seconds": 0.4}
    run_cells("70-noise-signatures", "programs", **more)
    assert shown.tables["programs"].empty
