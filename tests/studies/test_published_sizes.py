"""The papers' own sizes: what is run on the server of Cui et al. 2023, and how long a run of
Persson et al. 2025 is.
"""

import json
import os
from types import SimpleNamespace

import pytest

from nbhelpers.studies import design
from nbhelpers.workloads import binary_folder
from nbhelpers.workloads.sizes import stream_elements

from ..cells import run_cells
from ..workloads.test_configuration import EPYC

MB = 2**20


@pytest.fixture
def dardel(monkeypatch):
    """Two sockets of 64 cores with SMT, four NUMA nodes and 256 MB of last-level cache each."""
    monkeypatch.setattr(design, "topology", lambda: EPYC)
    monkeypatch.setattr(design, "last_level_caches", lambda cpus: 512 * MB)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(256)))


def options(workload) -> dict[str, str]:
    return dict(zip(workload.command[1::2], workload.command[2::2]))


def test_an_array_is_four_times_the_caches_and_at_least_the_papers():
    assert stream_elements(0) == stream_elements(32 * MB) == 2**25
    for cache_mb in (65, 128, 300, 512, 1152):
        elements = stream_elements(cache_mb * MB)
        assert 8 * elements >= 4 * cache_mb * MB > 8 * elements / 2, cache_mb


@pytest.mark.skipif(not (binary_folder() / "syncbench").exists(), reason="not built")
def test_the_papers_server_runs_the_papers_sizes_and_names_all_that_it_leaves_out(dardel, tmp_path):
    found = {"size": 50, "target_seconds": 0.1, "threads": 0}  # cached: nothing is calibrated
    (tmp_path / "syncbench.json").write_text(json.dumps(found))
    names = ["Rm", "TP-ST4", "TP-ST254", "TP-MT254", "TP-ST30", "TP-ST12", "TP-two-nodes"]
    sizes = {"elements": 0, "constructs": "", "chunks": "", "published_sizes": True}
    sizes |= {"study": SimpleNamespace(data=tmp_path), "configs": " ".join(names)}
    sizes |= {"compilers": "gcc", "target_seconds": 0.1, "recorded_only": False}
    made = run_cells("60-openmp-variability", "design", **sizes)["design"]
    loop = options(made.workloads["dynamic_1", "gcc"])
    assert (loop["--iterations-per-thread"], loop["--outer"]) == ("8192", "100")
    stream = options(made.workloads["stream", "gcc"])
    assert stream == {"--elements": str(2**28), "--repeats": "100"}
    table = made.table().set_index("name")
    assert table.loc[names, "measured"].to_dict() == {name: name != "TP-ST254" for name in names}
    assert table.loc["TP-ST254", "missing"] == "there are 128 cores"
    assert table.loc["TP-MT254", "threads"] == 254
    placed = made.placed()["dynamic_1", "gcc", "TP-MT254"]
    assert dict(placed.env)["OMP_NUM_THREADS"] == "254"
