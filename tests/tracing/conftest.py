"""Recorded traces (see data/README.md) and an independent, event by event, account of net
durations.
"""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

from nbhelpers.tracing import (
    noise_from_tracepoints,
    read_osnoise,
    read_recording,
    write_tracepoints,
)
from nbhelpers.tracing._formats import EventFormat
from nbhelpers.tracing._ringbuffer import PageLayout, decode_pages

DATA = Path(__file__).parent / "data"
# the header of a recording that lacks nothing, has no workload and counts from beginning to end
_BEGIN_TO_END = {"on_ns": 0, "off_ns": 1 << 61, "start_ns": 0, "end_ns": 1 << 61}
WHOLE = _BEGIN_TO_END | {"run": 0, "workload_pids": [], "excluded_pids": [], "lost": 0}


@pytest.fixture(scope="session")
def data():
    return DATA


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    """Makes a recording of the raw pages in data/: `recorded("contended", workload_pids=[…])`
    returns its path.
    """

    def make(name, path=None, **header):
        known, pages = pages_of(name)
        path = path or tmp_path_factory.mktemp("recorded") / "run-000000.tracepoints.gz"
        return write_tracepoints(path, WHOLE | {"clock": "mono"} | known | header, pages)

    return make


def osnoise_file(text, **header):
    """The kernel's text behind a header with window and pids: osnoise in our own layout."""
    known = {"format": "noisebook osnoise 1", "run": 1, "excluded_pids": [], "lost": 0} | header
    return b"# noisebook: " + json.dumps(known).encode() + b"\n" + text


def pages_of(name):
    known = json.loads(gzip.decompress((DATA / f"{name}.formats.json.gz").read_bytes()))
    return known, {
        cpu: gzip.decompress((DATA / f"{name}.cpu{cpu}.raw.gz").read_bytes()) for cpu in (0, 1)
    }


_SOFTIRQ = pages_of("vm-both")[0]["formats"]["softirq_entry"]
# names of softirqs by number, as a kernel's description of its event has them
SOFTIRQS = {int(number): name for number, name in re.findall(r'{ (\d+), "(\w+)" }', _SOFTIRQ)}


def account(rows):
    """The kernel's algorithm as it is written there: one event after the other, three slots a CPU.

    `rows`: (cpu, time, event, number, name, prev_pid, next_pid, delta), sorted. Returns a sorted
    list of (cpu, kind, source or pid, start, end, net duration) without what osnoise would report
    from before it was switched on.
    """
    slots, found = {}, []
    for cpu, time, event, number, name, prev_pid, _, delta in rows:
        slot = slots.setdefault(cpu, {"irq": None, "softirq": None, "thread": None})
        base = event.removesuffix("_entry").removesuffix("_exit")
        kind = {"softirq": "softirq", "sched_switch": "thread", "nmi_handler": "nmi"}.get(
            base, "irq"
        )
        if kind == "nmi":
            found.append((cpu, "nmi", "nmi", time - delta, time, delta))
            take(slot, ("irq", "softirq", "thread"), delta)
        elif event.endswith("_entry"):
            slot[kind] = [time, 0, base, number, name]
        elif kind == "thread":
            if slot["thread"]:
                begin, taken = slot["thread"][:2]
                found.append((cpu, "thread", prev_pid, begin, time, max(time - begin - taken, 0)))
            slot["thread"] = [time, 0]
        else:
            begun, slot[kind] = slot[kind], None
            if begun and begun[2:4] == [base, number]:
                net = max(time - begun[0] - begun[1], 0)
                source = (
                    SOFTIRQS[number]
                    if kind == "softirq"
                    else begun[4]
                    if base == "irq_handler"
                    else base
                )
                found.append((cpu, kind, source, begun[0], time, net))
                take(slot, ("softirq", "thread") if kind == "irq" else ("thread",), net)
    return sorted(found, key=lambda event: (event[0], event[4], event[3], str(event[1:3])))


def take(slot, beneath, duration):
    for kind in beneath:
        if slot[kind]:
            slot[kind][1] += duration


@pytest.fixture(scope="session")
def check_agreement():
    """Check that osnoise and the tracepoints of the same seconds tell the same events; returns how
    many.
    """

    def check(trace, recording, known, pages):
        raw = read_recording(recording)[1]
        ours, osnoise = noise_from_tracepoints(raw), read_osnoise(trace, window=(0, 1 << 60))
        first_ns = raw[raw.event == "sched_switch"].groupby("cpu").time_ns.min()
        probe_ns = probe_costs_ns(known, pages)
        return sum(agreement(ours, osnoise, cpu, first_ns[cpu], probe_ns) for cpu in pages)

    return check


@pytest.fixture(scope="session")
def vm_pages():
    return pages_of("vm-both")


def agreement(ours, osnoise, cpu, first_ns, probe_ns):
    """Compare the two tables of a CPU event by event, from its first switch on: of what ran before
    osnoise knows more.

    Counts and names are equal; starts and durations lie within a few probe costs, medians and most
    (90 %): the emulator takes time between two probes now and then. What was taken from a thread
    differs by what the interrupts in it differ, so this is added back.
    """
    nested_ns, nested_end_ns, count = np.zeros(0), np.zeros(0), 0
    for kind in ("irq", "softirq", "thread"):
        a, b = (
            table[
                (table.cpu == cpu) & (table.kind == kind) & (table.end_ns > first_ns)
            ].sort_values("end_ns")
            for table in (ours, osnoise)
        )
        assert list(a.source) == list(b.source), f"CPU {cpu}: {kind} events differ"
        longer_ns = a.duration_ns.to_numpy() - b.duration_ns.to_numpy()
        if kind == "thread":
            longer_ns = longer_ns + [
                nested_ns[(nested_end_ns > start) & (nested_end_ns <= end)].sum()
                for start, end in zip(a.start_ns, a.end_ns)
            ]
        nested_ns = np.append(nested_ns, longer_ns)
        nested_end_ns = np.append(nested_end_ns, a.end_ns)
        assert np.median(np.abs(longer_ns)) <= 4 * probe_ns[kind]
        assert (
            np.median(np.abs(a.start_ns.to_numpy() - b.start_ns.to_numpy())) <= 4 * probe_ns[kind]
        )
        assert kind == "thread" or np.quantile(np.abs(longer_ns), 0.9) <= 10 * probe_ns[kind]
        count += len(a)
    return count


def probe_costs_ns(known, pages):
    """What one probe takes, by kind: from the record of osnoise's event to that of the tracepoint
    that made osnoise write it.
    """
    names = {EventFormat.parse(name, text).number: name for name, text in known["formats"].items()}
    layout, costs = PageLayout.parse(known["header_page"]), {"irq": [], "softirq": [], "thread": []}
    for data in (np.frombuffer(content, np.uint8) for content in pages.values()):
        records = decode_pages(data, layout)
        name = [names.get(number, "") for number in data.view("<u2")[records.offset // 2]]
        for written, following, gap_ns in zip(name, name[1:], np.diff(records.time_ns)):
            kind = written.removesuffix("_noise")
            if kind in costs and (
                following == "sched_switch" if kind == "thread" else following.endswith("_exit")
            ):
                costs[kind].append(gap_ns)
    return {kind: float(np.median(gaps_ns)) for kind, gaps_ns in costs.items()}
