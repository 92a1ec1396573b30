"""24 campaigns one after another in one process: nothing grows."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..processes import REPOSITORY

SOAK = """
import gc, json, os, sys, threading
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.faults.child import Holds, noise
from tests.faults.matrix import groups, instances
from nbhelpers.measurement import Campaign, Cell, metrics
from nbhelpers.workloads import program

def resident_kib():
    rows = Path("/proc/self/status").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith("VmRSS"))

def seen():
    gc.collect()
    shm = Path(f"/dev/shm/noisebook-scratch-{os.geteuid()}")
    return {
        "descriptors": len(os.listdir("/proc/self/fd")), "threads": threading.active_count(),
        "resident_kib": resident_kib(),
        "in memory": len(list(shm.glob("*"))) if shm.exists() else 0,
        "groups": len(groups()), "instances": len(instances()),
        "children": len(os.listdir("/proc/self/task")),
    }

for number in range(24):
    held = Holds()
    accompanied = (held, noise(), *metrics("software", "scheduler"))
    cell = Cell("a", program("sleep 0.02"), attachments=accompanied)
    Campaign(Path(sys.argv[1]) / str(number), [cell], 3).run()
    held.close()
    print(json.dumps(seen()), flush=True)
"""


@pytest.mark.long
@pytest.mark.timeout(280)
@pytest.mark.usefixtures("binaries")
@pytest.mark.skipif(os.geteuid() != 0, reason="a setting is changed, which takes root")
def test_24_campaigns_in_one_process_leave_nothing_behind(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SOAK, tmp_path, REPOSITORY],
        capture_output=True,
        text=True,
        env=os.environ
        | {"PYTHONPATH": str(REPOSITORY), "NOISEBOOK_STATE": str(tmp_path / "state")},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == 24
    for name in ("descriptors", "threads", "in memory", "groups", "instances", "children"):
        assert len({row[name] for row in rows[3:]}) == 1, (name, [row[name] for row in rows])
    early = max(row["resident_kib"] for row in rows[3:8])
    assert rows[-1]["resident_kib"] < early + 8192, [row["resident_kib"] for row in rows]
