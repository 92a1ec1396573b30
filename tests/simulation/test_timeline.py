"""Small cases to look at: a barrier of which one rank comes late, and the detours on the path."""

import numpy as np

from nbhelpers.simulation import Detours, Noise, patterns, simulate


def delayed(schedule, late, delay_us):
    """A schedule in which one rank is struck by one detour."""
    source = (np.zeros(1, np.int32), ("delay",))
    delay = Detours(np.zeros(1), np.full(1, delay_us * 1e3), 1e15, *source)
    noise = Noise.on_ranks(delay, schedule.ranks, phases_ns=0, noisy=[late])
    return simulate(schedule, noise=noise, critical_path=True)


def delayed_barrier(ranks, late, delay_us):
    return delayed(patterns.barrier(ranks), late, delay_us)


class TestDelayedBarrier:
    def test_nobody_leaves_before_the_late_one_has_come(self):
        result = delayed_barrier(8, 3, 20)
        others = np.delete(result.finish_ns, 3)
        assert (
            others >= 20_000 + 1500 + 2500 + 1500
        ).all()  # its first message: o, L, o after the delay
        assert result.ideal.finish_ns.tolist() == [3 * 5500] * 8

    def test_only_the_late_one_is_to_blame(self):
        result = delayed_barrier(16, 5, 50)
        blame = result.culprits(by=("rank", "source"))
        assert blame[["rank", "source"]].to_numpy().tolist() == [[5, "delay"]] and blame[
            "path_ns"
        ].tolist() == [50_000]

    def test_a_delay_beside_the_path_is_absorbed(self):
        tree = delayed(patterns.binomial_bcast(8, 1), 4, 2.0)  # a leaf that waits anyway
        assert tree.makespan_ns == tree.ideal.makespan_ns
        assert tree.struck()["path_ns"].sum() == 0
