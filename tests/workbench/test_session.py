"""A session without widgets: the whole way on recorded runs whose cause is known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribution import explain, find_cutoff
from nbhelpers.errors import InputError
from nbhelpers.measurement import consequences, finished, rates, recorded_runs
from nbhelpers.places import shipped
from nbhelpers.workbench import Session
from nbhelpers.workbench.association import relation
from nbhelpers.workbench.nodes import nodes_of
from nbhelpers.workbench.session import AGAIN, Limit, limited

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
    assert found.factors["factor"].iloc[0] == "page_faults_per_s"


def test_a_preview_claims_nothing_and_has_the_same_tree():
    preview, found = SESSION.explanation(permutations=0), SESSION.explanation()
    assert not preview.found and np.isnan(preview.p_value)
    table = SESSION.table
    assert nodes_of(preview, table) == nodes_of(found, table)


def test_the_nodes_hold_the_runs_that_their_thresholds_say():
    root = nodes_of(SESSION.explanation(0), SESSION.table)
    slow = SESSION.explanation(0).labels
    assert (root.fast, root.slow) == ((~slow).sum(), slow.sum())
    at_most = (SESSION.table[root.metric] <= root.threshold).to_numpy()
    assert (root.left.fast, root.left.slow) == ((~slow[at_most]).sum(), slow[at_most].sum())
    assert root.left.fast + root.right.fast == root.fast
    assert root.leaves >= 2 and root.metrics[0] == root.metric


def test_limits_select_runs_and_replace_that_of_the_same_metric(runs):
    low, high = runs["page_faults"].quantile([0.1, 0.8])
    session = limited(SESSION, Limit("page_faults", 0, 1))
    session = limited(session, Limit("page_faults", low, high))
    inside = runs[(runs["page_faults"] >= low) & (runs["page_faults"] <= high)]
    assert session.table["run"].tolist() == inside["run"].tolist()
    assert len(session.limits) == 1
    with pytest.raises(InputError, match="no run lies within"):
        _ = limited(SESSION, Limit("seconds", -2, -1)).table


def test_another_outcome_is_judged(runs):
    session = replace(SESSION, outcome="user_s")
    assert session.judged == "user_s"
    assert session.values.tolist() == runs["user_s"].tolist()
    trial = session.trials()["jemalloc"]
    untreated, treated = trial.pair
    ratio = treated["user_s"].mean() / untreated["user_s"].mean()
    assert trial.comparison.table.loc["mean", "ratio"] == pytest.approx(ratio)


def test_an_excluded_metric_explains_nothing():
    first = SESSION.explanation(0).factors["members"].iloc[0]
    left = replace(SESSION, excluded=tuple(first)).explanation()
    assert not {name for members in left.factors["members"] for name in members} & set(first)


def test_the_candidates_are_those_of_the_library(runs):
    candidates = SESSION.candidates()
    assert candidates["modes"] == find_cutoff(runs["seconds"], 1).value
    assert candidates["median"] == runs["seconds"].median()
    counts = [(runs["seconds"] > candidates[name]).sum() for name in ("median", "worst tenth")]
    assert counts == [65, 13]


def test_r2_is_that_of_the_correlation_and_its_interval_covers_it():
    random = np.random.default_rng(4)
    metric = random.normal(size=4000)
    runs = pd.DataFrame({"metric": metric, "seconds": metric + random.normal(size=4000)})
    found = relation(runs, "metric", "seconds")
    assert found.r2 == pytest.approx(np.corrcoef(runs["metric"], runs["seconds"])[0, 1] ** 2)
    assert found.low < 0.5 < found.high and found.high - found.low < 0.06
    slope, intercept = np.polyfit(runs["metric"], runs["seconds"], 1)
    assert (found.slope, found.intercept) == pytest.approx((slope, intercept))
    constant = relation(runs.assign(metric=1.0), "metric", "seconds")
    assert np.isnan(constant.r2) and constant.sentence.startswith("No R²")


def test_the_interval_of_r2_covers_the_truth_as_often_as_it_says():
    random = np.random.default_rng(6)
    hits = 0
    for seed in range(60):
        x = random.normal(size=120)
        runs = pd.DataFrame({"x": x, "y": x + random.normal(size=120)})
        found = relation(runs, "x", "y", seed)
        hits += found.low <= 0.5 <= found.high
    assert 51 <= hits <= 60


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


def test_a_column_of_names_can_be_excluded_and_one_that_names_the_run_not():
    session = Session(SLOW_PATH)
    columns = session.may_explain()
    assert "dose" in columns and set(session.metrics()) < set(columns)
    assert not {"status", "cell", "workload", "placement"} & set(columns)


def test_a_planted_path_is_found_in_a_campaign():
    session = Session(SLOW_PATH, excluded=("dose",))
    found = session.explanation()
    assert found.found and found.factors["factor"].iloc[0] == "retries"
    assert session.tried().empty


def test_a_campaign_with_treated_cells_is_a_trial():
    session = Session(MATRIX)
    assert set(session.measured()["cell"]) == {"baseline"}
    assert session.tried().index.tolist() == ["tcmalloc"]
    assert not session.explanation().found


def test_choices_survive_the_disk(tmp_path):
    session = Session(
        str(tmp_path),
        "sleep 0.01",
        limits=(Limit("seconds", 0.1, 0.25),),
        excluded=("page_faults",),
        cutoff=0.2,
        layers=("software",),
    )
    assert Session.load(session.save()) == session


def test_what_cannot_be_is_refused_with_a_way_out(tmp_path):
    with pytest.raises(InputError, match="no stopping rule"):
        Session(rule="when bored")
    with pytest.raises(InputError, match="not a command line"):
        Session.of_command("sh -c 'sleep")
    with pytest.raises(InputError, match="only read"):
        _ = SESSION.workload
    with pytest.raises(InputError, match="no runs yet"):
        _ = Session(str(tmp_path)).table
