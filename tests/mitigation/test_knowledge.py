"""The knowledge hangs together: every reference between its files resolves, and what the layers
count leads to a factor.
"""

import shutil

import pytest

from nbhelpers.errors import InputError
from nbhelpers.measurement import describe_columns
from nbhelpers.mitigation import (
    explain_factor,
    factors,
    mitigations,
    references,
)
from nbhelpers.mitigation.knowledge import _metric_factors, factor_of, folder

# Frachtenberg et al. 2026, tables 1 and 3: column or factor, mitigations that must be offered


def test_every_reference_between_the_files_resolves():
    for factor in factors().values():
        assert set(factor.neighbours) <= set(factors()) - {factor.id}, factor
        assert set(factor.mitigations) <= set(mitigations()), factor
        assert set(factor.references) <= set(references()), factor
    for mitigation in mitigations().values():
        assert set(mitigation.references) <= set(references()), mitigation


def test_nothing_is_unreachable():
    offered = {name for factor in factors().values() for name in factor.mitigations}
    cited = {
        name
        for entry in (*factors().values(), *mitigations().values())
        for name in entry.references
    }
    assert offered == set(mitigations()) and cited == set(references())


def test_what_the_layers_count_leads_to_a_factor():
    """Labels, times and CPU time of the run itself are consequences of a longer run, or none of its
    causes; what it printed is its own.
    """
    named = {factor for _, factor in _metric_factors(folder())}
    assert len(named) > 10 and named <= set(factors())
    table = describe_columns()
    own = {"user_s", "cpu_ns", "task_clock_ns", "process_cpu_ns", "output_lines"}
    causes = set(table.index[table["kind"].isin(["total", "level"])]) - own
    unknown = [name for name in causes if factor_of(name.replace("*", "some")) is None]
    assert not [name for name in unknown if not name.startswith("noise_")], unknown


def test_the_most_exact_pattern_decides():
    assert explain_factor("irq_TLB").id == "tlb-shootdowns"
    assert explain_factor("irq_virtio0").id == "interrupts"
    assert explain_factor("vm_pgmajfault_per_s").id == "major-faults"
    assert explain_factor("vm_nr_shmem").id == "kernel-memory-events"
    assert explain_factor("page-faults") is explain_factor("minor_faults")
    with pytest.raises(InputError, match="no factor is known for 'colour'"):
        explain_factor("colour")


def test_what_cannot_be_done_here_has_a_reason():
    answers = [one.possible() for one in mitigations().values()]
    assert all(len(one.reason) > 5 for one in answers if not one)


ENTRY = "- {id: a, name: Some, what: Something long, by_hand: [x], references: [man-nice]"


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("- {id: a, name: Some}\n", "required property"),
        (f"{ENTRY}, colour: red}}\n", "unexpected"),
        (f"{ENTRY}, actions: [{{kind: magic}}]}}\n", "no kind of action 'magic'"),
        (f"{ENTRY}, actions: [{{kind: nice, speed: 1}}]}}\n", "does not take these arguments"),
        (ENTRY.replace("id: a", "id: jemalloc") + "}\n", "there twice"),
        ("- {id: [\n", "is not YAML"),
    ],
)
def test_a_damaged_file_is_refused_and_named(tmp_path, monkeypatch, text, complaint):
    place = tmp_path / "knowledge"
    shutil.copytree(folder(), place)
    (place / "mitigations" / "zz.yml").write_text(text)
    monkeypatch.setenv("NOISEBOOK_KNOWLEDGE", str(place))
    with pytest.raises(InputError, match=complaint):
        mitigations()
