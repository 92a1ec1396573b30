"""Profiles: everything that cannot be used is said, with its place, before anything runs; what is
shipped can be used.
"""

import contextlib
import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from nbhelpers import profiles
from nbhelpers.errors import InputError
from nbhelpers.machine import topology
from nbhelpers.mitigation.knowledge import factors
from nbhelpers.profiles import (
    check_cells,
    declared_parameters,
    default_parameters,
    misfit,
    parameters_of,
)
from nbhelpers.stage_records import record_of
from nbhelpers.stages import write_wanted
from nbhelpers.studies import design
from nbhelpers.study import NO_STAGES, PROFILES
from nbhelpers.workloads import openmp
from nbhelpers.workloads.configuration import configurations

REPOSITORY = Path(__file__).resolve().parent.parent
STAGES = [
    path.stem for path in (REPOSITORY / "notebooks").glob("*.ipynb") if path.stem not in NO_STAGES
]

COUNT = r"(\w+_)?(runs|rounds|seeds)"  # parameters that say of how many runs a mean is


def limits(stage: str) -> dict[str, dict]:
    return record_of(stage).get("limits", {})


@pytest.mark.parametrize("profile", PROFILES)
def test_what_is_shipped_can_be_used(profile):
    for stage in STAGES:
        assert parameters_of(stage, profile)["profile"] == profile


@pytest.mark.parametrize("profile", [name for name in PROFILES if name != "smoke"])
def test_no_mean_is_of_fewer_than_five_runs(profile):
    for stage in STAGES:
        values = default_parameters(stage) | parameters_of(stage, profile)
        counts = {name: n for name, n in values.items() if re.fullmatch(COUNT, name) and n}
        assert {name: n for name, n in counts.items() if n < 5} == {}, stage


@pytest.mark.parametrize("stage", STAGES)
def test_limits_are_those_of_parameters_and_the_notebooks_own_value_is_within(stage):
    declared = declared_parameters(stage)
    unlimited = {name for name, kind in declared.items() if kind in ("str", "bool")}
    assert set(declared) - unlimited <= set(limits(stage)) <= set(declared) - {"profile"}
    for name, limit in limits(stage).items():
        assert misfit(default_parameters(stage)[name], declared[name], limit) is None, name
        Draft202012Validator.check_schema(limit)
        assert limit.keys() - {"words", "empty"} <= Draft202012Validator.VALIDATORS.keys(), name


def test_names_in_the_limits_are_those_that_the_code_knows():
    assert set(limits("55-mitigate-and-compare")["factor"]["enum"]) == set(factors())
    known = limits("60-openmp-variability")
    assert known["constructs"]["enum"] == list(openmp.CONSTRUCTS)
    assert known["compilers"]["enum"] == list(openmp.COMPILERS)
    assert limits("40-mitigations")["programs"]["enum"] == list(design.PROGRAMS)


def test_configurations_of_any_machine_are_within_the_limits():
    limit = limits("60-openmp-variability")["configs"]
    names = " ".join(configuration.name for configuration in configurations(topology()))
    assert misfit(names, "str", limit) is None and misfit("Rm TP-ST128", "str", limit) is None


def wrong(tmp_path: Path, content: str | bytes) -> str:
    path = tmp_path / "mine.yml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as caught:
        profiles.adopted(str(path))
    assert not (REPOSITORY / "build/mine/profile.yml").exists()
    return str(caught.value)


@pytest.mark.parametrize(
    "content, message",
    [
        ("30-injection: {runs: -3}", "'runs' is -3; -3 is less than the minimum of 2"),
        ("30-injection: {runs: 99999999999}", "99999999999 is greater than the maximum of 1000000"),
        ("30-injection: {runs: 3.5}", "int is expected"),
        ("30-injection: {runs: true}", "int is expected"),
        ("30-injection: {runs: }", "int is expected"),
        ("10-trace-collection: {target_seconds: 0}", "less than or equal to the minimum of 0"),
        ("10-trace-collection: {target_seconds: .nan}", "finite"),
        ("10-trace-collection: {target_seconds: .inf}", "finite"),
        ("55-mitigate-and-compare: {allocators: jemalloc}", "a list is expected: [jemalloc]"),
        ("55-mitigate-and-compare: {allocators: [jmalloc]}", "did you mean 'jemalloc'?"),
        ("55-mitigate-and-compare: {allocators: [3]}", "str is expected"),
        ("55-mitigate-and-compare: {allocators: [jemalloc, jemalloc]}", "twice"),
        ("55-mitigate-and-compare: {factor: page-fault}", "did you mean 'page-faults'?"),
        ("40-mitigations: {planted: nbdy}", "did you mean 'nbody'?"),
        ("40-mitigations: {configs: Rm RmKH}", "did you mean 'RmHK'?"),
        ("40-mitigations: {models: ''}", "is empty"),
        ("60-openmp-variability: {chunks: '1 0'}", "is '0'; '0' does not match"),
        ("60-openmp-variability: {chunks: 1}", "str is expected"),
        ("30-injection: {placement: rome}", "did you mean 'roam'?"),
        ("80-noise-at-scale: {ranks: 100}", "100 is not one of [2, 4, 8, 16, "),
        ("30-injection: {rums: 3}", "did you mean 'runs'"),
        ("30-injektion: {runs: 3}", "did you mean '30-injection'"),
        ("30-injection: {profile: quick}", "no parameter of 30-injection.ipynb"),
        ("30-injection: {runs: 3}\n30-injection: {runs: 4}", "'30-injection' is there twice"),
        ("30-injection: {runs: 3, runs: 4}", "'runs' is there twice"),
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]", "has an alias"),
        ("30-injection: [", "not YAML"),
        ("- 3", "mapping"),
        ("30-injection: 3", "mapping"),
        ("3: {runs: 3}", "a key must be a name"),
        ("? [1, 2]\n: 3", "a key must be a name"),
        ("[" * 5000, "50 levels"),
        ("30-injection: {seed: " + "9" * 5000 + "}", "YAML"),
        ("30-injection: {runs: !!python/object/apply:os.getcwd []}", "YAML"),
        (b"30-injection: {placement: \xe4}", "not UTF-8 text"),
        (b"# " + b"x" * 70_000, "larger than 65,536 bytes"),
        (b"30-injection: {placement: \x00}", "not YAML"),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_to_type(tmp_path, content, message):
    assert message in wrong(tmp_path, content)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["Rm", "cpu-hog"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(st.sampled_from(STAGES), st.data(), values)
def test_any_value_is_taken_or_refused_in_words(stage, data, value):
    """Whatever is written there: no other error, and what is taken is of the type that the notebook
    declares.
    """
    declared = {
        name: kind for name, kind in declared_parameters(stage).items() if name != "profile"
    }
    if not declared:
        return
    name = data.draw(st.sampled_from(sorted(declared)))
    said = misfit(value, declared[name], limits(stage).get(name, {}))
    assert said is None or re.search(
        r"expected|twice|empty|did you mean|choose from|minimum|maximum|match|multiple", said
    )
    if said is None and declared[name] in ("int", "float"):
        assert math.isfinite(value) and not isinstance(value, bool)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.yml"
        path.write_bytes(content)
        with contextlib.suppress(InputError):
            assert isinstance(profiles._sections(path), dict)


@pytest.fixture
def own(tmp_path):
    """One's own profile, in a folder with a blank and an umlaut; what it leaves is removed."""
    folder = tmp_path / "a ü b"
    folder.mkdir()
    yield folder / "my-study.yml"
    shutil.rmtree(REPOSITORY / "build/my-study", ignore_errors=True)


def test_ones_own_profile_is_studied_in_a_folder_of_its_own(own):
    own.write_text("00-machine: {seconds: 0.1}\n")
    command = [
        "make",
        f"PROFILE={own}",
        f"PY={sys.executable}",
        "build/my-study/stamps/00-machine.wanted",
    ]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    wanted = json.loads((REPOSITORY / "build/my-study/stamps/00-machine.wanted").read_text())
    assert wanted["parameters"] == {"seconds": 0.1, "profile": "my-study"}
    assert yaml.safe_load((REPOSITORY / "build/my-study/profile.yml").read_text()) == {
        "00-machine": {"seconds": 0.1}
    }
    assert "Changed" not in done.stdout
    (REPOSITORY / "build/my-study/profile.yml").write_text("00-machine: {seconds: 0.3}\n")
    assert "Changed since the last time: profile.yml" in write_wanted("my-study", ["00-machine"])
    own.write_text("00-machine: {seconds: -1}\n")
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert (
        done.returncode != 0
        and "'seconds' is -1; -1 is less than or equal to the minimum of 0" in done.stderr
        and "Traceback" not in done.stderr
    )


OWN = 'profile: str = "here"\n# traced runs\nruns: int = 50\nmy_margin: float = 0.1'


@pytest.mark.parametrize(
    "cells, message",
    [
        ([OWN.replace("50", "1")], "'runs' is 1; 1 is less than the minimum of 2"),
        ([OWN, "# Parameters\nrnus = 5\n"], "did you mean 'runs'?"),
        ([OWN, "# Parameters\nruns = 5.5\n"], "int is expected"),
        ([OWN.replace("50", "0"), "", OWN, "# Parameters\nruns = True"], "int is expected"),
    ],
)
def test_a_notebook_run_by_itself_refuses_what_would_change_nothing(cells, message):
    with pytest.raises(InputError) as error:
        check_cells("10-trace-collection", cells)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "cells",
    [
        [],
        ["runs = 0", "import numpy"],
        [OWN.replace("50", "0"), OWN, "# Parameters\nruns = 5\nprofile = 'smoke'"],
        [OWN, "# Parameters\nmy_margin = 3"],  # a reader's copy has one more
        [OWN.replace("50", "2 * 25"), "runs = 0"],
    ],
)
def test_a_notebook_run_by_itself_takes_what_makes_sense(cells):
    check_cells("10-trace-collection", cells)
    check_cells("a-notebook-of-my-own", [OWN, "# Parameters\nrnus = 5\n"])
