"""Known causes: planted for real, the truth recorded, and the scores right about runs whose truth
is made up.
"""

import numpy as np
import pandas as pd
import pytest
from noisebook_known_causes import (
    causes,
    describe_causes,
    not_planted_sentences,
    score_causes,
    score_nothing,
)
from noisebook_known_causes.campaigns import cause_campaign, planting_error
from noisebook_known_causes.scores import shows

from nbhelpers.errors import InputError
from nbhelpers.measurement import describe_columns, finished

# what shows each cause without a doubt, whatever the load of the machine: column, and how much more
# of it at least
SIGNS = {
    "slow-path": ("retries", 4000),
    "returned-memory": ("minor_faults", 5000),
    "small-pages": ("minor_faults", 10_000),
    "timer-storm": ("irq_LOC", 1000),
    "interrupt-storm": ("irq_CAL", 300),
    "forced-migrations": ("cpu_migrations", 20),
    "cpu-quota": ("cgroup_nr_throttled", 1),
    "dropped-cache": ("disk_read_bytes", 4_000_000),
    "fifo-bursts": ("runqueue_wait_ns", 5_000_000),
    "disk-contention": ("disk_write_bytes", 1_000_000),
    "nice-competitor": ("process_runqueue_wait_ns", 1_000_000),
    "profiler": ("irq_LOC", 200),
    "tlb-shootdowns": ("irq_TLB", 100),
    "network-storm": ("net_loopback_bytes", 100_000),
    "memory-limit": ("cgroup_memory_failures", 100),
    "hash-collisions": ("probes", 10_000),
    "frequent-collection": ("collections", 10),
    "debug-logging": ("io_write_calls", 5000),
    "syscall-tracer": ("voluntary_switches", 150),
}


def planted(name, tmp_path, runs=4):
    if error := planting_error(name):
        pytest.skip(f"{name} can't be planted here: {error.what}")
    return finished(cause_campaign(tmp_path, name, runs).run())


@pytest.mark.parametrize("name", SIGNS)
def test_a_planted_cause_is_really_there(name, binaries, tmp_path, nothing_left):
    """On a loaded machine what disturbs may get no CPU in a short run: then there are more."""
    column, more = SIGNS[name]
    for blocks in (1, 4):
        table = planted(name, tmp_path, 4 * blocks)
        if column not in table:
            pytest.skip(f"this machine doesn't count {column}")
        disturbed = table["truth"] == name
        assert [(~disturbed).sum(), disturbed.sum()] == [3 * blocks, blocks]
        found = table.loc[disturbed, column].max() - table.loc[~disturbed, column].median()
        if found >= more:
            return
    raise AssertionError(f"{column}: {found} more, of at least {more}")


def test_what_plants_a_cause_leaves_no_column_and_no_file(binaries, tmp_path):
    from noisebook_known_causes.campaigns import _dose, _place

    table = planted("cpu-hog", tmp_path)
    assert not [name for name in table if name.startswith("hog") or name == "mitigation"]
    planted("dropped-cache", tmp_path / "file")
    assert not _place(_dose(causes()["dropped-cache"], None)).file.exists()


def test_a_campaign_goes_on_where_it_stopped(binaries, tmp_path):
    first = planted("slow-path", tmp_path, 4)
    again = planted("slow-path", tmp_path, 8)
    assert len(again) == 8 and list(again["run"][:4]) == list(first["run"])


def test_every_sign_is_a_column_that_some_layer_has_or_the_victims_own():
    own = ["retries", "probes", "collections", "lines", "compiler"]
    known = [*describe_columns().index, *own, "runqueue_wait_ns", "timeslices"]
    for cause in causes().values():
        assert any(shows(column, cause.shown_by) for column in known), cause
    assert len(describe_causes()) >= 30


def test_what_was_not_planted_is_said_with_the_reason_and_the_command(monkeypatch):
    monkeypatch.setattr("noisebook_known_causes.kinds.may_realtime", lambda priority: False)
    assert not_planted_sentences(["fifo-bursts", "cpu-hog"], {"cpu-hog": pd.DataFrame()}) == [
        "Not planted: fifo-bursts, this user may not use SCHED_FIFO (run as root, or: ulimit -r"
        " 99)."
    ]
    assert not_planted_sentences(["cpu-hog"], {"cpu-hog": pd.DataFrame()}) == []


def test_a_campaign_needs_whole_blocks_and_a_cause_that_exists(tmp_path):
    with pytest.raises(InputError, match="multiple of 4"):
        cause_campaign(tmp_path, "slow-path", 10)
    with pytest.raises(InputError, match="there is no cause 'sunspots'"):
        cause_campaign(tmp_path, "sunspots", 8)


def invented(column, extra=0.3, runs=80, seed=0):
    """Runs of which a quarter is slower, with a counter that rises then and four that don't."""
    random = np.random.default_rng(seed)
    disturbed = random.permutation(np.arange(runs) % 4 == 0)
    table = pd.DataFrame({f"noise_{number}": random.poisson(100, runs) for number in range(4)})
    table[column] = random.poisson(50, runs) + 400 * disturbed
    table["seconds"] = 0.1 * (1 + extra * disturbed + 0.01 * random.standard_normal(runs))
    return table.assign(
        wall_seconds=table["seconds"],
        status="ok",
        run=np.arange(runs),
        truth=np.where(disturbed, "slow-path", "none"),
    )


@pytest.mark.parametrize(
    "column, named, right",
    [("retries", "the cause", True), ("major_faults", "something else", False)],
)
def test_the_score_knows_right_from_wrong(column, named, right):
    row = score_causes({"slow-path": invented(column)}).iloc[0]
    assert (row["named"], row["right"], row["planted"], row["slow"], row["slow_planted"]) == (
        named,
        right,
        20,
        20,
        20,
    )
    assert row["low"] < row["effect"] < row["high"] and row["effect"] == pytest.approx(
        1.3, abs=0.02
    )


@pytest.mark.long
def test_where_nothing_was_planted_nothing_is_named():
    table = invented("retries", extra=0.0)
    row = score_causes({"slow-path": table}).iloc[0]
    assert (row["named"], row["rank"], row["right"]) == ("nothing", 0, False)
    nothing = score_nothing({"slow-path": invented("retries")}, shuffles=2)
    assert (
        list(nothing["kind"]) == ["undisturbed", "shuffled", "shuffled"]
        and not nothing["found"].any()
    )
    assert list(nothing["runs"]) == [60, 80, 80]


@pytest.mark.long
def test_a_trail_counts_only_where_there_is_no_counter_of_the_cause():
    table = invented("others_busy_s").assign(
        truth=lambda runs: runs["truth"].replace("slow-path", "cache-eviction")
    )
    assert score_causes({"cache-eviction": table}).iloc[0][
        ["named", "right", "strict"]
    ].tolist() == ["its trail", True, False]
    counted = table.assign(cache_misses=np.random.default_rng(1).poisson(100, len(table)))
    assert score_causes({"cache-eviction": counted}).iloc[0][
        ["named", "right", "countable"]
    ].tolist() == ["its trail", False, True]
    assert not score_causes({"cache-eviction": table})["countable"][0]


@pytest.mark.long
@pytest.mark.parametrize("column, strict", [("runqueue_wait_ns", True), ("others_busy_s", False)])
def test_strictly_what_the_culprit_did_is_not_what_happened_to_the_victim(column, strict):
    table = invented(column).assign(
        truth=lambda runs: runs["truth"].replace("slow-path", "cpu-hog")
    )
    assert score_causes({"cpu-hog": table}).iloc[0][["right", "strict", "leader"]].tolist() == [
        True,
        strict,
        strict,
    ]


def test_runs_without_a_truth_are_refused():
    with pytest.raises(InputError, match="truth"):
        score_causes({"slow-path": invented("retries").drop(columns="truth")})
