"""A session without widgets: the whole way on recorded runs whose cause is known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribution import explain
from nbhelpers.errors import InputError
from nbhelpers.measurement import consequences, finished, rates, recorded_runs
from nbhelpers.mitigation.trials import HELPS, SEEMS
from nbhelpers.places import shipped
from nbhelpers.workbench import Session
from nbhelpers.workbench.session import AGAIN, TRIAL
from nbhelpers.workbench.views import relation_sentence
from nbhelpers.workbench.widgets import MITIGATION

from .test_widgets import click, opened, shown

SESSION = Session()
SLOW_PATH = "data/recorded/52-known-causes/slow-path"
MATRIX = "data/recorded/55-mitigate-and-compare/matrix-product"


@pytest.fixture(scope="module")
def runs():
    """The recorded runs, read without the workbench."""
    return rates(finished(recorded_runs(shipped() / SESSION.folder / "first")))


def test_it_explains_as_the_library_does_by_itself(runs):
    found = SESSION.explanation()
    alone = explain(runs, seed=1, consequences=consequences())
    assert found.found and found.p_value == alone.p_value
    pd.testing.assert_frame_equal(found.factors, alone.factors)
    assert "page_faults_per_s" in found.factors["factor"].head(3).tolist()


def test_limits_select_runs(runs):
    low, high = runs["page_faults"].quantile([0.1, 0.8])
    session = Session(limits={"page_faults": [low, high]})
    inside = runs[(runs["page_faults"] >= low) & (runs["page_faults"] <= high)]
    assert session.table["run"].tolist() == inside["run"].tolist()
    with pytest.raises(InputError, match="no run lies within"):
        _ = Session(limits={"seconds": [-2, -1]}).table


def test_r2_is_that_of_the_correlation_and_its_interval_covers_it():
    random = np.random.default_rng(4)
    metric = random.normal(size=4000)
    runs = pd.DataFrame({"metric": metric, "seconds": metric + random.normal(size=4000)})
    r2 = np.corrcoef(runs["metric"], runs["seconds"])[0, 1] ** 2
    found = relation_sentence(runs, "metric", "seconds")
    assert found.startswith(f"R² {r2:.2f} (0.4") and "to 0.5" in found and "n = 4000" in found
    assert relation_sentence(runs.assign(metric=1.0), "metric", "seconds").startswith("No R²")
    unrelated = pd.DataFrame({"x": random.normal(size=50), "y": random.normal(size=50)})
    assert "(0.00 to" in relation_sentence(unrelated, "x", "y")


def test_mitigations_of_the_factor_and_what_was_recorded_of_them():
    names = [one.id for one in SESSION.options("page_faults_per_s")]
    tried = SESSION.tried()
    assert set(tried.index) <= set(names)
    assert tried.loc["mimalloc", "verdict"] == "helps"
    assert set(SESSION.trials(AGAIN)) == set(tried.index)
    table = finished(recorded_runs(shipped() / SESSION.folder / "trial-mimalloc"))
    means = table.groupby("cell")["seconds"].mean()
    ratio = means["mimalloc"] / means["baseline"]
    assert tried.loc["mimalloc", "mean_ratio"] == pytest.approx(ratio)


def test_a_planted_path_is_found_in_a_campaign_where_the_column_that_names_it_is_excluded():
    session = Session(SLOW_PATH, excluded=("dose",))
    found, columns = session.explanation(), session.may_explain()
    assert found.found and found.factors["factor"].iloc[0] == "retries"
    assert "dose" in columns and not {"status", "cell", "workload", "placement"} & set(columns)


def test_a_campaign_with_treated_cells_is_a_trial():
    session = Session(MATRIX)
    assert set(session.measured()["cell"]) == {"baseline"}
    assert session.tried().index.tolist() == ["tcmalloc"]
    assert not session.explanation().found


@pytest.fixture
def flagged(tmp_path):
    """A session of a program that is slow unless a file is there; its mitigation is a person's."""
    flag = tmp_path / "flag"
    command = f"sh -c '[ -e {flag} ] || sleep 0.02'"
    session = Session(str(tmp_path / "bench"), command, layers=(), rounds=8)
    session = replace(session, mitigation="quiet-machine", runs=2)
    session.measure()
    return session, flag


@pytest.mark.long
def test_a_mitigation_by_hand_is_measured_before_and_after_by_clicks_and_again(flagged):
    session, flag = flagged
    with pytest.raises(InputError, match="is done by hand(.|\n)*measure without it"):
        session.measure(TRIAL)
    bench = opened(replace(session, node="others_busy_s"))
    assert "by hand: measure without it" in shown(bench, MITIGATION)
    click(bench, "measure without it")
    bench.settle()
    flag.touch()  # the person
    click(bench, "I have done it: measure with it")
    bench.settle().settle()
    flag.unlink()
    text = shown(bench, MITIGATION)
    assert f": {SEEMS}</h4>" in text and "comes and goes with it" in text
    assert "Untreated runs: " in text and session.next_step() == AGAIN
    session.measure(f"{AGAIN}.before")
    flag.touch()
    session.measure(f"{AGAIN}.after")
    assert session.tried().loc["quiet-machine", "verdict"] == HELPS
    assert session.tried().loc["quiet-machine", "mean_high"] < 0.8


def test_choices_survive_the_disk(tmp_path):
    chosen = {"limits": {"seconds": [0.1, 0.25]}, "excluded": ("page_faults",), "cutoff": 0.2}
    session = Session(str(tmp_path), "sleep 0.01", layers=("software",), **chosen)
    assert Session.load(session.save()) == session
