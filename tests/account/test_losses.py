"""When runs lost time that a replay can take away again, and what is known without tracepoints."""

import pandas as pd
import pytest

from nbhelpers.account.owned import CAUSE_OF, owned_and_lost, owned_by_threads
from nbhelpers.account.owners import LATENCY
from nbhelpers.measurement import finished, recorded_runs
from nbhelpers.noise.lost_time import loss_delta
from nbhelpers.outcomes import worst_first
from nbhelpers.places import shipped

MS = 1_000_000


def test_what_runs_lost_is_their_excess_and_in_sum_what_their_account_says():
    """Of recorded runs: the four slowest, and twelve of the middle."""
    folder = shipped() / "data/recorded/10-trace-collection/baseline"
    runs = worst_first(finished(recorded_runs(folder)).query("cell == 'traced'"))
    runs = pd.concat([runs.head(4), runs.iloc[94:106]])
    owned, lost = owned_and_lost(folder / "traces", runs, folder / "speed")
    owned = owned.drop(columns=LATENCY, level="owner")
    for cause, rows in lost.groupby("cause"):
        parts = [part for part, of in CAUSE_OF.items() if of == cause]
        of_runs = owned.loc[:, owned.columns.get_level_values("part").isin(parts)].sum(axis=1)
        sums = rows.groupby("run")["lost_ns"].sum().reindex(owned.index, fill_value=0) / MS
        assert sums.tolist() == pytest.approx(of_runs.tolist(), abs=0.05), cause
    excess_ms = 1e3 * (runs.set_index("run")["seconds"] - runs["seconds"].iloc[4:].mean())
    delta_ms = loss_delta(lost, runs, runs["run"].iloc[4:]).groupby("run")["lost_ns"].sum() / MS
    assert (delta_ms / excess_ms)[runs["run"].iloc[:4]].tolist() == pytest.approx([1] * 4, abs=0.1)


def test_without_tracepoints_events_still_have_their_part():
    runs = pd.DataFrame({"run": [0, 1], "seconds": [0.1, 0.2], "process_runqueue_wait_ns": 3 * MS})
    event = {"run": 1, "source": "irq:7", "duration_ns": 2 * MS, "interrupted": "workload"}
    owned = owned_by_threads(runs, pd.DataFrame([event]))
    assert owned.sum(axis=1).tolist() == pytest.approx([100, 200])
    assert owned["taken", "irq:7"].tolist() == [0, 2]
    assert owned["runnable", "not recorded"].tolist() == [3, 1]
