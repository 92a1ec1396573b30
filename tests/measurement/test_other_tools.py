"""Runs that other tools timed: files that they wrote, against what they say of them themselves."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.measurement.other_tools import read_benchmark
from nbhelpers.reading import read_json

DATA = Path(__file__).parent / "data"


def test_hyperfine_says_the_same_of_its_runs():
    path = DATA / "hyperfine.json.gz"
    runs, results = read_benchmark(path), read_json(path)["results"]
    assert runs["cell"].unique().tolist() == [one["command"] for one in results]
    ours = runs.groupby("cell", sort=False)["seconds"].agg(["mean", "median", "std", "min", "max"])
    theirs = pd.DataFrame(results)[["mean", "median", "stddev", "min", "max"]]
    assert ours.to_numpy() == pytest.approx(theirs.to_numpy())
    assert (runs["status"] == "ok").tolist() == [
        code == 0 for one in results for code in one["exit_codes"]
    ]


def test_pyperf_says_the_same_of_its_values():
    """`pyperf stats` prints these of the file."""
    runs = read_benchmark(DATA / "pyperf.json.gz")
    assert len(runs) == 50 and runs["process"].nunique() == 10
    ours = 1e6 * runs["seconds"].agg(["mean", "std", "min", "max"])
    assert ours.round(2).tolist() == pytest.approx([9.62, 2.39, 4.77, 16.4], abs=0.05)
    assert runs["runnable_threads"].nunique() > 1 and runs["mem_max_rss"].min() > 1e6


def test_google_benchmark_says_the_same_of_its_repetitions():
    path = DATA / "google-benchmark.json.gz"
    runs = read_benchmark(path)
    theirs = [one for one in read_json(path)["benchmarks"] if one.get("aggregate_name") == "mean"]
    ours = runs.groupby("cell", sort=False)[["seconds", "cpu_seconds"]].mean()
    assert ours.index.tolist() == [one["run_name"] for one in theirs]
    wanted = [[1e-6 * one["real_time"], 1e-6 * one["cpu_time"]] for one in theirs]
    assert {one["time_unit"] for one in theirs} == {"us"}
    assert ours.to_numpy() == pytest.approx(np.array(wanted))


def test_other_json_is_refused(tmp_path):
    for number, text in enumerate(["{}", "[]", '{"results": [{"command": "a"}]}']):
        (tmp_path / f"{number}.json").write_text(text)
        with pytest.raises(InputError, match="no runs of hyperfine, pyperf or Google"):
            read_benchmark(tmp_path / f"{number}.json")
