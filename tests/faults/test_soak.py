"""24 campaigns one after another in one process: nothing grows."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..processes import REPOSITORY

SOAK = """
import gc, json, os, sys
from pathlib import Path
from tests.faults.child import Holds, noise
from tests.faults.matrix import groups, instances
from nbhelpers.measurement import Campaign, Cell, metrics
from nbhelpers.workloads import program

for number in range(24):
    held = Holds()
    cell = Cell("a", program("sleep 0.02"), attachments=(held, noise(), *metrics("software")))
    Campaign(Path(sys.argv[1]) / str(number), [cell], 3).run()
    held.close()
    gc.collect()
    seen = {name: len(os.listdir(f"/proc/self/{name}")) for name in ("fd", "task")}
    seen |= {"groups": len(groups()), "instances": len(instances())}
    seen["scratch"] = len(list(Path("/dev/shm").glob("noisebook-*")))
    rows = Path("/proc/self/status").read_text().splitlines()
    seen["kib"] = next(int(row.split()[1]) for row in rows if row.startswith("VmRSS"))
    print(json.dumps(seen), flush=True)
"""


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.timeout(280)
@pytest.mark.usefixtures("binaries")
@pytest.mark.skipif(os.geteuid() != 0, reason="a setting is changed, which takes root")
def test_24_campaigns_in_one_process_leave_nothing_behind(tmp_path: Path) -> None:
    places = {"PYTHONPATH": str(REPOSITORY), "NOISEBOOK_STATE": str(tmp_path / "state")}
    done = subprocess.run(
        [sys.executable, "-c", SOAK, tmp_path],
        capture_output=True,
        text=True,
        env=os.environ | places,
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == 24, done.stderr[-2000:]
    for name in rows[0].keys() - {"kib"}:
        assert len({row[name] for row in rows[3:]}) == 1, (name, [row[name] for row in rows])
    early = max(row["kib"] for row in rows[3:8])
    assert rows[-1]["kib"] < early + 8192, [row["kib"] for row in rows]
