"""The three public jobs against the answers that were published with them, and the replay against
a recursion that follows each operation's needs.
"""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noisebook_training import published_job, what_if
from noisebook_training.step_graph import StepGraph
from noisebook_training.trace import COLUMNS, COMPUTING, read_job

from nbhelpers.errors import InputError
from nbhelpers.report.publications import published_table

PUBLISHED = published_table("lin2025-slowdowns1")
JOBS = ("AR", "SE", "ST")
RESULTS = {name: what_if(published_job(name)) for name in JOBS}


def published(job: str, part: str) -> pd.Series:
    rows = PUBLISHED[(PUBLISHED["job"] == job) & (PUBLISHED["part"] == part)]
    return rows.set_index("name")["slowdown" if rows["share"].isna().all() else "share"]


@pytest.mark.parametrize("job", JOBS)
def test_slowdowns_are_the_published_ones(job):
    result = RESULTS[job]
    assert result.slowdown == pytest.approx(published(job, "job").iloc[0], rel=1e-6)
    assert result.host_slowdown == pytest.approx(published(job, "host").iloc[0], rel=1e-6)


@pytest.mark.parametrize("part", ["replica", "stage", "operation", "step"])
@pytest.mark.parametrize("job", JOBS)
def test_each_part_slows_as_much_as_published(job, part):
    ours = RESULTS[job].by(part).set_index(part)["only"]
    theirs = published(job, part)
    assert sorted(map(str, ours.index)) == sorted(theirs.index)
    assert ours.to_numpy() == pytest.approx(theirs[[str(i) for i in ours.index]], rel=2e-6)


@pytest.mark.parametrize("job", JOBS)
def test_the_last_stage_takes_as_much_of_the_excess_as_published(job):
    share = RESULTS[job].by("stage")["share"].iloc[-1]
    assert share == pytest.approx(published(job, "last stage").iloc[0], abs=2e-5)


def test_the_slowed_worker_takes_as_much_of_the_excess_as_published():
    share = RESULTS["AR"].by("worker")["share"].max()
    assert share == pytest.approx(published("AR", "slowest workers").iloc[0], abs=2e-5)


def test_shares_of_steps_sum_to_one_and_agree_with_a_replay_of_the_rest():
    steps = RESULTS["SE"].by("step")
    assert steps["share"].sum() == pytest.approx(1)
    others = RESULTS["SE"].replayed_s[1:].sum() + RESULTS["SE"].ideal_step_s
    assert steps["without"][0] == pytest.approx(others / len(steps) / RESULTS["SE"].ideal_step_s)


# --- the replay -----------------------------------------------------------------------------------


@st.composite
def step_graphs(draw):
    """Operations that need earlier ones, some of them begun together, some by all replicas."""
    count = draw(st.integers(1, 9))
    needs = draw(st.lists(st.tuples(st.integers(1, 8), st.integers(0, 7)), max_size=14))
    needs = [(a, b) for a, b in needs if b < a < count and a // 2 != b // 2]
    pairs = [[a, a + 1] for a in range(0, count - 1, 2) if draw(st.booleans())]
    joint = draw(st.lists(st.integers(0, count - 1), max_size=3))
    return count, needs, pairs, joint


def expected_ends(count, needs, pairs, joint, seconds):
    """When each operation is over, by recursion."""
    group = {a: tuple(pair) for pair in pairs for a in pair}
    everybody = {b for a in joint for b in group.get(a, (a,))}
    replicas = range(seconds.shape[1])

    def begin(operation, replica):
        members = group.get(operation, (operation,))
        where = replicas if operation in everybody else [replica]
        return max(
            (end(b, r) for a, b in needs if a in members for r in where),
            default=0.0,
        )

    def end(operation, replica):
        return begin(operation, replica) + seconds[operation, replica]

    return np.array([[end(o, r) for r in replicas] for o in range(count)])


@settings(max_examples=200)
@given(step_graphs(), st.integers(0, 2**31), st.integers(1, 3), st.integers(1, 4))
def test_a_replay_ends_as_a_recursion_says(graph, seed, steps, replicas):
    count, needs, pairs, joint = graph
    rng = np.random.default_rng(seed)
    seconds = rng.uniform(0, 1, (count, steps, replicas))
    replay = StepGraph.of_groups(count, needs, pairs, joint)
    ends = replay.ends_seconds(seconds)
    for step in range(steps):
        theirs = expected_ends(count, needs, pairs, joint, seconds[:, step])
        assert ends[:, step] == pytest.approx(theirs)
    assert replay.step_seconds(seconds) == pytest.approx(ends.max((0, 2)))


def test_a_circle_is_refused():
    with pytest.raises(InputError, match="circle"):
        StepGraph.of_groups(3, [(0, 1), (1, 2), (2, 0)])
    with pytest.raises(InputError, match="5 operations for 3"):
        StepGraph.of_groups(3, []).step_seconds(np.zeros((5, 1, 1)))


# --- reading --------------------------------------------------------------------------------------


def test_a_csv_is_read_as_the_parquet_file(tmp_path):
    from nbhelpers.places import shipped

    table = pd.read_parquet(shipped() / "data/published/stragglers/trace-ST.parquet")
    table[COLUMNS].to_csv(tmp_path / "ST.csv", index=False)
    ours, theirs = read_job(tmp_path / "ST.csv"), published_job("ST")
    assert ours.kind.tolist() == theirs.kind.tolist()
    assert ours.duration_s == pytest.approx(theirs.duration_s, abs=1e-6)
    assert ours.name == "ST"


def test_durations_stand_where_the_table_has_them():
    from nbhelpers.places import shipped

    table = pd.read_parquet(shipped() / "data/published/stragglers/trace-AR.parquet")
    job = published_job("AR")
    for op, step, replica in [(0, 0, 0), (100, 7, 3), (665, 43, 2)]:
        row = table[
            (table["step"] == job.steps[step])
            & (table["dp_rank"] == replica)
            & (table["stage"] == job.stage[op])
            & (table["optype"] == job.kind[op])
            & (table["seq_id"] == job.number[op])
        ]
        assert row["duration"].tolist() == [job.duration_s[op, step, replica]]


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda table: table.drop(columns="seq_id"), "cannot be read"),
        (lambda table: table.iloc[:-1], "same operations"),
        (lambda table: table.assign(mc=1), "several chunks"),
        (lambda table: table.replace({"optype": {"gc": "tea"}}), "not known: tea"),
        (lambda table: table.replace({"optype": {"forward-send": "gc"}}), "forward-send"),
    ],
)
def test_what_is_no_such_trace_is_refused(change, message, tmp_path):
    from nbhelpers.places import shipped

    table = pd.read_parquet(shipped() / "data/published/stragglers/trace-ST.parquet")
    change(table.astype({"optype": str})).to_csv(tmp_path / "job.csv", index=False)
    with pytest.raises(InputError, match=message):
        what_if(read_job(tmp_path / "job.csv"))


def test_a_slowed_worker_computes_longer_and_nothing_else_changes():
    job = published_job("ST")
    slowed = job.slowed(2, replica=1, stage=2)
    changed = slowed.duration_s != job.duration_s
    rows = np.isin(job.kind, COMPUTING) & (job.stage == 2)
    assert changed[rows][:, :, 1].all() and changed.sum() == changed[rows][:, :, 1].size
    assert slowed.duration_s[rows][:, :, 1] == pytest.approx(2 * job.duration_s[rows][:, :, 1])
