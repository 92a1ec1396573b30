"""A small study as `make paper` leaves it, in a folder of a test."""

import gzip
import json
from pathlib import Path

import pytest

from nbhelpers import study
from nbhelpers.artifact import names, unpack

PROFILE = "quick"


def lay_out(home: Path) -> Path:
    """Write a study of two stages below `home`; return its folder."""
    build = home / PROFILE
    files = {
        "data/00-machine/machine.json": json.dumps({"machine": {"cpus": [0]}, "replaced": []}),
        "data/10-trace-collection/daemon, wöchentlich/campaign.json": f'{{"of": "{home}/quick/x"}}',
        "data/10-trace-collection/aside/2026/campaign.json": "put aside",
        "data/10-trace-collection/.lock": "",
        "notebooks/00-machine.ipynb": '{"cells": []}',
        "notebooks/10-trace-collection.failed.ipynb": "{}",
        "pages/00-machine.html": "<p>a page</p>",
        "results/00-machine/table.csv": "a,b\n1,2\n",
        "results/00-machine/empty.csv": "",
        "stamps/00-machine.done": "",
    }
    for name, text in files.items():
        (build / name).parent.mkdir(parents=True, exist_ok=True)
        (build / name).write_text(text)
    packed = gzip.compress(f"{home}/quick/x".encode())
    (build / "data/10-trace-collection/runs.jsonl.gz").write_bytes(packed)
    for stage, time in (("00-machine", "2026-01-02T03:04:05+00:00"), ("90-paper", "2026-01-03")):
        machine = {"cpus": [0, 1], "cpu_model": "Some CPU"}
        record = {"stage": stage, "time": time, "commit": "c0ffee", "data_from": machine}
        (build / f"provenance/{stage}.json").parent.mkdir(exist_ok=True)
        (build / f"provenance/{stage}.json").write_text(json.dumps(record))
    return build


def live_in(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results go below `home`."""
    for module in (study, names, unpack):
        monkeypatch.setattr(module, "results", lambda: home)
