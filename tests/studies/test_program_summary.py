"""What noisebook why prints fits a screen, and begins with who took the time."""

import sys

import pytest

from nbhelpers.machine import doctor
from nbhelpers.studies.program_study import ProgramStudy, program_from_options
from nbhelpers.studies.program_study.summary import COLUMNS, SEEN, terminal_text

# every fourth run has four times as much to do
CODE = """import os, sys
path = sys.argv[1]
count = os.path.getsize(path) if os.path.exists(path) else 0
open(path, "a").write("x")
sum(i * i for i in range(1_500_000 if count % 4 == 3 else 400_000))
"""


@pytest.mark.alone
def test_the_cause_comes_first_and_all_fits_25_lines(tmp_path):
    if doctor().capabilities.tracer != "tracepoints":
        pytest.skip("this user may not record tracepoints")
    command = [sys.executable, "-S", "-c", CODE, str(tmp_path / "count")]
    study = ProgramStudy(program_from_options(command), tmp_path / "study", seconds=30, runs=20)
    lines = terminal_text(study, "page.html", "folder").splitlines()
    assert len(lines) <= 25 and max(map(len, lines)) <= COLUMNS
    slow = study.took.slow
    assert slow.is_class and slow.slow.mean() == pytest.approx(1 / 4, abs=0.1)
    best = study.took.table.iloc[0]
    assert best["part"] == "computing" and best["explained_share"] == pytest.approx(1, abs=0.3)
    assert "They computed" in " ".join(lines[:3]) and f"({SEEN})" in " ".join(lines[:4])
