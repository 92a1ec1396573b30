"""`read_osnoise`: every trap of the text, on hand-made lines; and whole recorded traces against an
independent reading.
"""

import gzip
import re

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError, LostEvents
from nbhelpers.tracing import read_osnoise
from nbhelpers.tracing.foreign import window_from_workload

HEADER = "# tracer: osnoise\n#\n"


@pytest.fixture
def trace(tmp_path):
    """Write lines (the context is filled in) and return the path."""

    def write(*events, header=HEADER, cpu="000", stamp=None, context="wl-70", end="\n"):
        lines = [
            (
                f"{context:>20} [{cpu}] d.h..  {stamp or _stamp(event)}: {event}"
                if re.match(r"\w+_noise:|sample_threshold:", event)
                else event
            )
            for event in events
        ]
        path = tmp_path / "run.trace"
        path.write_text(header + "\n".join(lines) + end)
        return path

    return write


def _stamp(event):
    found = re.search(r"start (\d+)\.(\d{9}) duration (\d+)", event)
    end_ns = int(found[1]) * 10**9 + int(found[2]) + min(int(found[3]), 10**15) if found else 10**9
    return f"{end_ns // 10**9}.{end_ns % 10**9 // 1000:06d}"


def test_an_interrupt(trace):
    events = read_osnoise(
        trace("irq_noise: local_timer:236 start 5.000001000 duration 2000 ns"), run=7
    )
    assert events.to_dict("records") == [
        {
            "run": 7,
            "cpu": 0,
            "kind": "irq",
            "source": "local_timer",
            "start_ns": 0,
            "duration_ns": 2000,
            "end_ns": 2000,
            "policy": "SCHED_FIFO",
            "priority": 50,
            "pid": -1,
            "interrupted": "other",
        }
    ]
    assert events.attrs["lost"] == 0 and events.attrs["tracer"] == "osnoise"


@pytest.mark.parametrize(
    "text, kind, source, pid",
    [
        ("thread_noise: kworker/0:1:23 start", "thread", "kworker/0:1", 23),
        ("thread_noise:      a:9", "thread", "a", 9),
        ("thread_noise: Web Content:412 start", "thread", "Web Content", 412),
        ("thread_noise: a start 1.:412 start", "thread", "a start 1.", 412),
        ("thread_noise: x-1 [000] d:5 start", "thread", "x-1 [000] d", 5),
        ("softirq_noise:      RCU:9 start", "softirq", "RCU", -1),
        ("irq_noise: virtio1-req.0:36 start", "irq", "virtio1-req.0", -1),
        ("nmi_noise: start", "nmi", "nmi", -1),
    ],
)
def test_names_reach_to_the_last_colon(trace, text, kind, source, pid):
    events = read_osnoise(trace(f"{text.removesuffix(' start')} start 5.000000000 duration 10 ns"))
    assert events[["kind", "source", "pid"]].values.tolist() == [[kind, source, pid]]


def test_policies(trace):
    names = ("nmi_noise:", "irq_noise: a:1", "softirq_noise: RCU:9", "thread_noise: b:2")
    events = read_osnoise(
        trace(*(f"{name} start {i + 1}.000000000 duration 10 ns" for i, name in enumerate(names)))
    )
    assert events.policy.tolist() == ["SCHED_FIFO"] * 3 + [""]
    assert events.priority.tolist() == [51, 50, 49, 0]


@pytest.mark.parametrize("cpu", ["007", "1023", "12345"])
def test_wide_cpu_fields(trace, cpu):
    assert read_osnoise(
        trace("irq_noise: a:1 start 5.000000000 duration 10 ns", cpu=cpu)
    ).cpu.tolist() == [int(cpu)]


@pytest.mark.parametrize(
    "line",
    [
        (
            "           <...>-859   (    859) [000] d.h1.    5.000001: irq_noise: a:1 start"
            " 5.000000000 duration 10 ns"
        ),
        (
            "    kworker/0:1H-859   (-----) [000] d.h1.    5.000001: irq_noise: a:1 start"
            " 5.000000000 duration 10 ns"
        ),
        "  a-b [1] c-d-859   [000]    5.000001: irq_noise: a:1 start 5.000000000 duration 10 ns",
    ],
)
def test_other_trace_options(trace, line):
    assert read_osnoise(trace(line)).source.tolist() == ["a"]


def test_first_events_without_a_start_are_dropped(trace):
    path = trace(
        "thread_noise: bash:66 start 0.000000000 duration 6903845352 ns",
        "irq_noise: a:1 start 5.000000000 duration 10 ns",
    )
    assert read_osnoise(path).source.tolist() == ["a"]


def test_idle_is_no_noise(trace):
    path = trace(
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
    fork = (
        "              wl-70    [000] d....  0.900000: sched_process_fork: comm={} pid={}"
        " child_comm={} child_pid={}"
    )
    path = trace(
        fork.format("wl", 70, "wl pid=4", 71),
        fork.format("wl", 71, "wl", 72),
        fork.format("x", 9, "x", 4),
        *(f"thread_noise: a:{pid} start {pid}.000000000 duration 10 ns" for pid in (4, 70, 71, 72)),
    )
    assert read_osnoise(path, workload=[70]).pid.tolist() == [4]


def test_names_of_more_than_15_characters_are_cut_as_the_kernel_does(trace):
    path = trace("thread_noise: a_long_program_:70 start 1.000000000 duration 10 ns")
    assert read_osnoise(path, workload="a_long_program_name").empty


def test_the_end_is_the_time_stamp_not_start_plus_duration(trace):
    """A thread that ran 100 µs with 60 µs of interrupts in it: duration 40, end at 100."""
    path = trace(
        "irq_noise: a:1 start 0.999000000 duration 1000 ns",
        "thread_noise: kw:4 start 1.000000000 duration 40000 ns",
        stamp=None,
    )
    text = path.read_text().replace("1.000040: thread", "1.000100: thread")
    path.write_text(text)
    thread = read_osnoise(path, window=(999_000_000, 2_000_000_000)).iloc[1]
    assert (thread.start_ns, thread.duration_ns, thread.end_ns) == (1_000_000, 40_000, 1_100_000)


def test_clipping_to_the_window(trace):
    """Begins 100 before, ends 100 after; half of a net duration of 60 lies inside."""
    path = trace(
        "thread_noise: kw:4 start 1.000000000 duration 60000 ns",
        "irq_noise: a:1 start 1.000180000 duration 40000 ns",
        "irq_noise: a:1 start 1.000999000 duration 1000 ns",
    )
    path.write_text(path.read_text().replace("1.000060: thread", "1.000200: thread"))
    events = read_osnoise(path, window=(1_000_100_000, 1_000_200_000))
    assert events[["source", "start_ns", "duration_ns", "end_ns"]].values.tolist() == [
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
    lines = [
        (
            "          <idle>-0     [000] d.h..  1.000010: irq_noise: a:1 start 1.000000000"
            " duration 10000 ns"
        ),
        (
            "              wl-70    [000] d.h..  2.000010: irq_noise: a:1 start 2.000000000"
            " duration 10000 ns"
        ),
        (
            "              kw-4     [000] d.h..  3.000010: irq_noise: a:1 start 3.000000000"
            " duration 10000 ns"
        ),
        (
            "              wl-70    [000] d....  4.000010: thread_noise: wl:70 start 3.100000000"
            " duration 10000 ns"
        ),
        (
            "              kw-4     [000] d....  5.000010: thread_noise: kw:4 start 4.000010000"
            " duration 10000 ns"
        ),
        (
            "            bash-5     [000] d....  6.000010: thread_noise: bash:5 start 5.000010000"
            " duration 10000 ns"
        ),
        (
            "          <idle>-0     [000] d....  7.000010: thread_noise: swapper/0:0 start"
            " 6.000010000 duration 10000 ns"
        ),
        (
            "              kw-4     [000] d....  8.000010: thread_noise: kw:4 start 7.000010000"
            " duration 10000 ns"
        ),
    ]
    events = read_osnoise(trace(*lines), workload=[70])
    assert events.interrupted.tolist() == [
        "idle",
        "workload",
        "other",
        "workload",
        "workload",
        "idle",
    ]


@pytest.mark.parametrize("clock", ["start", "timestamp"])
def test_clocks_are_brought_together_cpu_by_cpu(tmp_path, clock):
    """The stamps of CPU 1 are 91.5 ms behind its start times and of CPU 0 2 ms ahead, with a rate
    of 20 ppm between; found from interrupts.
    """
    rng, rows = np.random.default_rng(1), []
    for cpu, offset_ns in ((0, 2_000_000), (1, -91_500_000)):
        for i in range(400):
            start, duration = 10**10 + i * 10**7, int(rng.integers(2000, 30000))
            stamp = start + duration + offset_ns + i * 200 + int(rng.integers(0, 300))
            rows.append(
                (
                    stamp,
                    cpu,
                    (
                        f"irq_noise: a:1 start {start // 10**9}.{start % 10**9:09d} duration"
                        f" {duration} ns"
                    ),
                )
            )
    path = tmp_path / "t.trace"
    path.write_text(
        HEADER
        + "".join(
            f"{'wl-70':>20} [{cpu:03d}] d.h.."
            f" {round(stamp, -3) // 10**9}.{round(stamp, -3) % 10**9 // 1000:06d}: {text}\n"
            for stamp, cpu, text in rows
        )
    )
    events = read_osnoise(path, window=(0, 2 * 10**10), window_clock=clock)
    for cpu, offset_ns in ((0, 2_000_000), (1, -91_500_000)):
        starts = events.loc[events.cpu == cpu, "start_ns"].to_numpy()
        wanted = (
            10**10
            + np.arange(400) * 10**7
            + (offset_ns + np.arange(400) * 200 if clock == "timestamp" else 0)
        )
        assert (
            np.abs(starts - wanted).max() < 12_000
        )  # pieces of 50 interrupts, 10 µs of drift each
        assert (events.end_ns - events.start_ns - events.duration_ns).max() < 12_000


def test_no_interrupt_to_tie_the_clocks(trace):
    path = trace("thread_noise: kw:4 start 1.000000000 duration 10 ns")
    with pytest.raises(InputError, match="no interrupt"):
        read_osnoise(path, window=(0, 10**10), window_clock="timestamp")
    with pytest.raises(InputError, match="window_clock"):
        read_osnoise(path, window_clock="mono")


@pytest.mark.parametrize(
    "bad",
    [
        "CPU:3 [LOST 123 EVENTS]",
        "CPU:0 [LOST EVENTS]",
        "# entries-in-buffer/entries-written: 1098/40098   #P:2",
    ],
)
def test_losses_are_refused(trace, bad):
    path = trace("irq_noise: a:1 start 1.000000000 duration 10 ns")
    path.write_text(path.read_text() + bad + "\n")
    with pytest.raises(LostEvents, match="line 4"):
        read_osnoise(path)


def test_a_header_without_loss_is_fine(trace):
    header = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 40098/40098   #P:2\n"
    assert (
        len(read_osnoise(trace("irq_noise: a:1 start 1.000000000 duration 10 ns", header=header)))
        == 1
    )


@pytest.mark.parametrize(
    "line, message",
    [
        ("# osnoise is tainted!", "distrusts"),
        (
            "            wl-1       [000] d....   1.000001: 0xffffffff81a: Negative duration!",
            "distrusts",
        ),
        (
            (
                "            wl-1       [000] d....   1.000001: irq_noise: a:1 start 1.000000000"
                " duration 18446744072104321024 ns"
            ),
            "impossible time",
        ),
        (
            (
                "            wl-1       [000] d....   1.000001: irq_noise: a:1 start"
                " 99999999999.000000000 duration 5 ns"
            ),
            "impossible time",
        ),
        (
            "            wl-1       [000] d....   1.000001: irq_noise: a:1 start 1.000000000 durat",
            "damaged",
        ),
        (
            (
                "            wl-1       [000] d....   1.000001: irq_noise: a:1 start 1.00000000"
                " duration 5 ns"
            ),
            "damaged",
        ),
        (
            (
                "            wl-1       [000] d....   1.000001: thread_noise: start 1.000000000"
                " duration 5 ns"
            ),
            "damaged",
        ),
        ("            wl-1       [000] d....   1.00", "damaged"),
        ("something else", "damaged"),
    ],
)
def test_bad_lines_are_named(trace, line, message):
    path = trace("irq_noise: a:1 start 1.000000000 duration 10 ns", line)
    with pytest.raises(InputError, match=f"(?s){message}.*run.trace, line 4"):
        read_osnoise(path)


def test_a_truncated_last_line(trace):
    path = trace(
        "irq_noise: a:1 start 1.000000000 duration 10 ns",
        "sample_threshold: start 2.000000000 duration 9123 ns interference 1",
        end="",
    )
    with pytest.raises(InputError, match="(?s)truncated last line.*line 4"):
        read_osnoise(path)


@pytest.mark.parametrize("content", [b"", b"hello", b"\n\n", b"\x1f\x8b\x08", b"\x00" * 100])
def test_what_is_no_trace(tmp_path, content):
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(InputError, match=str(path)):
        read_osnoise(path)


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_osnoise(tmp_path / "none")


def test_an_empty_window(trace):
    with pytest.raises(InputError, match="window"):
        read_osnoise(trace("irq_noise: a:1 start 1.000000000 duration 10 ns"), window=(5, 5))


def test_packed_and_plain_are_the_same(trace, tmp_path):
    path = trace("irq_noise: a:1 start 1.000000000 duration 10 ns")
    packed = tmp_path / "run.trace.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    pd.testing.assert_frame_equal(read_osnoise(path), read_osnoise(packed))


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


def test_the_burner_is_found_in_the_disturbed_run(data):
    """Run 3 was disturbed by a SCHED_FIFO burner; osnoise knows it as `burn` (0.37 s under
    emulation).
    """
    events = read_osnoise(data / "osnoise-run-003.trace.gz", workload="wl_omp")
    burn = events[events.source == "burn"]
    assert burn.duration_ns.sum() > 100_000_000 and set(burn.kind) == {"thread"}
    assert (
        not (events.source == "wl_omp").any() and not events.source.str.startswith("swapper").any()
    )


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
