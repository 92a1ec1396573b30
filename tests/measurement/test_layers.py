"""Metric layers: against counts that are known, and the kernel's text against an independent
reading of it.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbhelpers.measurement import (
    measure,
    metrics,
    rates,
    run_once,
)
from nbhelpers.measurement._kernel import parse_interrupts, parse_softirqs
from nbhelpers.measurement._knowledge import Metric, Source, layers
from nbhelpers.measurement._perf import available
from nbhelpers.measurement._readers_files import FileReader
from nbhelpers.workloads import nbody, program

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


def events_of(layer) -> dict[str, str]:
    """Event: column."""
    return {
        metric.where["event"]: metric.id
        for metric in layers()[layer].metrics
        if "event" in metric.where
    }


def needs_software(*columns):
    events = events_of("software")
    lacking = set(columns) - {events[name] for name in available(tuple(events))[0]}
    if lacking:
        pytest.skip(f"perf events that cannot be opened here: {', '.join(sorted(lacking))}")


def test_page_faults_of_a_program_that_touches_known_pages():
    needs_software("page_faults")
    # 15: no huge pages
    script = (
        "import mmap; m = mmap.mmap(-1, {0} * 4096); m.madvise(15); [m.__setitem__(i * 4096, 1) for"
        " i in range({0})]"
    )
    few, many = (
        counted(program([sys.executable, "-c", script.format(pages)]), "software")["page_faults"]
        for pages in (1, 3000)
    )
    assert 2900 <= many - few <= 3200


def test_context_switches_of_a_program_that_sleeps():
    needs_software("context_switches")
    script = "import time; [time.sleep(0.0001) for _ in range(200)]"
    assert (
        200
        <= counted(program([sys.executable, "-c", script]), "software")["context_switches"]
        < 1200
    )


def test_threads_that_run_already_are_counted():
    """Half of the work is done by a thread that exists before the counters are opened."""
    needs_software("task_clock_ns")
    row = counted(nbody(3000, threads=2), "software")
    assert row["task_clock_ns"] >= 0.97 * row["cpu_ns"] > 0


def test_threads_and_children_that_come_later_are_counted():
    needs_software("task_clock_ns")
    work = "sum(i * i for i in range(300_000))"
    script = (
        f"import os, threading\nt = threading.Thread(target=lambda: {work}); t.start(); t.join()\n"
        f"if os.fork() == 0: {work}; os._exit(0)\nos.wait()"
    )
    row = counted(program([sys.executable, "-c", script], start="exec"), "software")
    assert row["task_clock_ns"] * 1e-9 == pytest.approx(
        row["user_s"] + row["system_s"], rel=0.2, abs=0.02
    )


def test_hardware_layer_measures_or_says_why_not():
    events = events_of("hardware")
    usable, missing = ([events[name] for name in found] for found in available(tuple(events)))
    runs = measure(nbody(500), runs=1, metrics="hardware")
    assert set(usable) <= set(runs.columns) and not set(missing) & set(runs.columns)
    assert bool(missing) == any(note.startswith("hardware: ") for note in runs.attrs["notes"])
    if "instructions" in usable:
        assert runs["instructions"][0] > 20 * 500 * 500


def test_kernel_counters_move_as_they_should():
    row = counted(
        program(["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do /bin/true; done"]),
        "kernel",
        "interrupts",
        "softirqs",
        "pressure",
    )
    assert (
        row["machine_forks"] >= 8
        and row["machine_context_switches"] >= 8
        and row["vm_pgfault"] > 100
    )
    assert row["steal_s"] >= 0 and any(row[name] > 0 for name in row if name.startswith("irq_"))
    assert all(row[name] >= 0 for name in row if re.match("irq_|softirq_|pressure_|vm_", name))


def test_others_are_told_from_the_run():
    """A busy program besides the run is seen in others_busy_s, the work of the run is not."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("on a single CPU the two take turns")
    script = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    hog = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE
    )
    hog.stdout.readline()
    row = counted(program([sys.executable, "-c", script]), "kernel")
    hog.kill()
    hog.communicate()
    assert row["machine_busy_s"] - row["others_busy_s"] == pytest.approx(
        row["user_s"] + row["system_s"], abs=0.03
    )
    assert row["others_busy_s"] > 0.1


def test_interrupts_of_this_machine_against_the_kernels_own_total():
    """/proc/stat sums the same interrupts; what happens between the two readings is the only
    difference.
    """

    def total():
        return int(re.search(r"^intr (\d+)", Path("/proc/stat").read_text(), re.MULTILINE)[1])

    before, counts, after = total(), parse_interrupts(Path("/proc/interrupts").read_text()), total()
    extra = sum(
        counts.get(name, [0])[0] for name in ("ERR", "MIS", "TLB")
    )  # TLB shootdowns are among CAL, too
    assert before - 1000 <= sum(count for (count,) in counts.values()) - extra <= after + 1000


def as_read(name: str, path: str, text: str, tmp_path) -> dict:
    """What a layer reads of a recorded tree with one file in it."""
    file = tmp_path / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    source = next(source for source in layers()[name].sources if source.options.get("path") == path)
    reader = FileReader(source, tmp_path)
    values = reader.read()
    reader.close()
    return values


def test_counters_of_the_kernels_texts(tmp_path):
    """The same texts and numbers as before layers were data: recorded runs keep their meaning."""
    stat = as_read(
        "kernel",
        "/proc/stat",
        "cpu  100 200 300 9000 50 10 20 40 5 0\ncpu0 1 1 1\nctxt 77\nprocesses 8\nintr 5 1 1\n",
        tmp_path,
    )
    assert stat == pytest.approx(
        {"steal_s": 0.4, "machine_busy_s": 6.3, "machine_context_switches": 77, "machine_forks": 8}
    )
    assert as_read(
        "kernel", "/proc/vmstat", "nr_free_pages 5\npgfault 12\npswpin 3\n", tmp_path
    ) == {"vm_pgfault": 12, "vm_pswpin": 3}
    text = (
        "some avg10=0.99 avg60=0.74 avg300=0.23 total=8297867\nfull avg10=0.00 avg60=0.00"
        " avg300=0.00 total=0\n"
    )
    assert as_read("pressure", "/proc/pressure/cpu", text, tmp_path) == {
        "pressure_cpu_some_us": 8297867,
        "pressure_cpu_full_us": 0,
    }
    assert as_read("interrupts", "/proc/interrupts", INTERRUPTS, tmp_path) == {
        "irq_rtc0": 2,
        "irq_i801_smbus_idma64.0": 7,
        "irq_arch_timer": 102430,
        "irq_LOC": 6_000_000,
        "irq_ERR": 7,
    }
    assert as_read(
        "softirqs", "/proc/softirqs", " CPU0 CPU1\n HI: 1 2\n TIMER: 30 40\n", tmp_path
    ) == {"softirq_HI": 3, "softirq_TIMER": 70}


@given(st.lists(st.lists(st.integers(0, 2**40), min_size=3, max_size=3), min_size=1, max_size=8))
def test_softirqs_sum_over_cpus(counts):
    text = "   CPU0 CPU1 CPU2\n" + "".join(
        f"  S{at}: {' '.join(map(str, row))}\n" for at, row in enumerate(counts)
    )
    assert parse_softirqs(text) == {f"S{at}": [sum(row)] for at, row in enumerate(counts)}


def test_reader_passes_over_what_is_missing_and_reads_long_files(tmp_path):
    path = tmp_path / "long"
    path.write_text("x 1\n" * 50_000 + "last 7\n")
    source = Source(
        "file",
        (
            Metric("last", "the last", where={"key": "last"}),
            Metric("never", "not there", where={"key": "never"}),
        ),
        {"path": "/long", "format": "rows"},
    )
    reader = FileReader(source, tmp_path)
    assert reader.read() == {"last": 7} and reader.lacking() == "/long has no never"
    path.write_text("last 8\n")
    assert reader.read() == {"last": 8}
    reader.close(), reader.close()
    assert reader.read() == {"last": 8}
    reader.close()
    gone = FileReader(
        Source("file", source.metrics, {"path": "/no/such", "format": "rows"}), tmp_path
    )
    assert gone.read() == {} and gone.lacking() == "this machine has no /no/such"


def test_run_queue_wait_of_threads_that_have_ended():
    """Two threads of 50 ms and a child of 100 ms, all on one CPU: what has to wait is known from
    who had the CPU.
    """
    if metrics("scheduler")[0].notes:
        pytest.skip(metrics("scheduler")[0].notes[0])
    work = (
        "import os, threading, time\ndef work(seconds):\n    end = time.thread_time() + seconds\n  "
        "  while time.thread_time() < end: pass\n"
    )
    threads = (
        "t = [threading.Thread(target=work, args=(0.05,)) for _ in range(2)]\nfor x in t:"
        " x.start(); x.join()\n"
    )
    cpu = min(os.sched_getaffinity(0))
    rows = [
        counted(
            program(["taskset", "-c", str(cpu), sys.executable, "-c", work + text], start="exec"),
            "scheduler",
        )
        for text in (threads, "if os.fork() == 0: work(0.1); os._exit(0)\n" + threads + "os.wait()")
    ]
    assert all(row["process_cpu_ns"] >= 0.095e9 and row["process_timeslices"] >= 3 for row in rows)
    assert rows[1]["process_runqueue_wait_ns"] >= 50e6, (
        "the child of the same priority has the CPU half of the time"
    )
    single = counted(program([sys.executable, "-c", work + "work(0.05)"]), "scheduler")
    assert single["process_cpu_ns"] >= 0.045e9, (
        "a process of a single thread is not summed up by the kernel, and yet counted"
    )


def test_reading_and_writing_of_a_process_is_known_exactly(tmp_path):
    script = (
        f"import os; fd = os.open({str(tmp_path / 'file')!r}, os.O_RDWR | os.O_CREAT);"
        " [os.write(fd, b'x' * 1000) for _ in range(70)]"
    )
    few = counted(program([sys.executable, "-c", "pass"], start="exec"), "io")
    many = counted(program([sys.executable, "-c", script], start="exec"), "io")
    assert (
        many["io_write_calls"] - few["io_write_calls"] == 70
        and many["io_write_chars"] - few["io_write_chars"] == 70_000
    )
    assert many["disk_write_bytes"] >= 0


def test_system_calls_are_counted_one_by_one():
    layer = metrics("syscalls")[0]
    if layer.notes:
        pytest.skip(layer.notes[0])
    script = (
        "import os, time; [os.sched_yield() for _ in range(500)]; [time.sleep(1e-5) for _ in"
        " range(7)]"
    )
    few, many = (
        counted(program([sys.executable, "-c", text], start="exec"), "syscalls")
        for text in ("import os, time", script)
    )
    assert many["syscall_sched_yield"] - few["syscall_sched_yield"] == 500
    assert many["syscall_clock_nanosleep"] - few["syscall_clock_nanosleep"] == 7
    assert 480 < many["syscalls"] - few["syscalls"] < 560, (
        "507, and a few that differ from one start of Python to the next"
    )


def test_what_hits_the_run_is_told_from_what_happens_elsewhere():
    layer = metrics("disturbances")[0]
    if "hit_local_timer" in " ".join(layer.notes) or any(
        "no column" in note for note in layer.notes
    ):
        pytest.skip(layer.notes[0])
    spin = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass"
    busy, idle = (
        counted(program([sys.executable, "-c", text], start="exec"), "disturbances")
        for text in (spin, "import time; time.sleep(0.2)")
    )
    if "hit_local_timer" not in busy:
        pytest.skip("no tracepoint of the local timer here")
    assert busy["hit_local_timer"] >= 15 and busy["hit_local_timer"] > idle["hit_local_timer"]


def test_a_run_that_is_killed_leaves_no_counter_open():
    layers_ = metrics("all", "syscalls")
    row = run_once(program("sleep 5", timeout_s=0.2), layers_)
    close(layers_)
    assert row["status"] == "timeout" and row["machine_forks"] >= 0


def test_rates_are_totals_divided_by_time():
    runs = pd.DataFrame(
        {
            "run": [0, 1],
            "wall_seconds": [2.0, 4.0],
            "irq_LOC": [10, 10],
            "threads": [2, 2],
            "max_rss_kb": [5, 5],
            "verified": ["yes", "yes"],
            "bodies": [1, 1],
        }
    )
    got = rates(runs)
    assert list(got["irq_LOC_per_s"]) == [5.0, 2.5] and set(got.columns) - set(runs.columns) == {
        "irq_LOC_per_s"
    }
    assert list(rates(got).columns).count("irq_LOC_per_s") == 1
