"""A noise signature on real CPUs: a detour loop loses what was asked for."""

import os

import pytest

from nbhelpers.injection.rules import may_realtime
from nbhelpers.noise.signature import Signature
from nbhelpers.studies import ferreira
from nbhelpers.studies.ferreira.design import QUIET
from nbhelpers.studies.ferreira.loops import Loops


@pytest.mark.long
@pytest.mark.flaky(reruns=2)
@pytest.mark.skipif(not may_realtime(50), reason="SCHED_FIFO is not permitted: others take the CPU")
def test_a_loop_on_real_cpus_loses_what_the_signature_says(tmp_path):
    """Long events: what the injector's own cost adds to short ones, the notebook shows."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    signatures = {one.label: one for one in (Signature(10), Signature(100))}
    loops = Loops(tmp_path, signatures, cpus, 4, 0.8)
    table = ferreira.share_table(loops)
    assert set(loops.runs["cell"]) == {QUIET, *signatures}
    assert (table["met_share"] - table["asked_share"]).abs().max() < 0.001
    assert (table["log_share"] - table["asked_share"]).abs().max() < 0.001
    assert (table["own_events_share"] == 1).all()
    shapes = loops.detours([QUIET, *signatures])
    for name, signature in signatures.items():
        long = shapes[name]["duration_ns"] > 0.9e3 * signature.duration_us
        expected = len(cpus) * 0.8 * signature.frequency_hz
        assert expected <= long.sum() <= 1.5 * expected + 20
