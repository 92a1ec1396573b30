"""Tables and sentences of stage 85 against the jobs that they are about."""

import matplotlib
import pandas as pd
import pytest

from nbhelpers.answers import CANNOT_TELL
from nbhelpers.report import figure_workers, published_table
from nbhelpers.simulation import periodic
from nbhelpers.studies import stragglers
from nbhelpers.studies.answers_scale import workers_answer
from nbhelpers.training import (
    noise_on_hosts,
    planted,
    published_job,
    published_kineto,
    what_if,
)

matplotlib.use("agg")
RESULTS = {name: what_if(published_job(name)) for name in ("AR", "SE", "ST")}


def test_the_table_of_jobs_names_who_was_published():
    jobs = stragglers.jobs_table(RESULTS, published_table("lin2025-slowdowns1"))
    assert jobs["worker"].tolist() == ["0/0", "–", "–"]
    assert jobs["stage"].tolist() == ["–", "1", "3"]
    assert (jobs["difference_percent"].abs() < 0.001).all()
    sentence = stragglers.jobs_sentence(jobs)
    assert "AR (slow-down 1.973): stage 0 of replica 0, 100%" in sentence
    assert "1.973, 1.537, 1.179" in sentence
    answer = workers_answer(jobs, stragglers.workers_table(RESULTS))
    assert answer.answer == "AR: worker 0/0, SE: stage 1, ST: stage 3"
    assert answer.value == pytest.approx(RESULTS["AR"].slowdown)
    assert answer.published.startswith("1.973 (") and len(answer.groups["SE"]) == 64
    nobody = jobs.assign(worker="–", stage="–", share=float("nan"))
    assert workers_answer(nobody, stragglers.workers_table(RESULTS)).answer == CANNOT_TELL
    many = workers_answer(jobs.assign(job=["long name"] * 3), stragglers.workers_table(RESULTS))
    assert many.answer == "named in 3 of 3 jobs"


def test_workers_of_all_jobs_are_drawn():
    workers = stragglers.workers_table(RESULTS)
    assert workers.groupby("job").size().to_dict() == {"AR": 16, "SE": 64, "ST": 8}
    figure = figure_workers(workers)
    assert [axes.get_title("left") for axes in figure.axes[:3]] == ["AR", "SE", "ST"]
    assert figure_workers(workers[:0]).axes is not None


def test_planted_cases_are_counted():
    cases = planted([published_job("ST")], 4, [1.5], seed=1)
    table = stragglers.planted_table(cases).set_index("factor")
    assert table["cases"].to_dict() == {1.0: 4, 1.5: 4}
    assert table["first"].to_dict() == {1.0: 0, 1.5: 4}
    assert stragglers.planted_sentence(cases).startswith("4 of 4 slowed workers")
    missed = pd.DataFrame(
        {"factor": [1.5, 1.0], "first": [False, False], "named": [False, True], "others": [2, 0]}
    )
    assert stragglers.planted_sentence(missed).startswith("0 of 1 slowed workers")
    assert "; 3 workers that were not" in stragglers.planted_sentence(missed)


def test_sentences_at_scale_have_the_numbers_of_their_tables():
    scaled = stragglers.jobs_at_scale(["ST"], [periodic(100, 250)], 4, 2)
    assert scaled["replicas"].tolist() == [2, 4]
    assert "On 16 ranks" in stragglers.noise_sentence(scaled)
    assert f"{scaled['alone'][0]:.3f} ×" in stragglers.noise_sentence(scaled)
    sought = stragglers.stragglers_at_scale([periodic(100, 250)], 6, 1.5, 2)
    assert sought["right"].all() and (sought["without"] < sought["slowdown"]).all()
    assert "in 2 of 2 cases" in stragglers.straggler_sentence(sought)
    gain = (1 - sought["without"] / sought["slowdown"]).median()
    assert f"{gain:.1%}" in stragglers.straggler_sentence(sought)
    assert gain == pytest.approx(0.2, abs=0.1)


def test_the_sentence_about_hosts_has_the_numbers_of_its_table():
    hosts = noise_on_hosts(published_kineto(), [periodic(100, 250)], 2)
    sentence = stragglers.host_sentence(hosts)
    for row in hosts.itertuples():
        assert f"{row.median:.3f} × ({row.low:.3f} to {row.high:.3f})" in sentence
    assert "n = 2 seeds" in sentence and f"{hosts['busy'][0]:.0%} of the time" in sentence
