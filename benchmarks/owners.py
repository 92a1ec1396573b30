"""Planted owners: does the critical path name who had the time that a slow run took longer?

    .venv/bin/python benchmarks/owners.py [--runs 12] [--cases hog,stop] [--programs pthreads]

Two programs of two threads, one with OpenMP and one with pthreads. Each case strikes every fourth
run. From outside: a process `backupd` has a CPU, a stop signal, a CPU quota of the control group
(version 1). From within, in the pthreads program: a sleep, more work, another thread of its own on
the same CPU. In a program of parallel regions on CPU 0 (fixed): 40 % more calls, and a neighbour
on CPU 1 that copies memory. Printed for each case: the planted owner, how many of the struck runs
have it as their largest, and the largest ones. A run's excess is what it has beyond the mean of
the runs that were not struck. The plain rival (`by states`) adds up the states of all threads,
without a path; it counts as right where the part is, for it has no names. As root. On a busy
machine what others took is in it, too.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread

import pandas as pd
from _c_programs import build

from nbhelpers.account import owned_ms
from nbhelpers.measurement import Attachment, Campaign, Cell, finished, metrics
from nbhelpers.speed import SpeedProbe
from nbhelpers.tracing import Tracer
from nbhelpers.tracing.campaign import STATES as OF_THREADS
from nbhelpers.tracing.campaign import each_recording
from nbhelpers.workloads import nbody, program

WORKLOADS = Path(__file__).parents[1] / "workloads"
EVERY = 4
SECONDS = 0.15
HOG = f"""import os, time
os.sched_setaffinity(0, {{0}}); os.nice(-15); end = time.time() + {SECONDS}
while time.time() < end: sum(range(9000))
"""
GROUP = Path("/sys/fs/cgroup/cpu")


def hog(folder: Path, pid: int) -> None:
    """A process that others call backupd, on CPU 0."""
    link = folder / "backupd"
    if not link.exists():
        link.symlink_to(sys.executable)
    subprocess.run(["./backupd", "-S", "-c", HOG], cwd=folder, check=True)


def stop(folder: Path, pid: int) -> None:
    """A stop signal, and the one that ends it."""
    time.sleep(0.03)
    os.kill(pid, signal.SIGSTOP)
    time.sleep(SECONDS)
    os.kill(pid, signal.SIGCONT)


def neighbour(folder: Path, pid: int) -> None:
    """Copies memory on CPU 1 while the program computes."""
    (ready, told), (go, given) = os.pipe(), os.pipe()
    os.write(given, time.monotonic_ns().to_bytes(8, sys.byteorder))
    places = {"NOISEBOOK_READY_FD": str(told), "NOISEBOOK_GO_FD": str(go)}
    words = ["taskset", "-c", "1", folder / "neighbour", "bandwidth", "1", "0"]
    process = subprocess.Popen(words, env=os.environ | places, pass_fds=(told, go))
    time.sleep(3 * SECONDS)
    process.kill()
    process.wait()
    for number in (ready, told, go, given):
        os.close(number)


def built_fixed_work(folder: Path) -> Path:
    """The program of chunks of benchmarks/ruler.py; each chunk is a parallel region."""
    words = ["gcc", "-std=gnu11", "-O2", "-fopenmp", f"-I{WORKLOADS}", "-o"]
    source = Path(__file__).with_name("fixed_work.c")
    subprocess.run([*words, folder / "fixed_work", source], check=True)
    return folder / "fixed_work"


def limited(pid: int) -> None:
    """A third of a CPU for both threads."""
    group = GROUP / f"planted-{pid}"
    group.mkdir()
    (group / "cpu.cfs_quota_us").write_text("30000")
    (group / "cgroup.procs").write_text(str(pid))


@dataclass(frozen=True)
class Case:
    """`beside` acts from outside; else the program reads the case's name. `owner`: (part, who);
    `only`: the program it is planted in, or into.
    """

    owner: tuple[str, str]
    beside: Callable[[Path, int], None] | None = None
    only: str = ""

    def strikes(self, kind: str) -> bool:
        """Whether it can be planted in a program."""
        return kind == self.only if self.only else kind == "pthreads" or bool(self.beside)


CASES = {
    "hog": Case(("runnable", "backupd"), hog),
    "stop": Case(("stopped", "stop signal"), stop),
    "quota": Case(("quota", "quota"), lambda folder, pid: None),
    "sleep": Case(("asleep", "own timer")),
    "more": Case(("computing", "the program")),
    "second": Case(("runnable", "own thread second")),
    "calls": Case(("work", "the program"), only="fixed"),
    "neighbour": Case(("slower", "the same calls"), neighbour, only="fixed"),
}
FIXED = "[ $(cat {1}) = calls ] && n=420 || n=300; exec {0} triad $n"
STATES = {"running": "computing", "sleeping": "waiting"}


class Planted(Attachment):
    """Strikes the runs whose number ends a group of EVERY, and writes down which."""

    def __init__(self, folder: Path, name: str):
        self.folder, self.name, self.count = folder, name, 0
        self.thread: Thread | None = None

    @property
    def strikes(self) -> bool:
        """Whether the run that comes or goes on is struck."""
        return self.count % EVERY == EVERY - 1

    def before(self, workload: object) -> None:
        """The program's own cause."""
        (self.folder / "cause").write_text(self.name if self.strikes else "nothing")

    def armed(self, pid: int) -> None:
        """The quota, before counters are opened on the program's group."""
        self.pid = pid
        if self.strikes and self.name == "quota":
            limited(pid)

    def released(self, t0_ns: int) -> None:
        beside = CASES[self.name].beside
        if self.strikes and beside:
            self.thread = Thread(target=beside, args=(self.folder, self.pid))
            self.thread.start()

    def after(self, run: dict) -> dict:
        """Whether it was struck."""
        if self.thread:
            self.thread.join()
        group = GROUP / f"planted-{self.pid}"
        if group.exists():
            group.rmdir()
        self.thread, struck = None, self.strikes
        self.count += 1
        return {"struck": struck}


def excess(wide: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """What each struck run has beyond the mean of the others."""
    struck = runs.set_index("run")["struck"].reindex(wide.index).astype(bool)
    return wide[struck] - wide[~struck].mean()


def by_threads(folder: Path, runs: pd.DataFrame) -> pd.DataFrame:
    """The plain way: the states of all threads added up, ms."""
    states = pd.concat([one[OF_THREADS] for one in each_recording(folder, runs)])
    states["ms"] = (states["end_ns"] - states["start_ns"]) / 1e6
    part = states["state"].replace(STATES)
    return states.pivot_table("ms", "run", part, "sum", fill_value=0.0)


def one_case(name: str, kind: str, folder: Path, count: int) -> dict:
    """A row of the table that is printed."""
    workload = OPENMP
    if kind == "pthreads":
        workload = program([str(build(folder, "owners_victim")), str(folder / "cause")])
    elif kind == "fixed":
        build(folder, "neighbour")
        script = FIXED.format(built_fixed_work(folder), folder / "cause")
        workload = replace(program(["sh", "-c", script]), cpus=(0,))
    records = [Tracer(folder / "traces"), SpeedProbe(folder / "speed")]
    cell = Cell("planted", workload, attachments=(*records, Planted(folder, name)))
    runs = finished(
        Campaign(folder / "runs", [cell], count, attachments=metrics("throttling")).run()
    )
    found = excess(owned_ms(folder / "traces", runs, folder / "speed"), runs)
    rival = excess(by_threads(folder / "traces", runs), runs)
    part, owner = CASES[name].owner
    largest = found.idxmax(axis=1)
    ranked = found.mean().sort_values(ascending=False).head(3)
    longer_ms = 1e3 * excess(runs.set_index("run")[["region_seconds"]], runs)["region_seconds"]
    return {
        "case": name,
        "program": kind,
        "planted": f"{part}: {owner}",
        "right": sum(one[0] == part and one[1].startswith(owner) for one in largest),
        "of": len(found),
        "by states": sum(one == part for one in rival.idxmax(axis=1)),
        "longer_ms": round(longer_ms.mean(), 1),
        "largest": ", ".join(f"{ms:.0f} ms {of[0]}: {of[1]}" for of, ms in ranked.items()),
    }


OPENMP = nbody(3000, 40)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--programs", default="pthreads,openmp,fixed")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.cases.split(","):
        for kind in arguments.programs.split(","):
            if name == "quota" and not GROUP.exists():
                print("quota is left out: no cpu controller of version 1 here")
            elif CASES[name].strikes(kind):
                with tempfile.TemporaryDirectory() as folder:
                    rows.append(one_case(name, kind, Path(folder), arguments.runs))
                    print(rows[-1], flush=True)
    print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    main()
