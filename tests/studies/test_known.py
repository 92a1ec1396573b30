"""Pages 15, 20, 30, 37 and 55 and `noisebook why` read what is known of slow runs from one object:
no page contradicts another.
"""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.answers import CANNOT_TELL, NO, YES
from nbhelpers.mitigation.trials import HELPS, NO_EFFECT, NOT_AGAIN, TOO_FEW
from nbhelpers.stages import _needs
from nbhelpers.studies.known import FILE, NO_SLOW_RUN, NOTHING, Known, Replay, remedy_answer
from tests.cells import NOTEBOOKS, run_cells
from tests.shown import Shown

UNKNOWN = ("an unknown cause", (0.618, 0.503, 0.749), "unexplained")


def handed_on(known: Known, folder) -> Shown:
    """A study whose page 15 found this."""
    path = known.write(folder / FILE)
    return Shown(of=lambda stage: Shown(handed_on=lambda name: path))


def page20(study: Shown, slowest_s: float, noise_ms: float):
    """Page 20 on a run that took this long, of which noise took so much; ordinary: 1 s."""
    random = np.random.default_rng(0)
    seconds = pd.Series([*random.normal(1.0, 0.01, 39), slowest_s])
    events = pd.DataFrame({"kind": ["irq"], "source": ["timer"], "duration_ns": [noise_ms * 1e6]})
    known = {"seconds": seconds, "worst": 39, "delta": events, "mine": events, "found": Shown()}
    known |= {"source": ["kind", "source"], "study": study}
    return run_cells("20-delta-config", "answer", **known)["found"].answer


def test_what_page_15_calls_unknown_is_not_called_noise_by_page_20(tmp_path):
    study = handed_on(Known(0.4, *UNKNOWN), tmp_path)
    assert page20(study, 1.4, noise_ms=380).answer == NO, "without page 15 it is yes"
    study = handed_on(Known(0.4, "backupd", (0.95, 0.9, 1.0), "runnable"), tmp_path)
    assert page20(study, 1.4, noise_ms=380).answer == YES
    assert page20(study, 1.4, noise_ms=100).answer.startswith("at most ")
    assert page20(handed_on(Known(), tmp_path), 1.4, noise_ms=380).answer == YES


def test_where_no_run_was_slow_no_page_says_yes(tmp_path):
    """Seen: an unknown cause, 62 %; yes, noise; yes, replayed: the replay took 1.00 of the recorded
    time, undisturbed runs 0.976.
    """
    known = Known(0.024, *UNKNOWN)
    study = handed_on(known, tmp_path)
    assert Known.read(tmp_path / FILE) == known and known.took == NO_SLOW_RUN
    assert page20(study, 1.08, noise_ms=75).answer == NOTHING
    fast = page20(study, 0.9, noise_ms=3)
    assert fast.answer == NOTHING and np.isnan(fast.value) and "ms less than" in fast.sentence
    for floor in (0.976, 0.9):  # undisturbed runs of today may have become faster
        replayed = Known(0.024, *UNKNOWN, Replay((1.0, 0.9, 1.1), 1.0, floor, 20))
        assert replayed.replayed == replayed.explained == NOTHING
        assert "came back" not in replayed.sentence


@pytest.mark.parametrize(
    ("back", "named", "unnamed"),
    [
        ((1.0, 0.9, 1.1), "a slower core", "what was lost, by no one name"),
        ((0.6, 0.5, 0.7), "a slower core: 60 %", "what was lost, by no one name: 60 %"),
        ((0.1, -0.2, 0.4), "a slower core, not replayed", "nothing that was seen"),
        ((0.5, -0.2, 1.2), CANNOT_TELL, CANNOT_TELL),
    ],
)
def test_page_37_has_the_name_of_page_15_and_says_how_well_it_is_shown(back, named, unnamed):
    replay = Replay(back, 1.0, 0.5, 20, runs=11)
    known = Known(0.9, "a slower core", (0.95, 0.9, 0.97), "slower", replay)
    assert (known.explained, Known(0.9, replay=replay).explained) == (named, unnamed)
    assert len(known.sentence.split()) <= 25 and "11 slow runs" in known.sentence


def tried(*rows: tuple) -> pd.DataFrame:
    """Rows (mitigation, verdict, ratio, low, high)."""
    columns = ["mitigation", "verdict", "mean_ratio", "mean_low", "mean_high"]
    return pd.DataFrame(rows, columns=columns).assign(runs=8)


FASTER = ("malloc-huge", TOO_FEW, 0.838, 0.827, 0.849)
OPEN = ("jemalloc", TOO_FEW, 0.9, 0.7, 1.1)
TWICE = ("malloc-huge", HELPS, 0.627, 0.58, 0.678)


@pytest.mark.parametrize(
    ("rows", "autopilot", "word"),
    [
        ([OPEN, FASTER], [TWICE], "malloc-huge, −16 %"),
        ([OPEN], [TWICE], "malloc-huge, −37 %"),
        ([OPEN], [OPEN], CANNOT_TELL),
        ([("jemalloc", NOT_AGAIN, 0.9, 0.85, 0.95)], [], "none"),
        ([("jemalloc", NO_EFFECT, 0.99, 0.985, 0.995)], [], "none"),
        ([], [], CANNOT_TELL),
    ],
)
def test_an_effect_far_from_none_is_never_cannot_tell(rows, autopilot, word):
    result = Shown(tried=tried(*autopilot).set_index("mitigation"))
    known = {"tried": tried(*rows), "result": result, "found": Shown(), "product_sentence": ""}
    known |= dict.fromkeys(["missing", "answer"], "") | {"factor": "page-faults"}
    known |= {"proof": Shown(sentence="")}
    found = run_cells("55-mitigate-and-compare", "answer", **known)["found"].answer
    assert found.answer == word and (found.n == 8 or not rows)
    assert len(found.sentence.split()) <= 25
    assert ("a hidden slow path" in found.sentence) == (rows == [OPEN] and autopilot == [TWICE])
    said = remedy_answer(tried(*rows).set_index("mitigation")).sentence
    assert ("but: too few rounds" in said) == (FASTER in rows)


def test_the_pages_that_read_the_name_are_made_after_page_15():
    needs = _needs()
    for stage in ("20-delta-config", "30-injection", "37-worst-runs"):
        assert "Known.read(" in (NOTEBOOKS / f"{stage}.ipynb").read_text()
        assert "15-account" in needs[stage], stage
