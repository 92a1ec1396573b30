"""The originals as programs of a study: real ones where a folder has them, and else what real ones
printed (tests/workloads/originals).
"""

import os
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import RunError
from nbhelpers.machine import topology
from nbhelpers.measurement import PlacementCheck, finished, run_once
from nbhelpers.studies import cui, persson
from nbhelpers.studies.design import cached_design
from nbhelpers.studies.originals import FILES, ORIGINAL, original, why_missing
from nbhelpers.workloads import configurations, existing_configurations

FOLDER = os.environ.get("NOISEBOOK_ORIGINALS", "")
PRINTED = Path(__file__).resolve().parents[1] / "workloads" / "originals"
real = pytest.mark.skipif(
    not FOLDER or bool(why_missing(FOLDER, FILES)),
    reason="no originals: NOISEBOOK_ORIGINALS=FOLDER names their builds",
)


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> Path:
    """Programs that print what the originals printed."""
    folder = tmp_path_factory.mktemp("originals")
    for name in ("babelstream", "epcc-schedbench", "epcc-syncbench"):
        path = folder / name
        path.write_text(f"#!/bin/sh\nexec cat {shlex.quote(str(PRINTED / name))}.txt\n")
        path.chmod(0o755)
    return folder


def test_what_is_missing_is_named(printed):
    assert "hecbench-nbody" in why_missing(printed, ("nbody", "stream"))
    with pytest.raises(RunError, match="hecbench-nbody"):
        original(printed, "nbody")


def test_a_study_without_them_says_so(printed, tmp_path):
    design = cached_design(
        tmp_path, ["Rm"], 0.02, programs=("stream",), models=("omp",), originals=tmp_path
    )
    assert design.models == ("omp",) and "babelstream" in design.absent[ORIGINAL]


def test_their_statistics_are_those_that_they_print(printed):
    names = {"dynamic_1": "schedbench", "reduction": "syncbench", "stream": "stream"}
    rows = [
        run_once(original(printed, name)) | {"cell": f"{cell} original Rm", "config": "Rm"}
        for cell, name in names.items()
    ]
    runs = pd.DataFrame(rows).assign(round=0, run=range(len(rows)), threads=2)
    assert list(runs["status"]) == ["ok"] * 3, list(runs["message"])
    ours = pd.DataFrame({"benchmark": ["dynamic_1", "dynamic_64", "reduction", "triad"]})
    ours = ours.assign(
        compiler="gcc", config="Rm", threads=2, round=0, run=9, value_us=1.0, index=0
    )
    table = cui.run_statistics(ours, runs)
    theirs = table[table["compiler"] == ORIGINAL].set_index("benchmark")
    assert set(theirs.index) == {"dynamic_1", "dynamic_64", "reduction", "triad"}
    sync = (PRINTED / "epcc-syncbench.txt").read_text()
    mean = float(re.findall(r"^REDUCTION time\s*=\s*(\S+)", sync, re.MULTILINE)[-1])
    assert theirs.loc["reduction", "mean_us"] == pytest.approx(mean)
    assert theirs["max_normalised"].ge(1).all() and np.isfinite(theirs.loc["reduction", "cv"])


def test_a_limit_of_threads_follows_the_placement(printed, monkeypatch):
    monkeypatch.setitem(FILES, "nbody", "babelstream")
    workload = original(printed, "nbody")
    for one in existing_configurations(configurations(topology(), os.sched_getaffinity(0))):
        assert dict(one.of(workload).env)["OMP_THREAD_LIMIT"] == str(one.threads)


@real
@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
def test_real_ones_are_placed_as_asked(name):
    small = {"nbody": {"bodies": 200}, "stream": {"elements": 2**16}, "minife": {"nx": 8}}
    workload = original(FOLDER, name, **small.get(name, {"outer": 2}))
    for one in existing_configurations(
        configurations(topology(), os.sched_getaffinity(0), ("mitigation",))
    ):
        row = run_once(one.of(workload), [PlacementCheck()])
        assert (row["status"], row["placement_ok"]) == ("ok", True), (one, row["message"])


@real
@pytest.mark.long
def test_a_campaign_has_them_beside_ours(tmp_path):
    design = cached_design(
        tmp_path, ["Rm", "TP"], 0.02, models=("omp",), originals=FOLDER, programs=("nbody",)
    )
    assert design.models == (ORIGINAL, "omp")
    runs = finished(persson.baseline_campaign(tmp_path / "baseline", design, runs=2).run())
    labelled = persson.label_runs(runs)
    assert set(labelled["model"]) == {ORIGINAL, "omp"}
    assert labelled["placement_ok"].eq(True).all()
    spread = persson.spread_table(labelled)
    assert {"original", "OMP"} >= set(spread["model"])
