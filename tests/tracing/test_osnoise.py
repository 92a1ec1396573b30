"""`read_osnoise`: every trap of the text, on hand-made lines; and whole recorded traces against an
independent reading.
"""

import gzip
import re
from itertools import product

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError, LostEvents
from nbhelpers.tracing import read_osnoise
from nbhelpers.tracing.foreign import window_from_workload

from .conftest import osnoise_file

HEADER = "# tracer: osnoise\n#\n"
IRQ = "irq_noise: a:1 start 1.000000000 duration 10 ns"


def line(event, context="wl-70", cpu="000", stamp=None):
    """A line of the kernel's; its stamp is the event's end where none is given."""
    found = re.search(r"start (\d+)\.(\d{9}) duration (\d+)", event)
    end_ns = int(found[1] + found[2]) + int(found[3]) if found else 10**9
    stamp = stamp or f"{end_ns // 10**9}.{end_ns % 10**9 // 1000:06d}"
    return f"{context:>20} [{cpu}] d.h..  {stamp}: {event}"


@pytest.fixture
def trace(tmp_path):
    """Write lines, or events in lines of their own, and return the path."""

    def write(*events, header=HEADER, end="\n"):
        known = re.compile(r"\w+_noise:|sample_threshold:")
        lines = [line(event) if known.match(event) else event for event in events]
        path = tmp_path / "run.trace"
        path.write_text(header + "\n".join(lines) + end)
        return path

    return write


def test_an_interrupt(trace):
    events = read_osnoise(
        trace("irq_noise: local_timer:236 start 5.000001000 duration 2000 ns"), run=7
    )
    wanted = {"run": 7, "cpu": 0, "kind": "irq", "source": "local_timer", "start_ns": 0}
    wanted |= {"duration_ns": 2000, "end_ns": 2000, "policy": "SCHED_FIFO", "priority": 50}
    assert events.to_dict("records") == [wanted | {"pid": -1, "interrupted": "other"}]
    assert events.attrs["lost"] == 0 and events.attrs["tracer"] == "osnoise"


@pytest.mark.parametrize(
    "event, kind, source, pid, policy, priority",
    [
        ("thread_noise: kworker/0:1:23", "thread", "kworker/0:1", 23, "", 0),
        ("thread_noise:      a:9", "thread", "a", 9, "", 0),
        ("thread_noise: Web Content:412", "thread", "Web Content", 412, "", 0),
        ("thread_noise: a start 1.:412", "thread", "a start 1.", 412, "", 0),
        ("thread_noise: x-1 [000] d:5", "thread", "x-1 [000] d", 5, "", 0),
        ("softirq_noise:      RCU:9", "softirq", "RCU", -1, "SCHED_FIFO", 49),
        ("irq_noise: virtio1-req.0:36", "irq", "virtio1-req.0", -1, "SCHED_FIFO", 50),
        ("nmi_noise:", "nmi", "nmi", -1, "SCHED_FIFO", 51),
    ],
)
def test_names_reach_to_the_last_colon(trace, event, kind, source, pid, policy, priority):
    events = read_osnoise(trace(f"{event} start 5.000000000 duration 10 ns"))
    found = events[["kind", "source", "pid", "policy", "priority"]].values.tolist()
    assert found == [[kind, source, pid, policy, priority]]


@pytest.mark.parametrize(
    "prefix, cpu",
    [
        ("wl-70 [007] d.h..", 7),
        ("wl-70 [12345] d.h..", 12345),
        ("           <...>-859   (    859) [000] d.h1.", 0),
        ("    kworker/0:1H-859   (-----) [000] d.h1.", 0),
        ("  a-b [1] c-d-859   [000]", 0),
    ],
)
def test_wide_cpu_fields_and_other_trace_options(trace, prefix, cpu):
    events = read_osnoise(trace(f"{prefix}    1.000001: {IRQ}"))
    assert events[["source", "cpu"]].values.tolist() == [["a", cpu]]


def test_first_events_without_a_start_and_the_idle_task_are_no_noise(trace):
    path = trace(
        "thread_noise: bash:66 start 0.000000000 duration 6903845352 ns",
        "thread_noise: swapper/0:0 start 1.000000000 duration 10 ns",
        "thread_noise: swapper/0:5 start 2.000000000 duration 10 ns",
    )
    assert read_osnoise(path).pid.tolist() == [5]


def test_the_workload_by_pid_or_by_name(trace):
    path = trace(
        "thread_noise: wl:70 start 1.000000000 duration 10 ns",
        "thread_noise: wl:71 start 2.000000000 duration 10 ns",
        "thread_noise: kw:4 start 3.000000000 duration 10 ns",
    )
    assert read_osnoise(path, workload={70}).pid.tolist() == [71, 4]
    assert read_osnoise(path, workload="wl").pid.tolist() == [4]
    assert read_osnoise(path).pid.tolist() == [70, 71, 4]


def test_children_of_the_workload_where_forks_were_recorded(trace):
    forks = (("wl", 70, "wl pid=4", 71), ("wl", 71, "wl", 72), ("x", 9, "x", 4))
    said = "sched_process_fork: comm={} pid={} child_comm={} child_pid={}"
    path = trace(
        *(line(said.format(*fork), stamp="0.900000") for fork in forks),
        *(f"thread_noise: a:{pid} start {pid}.000000000 duration 10 ns" for pid in (4, 70, 71, 72)),
    )
    assert read_osnoise(path, workload=[70]).pid.tolist() == [4]


def test_names_of_more_than_15_characters_are_cut_as_the_kernel_does(trace):
    path = trace("thread_noise: a_long_program_:70 start 1.000000000 duration 10 ns")
    assert read_osnoise(path, workload="a_long_program_name").empty


def test_the_end_is_the_time_stamp_and_what_reaches_over_the_window_is_cut(trace):
    """A thread that ran 200 µs with 140 µs of interrupts in it begins 100 µs before the window:
    half of its net 60 µs lie inside. An interrupt ends 20 µs after it.
    """
    path = trace(
        line("thread_noise: kw:4 start 1.000000000 duration 60000 ns", stamp="1.000200"),
        "irq_noise: a:1 start 1.000180000 duration 40000 ns",
        "irq_noise: a:1 start 1.000999000 duration 1000 ns",
    )
    columns = ["source", "start_ns", "duration_ns", "end_ns"]
    whole = read_osnoise(path, window=(1_000_000_000, 2_000_000_000))
    assert whole[columns].values.tolist()[0] == ["kw", 0, 60_000, 200_000]
    cut = read_osnoise(path, window=(1_000_100_000, 1_000_200_000))
    assert cut[columns].values.tolist() == [
        ["kw", 0, 30_000, 100_000],
        ["a", 80_000, 20_000, 100_000],
    ]


def test_hardware_noise_is_what_no_event_explains(trace):
    path = trace(
        "sample_threshold: start 1.000000000 duration 9123 ns interference 0",
        "sample_threshold: start 2.000000000 duration 214020 ns interference 1",
        "sample_threshold: start 3.000000000 duration 77 ns interferences 0",
    )
    events = read_osnoise(path)
    assert events[["kind", "source", "duration_ns", "policy"]].values.tolist() == [
        ["hardware", "hardware", 9123, "SCHED_FIFO"],
        ["hardware", "hardware", 77, "SCHED_FIFO"],
    ]


def test_who_was_interrupted(trace):
    timer = "irq_noise: a:1 start {}.000000000 duration 10000 ns"
    thread = "thread_noise: {} start {}.000000000 duration 10000 ns"
    lines = [
        line(timer.format(1), "<idle>-0"),
        line(timer.format(2), "wl-70"),
        line(timer.format(3), "kw-4"),
        line(thread.format("wl:70", 4), "wl-70"),
        line(thread.format("kw:4", 5), "kw-4"),
        line(thread.format("bash:5", 6), "bash-5"),
        line(thread.format("swapper/0:0", 7), "<idle>-0"),
        line(thread.format("kw:4", 8), "kw-4"),
    ]
    found = read_osnoise(trace(*lines), workload=[70]).interrupted.tolist()
    assert found == ["idle", "workload", "other", "workload", "workload", "idle"]


@pytest.mark.parametrize("clock", ["local", "mono"])
def test_clocks_are_brought_together_cpu_by_cpu(tmp_path, clock):
    """The stamps of CPU 1 are 91.5 ms behind its start times and of CPU 0 2 ms ahead, with a rate
    of 20 ppm between; found from interrupts.
    """
    rng, lines = np.random.default_rng(1), []
    offsets_ns = {0: 2_000_000, 1: -91_500_000}
    for cpu, i in product(offsets_ns, range(400)):
        start, duration = 10**10 + i * 10**7, int(rng.integers(2000, 30000))
        stamp = start + duration + offsets_ns[cpu] + i * 200 + int(rng.integers(0, 300))
        event = f"irq_noise: a:1 start {start / 1e9:.9f} duration {duration} ns"
        lines.append(line(event, cpu=f"{cpu:03d}", stamp=f"{stamp / 1e9:.6f}"))
    path = tmp_path / "t.trace"
    whole = {"start_ns": 0, "end_ns": 2 * 10**10, "workload_pids": []}
    text = (HEADER + "\n".join(lines) + "\n").encode()
    path.write_bytes(osnoise_file(text, clock=clock, **whole))
    events = read_osnoise(path)
    for cpu, offset_ns in offsets_ns.items():
        starts = events.loc[events.cpu == cpu, "start_ns"].to_numpy()
        moved = offset_ns + np.arange(400) * 200 if clock == "mono" else 0
        late = starts - (10**10 + np.arange(400) * 10**7 + moved)
        assert np.abs(late).max() < 12_000  # pieces of 50 interrupts, 10 µs of drift each
        assert (events.end_ns - events.start_ns - events.duration_ns).max() < 12_000


def test_no_interrupt_to_tie_the_clocks(trace):
    path = trace("thread_noise: kw:4 start 1.000000000 duration 10 ns")
    header = {"clock": "mono", "start_ns": 0, "end_ns": 10**10, "workload_pids": []}
    path.write_bytes(osnoise_file(path.read_bytes(), **header))
    with pytest.raises(InputError, match="no interrupt"):
        read_osnoise(path)


@pytest.mark.parametrize(
    "bad",
    [
        "CPU:3 [LOST 123 EVENTS]",
        "CPU:0 [LOST EVENTS]",
        "# entries-in-buffer/entries-written: 1098/40098   #P:2",
    ],
)
def test_losses_are_refused(trace, bad):
    with pytest.raises(LostEvents, match="line 4"):
        read_osnoise(trace(IRQ, bad))


def test_a_header_without_loss_is_fine(trace):
    header = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 40098/40098   #P:2\n"
    assert len(read_osnoise(trace(IRQ, header=header))) == 1


@pytest.mark.parametrize(
    "bad, message",
    [
        ("# osnoise is tainted!", "distrusts"),
        (line("0xffffffff81a: Negative duration!"), "distrusts"),
        (line(IRQ.replace("10 ns", "18446744072104321024 ns"), stamp="1.000001"), "impossible"),
        (line(IRQ.replace("start 1.", "start 99999999999."), stamp="1.000001"), "impossible"),
        (line("irq_noise: a:1 start 1.000000000 durat"), "damaged"),
        (line("irq_noise: a:1 start 1.00000000 duration 5 ns"), "damaged"),
        (line("thread_noise: start 1.000000000 duration 5 ns"), "damaged"),
        ("            wl-1       [000] d....   1.00", "damaged"),
        ("something else", "damaged"),
    ],
)
def test_bad_lines_are_named(trace, bad, message):
    with pytest.raises(InputError, match=f"(?s){message}.*run.trace, line 4"):
        read_osnoise(trace(IRQ, bad))


def test_a_truncated_last_line(trace):
    sample = "sample_threshold: start 2.000000000 duration 9123 ns interference 1"
    with pytest.raises(InputError, match="(?s)truncated last line.*line 4"):
        read_osnoise(trace(IRQ, sample, end=""))


@pytest.mark.parametrize("content", [b"", b"hello", b"\n\n", b"\x1f\x8b\x08", b"\x00" * 100])
def test_what_is_no_trace(tmp_path, content):
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(InputError, match=str(path)):
        read_osnoise(path)


def test_an_empty_window(trace):
    with pytest.raises(InputError, match="window"):
        read_osnoise(trace(IRQ), window=(5, 5))


# ---- recorded traces -----------------------------------------------------------------------------

LINE = re.compile(
    r"^.*\[(\d+)\].*? ([\d.]+): (\w+)_noise: *(?:(.*):(\d+) )?start ([\d.]+) duration (\d+) ns$"
)


@pytest.mark.parametrize("name", ["osnoise-run-000", "osnoise-run-003", "vm-both"])
def test_recorded_traces_against_an_independent_reading(data, name):
    path = data / f"{name}.trace.gz"
    found = [
        match.groups()
        for line in gzip.decompress(path.read_bytes()).decode().splitlines()
        if (match := LINE.match(line))
    ]
    table = pd.DataFrame(
        found, columns=["cpu", "stamp", "kind", "source", "number", "start", "duration"]
    )
    table = table[
        (table.start != "0.000000000") & ~((table.kind == "thread") & (table.number == "0"))
    ]
    events = read_osnoise(path, window=(1, 10**15))
    wanted = table.groupby(["kind", "source"]).duration.agg(
        ["count", lambda d: d.astype("int64").sum()]
    )
    ours = (
        events.astype({"kind": str, "source": str})
        .groupby(["kind", "source"])
        .duration_ns.agg(["count", "sum"])
    )
    assert ours.values.tolist() == wanted.values.tolist() and list(ours.index) == list(wanted.index)
    assert sorted(events.start_ns + 1) == sorted(
        int(start.replace(".", "")) for start in table.start
    )
    late = np.sort(events.end_ns) - np.sort([round(float(stamp) * 1e9) for stamp in table.stamp])
    assert np.quantile(np.abs(late), 0.9) < 20_000


def test_samples_of_the_default_mode(data):
    text = gzip.decompress((data / "vm-samples.trace.gz").read_bytes()).decode()
    events = read_osnoise(data / "vm-samples.trace.gz")
    assert (events.kind == "hardware").sum() == text.count("interference 0\n")
    assert (events.kind != "hardware").sum() == len(
        re.findall(r"(irq|thread)_noise: .* start (?!0\.000000000)", text)
    )
    assert ": 300000 " in text  # the lines of the periods are passed over


# ---- the published layout ------------------------------------------------------------------------


def test_the_window_of_the_published_layout(data, tmp_path):
    """t0 is the earliest thread_noise that carries the workload's name, the length is what the
    program printed.
    """
    path = tmp_path / "nbody-omp-1-intel.trace"
    path.write_bytes(gzip.decompress((data / "osnoise-run-003.trace.gz").read_bytes()))
    path.with_suffix(".benchout").write_text("hello\nTotal Duration: 2.989117 seconds\n")
    starts = re.findall(r"thread_noise: +wl_omp:\d+ start (\d+\.\d+)", path.read_text())
    begin = min(int(start.replace(".", "")) for start in starts)
    assert window_from_workload(path, "wl_omp") == (begin, begin + 2_989_117_000)
    events = read_osnoise(path, window=window_from_workload(path, "wl_omp"), workload="wl_omp")
    assert events.start_ns.min() == 0 and events.end_ns.max() <= 2_989_117_000 and len(events) > 500


@pytest.mark.parametrize(
    "printed",
    ["", "Total Duration: 0 seconds", "Total Duration: e seconds", "Total Duration: 1e99 seconds"],
)
def test_a_length_that_is_nowhere(data, tmp_path, printed):
    path = tmp_path / "a.trace"
    path.write_bytes(gzip.decompress((data / "osnoise-run-003.trace.gz").read_bytes()))
    path.with_suffix(".out").write_text(printed)
    with pytest.raises(InputError, match="a.(trace|out)"):
        window_from_workload(path, "wl_omp")
    with pytest.raises(InputError, match="threads seen: .*wl_omp"):
        window_from_workload(path, "nbody")
