"""How fast schedules are read, written and generated, beside what the machine can do: counting the
lines of a file, copying the arrays.

    python benchmarks/goal.py [--ranks 16384] [--all]

MB/s of a packed file are those of its text. --all: the text of a million ranks, too (1.6 GB, on
disk for a while). The reference's tools need 49 s to generate the text of a dissemination among
1,048,576 ranks (1.59 GB), and 75 s to make the binary of it; ours is beside that rate. These
figures were recorded on a machine of this kind, and are not run again here.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np  # noqa: E402
from _timing import timed

from nbhelpers.simulation import Schedule, applications, patterns
from nbhelpers.simulation.goal import read_goal, write_goal

REFERENCE_MB_S = {"written": 1590 / 49, "read": 1590 / 75}
FILES = ("x.goal", "x.goal.gz")
PATTERNS = {
    "dissemination": lambda p: patterns.dissemination(p, 8),
    "binomial broadcast": lambda p: patterns.binomial_bcast(p, 8),
    "recursive doubling": lambda p: patterns.recursive_doubling_allreduce(p, 8),
    "the same, P + 5 ranks": lambda p: patterns.recursive_doubling_allreduce(p + 5, 8),
    "halo, 3-D, 27 points": lambda p: patterns.halo(patterns.grid(p, 3), 8, 27),
    "loop of 1000, 128 ranks": lambda p: patterns.loop(
        patterns.dissemination(128, 8), 1000, 10_000
    ),
    "a tenth of POP, 256 ranks": lambda p: applications.pop((16, 16), 0.1),
}


def copy(schedule):
    for array in vars(schedule).values():
        if isinstance(array, np.ndarray):
            array.copy()


def lines(path):
    """CPU seconds of `wc -l`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["wc", "-l", path], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def peak_bytes(code):
    """Peak memory of a Python process that runs this, beyond that of one that only imports."""
    program = (
        "import re; from nbhelpers.simulation import patterns, read_goal\n{}\n"
        "print(int(re.search(r'VmHWM:\\s+(\\d+)',"
        " open('/proc/self/status').read())[1]) * 1024)"
    )
    peaks = [
        int(
            subprocess.run(
                [sys.executable, "-c", program.format(what)],
                cwd=Path(__file__).parents[1],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
        for what in ("", code)
    ]
    return peaks[1] - peaks[0]


def beside(megabytes, write_s, read_s):
    """How much faster than the reference's tools."""
    written = megabytes / write_s / REFERENCE_MB_S["written"]
    read = megabytes / read_s / REFERENCE_MB_S["read"]
    print(
        f"           written {written:.1f} x as fast as the reference generates it, read {read:.1f}"
        " x as fast as it makes its binary"
    )


def million():
    """The text that takes the reference two minutes."""
    schedule = patterns.dissemination(1 << 20, 8)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.goal"
        spent = []
        for function, given in ((write_goal, (schedule, path)), (read_goal, (path,))):
            begin = time.process_time()
            function(*given)
            spent.append(time.process_time() - begin)
        megabytes = path.stat().st_size / 1e6
        print(
            f"1,048,576 ranks: {megabytes:.0f} MB of text, written in {spent[0]:.1f} s (reference"
            f" 49 s), read in {spent[1]:.1f} s (reference 75 s)"
        )
        beside(megabytes, *spent)


def nbytes(schedule: Schedule) -> int:
    """Bytes of all arrays of a schedule together."""
    return sum(each.nbytes for each in vars(schedule).values() if hasattr(each, "nbytes"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=1 << 14)
    parser.add_argument("--all", action="store_true", help="a million ranks' text, too")
    options = parser.parse_args()
    ranks = options.ranks
    schedule = patterns.dissemination(ranks, 8)
    copy_s, _ = timed(2, copy, schedule)
    print(
        f"{schedule}, {nbytes(schedule) / 1e6:.0f} MB; a copy of its arrays: {copy_s:.3f} s of CPU"
        " time"
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in FILES:
            path = Path(folder) / name
            write_s, _ = timed(2, write_goal, schedule, path)
            read_s, again = timed(2, read_goal, path)
            size, bound = path.stat().st_size, lines(path)
            if name != "x.goal.gz":  # the packed one: MB/s of its text
                text = size
            memory = peak_bytes(f"read_goal({str(path)!r})")
            print(
                f"{name:<10} {size / 1e6:7.1f} MB   written {text / 1e6 / write_s:7.1f} MB/s"
                f" {len(schedule) / 1e6 / write_s:6.1f} M op/s   read {text / 1e6 / read_s:7.1f}"
                f" MB/s {len(schedule) / 1e6 / read_s:6.1f} M op/s, {read_s / bound:5.1f} x wc -l,"
                f" peak {memory / nbytes(again):4.2f} x the schedule"
            )
            if name == "x.goal":
                beside(text / 1e6, write_s, read_s)
            path.unlink()
    for name, build in PATTERNS.items():
        build_s, made = timed(2, build, ranks)
        copy_s, _ = timed(2, copy, made)
        print(
            f"{name:<26} {len(made) / 1e6:6.2f} M op   {build_s:6.2f} s "
            f" {len(made) / 1e6 / build_s:6.1f} M op/s   {build_s / copy_s:6.1f} x a copy of its"
            " arrays"
        )
    if options.all:
        million()
    print(
        "dissemination: peak memory"
        f" {peak_bytes(f's = patterns.dissemination({ranks}, 8)') / nbytes(schedule):.2f} x the"
        " schedule"
    )


if __name__ == "__main__":
    main()
