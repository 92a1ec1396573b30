"""What the README and the pages that it links show works: its example, commands and files."""

import re
import stat
from pathlib import Path

import pytest

from nbhelpers.noise import Signature

REPOSITORY = Path(__file__).resolve().parent.parent
README = (REPOSITORY / "README.md").read_text()
PROGRAMS = (REPOSITORY / "docs/programs.md").read_text()
STUDY = (REPOSITORY / "docs/study.md").read_text()


def test_the_example_runs_with_a_real_program(tmp_path, monkeypatch, binaries):
    """my_program is a script that prints its time; the noise is 2 % of one CPU."""
    (example,) = re.findall(r"```python\n(.*?)```", PROGRAMS, re.DOTALL)
    program = tmp_path / "my_program"
    program.write_text("#!/bin/sh\nsleep 0.05\necho elapsed: 0.05\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    noise = Signature(100, 200, phase="aligned").config(0.05, [0], kind="thread")
    noise.write(tmp_path / "noise-config.json")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(example.replace("runs=20", "runs=2"), names)
    # the number that it prints, not the length of the process
    for table in (names["runs"], names["noisy"]):
        assert table["seconds"].tolist() == [0.05, 0.05] and table["status"].eq("ok").all()
    assert names["noisy"]["injected_events"].gt(0).all()


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_what_it_links_to_is_there(target):
    assert (REPOSITORY / target).exists()


def test_the_targets_and_profiles_it_names_exist():
    makefile = (REPOSITORY / "Makefile").read_text()
    for target in set(re.findall(r"(?:`|^ {4})make ([a-z][a-z-]+)", README + STUDY, re.M)):
        assert re.search(rf"^{target}:", makefile, re.M), target
    for profile in set(re.findall(r"PROFILE=([a-z]+)\b(?!\.)", README + STUDY)):
        assert (REPOSITORY / f"notebooks/parameters/{profile}.yml").exists()
