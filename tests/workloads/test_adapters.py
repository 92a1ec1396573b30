"""Other people's programs: what the adapters find in outputs of their formats, driven by real processes that print them.

The files in `originals` are what the programs themselves printed (adapters that say `seen: run`; recorded on a machine that did other things
too: their numbers are no measurement). The outputs in this file were written after descriptions or sources (`seen: described`, other versions).
NOISEBOOK_ORIGINALS names a folder of executables: those are run.
"""

import os
import shutil
import stat
from pathlib import Path

import pytest

from nbhelpers.errors import InputError, RunError
from nbhelpers.measure import Campaign, Cell, run_once
from nbhelpers.workloads import Reader, Table, adapter, adapters

RECORDED = Path(__file__).parent / "originals"
EPCC_31 = """Running OpenMP benchmark version 3.0
\t2 thread(s)
\t205 delay length (iterations)

Computing STATIC 1 time using 2 reps

Sample_size       Average     Min         Max          S.D.          Outliers
 20                140.100000   69.900000   258.200000    20.500000      1

STATIC 1 time     = 140.100000 microseconds +/- 40.180000
STATIC 1 overhead = 40.100000 microseconds +/- 41.000000
"""
MINIFE_YAML = """Mini-Application Name: miniFE
Mini-Application Version: 2.0
Global Run Parameters:
  dimensions:
    nx: 50
CG solve:
  Iterations: 200
  Final Resid Norm: 0.00395434
  WAXPY Time: 0.0352
  DOT Time: 0.0183
  MATVEC Time: 0.2311
  Total CG Time: 0.2866
Total Program Time: 0.6612
"""
EXACT = "solution matches analytic solution to within 0.06 or better."


@pytest.fixture
def prints(tmp_path):
    """Makes an executable that prints an output, may write a file in its current folder, and complain."""

    def make(output: str, file: str = "", errors: str = "", code: int = 0) -> str:
        (tmp_path / "output").write_text(output)
        (tmp_path / "errors").write_text(errors)
        (tmp_path / "file").write_text(file)
        program = tmp_path / "original"
        writes = f'cp {tmp_path}/file "$(pwd)/run.$$.yaml"; ls | wc -l' if file else ":"
        program.write_text(f"#!/bin/sh\ncat {tmp_path}/output; cat {tmp_path}/errors >&2; {writes}; echo arguments: \"$@\"; exit {code}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return str(program)

    return make


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


def ran(name, program, **options):
    row = run_once(adapter(name, program, **options))
    assert row["status"] == "ok", row["message"]
    return row


def test_every_adapter_that_comes_along_is_sound():
    found = adapters()
    assert {"hecbench-nbody", "hecbench-babelstream", "hecbench-minife", "babelstream", "epcc-syncbench", "epcc-schedbench", "minife-openmp"} <= set(found)
    assert all(known.source for known in found.values())


def test_an_adapter_says_run_where_an_output_of_the_program_is_kept():
    seen = {name: known.seen for name, known in adapters().items()}
    assert set(seen.values()) <= {"run", "described"}
    assert {name for name in seen if (RECORDED / f"{name}.txt").exists()} == {name for name in seen if seen[name] == "run"}


def test_hecbench_nbody(prints):
    printed = recorded("hecbench-nbody")
    row = ran("hecbench-nbody", prints(printed))
    assert (row["seconds"], row["gflops"], row["gflops_sd"], row["total_energy"], row["model"]) == (0.499953, 0.267447, 0.0715747, 0.240626, "omp")
    for verdict in ("FAIL", ""):
        assert run_once(adapter("hecbench-nbody", prints(printed.replace("PASS", verdict))))["status"] == "unverified"


def test_babelstream_as_csv_and_as_table(prints):
    row = ran("babelstream", prints(recorded("babelstream")))
    assert (row["copy_min_s"], row["triad_max_s"], row["dot_avg_s"], row["elements"]) == (0.0131549, 0.0160167, 0.016411, 262144)
    assert row["seconds"] == pytest.approx(row["wall_seconds"])  # it prints no total
    row = ran("babelstream", prints(recorded("babelstream-table")))
    assert (row["copy_min_s"], row["dot_max_s"], row["dot_mb_per_s"]) == (0.01598, 0.02003, 278.852)


@pytest.mark.parametrize("errors, code", [("FAILED validation of c[0]: 0 != 0, relative error=-nan > 2.22045e-11\n", 1), ("Validation failed on a[]. Average error 0.1\n", 0)])
def test_babelstream_that_fails_its_validation_is_unverified(prints, errors, code):
    failed = run_once(adapter("babelstream", prints(recorded("babelstream"), errors=errors, code=code)))
    assert failed["status"] == "unverified" and errors.split()[0] in failed["message"]


def test_hecbench_babelstream_prints_two_precisions(prints):
    row = ran("hecbench-babelstream", prints(recorded("hecbench-babelstream")))
    assert (row["copy_float_min_s"], row["copy_double_min_s"], row["nstream_double_avg_s"], row["dot_float_mb_per_s"]) == (0.00188, 0.0091, 0.00551, 1750.373)


def test_epcc_times_are_microseconds_and_the_delay_is_a_column(prints):
    row = ran("epcc-syncbench", prints(recorded("epcc-syncbench")))
    assert row["seconds"] == pytest.approx(110.250711e-6, rel=1e-12)
    assert (row["delay_iterations"], row["reduction_overhead_us"], row["reduction_median_overhead_us"]) == (128, 109.830829, 99.317543)
    assert (row["reduction_median_us"], row["reduction_inner_repetitions"], row["reduction_outliers"]) == (99.700689, 40, 0)
    assert (row["reference_time_1_mean_us"], row["reference_time_1_spread_us"], row["reference_time_3_min_us"]) == (0.307013, 0.330134, 0.365486)


def test_the_time_of_an_epcc_schedule_is_that_of_its_first_chunk_size(prints):
    row = ran("epcc-schedbench", prints(recorded("epcc-schedbench")))
    assert row["seconds"] == pytest.approx(6750.56465e-6, rel=1e-12) and row["iterations_per_thread"] == 1024
    assert (row["dynamic_1_mean_us"], row["dynamic_1024_mean_us"], row["dynamic_1024_min_us"], row["reference_time_median_us"]) == (6750.56465, 8519.74228, 8398.8415, 320.80945)
    assert {name for name in row if name.startswith("dynamic") and name.endswith("_mean_us")} == {f"dynamic_{2**n}_mean_us" for n in range(11)}


def test_epcc_3_1_has_no_median(prints):
    row = ran("epcc-schedbench", f"{prints(EPCC_31)} --outer-repetitions 2")
    assert row["seconds"] == pytest.approx(140.1e-6) and row["static_1_spread_us"] == 40.18 and row["delay_iterations"] == 205
    assert (row["static_1_min_us"], row["static_1_max_us"], row["static_1_inner_repetitions"]) == (69.9, 258.2, 2) and "static_1_median_us" not in row


@pytest.mark.parametrize("name", ["minife-openmp", "hecbench-minife"])
def test_minife_writes_its_times_to_a_file_in_a_fresh_folder(prints, name):
    program, here = prints(EXACT + "\nAverage time per iteration: 0.00143\n", file=MINIFE_YAML), set(os.listdir())
    for _ in range(2):
        row = ran(name, program)
        assert (row["seconds"], row["program_s"], row["iterations"], row["residual"]) == (0.2866, 0.6612, 200, 0.00395434)
    assert row.get("matvec_s", 0.2311) == 0.2311 and row.get("iteration_avg_s", 0.00143) == 0.00143
    assert set(os.listdir()) == here
    assert run_once(adapter(name, prints("max absolute error is 0.2:", file=MINIFE_YAML)))["status"] == "unverified"
    assert run_once(adapter(name, prints(EXACT)))["status"] == "unreadable output"


def test_a_fresh_folder_is_empty_and_deleted(tmp_path):
    program = tmp_path / "where"
    program.write_text("#!/bin/sh\nls -A | wc -l; pwd; echo t=1 > seen; cat seen\n")
    program.chmod(0o755)
    reader = Reader("where", seconds=r"^t=(?P<seconds>\d+)", fresh_folder=True, values=(("files", r"^(?P<value>\d+)$"), ("place", r"^(?P<value>/.*)$")))
    from dataclasses import replace

    workload = replace(adapter("babelstream", str(program)), reader=reader)
    rows = [run_once(workload) for _ in range(2)]
    assert [row["files"] for row in rows] == [0, 0] and rows[0]["place"] != rows[1]["place"]
    assert not any(Path(row["place"]).exists() for row in rows)


def test_arguments_come_from_the_options_or_from_the_command_line(prints):
    program = prints(recorded("epcc-syncbench"))
    assert adapter("epcc-syncbench", program, construct="BARRIER", outer=3).command[1:] == ("--measureonly", "BARRIER", "--outer-repetitions", "3", "--delay-length", "128")
    assert adapter("epcc-syncbench", f"{program} --outer-repetitions 5").command[1:] == ("--outer-repetitions", "5")
    assert dict(adapter("epcc-syncbench", program, threads=2).env)["OMP_NUM_THREADS"] == "2"
    with pytest.raises(InputError, match="no option"):
        adapter("epcc-syncbench", program, outerreps=3)
    with pytest.raises(InputError, match="both given"):
        adapter("epcc-syncbench", f"{program} 1", outer=3)
    with pytest.raises(InputError, match="did you mean 'babelstream'"):
        adapter("babelstrem", program)
    with pytest.raises(RunError, match="no such program"):
        adapter("babelstream", "/nonexistent/omp-stream")


def test_placements_hold_for_originals(prints):
    assert dict(adapter("babelstream", prints("")).placed("TP").env)["OMP_PROC_BIND"] == "close"


def test_an_adapter_of_ones_own(tmp_path, prints):
    own = tmp_path / "mine.yml"
    own.write_text("title: My solver\nsource: my own\nseen: run\narguments: '-n {size}'\noptions: {size: 7}\n"
                   "time: {pattern: 'took (?P<seconds>\\S+) ms', unit: ms}\nseries: [{name: step, unit: s, pattern: 'step (?P<value>\\S+)'}]\n")
    row = ran(own, prints("step 0.5\nstep 0.25\ntook 750 ms\n"), size=9)
    assert row["seconds"] == 0.75 and row["series"] == {"step": {"unit": "s", "values": [0.5, 0.25]}}


@pytest.mark.parametrize("change, said", [("time: {pattern: 'x'}", "seconds"), ("tables: [{row: 'a', columns: {b: c}}]", "'b'"), ("arguments: '{n}'", "'n'"), ("typo: 1", "typo"),
                                          ("files: '*.yaml'", "fresh folder"), ("time: {pattern: '(?P<seconds>'}", "regular expression"), ("seen: maybe", "maybe")])
def test_an_unsound_adapter_is_refused_with_its_field(tmp_path, change, said):
    own = tmp_path / "mine.yml"
    lines = {"title": "title: My solver", "source": "source: mine", "seen": "seen: run"} | {change.split(":")[0]: change}
    own.write_text("\n".join(lines.values()))
    with pytest.raises(InputError, match=said):
        adapter(own, "true")


def test_a_campaign_writes_down_how_it_read(tmp_path, prints):
    program = prints(recorded("epcc-syncbench"))
    first = Campaign(tmp_path / "c", [Cell("e", adapter("epcc-syncbench", program))], 2)
    assert (first.run().status == "ok").all() and '"delay length' in (tmp_path / "c/campaign.json").read_text().replace(r"(?P<value>\\d+) ", '"')
    assert len(Campaign(tmp_path / "c", [Cell("e", adapter("epcc-syncbench", program))], 3).run()) == 3  # the same reading goes on
    with pytest.raises(InputError, match="reader"):
        Campaign(tmp_path / "c", [Cell("e", adapter("epcc-schedbench", f"{program} x"))], 3).run()


def test_a_table_may_leave_cells_empty():
    with pytest.raises(InputError, match="'name'"):
        Reader("x", tables=(Table(r"(?P<a>\d+)", (("a", "{name}_a"),)),))


ORIGINALS = {"hecbench-nbody": {"bodies": 1000, "steps": 4}, "babelstream": {"elements": 2**18, "repeats": 5}, "epcc-syncbench": {"outer": 5},
             "epcc-schedbench": {"outer": 5}, "hecbench-babelstream": {"elements": 2**18, "repeats": 5}, "minife-openmp": {"nx": 10}}


@pytest.mark.parametrize("name", ORIGINALS)
def test_the_originals_where_they_are_at_hand(name, tmp_path, prints):
    program = shutil.which(name, path=os.environ.get("NOISEBOOK_ORIGINALS", ""))
    if program is None:
        pytest.skip(f"the original is not here: build it (data/knowledge/programs/{name}.yml), name it {name}, and set NOISEBOOK_ORIGINALS to its folder")
    runs = Campaign(tmp_path / "c", [Cell("original", adapter(name, program, **ORIGINALS[name]))], 2).run()
    assert (runs.status == "ok").all(), runs.message.tolist()
    if (RECORDED / f"{name}.txt").exists():
        assert set(run_once(adapter(name, prints(recorded(name))))) <= set(runs.columns)
