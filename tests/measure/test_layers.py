"""Metric layers: against counts that are known, and the kernel's text against an independent reading of it."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.measure import LAYERS, describe_columns, measure, metrics, rates, run_once
from nbhelpers.measure._kernel import Reader, parse_interrupts, parse_pressure, parse_softirqs, parse_stat, parse_vmstat
from nbhelpers.measure._perf import HARDWARE, available
from nbhelpers.workloads import external, nbody

pytestmark = pytest.mark.usefixtures("binaries", "nothing_left")
INTERRUPTS = """            CPU0       CPU1       CPU2
   8:          0          1          0  IO-APIC   8-edge      rtc0
  16:          5          0          2  IO-APIC  16-fasteoi   i801_smbus, idma64.0
  17:          1          0          0  IO-APIC  17-fasteoi   rtc0
  30:     102400          0         30  GICv3  27 Level     arch_timer
 LOC:    1000000    2000000    3000000   Local timer interrupts
 ERR:          7
"""


def close(layers):
    for layer in layers:
        layer.close()


def counted(workload, *names) -> dict:
    layers = metrics(*names)
    row = run_once(workload, layers)
    close(layers)
    assert row["status"] == "ok", row["message"]
    return row


def needs_software(*events):
    lacking = set(events) - set(available(1)[0])
    if lacking:
        pytest.skip(f"perf events that cannot be opened here: {', '.join(sorted(lacking))}")


def test_page_faults_of_a_program_that_touches_known_pages():
    needs_software("page_faults")
    script = "import mmap; m = mmap.mmap(-1, {0} * 4096); m.madvise(15); [m.__setitem__(i * 4096, 1) for i in range({0})]"  # 15: no huge pages
    few, many = (counted(external([sys.executable, "-c", script.format(pages)]), "software")["page_faults"] for pages in (1, 3000))
    assert 2900 <= many - few <= 3200


def test_context_switches_of_a_program_that_sleeps():
    needs_software("context_switches")
    script = "import time; [time.sleep(0.0001) for _ in range(200)]"
    assert 200 <= counted(external([sys.executable, "-c", script]), "software")["context_switches"] < 1200


def test_threads_that_run_already_are_counted():
    """Half of the work is done by a thread that exists before the counters are opened."""
    needs_software("task_clock_ns")
    row = counted(nbody(3000, threads=2), "software")
    assert row["task_clock_ns"] >= 0.97 * row["cpu_ns"] > 0


def test_threads_and_children_that_come_later_are_counted():
    needs_software("task_clock_ns")
    work = "sum(i * i for i in range(300_000))"
    script = f"import os, threading\nt = threading.Thread(target=lambda: {work}); t.start(); t.join()\n" \
             f"if os.fork() == 0: {work}; os._exit(0)\nos.wait()"
    row = counted(external([sys.executable, "-c", script], start="exec"), "software")
    assert row["task_clock_ns"] * 1e-9 == pytest.approx(row["user_s"] + row["system_s"], rel=0.2, abs=0.02)


def test_hardware_layer_measures_or_says_why_not():
    usable, missing = available(HARDWARE)
    runs = measure(nbody(500), runs=1, metrics="hardware")
    assert set(usable) <= set(runs.columns) and not set(missing) & set(runs.columns)
    assert bool(missing) == any(note.startswith("hardware: ") for note in runs.attrs["notes"])
    if "instructions" in usable:
        assert runs["instructions"][0] > 20 * 500 * 500


def test_kernel_counters_move_as_they_should():
    row = counted(external(["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do /bin/true; done"]), "kernel", "interrupts", "softirqs", "pressure")
    assert row["machine_forks"] >= 8 and row["machine_context_switches"] >= 8 and row["vm_pgfault"] > 100
    assert 0 <= row["steal_s"] and any(row[name] > 0 for name in row if name.startswith("irq_"))
    assert all(row[name] >= 0 for name in row if re.match("irq_|softirq_|pressure_|vm_", name))


def test_others_are_told_from_the_run():
    """A busy program beside the run is seen in others_busy_s, the run's own work is not."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("on a single CPU the two take turns")
    script = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    hog = subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE)
    hog.stdout.readline()
    row = counted(external([sys.executable, "-c", script]), "kernel")
    hog.kill()
    hog.communicate()
    assert row["machine_busy_s"] - row["others_busy_s"] == pytest.approx(row["user_s"] + row["system_s"], abs=0.03)
    assert row["others_busy_s"] > 0.1


def test_interrupts_text():
    assert parse_interrupts(INTERRUPTS) == {"irq_rtc0": 2, "irq_i801_smbus_idma64.0": 7, "irq_arch_timer": 102430, "irq_LOC": 6_000_000,
                                            "irq_ERR": 7}


def test_interrupts_of_this_machine_against_the_kernels_own_total():
    """/proc/stat sums the same interrupts; what happens between the two readings is the only difference."""
    def total():
        return int(re.search(r"^intr (\d+)", Path("/proc/stat").read_text(), re.MULTILINE)[1])

    before, counts, after = total(), parse_interrupts(Path("/proc/interrupts").read_text()), total()
    extra = sum(counts.get(name, 0) for name in ("irq_ERR", "irq_MIS", "irq_TLB"))  # TLB shootdowns are among CAL, too
    assert before - 1000 <= sum(counts.values()) - extra <= after + 1000


def test_other_kernel_texts():
    assert parse_softirqs("          CPU0  CPU1\n      HI:   1   2\n   TIMER:  30  40\n") == {"softirq_HI": 3, "softirq_TIMER": 70}
    stat = parse_stat("cpu  100 200 300 9000 50 10 20 40 5 0\ncpu0 1 1 1\nctxt 77\nprocesses 8\nintr 5 1 1\n")
    assert stat == {"steal_s": 0.4, "machine_busy_s": 6.3, "machine_context_switches": 77, "machine_forks": 8}
    assert parse_vmstat("nr_free_pages 5\npgfault 12\npswpin 3\n") == {"vm_pgfault": 12, "vm_pswpin": 3}
    text = "some avg10=0.99 avg60=0.74 avg300=0.23 total=8297867\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
    assert parse_pressure(text, "cpu") == {"pressure_cpu_some_us": 8297867, "pressure_cpu_full_us": 0}


@given(st.lists(st.lists(st.integers(0, 2**40), min_size=3, max_size=3), min_size=1, max_size=8))
def test_softirqs_sum_over_cpus(counts):
    text = "   CPU0 CPU1 CPU2\n" + "".join(f"  S{at}: {' '.join(map(str, row))}\n" for at, row in enumerate(counts))
    assert parse_softirqs(text) == {f"softirq_S{at}": sum(row) for at, row in enumerate(counts)}


def test_reader_passes_over_what_is_missing_and_reads_long_files(tmp_path):
    path = tmp_path / "long"
    path.write_text("x" * 200_000)
    reader = Reader({str(path): lambda text: {"length": len(text)}, "/proc/no-such": lambda text: {"never": 1}})
    assert reader.read() == {"length": 200_000} and reader.missing == ("/proc/no-such",)
    path.write_text("y")
    assert reader.read() == {"length": 1}
    reader.close(), reader.close()
    assert reader.read() == {"length": 1}
    reader.close()


def test_names_of_layers():
    assert len(metrics("all")) == len(LAYERS) - 1 and metrics("rusage") == () and len(metrics("software", "software")) == 1
    with pytest.raises(InputError, match="choose from rusage, software"):
        metrics("perf")


def test_rates_are_totals_divided_by_time():
    runs = pd.DataFrame({"run": [0, 1], "wall_seconds": [2.0, 4.0], "irq_LOC": [10, 10], "threads": [2, 2], "max_rss_kb": [5, 5],
                         "verified": ["yes", "yes"], "bodies": [1, 1]})
    got = rates(runs)
    assert list(got["irq_LOC_per_s"]) == [5.0, 2.5] and set(got.columns) - set(runs.columns) == {"irq_LOC_per_s"}
    assert list(rates(got).columns).count("irq_LOC_per_s") == 1


def test_every_column_that_we_make_is_described():
    runs = rates(measure(nbody(200), runs=1, metrics="all"))
    described = describe_columns(runs)
    own = set(described.index[described.kind == "own"])
    assert own == {"bodies", "steps", "energy", "energy_drift", "checksum"}
    assert described.loc["irq_LOC_per_s", "unit"] == "1/s" and described.loc["user_s", "kind"] == "total"
    assert describe_columns().meaning.str.len().min() > 5
    assert textwrap.dedent(describe_columns().loc["steal_s", "meaning"]).startswith("CPU time that the hypervisor")
