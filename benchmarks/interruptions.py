"""Interrupts traced and injected runs at random moments, and counts what is left on the machine.

    sudo .venv/bin/python benchmarks/interruptions.py [how many of each] [seed]

Some 3 s each. Four ends: Ctrl-C (SIGINT to the process group), SIGTERM, SIGKILL of the harness,
SIGKILL of the harness and its guardians; each with tracefs mounted beforehand and not, in turn.
Afterwards there may be no tracefs instance of ours, no changed sysctl, no mount that was not
there, no process; after the fourth end this is asked once the next run is over. That next run has
to succeed at once, and leave no journal. It works in mount and network namespaces of its own and
with a state folder of its own, so that it neither sees nor disturbs other measurements, except for
the CPUs.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from nbhelpers.injection import Injector
from nbhelpers.injection.overheads import measure_overheads
from nbhelpers.machine import guardian, kernel, settings, state_folder
from nbhelpers.measurement import Campaign, Cell
from nbhelpers.noise import NoiseConfig
from nbhelpers.tracing import Tracer
from nbhelpers.workloads import nbody

TRACEFS = "/sys/kernel/tracing"
TTL = Path("/proc/sys/net/ipv4/ip_default_ttl")  # a sysctl that a network namespace has for itself
PATIENCE_S = 20.0
WELL, IN_FORCE = "nothing left", "while something was changed"
ENDS = ("Ctrl-C", "SIGTERM", "SIGKILL", "SIGKILL of all")
INSIDE = "NOISEBOOK_INTERRUPTIONS"


# ---- the harness ---------------------------------------------------------------------------------


def campaign(folder: Path) -> Campaign:
    """Two runs of 0.1 s with both tracer and injector."""
    events = pd.DataFrame(
        {
            "run": 0,
            "cpu": 0,
            "kind": "irq",
            "source": "test",
            "start_ns": [10_000_000, 40_000_000],
            "duration_ns": [200_000, 300_000],
        }
    )
    config = NoiseConfig.from_events(events)
    cell = Cell(
        "both",
        nbody(2000, 20),
        config.digest,
        (Tracer(folder, source="tracepoints"), Injector(config)),
    )
    return Campaign(None, [cell], 2)


def harness(folder: Path, once: bool) -> None:
    """What is interrupted: campaigns under a changed sysctl, one after the other."""
    while True:
        with settings.Change([{"kind": "write", "path": str(TTL), "new": "63"}]):
            campaign(folder).run()
        if once:
            return


def forked(folder: Path, once: bool = False) -> int:
    """Start the harness as a process group of its own, with nothing left to import."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    with contextlib.suppress(BaseException):
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if not once:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            harness(folder, once)
            status = 0
        except Exception as error:
            print(f"{type(error).__name__}: {error}", flush=True)
    os._exit(status)


# ---- what is left --------------------------------------------------------------------------------


def processes() -> list[int]:
    """Living processes with our state folder in their environment, but for this one."""
    mark, found = f"NOISEBOOK_STATE={os.environ['NOISEBOOK_STATE']}".encode(), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if (
                mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                and int(pid) != os.getpid()
                and kernel.start_time(int(pid)) is not None
            ):
                found.append(int(pid))
    return found


def guardians() -> list[int]:
    return [pid for pid in processes() if guardian.__file__.encode() in _words(pid)]


def _words(pid: int) -> list[bytes]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return []


def standing(pids: set[int]) -> dict[str, object]:
    """All that a run may leave behind; `pids` are of the harnesses so far."""
    names = os.listdir(f"{kernel.file_system(TRACEFS)}/instances")
    instances = [one for one in names if (kernel.owner_of(one) or {"pid": 0})["pid"] in pids]
    rows = Path("/proc/self/mounts").read_text().splitlines()
    mounts = [row for row in rows if row.split()[1].startswith("/sys/")]
    return {
        "instance": instances,
        "setting": TTL.read_text().strip(),
        "mount": mounts,
        "process": processes(),
        "journal": [name for name in os.listdir(state_folder()) if "journal" in name],
    }


def left(before: dict, pids: set[int], but: str = "") -> list[str]:
    """The kinds of things that differ from before, `but` one of them, once they had the time to
    go.
    """
    limit = time.monotonic() + PATIENCE_S
    while True:
        now = standing(pids)
        kinds = [kind for kind in before if now[kind] != before[kind] and kind != but]
        if not kinds or time.monotonic() > limit:
            for kind in kinds:
                print(f"  left: {kind}: {now[kind]}", flush=True)
            return kinds
        time.sleep(0.05)


# ---- a trial -------------------------------------------------------------------------------------


def end(pid: int, how: str) -> None:
    """Interrupt the harness."""
    if how == "Ctrl-C":
        os.killpg(pid, signal.SIGINT)
    elif how == "SIGTERM":
        os.kill(pid, signal.SIGTERM)
    elif how == "SIGKILL":
        os.kill(pid, signal.SIGKILL)
    else:
        os.kill(pid, signal.SIGSTOP)  # it must not start another guardian while we look
        for watch in guardians():
            os.kill(watch, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)


def trial(
    how: str, mounted: bool, after_s: float, folder: Path, pids: set[int]
) -> tuple[bool, list[str]]:
    """Interrupt a harness, start the next; returns whether something was changed at that moment,
    and what went wrong.
    """
    set_mounted(mounted)
    before = standing(pids)
    pid = forked(folder)
    pids.add(pid)
    time.sleep(after_s)
    in_force = bool(guardian.journals(str(state_folder())))
    end(pid, how)
    wrong = [] if ended(pid) else ["it did not end"]
    # Who is killed before the guardian stands has changed nothing yet, and leaves a journal for
    # the next start.
    wrong += [] if how == ENDS[-1] else left(before, pids, but="journal")
    following = forked(folder, once=True)
    pids.add(following)
    wrong += [] if os.waitpid(following, 0)[1] == 0 else ["the next run failed"]
    return in_force, wrong + left(before, pids)


def ended(pid: int) -> bool:
    limit = time.monotonic() + PATIENCE_S
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        if time.monotonic() > limit:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return False
        time.sleep(0.01)
    return True


def set_mounted(wanted: bool) -> None:
    while os.path.ismount(TRACEFS) and not wanted:
        subprocess.run(["umount", TRACEFS], check=True)
    if wanted and not os.path.ismount(TRACEFS):
        subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACEFS], check=True)


def measure(count: int, seed: int) -> Counter:
    """Trials of all kinds in a random order; counts (end, mounted, what went wrong or "well")."""
    rng, counts = np.random.default_rng(seed), Counter()
    wanted = [
        (how, mounted)
        for how in ENDS
        for mounted in (True, False)
        for _ in range((count + mounted) // 2)
    ]
    pids: set[int] = set()
    with tempfile.TemporaryDirectory() as folder:
        measure_overheads()
        span_s = whole_s(Path(folder), pids)
        for done, number in enumerate(rng.permutation(len(wanted))):
            print(f"\r{done} of {len(wanted)} ", end="", file=sys.stderr, flush=True)
            how, mounted = wanted[number]
            after_s = rng.uniform(0, 1.2 * span_s)
            in_force, wrong = trial(how, mounted, after_s, Path(folder), pids)
            if wrong:
                print(
                    f"{how}, tracefs {'mounted' if mounted else 'not mounted'}, "
                    f"after {after_s:.3f} s: {', '.join(wrong)}",
                    flush=True,
                )
            counts.update(
                (how, mounted, kind)
                for kind in [*(sorted(set(wrong)) or [WELL]), *[IN_FORCE] * in_force]
            )
    return counts


def whole_s(folder: Path, pids: set[int]) -> float:
    """How long a harness takes that nobody interrupts: the second, since the first one finds cold
    caches.
    """
    for _ in range(2):
        begun = time.monotonic()
        pid = forked(folder, once=True)
        pids.add(pid)
        if os.waitpid(pid, 0)[1]:
            raise SystemExit("the harness fails without being interrupted")
    return time.monotonic() - begun


def report(counts: Counter) -> int:
    """Print a row for each end; returns how many kinds of things went wrong."""
    for how in ENDS:
        for mounted in (True, False):
            told = ", ".join(
                f"{kind}: {number}"
                for (*key, kind), number in sorted(counts.items())
                if key == [how, mounted]
            )
            print(
                f"{how:<15} tracefs {'mounted' if mounted else 'not mounted':<12} {told or 'none'}"
            )
    return sum(number for (*_, kind), number in counts.items() if kind not in (WELL, IN_FORCE))


def in_namespaces() -> int:
    """Run this script again where mounts, network sysctls and state are its own; returns its exit
    status.
    """
    with tempfile.TemporaryDirectory() as state:
        command = [
            "unshare",
            "--mount",
            "--net",
            "--propagation",
            "private",
            sys.executable,
            *sys.argv,
        ]
        return subprocess.run(
            command, env=os.environ | {INSIDE: "yes", "NOISEBOOK_STATE": state}
        ).returncode


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument(
        "count", type=int, nargs="?", default=25, help="interruptions of each kind"
    )
    arguments.add_argument("seed", type=int, nargs="?", default=1)
    asked = arguments.parse_args()
    if os.geteuid():
        print("needs root: tracing and mounting")
        return 0
    if INSIDE not in os.environ:
        return in_namespaces()
    begun = time.monotonic()
    wrong = report(measure(asked.count, asked.seed))
    print(
        f"{len(ENDS) * asked.count} interruptions in {time.monotonic() - begun:.0f} s, "
        f"{wrong} with something left or failed"
    )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
