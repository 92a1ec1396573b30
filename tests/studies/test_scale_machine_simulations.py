"""The page on this machine's noise: which recordings and sizes its simulations have."""

import pytest

from nbhelpers.places import shipped
from nbhelpers.studies.baseline import Baseline
from nbhelpers.studies.scale import MachineSimulations

RECORDED = shipped() / "data" / "recorded"


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    return MachineSimulations(
        tmp_path_factory.mktemp("tables"),
        Baseline(RECORDED / "10-trace-collection"),
        RECORDED / "00-machine" / "detours.json",
        ranks=16,
        seeds=2,
        program_ranks=8,
        share=0.02,
        traced_runs=3,  # a trace takes a tenth of a second to read
    )


def test_this_machines_noise_is_brought_to_scale(machine):
    here = machine.this_machine
    assert set(here["ranks"]) == {2, 8, 16}
    assert (here["median"] >= 1).all()
    assert (machine.folder / "this-machine.csv").exists()


def test_only_so_many_traced_runs_are_read(machine):
    names = [trace.name for trace in machine.recordings["kernel events"]]
    assert len(names) == 6
    assert {name.split(",")[0] for name in names} == {"run 1", "run 3", "run 4"}


def test_applications_run_under_the_kernel_events(machine):
    applications = machine.applications
    assert set(applications["noise"]) == {"kernel events"}
    assert set(applications["application"]) == {"Sweep3D", "POP", "AMG"}
