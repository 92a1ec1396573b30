"""When corrected run times may be used: only where they bring equal runs together, and take off as
much of one side as of the other.
"""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.measurement import finished, recorded_runs
from nbhelpers.referee.correction import correction_of, judged_correction
from nbhelpers.referee.ruling import decide
from nbhelpers.referee.sides import Side
from nbhelpers.workloads import nbody, program


def duel(change, lost, quads=30, seed=2):
    """Runs of a duel: raw times with losses, times without them."""
    random = np.random.default_rng(seed)
    rounds = np.repeat(np.arange(2 * quads), 2)
    cells = np.tile(["old", "new"], 2 * quads)
    work = np.where(cells == "new", 1 + change, 1.0) * np.exp(random.normal(0, 0.005, rounds.size))
    taken = random.exponential(0.1, rounds.size) * np.where(cells == "new", lost, 1.0)
    runs = pd.DataFrame({"round": rounds, "cell": cells, "seconds": work, "status": "ok"})
    return runs.assign(seconds_raw=work + taken).rename_axis("run").reset_index()


def test_losses_of_both_sides_may_be_taken_off():
    found = judged_correction(duel(0.02, 1.0))
    assert found.helps and "Corrected times are used." in found.why


def test_what_one_side_alone_loses_is_not_taken_off():
    found = judged_correction(duel(0.0, 2.0))
    assert not found.helps and "Raw times are used." in found.why


def test_a_correction_that_brings_nothing_together_is_not_used():
    runs = duel(0.0, 1.0)
    swapped = runs.rename(columns={"seconds": "seconds_raw", "seconds_raw": "seconds"})
    assert not judged_correction(swapped).helps
    few = judged_correction(duel(0.0, 1.0, quads=5))
    assert not few.helps and "8 are needed" in few.why


def test_runs_without_an_account_are_judged_raw(tmp_path):
    runs = duel(0.0, 1.0).drop(columns="seconds_raw").assign(t0_ns=0)
    found = correction_of(tmp_path, runs)
    assert not found.helps and found.why.startswith("Run times could not be corrected")
    with pytest.raises(InputError, match="no folder"):
        decide(Side(program("true")), Side(program("true")), correct=True)


@pytest.mark.long
def test_the_account_of_real_runs(tmp_path, monkeypatch, binaries):
    monkeypatch.setenv("NOISEBOOK_STATE", str(tmp_path / "state"))
    side = Side(nbody(bodies=2500, steps=20))
    ruling = decide(side, side, tmp_path / "ab", pairs=24, correct=True)
    found = correction_of(tmp_path / "ab", finished(recorded_runs(tmp_path / "ab")))
    assert ruling.level == 0.005 and "of one side are ×" in found.why
    assert ruling.outcome == ("corrected run time" if found.helps else "run time")
