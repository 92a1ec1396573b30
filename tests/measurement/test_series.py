"""Series: read from an output, stored with the runs, read back; a lost value is a failed run."""

import json
import subprocess
from pathlib import Path

import pytest

from nbhelpers.errors import InputError
from nbhelpers.measurement import Campaign, Cell, run_once, series
from nbhelpers.measurement._output import NotReported, parse_series
from nbhelpers.workloads import Workload, nbody, program, stream

SOURCES = Path(__file__).resolve().parents[2] / "workloads"
LINE = "noisebook: x seconds=1e-9 start_ns=1 end_ns=2"


def printing(tmp_path, *lines: str):
    """A program of ours that prints what it gets and no more."""
    prints = "".join(f"puts({json.dumps(line)});" for line in lines)
    source, program = tmp_path / "prints.c", tmp_path / "prints"
    source.write_text(
        '#include "noisebook.h"\nint main(void) { struct nb_region r; nb_region_begin(&r);'
        f' nb_region_end(&r);\n{prints}nb_region_print(&r, "x", "series_values=3 verified=yes"); }}'
    )
    words = ["cc", "-D_GNU_SOURCE", f"-I{SOURCES}", "-o", program, source]
    subprocess.run(words, check=True)
    return Workload("prints", "omp", (str(program),))


def test_lines_of_one_name_are_one_series():
    text = (
        "hello\nnoisebook-series: a s 1 2e-3\nnoisebook-series: b us 5\nnoisebook-series: a s"
        f" 3\nnoisebook-series: c s\n{LINE}\n"
    )
    assert parse_series(text) == {
        "a": {"unit": "s", "values": [1, 2e-3, 3]},
        "b": {"unit": "us", "values": [5]},
        "c": {"unit": "s", "values": []},
    }


@pytest.mark.parametrize(
    "text",
    [
        "noisebook-series: a s 1 x",
        "noisebook-series: a s nan",
        "noisebook-series: a s inf",
        "noisebook-series: a s 1\nnoisebook-series: a us 1",
    ],
)
def test_what_is_no_number_is_refused(text):
    with pytest.raises(NotReported, match="'a'"):
        parse_series(text)


@pytest.mark.parametrize(
    "lines, status",
    [
        (["noisebook-series: a s 1 2 3"], "ok"),
        (["noisebook-series: a s 1 2"], "unreadable output"),
        (["noisebook-series: a s 1 2 x"], "unreadable output"),
        ([], "unreadable output"),
    ],
)
def test_a_run_with_a_lost_value_is_no_data(tmp_path, binaries, lines, status):
    row = run_once(printing(tmp_path, *lines))
    assert row["status"] == status, row["message"]
    assert ("series" in row) == (status == "ok") and (row["seconds"] is None) == (status != "ok")


def test_a_long_series_survives_the_pipe(binaries):
    row = run_once(stream(4000, 10, threads=1))
    assert row["status"] == "ok"
    assert sum(len(one["values"]) for one in row["series"].values()) == 20_000


@pytest.mark.parametrize("in_memory", [True, False])
def test_series_are_stored_beside_the_runs_and_read_back(tmp_path, binaries, in_memory):
    cells = [Cell("s", stream(3, 100)), Cell("n", nbody(16, 1))]
    campaign = Campaign(None if in_memory else tmp_path / "c", cells, 2)
    runs, table = campaign.run(), campaign.series()
    assert "series" not in runs.columns
    assert list(table) == ["run", "name", "unit", "index", "value"] and len(table) == 2 * 5 * 3
    assert set(table.run) == set(runs[runs.workload == "stream"].run)
    for run, part in table.groupby("run"):
        largest = part[part.name == "copy"].value.max()
        assert largest == pytest.approx(runs.set_index("run").loc[run].copy_max_s, abs=1e-9)
        assert list(part[part.name == "dot"]["index"]) == [0, 1, 2]
    if not in_memory:
        assert series(tmp_path / "c").equals(table)


def test_a_series_without_its_run_is_passed_over(tmp_path, binaries):
    """A crash came between the two writings."""
    cells = [Cell("s", stream(3, 100))]
    assert len(Campaign(tmp_path, cells, 1).run()) == 1
    stray = {"run": 1, "t0_ns": 5, "series": {"copy": {"unit": "s", "values": [1.0]}}}
    with open(tmp_path / "series.jsonl", "a") as file:
        file.write(json.dumps(stray) + "\n")
    assert set(series(tmp_path).run) == {0}
    more = Campaign(tmp_path, cells, 2)
    more.run()
    table = more.series()
    assert set(table.run) == {0, 1} and (table.groupby(["run", "name"]).size() == 3).all()


def test_a_campaign_without_series_has_an_empty_table(tmp_path, binaries):
    campaign = Campaign(tmp_path, [Cell("t", program("true"))], 1)
    campaign.run()
    assert campaign.series().empty and series(tmp_path).empty
    with pytest.raises(InputError, match="no runs"):
        series(tmp_path / "nothing")
