"""The injector's program: it takes of its owner what it needs and nothing else, and is of the same
build.
"""

import os
import time
from dataclasses import replace

import pandas as pd
import pytest

from nbhelpers.errors import RunError, Unavailable
from nbhelpers.injection import make_plan
from nbhelpers.injection.replay import Replay

from .helpers import make_config


def many_lanes(count: int) -> Replay:
    """`count` lanes that roam, each with one short event."""
    plan = make_plan(make_config([(0, "irq", 1 + k / 20, 0.01) for k in range(count)]))
    lanes = pd.DataFrame({"cpu": -1, "first": range(count), "count": 1})
    return Replay(replace(plan, lanes=lanes.astype(plan.lanes.dtypes.to_dict())))


def mapped_kib(pid: int) -> int:
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmSize:"))


def test_its_processes_hold_nothing_of_their_owner():
    """Else each lane copies the owner's page tables: seconds with a large Python and many lanes."""
    replay = many_lanes(8)
    try:
        replay.start()
        mapped = [mapped_kib(pid) for pid in replay.pids]
        opened = [os.listdir(f"/proc/{pid}/fd") for pid in replay.pids]
    finally:
        replay.close()
    assert len(mapped) == 9 and max(mapped) < 20_000 < mapped_kib(os.getpid())
    assert len(opened[0]) <= 4  # control, owner, and the pipes of its lanes
    assert all(len(lane) <= 4 for lane in opened[1:])


def test_as_many_lanes_as_a_large_node_has_cpus_replay_their_events():
    replay = many_lanes(256)
    try:
        replay.start()
        replay.release(time.monotonic_ns())
        replay.wait(20)
    finally:
        replay.close()
    assert replay.problem() == "" and replay.ended_by == "plan done"
    assert len(replay.log["outcome"]) == 256 and (replay.log["outcome"] > 0).all()


@pytest.mark.parametrize(
    "content, kind, message",
    [
        (None, RunError, "not built"),
        ("#!/bin/sh\nexit 3\n", Unavailable, "other sources"),
        ("#!/bin/sh\nexit 1\n", RunError, "did not become ready"),
        ("no program", RunError, "Exec format error"),
    ],
    ids=["missing", "another build", "it ends", "no program"],
)
def test_without_the_program_an_error_says_what_to_do(
    tmp_path, monkeypatch, content, kind, message
):
    if content:
        (tmp_path / "nbinject").write_text(content)
        (tmp_path / "nbinject").chmod(0o755)
    monkeypatch.setenv("NOISEBOOK_BIN", str(tmp_path))
    replay = many_lanes(1)
    with pytest.raises(kind, match=message) as caught:
        replay.start()
    replay.close()
    assert "make" in caught.value.fix
