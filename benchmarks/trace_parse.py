"""How fast traces are read: raw tracepoints and osnoise text, each against a plain Python loop over
the same bytes.

python benchmarks/trace_parse.py [--events 1000000]
"""

import argparse
import struct
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np  # noqa: E402
from _timing import timed

from nbhelpers.tracing import (
    noise_from_tracepoints,
    read_osnoise,
    read_recording,
    write_tracepoints,
)

HEADER_PAGE = """\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
"""
COMMON = (
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\tfield:int"
    " common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
)
FIELDS = {
    "irq_vectors/local_timer_entry": (165, "\tfield:int vector;\toffset:8;\tsize:4;\tsigned:1;\n"),
    "irq_vectors/local_timer_exit": (164, "\tfield:int vector;\toffset:8;\tsize:4;\tsigned:1;\n"),
    "sched/sched_switch": (
        372,
        "".join(
            f"\tfield:{kind} {name};\toffset:{offset};\tsize:{size};\tsigned:1;\n"
            for kind, name, offset, size in (
                ("char", "prev_comm[16]", 8, 16),
                ("pid_t", "prev_pid", 24, 4),
                ("int", "prev_prio", 28, 4),
                ("long", "prev_state", 32, 8),
                ("char", "next_comm[16]", 40, 16),
                ("pid_t", "next_pid", 56, 4),
                ("int", "next_prio", 60, 4),
            )
        ),
    ),
}


def pages_of(events: int) -> bytes:
    """Full pages of a timer interrupt (entry and exit) and a switch in turn: 24 of each fill a
    page.
    """
    timer = np.dtype(
        [("head", "u4"), ("type", "u2"), ("flags", "u2"), ("pid", "i4"), ("vector", "i4")]
    )
    switch = np.dtype(
        [
            ("head", "u4"),
            ("type", "u2"),
            ("flags", "u2"),
            ("pid", "i4"),
            ("prev_comm", "S16"),
            ("prev_pid", "i4"),
            ("prev_prio", "i4"),
            ("prev_state", "i8"),
            ("next_comm", "S16"),
            ("next_pid", "i4"),
            ("next_prio", "i4"),
        ]
    )
    triple = np.dtype([("entry", timer), ("exit", timer), ("switch", switch)])
    page = np.dtype(
        [
            ("time", "u8"),
            ("commit", "u8"),
            ("triples", triple, 24),
            ("rest", "u1", 4080 - 24 * triple.itemsize),
        ]
    )
    pages = np.zeros(events // 72, page)
    pages["time"] = np.arange(len(pages), dtype=np.uint64) * np.uint64(72_000_000)
    pages["commit"] = 24 * triple.itemsize
    for name, number, kind in (
        ("entry", 165, timer),
        ("exit", 164, timer),
        ("switch", 372, switch),
    ):
        part = pages["triples"][name]
        part["head"], part["type"] = 1_000_000 << 5 | (kind.itemsize - 4) // 4, number
        if name != "switch":
            part["vector"] = 236
    told = pages["triples"]["switch"]
    order = np.arange(told.size).reshape(told.shape) % 40
    for name in (
        "entry",
        "exit",
        "switch",
    ):  # who runs is who is switched out next: no switch is missing
        pages["triples"][name]["pid"] = order
    for side, pid in (("prev", order), ("next", (order + 1) % 40)):
        told[f"{side}_pid"], told[f"{side}_prio"] = pid, 120
        told[f"{side}_comm"] = np.array([f"kworker/0:{i}".encode() for i in range(40)])[pid]
    return pages.tobytes()


def loop(data: bytes) -> int:
    """The rival: unpack the same records one by one with `struct` into tuples, no computation."""
    switch, timer, found = struct.Struct("<HHi16siiq16sii"), struct.Struct("<HHii"), []
    for begin in range(0, len(data), 4096):
        time_ns, commit = struct.unpack_from("<QQ", data, begin)
        at, end = begin + 16, begin + 16 + commit
        while at < end:
            (head,) = struct.unpack_from("<I", data, at)
            length, time_ns = (head & 31) * 4, time_ns + (head >> 5)
            found.append((time_ns, *(timer if length == 12 else switch).unpack_from(data, at + 4)))
            at += 4 + length
    return len(found)


def osnoise_text(events: int) -> bytes:
    line = (
        "          <idle>-0       [000] d.h..  {0:6d}.904076: irq_noise: local_timer:236 start"
        " {0}.903923959 duration 146709 ns\n"
    )
    return ("# tracer: osnoise\n" + "".join(line.format(1 + i) for i in range(events))).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    events = parser.parse_args().events
    with tempfile.TemporaryDirectory() as folder:
        data = pages_of(events)
        formats = {
            name: f"name: {name.partition('/')[2]}\nID: {number}\nformat:\n{COMMON}{fields}"
            for name, (number, fields) in FIELDS.items()
        }
        path = write_tracepoints(
            Path(folder) / "run-000000.tracepoints.gz",
            {"lost": 0, "formats": formats, "header_page": HEADER_PAGE},
            {0: data},
        )
        read_s, (_, raw) = timed(3, read_recording, path)
        noise_s, noise = timed(3, noise_from_tracepoints, raw, [3])
        loop_s, count = timed(3, loop, data)
        report("raw tracepoints: unpack and decode", count, read_s, loop_s)
        report("raw tracepoints: net durations", count, noise_s, loop_s)
        report("raw tracepoints: both", count, read_s + noise_s, loop_s)
        text = Path(folder) / "trace"
        text.write_bytes(osnoise_text(events // 5))
        read_s, table = timed(3, read_osnoise, text)
        loop_s, _ = timed(3, lambda: [line.split() for line in text.read_text().splitlines()])
        report("osnoise text", len(table), read_s, loop_s)


def report(what: str, events: int, seconds: float, rival_s: float) -> None:
    print(
        f"{what:<38} {events:>9} events  {events / seconds / 1e6:6.2f} million/s  ratio to the"
        f" bound of 1 million/s: {events / seconds / 1e6:5.2f}  to a plain loop:"
        f" {rival_s / seconds:5.2f}"
    )


if __name__ == "__main__":
    main()
