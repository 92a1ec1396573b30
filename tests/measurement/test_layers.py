"""Metric layers: against counts that are known, and the kernel's text against an independent
reading of it.
"""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from nbhelpers.measurement import measure, metrics, rates, run_once
from nbhelpers.measurement._kernel import parse_interrupts
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


SPIN = """
import time
end = time.process_time() + {}
while time.process_time() < end: pass
"""


def close(layers):
    for layer in layers:
        layer.close()


def python(script: str):
    return program([sys.executable, "-c", script], start="exec")


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
    script = """
import mmap
area = mmap.mmap(-1, {0} * 4096)
area.madvise(15)  # no huge pages
for page in range({0}):
    area[page * 4096] = 1
"""
    few, many = (counted(python(script.format(pages)), "software") for pages in (1, 3000))
    assert 2900 <= many["page_faults"] - few["page_faults"] <= 3200


def test_threads_that_run_already_are_counted():
    """Half of the work is done by a thread that exists before the counters are opened."""
    needs_software("task_clock_ns")
    row = counted(nbody(3000, threads=2), "software")
    assert row["task_clock_ns"] >= 0.97 * row["cpu_ns"] > 0


def test_threads_and_children_that_come_later_are_counted():
    needs_software("task_clock_ns")
    work = "sum(i * i for i in range(300_000))"
    script = f"""
import os, threading
t = threading.Thread(target=lambda: {work}); t.start(); t.join()
if os.fork() == 0: {work}; os._exit(0)
os.wait()
"""
    row = counted(python(script), "software")
    used_s = row["user_s"] + row["system_s"]
    assert row["task_clock_ns"] * 1e-9 == pytest.approx(used_s, rel=0.2, abs=0.02)


def test_hardware_layer_measures_or_says_why_not():
    events = events_of("hardware")
    usable, missing = ([events[name] for name in found] for found in available(tuple(events)))
    runs = measure(nbody(500), runs=1, metrics="hardware")
    assert set(usable) <= set(runs.columns) and not set(missing) & set(runs.columns)
    assert bool(missing) == any(note.startswith("hardware: ") for note in runs.attrs["notes"])
    if "instructions" in usable:
        assert runs["instructions"][0] > 20 * 500 * 500


@pytest.mark.alone
def test_others_are_told_from_the_run():
    """A busy program besides the run is seen in others_busy_s, the work of the run is not."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("on a single CPU the two take turns")
    endless = "print(flush=True)\nwhile True: pass"
    hog = subprocess.Popen([sys.executable, "-c", endless], stdout=subprocess.PIPE)
    hog.stdout.readline()
    row = counted(python(SPIN.format(0.3)), "kernel")
    hog.kill()
    hog.communicate()
    used_s = row["user_s"] + row["system_s"]
    assert row["machine_busy_s"] - row["others_busy_s"] == pytest.approx(used_s, abs=0.03)
    assert row["others_busy_s"] > 0.1


@pytest.mark.alone
def test_interrupts_of_this_machine_against_the_kernels_own_total():
    """/proc/stat sums the same interrupts; what happens between the two readings is the only
    difference.
    """

    def total():
        return int(re.search(r"^intr (\d+)", Path("/proc/stat").read_text(), re.MULTILINE)[1])

    before, counts, after = total(), parse_interrupts(Path("/proc/interrupts").read_text()), total()
    # TLB shootdowns are among CAL, too
    summed = sum(count for name, (count,) in counts.items() if name not in ("ERR", "MIS", "TLB"))
    assert before - 1000 <= summed <= after + 1000


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


RECORDED = {
    "/proc/stat": (
        "kernel",
        "cpu  100 200 300 9000 50 10 20 40 5 0\ncpu0 1 1 1\nctxt 77\nprocesses 8\nintr 5 1 1\n",
        "steal_s 0.4 machine_busy_s 6.3 machine_context_switches 77 machine_forks 8",
    ),
    "/proc/vmstat": (
        "kernel",
        "nr_free_pages 5\npgfault 12\npswpin 3\n",
        "vm_pgfault 12 vm_pswpin 3",
    ),
    "/proc/pressure/cpu": (
        "pressure",
        "some avg10=0.99 avg60=0.74 avg300=0.23 total=8297867\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
        "pressure_cpu_some_us 8297867 pressure_cpu_full_us 0",
    ),
    "/proc/interrupts": (
        "interrupts",
        INTERRUPTS,
        "irq_rtc0 2 irq_i801_smbus_idma64.0 7 irq_arch_timer 102430 irq_LOC 6000000 irq_ERR 7",
    ),
    "/proc/softirqs": (
        "softirqs",
        " CPU0 CPU1\n HI: 1 2\n TIMER: 30 40\n",
        "softirq_HI 3 softirq_TIMER 70",
    ),
}


@pytest.mark.parametrize("path", RECORDED)
def test_counters_of_the_kernels_texts(path, tmp_path):
    """The same texts and numbers as before layers were data: recorded runs keep their meaning."""
    layer, text, expected = RECORDED[path]
    words = expected.split()
    values = as_read(layer, path, text, tmp_path)
    assert values == pytest.approx(dict(zip(words[::2], map(float, words[1::2]))))


def test_reader_passes_over_what_is_missing_and_reads_long_files(tmp_path):
    path = tmp_path / "long"
    path.write_text("x 1\n" * 50_000 + "last 7\n")
    wanted = tuple(Metric(key, key, where={"key": key}) for key in ("last", "never"))
    reader = FileReader(Source("file", wanted, {"path": "/long", "format": "rows"}), tmp_path)
    assert reader.read() == {"last": 7} and reader.lacking() == "/long has no never"
    path.write_text("last 8\n")
    assert reader.read() == {"last": 8}
    reader.close(), reader.close()
    assert reader.read() == {"last": 8}
    reader.close()
    gone = FileReader(Source("file", wanted, {"path": "/no/such", "format": "rows"}), tmp_path)
    assert gone.read() == {} and gone.lacking() == "this machine has no /no/such"


def test_run_queue_wait_of_threads_that_have_ended():
    """Two threads of 50 ms and a child of 100 ms, all on one CPU: what has to wait is known from
    who had the CPU.
    """
    if metrics("scheduler")[0].notes:
        pytest.skip(metrics("scheduler")[0].notes[0])
    work = """
import os, threading, time
def work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
"""
    threads = """
t = [threading.Thread(target=work, args=(0.05,)) for _ in range(2)]
for x in t: x.start(); x.join()
"""
    child = f"if os.fork() == 0: work(0.1); os._exit(0)\n{threads}\nos.wait()"
    cpu = (min(os.sched_getaffinity(0)),)
    alone, beside = (
        counted(replace(python(work + text), cpus=cpu), "scheduler") for text in (threads, child)
    )
    for row in (alone, beside):
        assert row["process_cpu_ns"] >= 0.095e9 and row["process_timeslices"] >= 3
    # the child of the same priority has the CPU half of the time
    assert beside["process_runqueue_wait_ns"] >= 50e6
    # a process of a single thread is not summed up by the kernel, and yet counted
    single = counted(python(work + "work(0.05)"), "scheduler")
    assert single["process_cpu_ns"] >= 0.045e9


def test_reading_and_writing_of_a_process_is_known_exactly(tmp_path):
    script = f"""
import os
fd = os.open({str(tmp_path / "file")!r}, os.O_RDWR | os.O_CREAT)
for _ in range(70): os.write(fd, b"x" * 1000)
"""
    few, many = (counted(python(text), "io") for text in ("pass", script))
    assert many["io_write_calls"] - few["io_write_calls"] == 70
    assert many["io_write_chars"] - few["io_write_chars"] == 70_000


def test_system_calls_are_counted_one_by_one():
    layer = metrics("syscalls")[0]
    if layer.notes:
        pytest.skip(layer.notes[0])
    begin = "import os, time\n"
    script = "for _ in range(500): os.sched_yield()\nfor _ in range(7): time.sleep(1e-5)"
    few, many = (counted(python(text), "syscalls") for text in (begin, begin + script))
    assert many["syscall_sched_yield"] - few["syscall_sched_yield"] == 500
    assert many["syscall_clock_nanosleep"] - few["syscall_clock_nanosleep"] == 7
    # 507, and a few that differ from one start of Python to the next
    assert 480 < many["syscalls"] - few["syscalls"] < 560


@pytest.mark.alone
def test_what_hits_the_run_is_told_from_what_happens_elsewhere():
    layer = metrics("disturbances")[0]
    if any("hit_local_timer" in note or "no column" in note for note in layer.notes):
        pytest.skip(layer.notes[0])
    scripts = SPIN.format(0.2), "import time; time.sleep(0.2)"
    busy, idle = (counted(python(text), "disturbances") for text in scripts)
    if "hit_local_timer" not in busy:
        pytest.skip("no tracepoint of the local timer here")
    assert busy["hit_local_timer"] >= 15 and busy["hit_local_timer"] > idle["hit_local_timer"]


def test_a_run_that_is_killed_leaves_no_counter_open():
    layers_ = metrics("all", "syscalls")
    row = run_once(program("sleep 5", timeout_s=0.2), layers_)
    close(layers_)
    assert row["status"] == "timeout" and row["machine_forks"] >= 0


def test_rates_are_totals_divided_by_time():
    runs = pd.DataFrame({"wall_seconds": [2.0, 4.0], "irq_LOC": [10, 10], "threads": [2, 2]})
    got = rates(runs.assign(max_rss_kb=5, verified="yes", bodies=1))
    assert list(got["irq_LOC_per_s"]) == [5.0, 2.5]
    assert [name for name in rates(got) if name.endswith("_per_s")] == ["irq_LOC_per_s"]
