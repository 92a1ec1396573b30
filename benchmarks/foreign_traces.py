"""Traces that others published: is each read or refused, why, and how long does it take?

    python benchmarks/foreign_traces.py TRACE …

A TRACE is what `noisebook whatif` takes: a GOAL file, a folder or file of MPI calls, of liballprof,
OTF2 (make extra EXTRA=formats) or Kineto (EXTRA=training). Printed a line each: ranks, operations,
messages, seconds to read it, and to simulate it on the reference's network; or what the error says.
"""

import sys
import time

from nbhelpers.errors import NoisebookError
from nbhelpers.simulation import simulate
from nbhelpers.simulation.what_if import read_trace


def line(path: str) -> str:
    begin = time.perf_counter()
    try:
        schedule, notes = read_trace(path)
        read_s = time.perf_counter() - begin
        ideal_ms = simulate(schedule).makespan_ns / 1e6
    except NoisebookError as error:
        took_s = time.perf_counter() - begin
        return (
            f"refused   {took_s:7.2f} s  {error.what}{f' ({error.where})' if error.where else ''}"
        )
    took_s = time.perf_counter() - begin - read_s
    size = f"{schedule.ranks:,} ranks, {len(schedule):,} operations, {schedule.messages:,} messages"
    return f"read      {read_s:7.2f} s  {size}; simulated {took_s:.2f} s: {ideal_ms:.4g} ms"


if __name__ == "__main__":
    for word in sys.argv[1:]:
        print(f"{word}\n  {line(word)}", flush=True)
