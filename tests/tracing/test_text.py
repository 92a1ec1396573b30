"""Traces that other tools print: each shape of a line, and a real text against the recording of the
same second.
"""

import gzip
import re

import pytest

from nbhelpers.errors import InputError, LostEvents
from nbhelpers.tracing import read_tracepoints
from nbhelpers.tracing.foreign import read_foreign_traces
from nbhelpers.tracing.text import read_text, tracepoints_of_text

# As the tools print them, from the commit messages and manuals of Linux, trace-cmd and babeltrace.
LINES = {
    "perf script": "            perf   13322 [002]   233.835807:                     "
    "sched:sched_switch: perf:13322 [120] R ==> migration/2:27 [0]",
    "perf sched script": "     migration/9      67 [009] 105373.359908:                     "
    "sched:sched_switch: prev_comm=migration/9 prev_pid=67 prev_prio=0 prev_state=S ==> "
    "next_comm=swapper/9 next_pid=0 next_prio=120",
    "trace-cmd report": "       rcu_sched-14    [000]   633.847877: sched_switch:         "
    "rcu_sched:14 [120] W ==> v4l2-ctl:211 [120]",
    "trace-cmd report -R": "              ls-4734  [002] 106439.675591: sched_switch:          "
    "prev_comm=trace-cmd prev_pid=4734 prev_prio=120 prev_state=1024 next_comm=migration/2 "
    "next_pid=18 next_prio=0",
    "systrace": "          <idle>-0     (-----) [001] d..3  4751.149653: sched_switch: "
    "prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a b next_pid=2231 "
    "next_prio=98",
    "babeltrace": "[00:42:51.993131831] (+?.?????????) host sched_switch: { cpu_id = 11 }, "
    '{ pid = 50594, tid = 50605, procname = "dockerd" }, { prev_comm = "dockerd", prev_tid = 50605,'
    ' prev_prio = 20, prev_state = ( "TASK_INTERRUPTIBLE" : container = 1 ), '
    'next_comm = "python3", next_tid = 78339, next_prio = 20 }',
}
READ = {
    "perf script": [2, 233835807000, 13322, 120, 0, 27, "migration/2"],
    "perf sched script": [9, 105373359908000, 67, 0, 1, 0, "swapper/9"],
    "trace-cmd report": [0, 633847877000, 14, 120, 1, 211, "v4l2-ctl"],
    "trace-cmd report -R": [2, 106439675591000, 4734, 120, 1024, 18, "migration/2"],
    "systrace": [1, 4751149653000, 0, 120, 0, 2231, "a b"],
    "babeltrace": [11, 2571993131831, 50605, 120, 1, 78339, "python3"],
}
NAMES = ["cpu", "time_ns", "prev_pid", "prev_prio", "prev_state", "next_pid", "next_comm"]


@pytest.mark.parametrize("tool", LINES)
def test_a_switch_is_read_from_the_line_of_each_tool(tool, tmp_path):
    (tmp_path / "trace.txt").write_text(LINES[tool] + "\n")
    (read,) = tracepoints_of_text(tmp_path / "trace.txt")[NAMES].values.tolist()
    assert read == READ[tool]


def test_a_text_has_the_noise_of_the_recording_of_the_same_second(recorded, data):
    """Of compilers and a detour loop, compilers had most CPU time."""
    assert read_text(data / "contended.trace.txt.gz")[0]["program"] == "cc1"
    run, events = read_text(data / "contended.trace.txt.gz", "detour")
    assert events.attrs["cpus"] == [0, 1]
    text = gzip.decompress((data / "contended.trace.txt.gz").read_bytes()).decode()
    pids = {int(pid) for pid in re.findall(r"(?:prev|next)_comm=detour \w+_pid=(\d+)", text)}
    # it left a CPU first, so it ran since the recording began
    stamps = re.findall(r"([\d.]+): (sched_switch:.*comm=detour )?", text)
    begin, end = stamps[0][0], [stamp for stamp, own in stamps if own][-1]
    begin, end = (round(float(one) * 1e6) * 1000 for one in (begin, end))
    assert run["seconds"] == (end - begin) / 1e9
    region = {"start_ns": begin, "end_ns": end, "off_ns": 1 << 61}
    wanted = read_tracepoints(recorded("contended", workload_pids=sorted(pids), **region))
    assert len(wanted) > 500
    for kind in ("irq", "softirq", "thread"):
        ours, theirs = (one[one["kind"] == kind]["duration_ns"] for one in (events, wanted))
        assert abs(len(ours) - len(theirs)) <= 2  # at the ends, 1 µs decides
        assert abs(ours.sum() - theirs.sum()) < 1000 * len(theirs)


def test_perf_counts_the_same_events(data):
    """What `perf report --stats` prints of the recording whose `perf script` this is."""
    counts = {"sched_switch": 336, "softirq_entry": 184, "softirq_exit": 184}
    counts |= {"irq_handler_entry": 118, "irq_handler_exit": 118}
    raw = tracepoints_of_text(data / "perf-script.txt.gz")
    assert raw["event"].value_counts().to_dict() == counts


def test_a_folder_of_texts_is_runs_and_what_is_no_trace_is_refused(data, tmp_path):
    lines = gzip.decompress((data / "contended.trace.txt.gz").read_bytes())
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_bytes(lines)
    runs, events = read_foreign_traces(tmp_path, "cc1")
    assert runs["run"].tolist() == [0, 1] and runs["program"].tolist() == ["cc1", "cc1"]
    assert "cc1" not in set(events["source"]) and set(events["run"]) == {0, 1}
    (tmp_path / "b.txt").write_bytes(lines + b"CPU:1 [LOST 5 EVENTS]\n")
    with pytest.raises(LostEvents, match="b.txt"):
        read_foreign_traces(tmp_path, "cc1")
    (tmp_path / "b.txt").write_text("a-1 [000] 1.000000: sched_switch: nothing\n")
    with pytest.raises(InputError, match="unreadable sched_switch"):
        read_text(tmp_path / "b.txt")
    (tmp_path / "b.txt").write_text("no trace\n")
    with pytest.raises(InputError, match="no switch of threads"):
        read_text(tmp_path / "b.txt")
    with pytest.raises(InputError, match="no thread named 'minife'"):
        read_text(tmp_path / "a.txt", "minife")
