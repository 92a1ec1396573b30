"""How fast the text of the kernel's osnoise tracer is read: line by line and by columns, in turn.

python benchmarks/osnoise_text.py [EVENTS]

The text is a recorded trace (tests/tracing/data), its noise lines repeated. `wall` counts seconds,
`CPU` those of all threads; the other load of the machine makes the first longer.
"""

import gzip
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import pandas as pd  # noqa: E402

from nbhelpers.tracing import osnoise  # noqa: E402
from tests.tracing.line_by_line import no_usual_lines  # noqa: E402

RECORDED = Path(__file__).parents[1] / "tests/tracing/data/osnoise-run-003.trace.gz"
WAYS = {"line by line": no_usual_lines, "by columns": osnoise.blocks_of_lines}


def recorded_text(events: int) -> bytes:
    """A recorded trace whose noise lines are repeated; times repeat, too."""
    lines = gzip.decompress(RECORDED.read_bytes()).splitlines(keepends=True)
    noise = [line for line in lines if b"_noise: " in line and b"start 0.0" not in line]
    return b"".join(lines[:11] + noise * (1 + events // len(noise)))


def read(path: Path, way: str) -> tuple[float, float, pd.DataFrame]:
    """Seconds, CPU seconds, table."""
    osnoise.blocks_of_lines = WAYS[way]
    begin, cpu = time.perf_counter(), time.process_time()
    table = osnoise.read_osnoise(path, window=(1, 10**15))
    return time.perf_counter() - begin, time.process_time() - cpu, table


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        path.write_bytes(recorded_text(events))
        tables = {}
        for way in (*WAYS, *WAYS):
            wall, cpu, tables[way] = read(path, way)
            count = len(tables[way])
            print(
                f"{way:<14} {count:>9} events  wall {wall:6.2f} s {count / wall:>10,.0f}/s"
                f"  CPU {cpu:6.2f} s {count / cpu:>10,.0f}/s  load {os.getloadavg()[0]:.1f}"
            )
    pd.testing.assert_frame_equal(*tables.values())
    print(f"the tables are equal; {len(os.sched_getaffinity(0))} CPUs")


if __name__ == "__main__":
    main()
