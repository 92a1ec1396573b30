"""Injection after injection: no process, no descriptor, no memory, no setting is left behind.

Two hundred in the C core; through the API as many as fit into a test of seconds, or
NOISEBOOK_SOAK=1000.
"""

import gc
import os
import subprocess
import threading
from pathlib import Path

import pytest

from nbhelpers.injection import Injector
from nbhelpers.machine import online_cpus, settings
from nbhelpers.measurement import run_once
from nbhelpers.measurement._orphans import children
from nbhelpers.workloads import program

from .helpers import build_with_injector, descriptors, make_config, put_back

REPOSITORY = Path(__file__).parents[2]
COUNT = int(os.environ.get("NOISEBOOK_SOAK", "32"))
CPUS = online_cpus()[:2]
PLACEMENTS = ["roam", "origin", "faithful", dict(zip(CPUS, reversed(CPUS)))]
WORKLOADS = [
    program("true", start="exec"),
    program("sleep 0.004", start="exec"),
    program(["sh", "-c", "sleep 0.003 & exit 0"], start="exec"),
    program("false", start="exec"),
]


@pytest.mark.long
def test_many_injections_of_the_c_core(tmp_path):
    wanted = 200
    build_with_injector(REPOSITORY / "tests/injection/soak.c", tmp_path / "soak")
    command = [tmp_path / "soak", str(wanted)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stderr) == (0, "")
    count, injected = map(int, done.stdout.split())
    assert count == wanted and injected > 5 * wanted


def shared_memories() -> int:
    gc.collect()
    return sum("/dev/zero" in line for line in Path("/proc/self/maps").read_text().splitlines())


def standing() -> dict:
    """What an injection might leave behind."""
    return {
        "processes": children(),
        "descriptors": descriptors(),
        "shared memories": shared_memories(),
        "threads": threading.active_count(),
        "throttling": put_back(),
        "affinity": os.sched_getaffinity(0),
        "policy": os.sched_getscheduler(0),
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "journals": own_journals(),
    }


def own_journals() -> list[str]:
    return [path.name for path in settings.state_folder().glob(f"{os.getpid()}-*")]


def soak_config():
    """Real-time and ordinary events on two CPUs; the last one is never reached."""
    rows = [
        (cpu, kind, 0.2 + 0.5 * at, 0.15)
        for cpu in CPUS
        for at, kind in enumerate(["irq", "thread", "softirq", "thread"])
    ]
    return make_config(rows + [(CPUS[0], "irq", 500, 1)])


@pytest.mark.long
@pytest.mark.timeout(60 + COUNT)
def test_injections_through_the_api_with_every_placement():
    config, done, injected = soak_config(), 0, 0
    run_once(WORKLOADS[0], [])  # what the first run of a process opens for good
    before = standing()
    while done < COUNT:
        for placement in PLACEMENTS:
            injector = Injector(config, placement)
            for workload in WORKLOADS:
                injected += run_once(workload, [injector], run=done)["injected_events"]
                done += 1
            injector.close()
        del injector
        assert standing() == before, f"after {done} injections"
    assert injected > done
