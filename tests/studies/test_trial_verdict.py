"""The best of the mitigations that were tried is the first of the table."""

import numpy as np
import pandas as pd

from nbhelpers.empty import why_empty
from nbhelpers.studies.mitigation_trials import judge_runs, trial_table
from nbhelpers.studies.sentences import absent_sentences, as_sentences, mode_sentences
from nbhelpers.studies.trial_verdict import best_trial


def runs(**means: float) -> pd.DataFrame:
    random = np.random.default_rng(0)
    rows = [
        {"cell": name, "mitigation": name, "round": number, "seconds": random.normal(mean, 0.01)}
        for number in range(20)
        for name, mean in means.items()
    ]
    return pd.DataFrame(rows)


def test_the_best_has_its_comparison_and_a_row_for_each_quantile():
    table = runs(none=1.0, slower=1.2, faster=0.8)
    judged = judge_runs(table.assign(cell=table["cell"].replace("none", "baseline")))
    tried = trial_table(judged)
    best = best_trial(judged, tried)
    assert best.name == tried["mitigation"].iloc[0] == "faster"
    assert best.comparison is judged["faster"].comparison
    assert len(best.shift) == len(judged["faster"].comparison.shift)


def test_where_nothing_was_tried_the_table_says_why():
    best = best_trial({}, trial_table({}))
    assert (best.name, best.comparison) == ("no mitigation", None)
    assert why_empty(best.shift)


def test_a_clause_becomes_a_sentence():
    assert as_sentences("jemalloc was left out: it is not here") == [
        "Jemalloc was left out: it is not here."
    ]
    assert as_sentences("") == []


def test_what_is_absent_is_said_with_its_reason():
    assert absent_sentences({"clang": "no clang"}, "Nothing was built with {}") == [
        "Nothing was built with clang: no clang."
    ]


def test_modes_are_said_with_their_mean_error_and_count():
    replays = pd.DataFrame(
        {
            "mode": ["improved", "improved"],
            "error_percent": [2.0, 4.0],
            "undisturbed_percent": [10.0, 20.0],
        }
    )
    [sentence] = mode_sentences(replays)
    assert "off by 3.0 % on average (2 traces, 15.0 % without any noise" in sentence
