"""Other people's programs: what the adapters find in outputs of their formats, driven by real processes that print them.

The outputs below were written after descriptions of the formats (the adapters say `seen: described`); where a program itself is at hand,
NOISEBOOK_ORIGINALS names the folder of its executable, and it is run.
"""

import os
import shutil
import stat
from pathlib import Path

import pytest

from nbhelpers.errors import InputError, RunError
from nbhelpers.measure import Campaign, Cell, run_once
from nbhelpers.workloads import Reader, Table, adapter, adapters

NBODY = """===============================
 Initialize Gravity Simulation

# Total Energy        : 2.23395e-05
# Total Time (s)      : 0.39414
# Average Performance : 19.6051 +- 0.4127
===============================
{verdict}
"""
BABELSTREAM_CSV = """function,num_times,n_elements,sizeof,max_mbytes_per_sec,min_runtime,max_runtime,avg_runtime
Copy,40,4194304,8,41238.7,0.00162733,0.00241113,0.00177281
Mul,40,4194304,8,40911.2,0.00164035,0.00228821,0.00178005
Add,40,4194304,8,44120.9,0.00228156,0.00311902,0.00240917
Triad,40,4194304,8,44310.3,0.0022718,0.00301441,0.00239006
Dot,40,4194304,8,52911.6,0.00126832,0.00201999,0.00139911
"""
BABELSTREAM_TABLE = """BabelStream
Version: 5.0
Implementation: OpenMP
Running kernels 40 times
Precision: double
Array size: 33.6 MB (=0.0 GB)
Function    MBytes/sec  Min (sec)   Max         Average
Copy        41238.700   0.00162     0.00241     0.00177
Dot         52911.600   0.00126     0.00201     0.00139
"""
HECBENCH_BABELSTREAM = """Running kernels 20 times
Precision: float
Array size: 16.8 MB (=0.0 GB)
Function    MBytes/sec  Min (sec)   Max         Average
Copy        41000.100   0.00081     0.00121     0.00090
Nstream     44000.500   0.00152     0.00210     0.00163
Precision: double
Array size: 33.6 MB (=0.0 GB)
Function    MBytes/sec  Min (sec)   Max         Average
Copy        40500.200   0.00165     0.00245     0.00181
Nstream     43900.900   0.00305     0.00401     0.00322
"""
EPCC = """Running OpenMP benchmark version 4.0
    2 thread(s)
    20 outer repetitions
    1000.00 test time (microseconds)
    153 delay length (iterations)
    0.100000 delay time (microseconds)

--------------------------------------------------------
Computing reference time 1 time using 20 reps

Sample_size  Mean  Median  Min  Max  StdDev  Outliers
 20  0.104020  0.104000  0.103900  0.104811  0.000190  1

reference time 1 time         = 0.104020 microseconds +/- 0.000372

--------------------------------------------------------
Computing REDUCTION time using 20 reps

Sample_size  Mean  Median  Min  Max  StdDev  Outliers
 20  0.903513  0.741200  0.552900  2.288100  0.374129  1

REDUCTION time         = 0.903513 microseconds +/- 0.733293
REDUCTION overhead     = 0.799493 microseconds +/- 0.733665
REDUCTION median_ovrhd = 0.637200 microseconds
"""
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


def ran(name, program, **options):
    row = run_once(adapter(name, program, **options))
    assert row["status"] == "ok", row["message"]
    return row


def test_every_adapter_that_comes_along_is_sound():
    found = adapters()
    assert {"hecbench-nbody", "hecbench-babelstream", "hecbench-minife", "babelstream", "epcc-syncbench", "epcc-schedbench", "minife-openmp"} <= set(found)
    assert all(known.seen in ("run", "described") and known.source for known in found.values())


def test_hecbench_nbody(prints):
    row = ran("hecbench-nbody", prints(NBODY.format(verdict="PASS")))
    assert (row["seconds"], row["gflops"], row["gflops_sd"], row["total_energy"], row["model"]) == (0.39414, 19.6051, 0.4127, 2.23395e-05, "omp")
    for verdict in ("FAIL", ""):
        assert run_once(adapter("hecbench-nbody", prints(NBODY.format(verdict=verdict))))["status"] == "unverified"


def test_babelstream_as_csv_and_as_table(prints):
    row = ran("babelstream", prints(BABELSTREAM_CSV))
    assert (row["copy_min_s"], row["triad_max_s"], row["dot_avg_s"], row["elements"]) == (0.00162733, 0.00301441, 0.00139911, 4194304)
    assert row["seconds"] == pytest.approx(row["wall_seconds"])  # it prints no total
    row = ran("babelstream", prints(BABELSTREAM_TABLE))
    assert (row["copy_min_s"], row["dot_max_s"], row["dot_mb_per_s"]) == (0.00162, 0.00201, 52911.6)
    failed = run_once(adapter("babelstream", prints(BABELSTREAM_CSV, errors="FAILED validation of a[]\n", code=1)))
    assert failed["status"] == "unverified" and "FAILED" in failed["message"]


def test_hecbench_babelstream_prints_two_precisions(prints):
    row = ran("hecbench-babelstream", prints(HECBENCH_BABELSTREAM))
    assert (row["copy_float_min_s"], row["copy_double_min_s"], row["nstream_double_avg_s"]) == (0.00081, 0.00165, 0.00322)


def test_epcc_times_are_microseconds_and_the_delay_is_a_column(prints):
    row = ran("epcc-syncbench", prints(EPCC))
    assert row["seconds"] == pytest.approx(0.903513e-6, rel=1e-12)
    assert (row["delay_iterations"], row["reduction_overhead_us"], row["reduction_median_overhead_us"]) == (153, 0.799493, 0.6372)
    assert (row["reference_time_1_mean_us"], row["median_us"], row["outliers"]) == (0.10402, 0.7412, 1)
    row = ran("epcc-schedbench", f"{prints(EPCC_31)} --outer-repetitions 2")
    assert row["seconds"] == pytest.approx(140.1e-6) and row["static_1_spread_us"] == 40.18 and row["delay_iterations"] == 205
    assert (row["min_us"], row["max_us"], row["sample_size"]) == (69.9, 258.2, 20)


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
    program = prints(EPCC)
    assert adapter("epcc-syncbench", program, construct="BARRIER", outer=3).command[1:] == ("--measureonly", "BARRIER", "--outer-repetitions", "3")
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
    program = prints(EPCC)
    first = Campaign(tmp_path / "c", [Cell("e", adapter("epcc-syncbench", program))], 2)
    assert (first.run().status == "ok").all() and '"delay length' in (tmp_path / "c/campaign.json").read_text().replace(r"(?P<value>\\d+) ", '"')
    assert len(Campaign(tmp_path / "c", [Cell("e", adapter("epcc-syncbench", program))], 3).run()) == 3  # the same reading goes on
    with pytest.raises(InputError, match="reader"):
        Campaign(tmp_path / "c", [Cell("e", adapter("epcc-schedbench", f"{program} x"))], 3).run()


def test_a_table_may_leave_cells_empty():
    with pytest.raises(InputError, match="'name'"):
        Reader("x", tables=(Table(r"(?P<a>\d+)", (("a", "{name}_a"),)),))


ORIGINALS = {"hecbench-nbody": {"steps": 3}, "babelstream": {"elements": 2**16, "repeats": 3}, "epcc-syncbench": {"outer": 3}, "minife-openmp": {"nx": 10}}


@pytest.mark.parametrize("name", ORIGINALS)
def test_the_originals_where_they_are_at_hand(name):
    program = shutil.which(name, path=os.environ.get("NOISEBOOK_ORIGINALS", ""))
    if program is None:
        pytest.skip(f"the original is not here: build it (data/knowledge/programs/{name}.yml), name it {name}, and set NOISEBOOK_ORIGINALS to its folder")
    ran(name, program, **ORIGINALS[name])
