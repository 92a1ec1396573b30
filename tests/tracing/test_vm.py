"""In an emulated PC whose kernel has osnoise: the osnoise tracer and our tracepoints record the
same seconds and tell the same events.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nbhelpers.tracing import read_osnoise, write_tracepoints
from nbhelpers.workloads import binary_folder
from tests.emulated import emulated_pc

from .conftest import WHOLE

RUN = emulated_pc()
pytestmark = [
    pytest.mark.vm,
    pytest.mark.skipif(
        RUN is None,
        reason=(
            "no emulated PC with osnoise: set NOISEBOOK_OSNOISE_VM to the program that runs a"
            " command in it"
        ),
    ),
    pytest.mark.skipif(
        shutil.which("qemu-system-x86_64") is None, reason="qemu-system-x86_64 is not installed"
    ),
]

PROGRAM = """
#include <pthread.h>
#include <time.h>
static volatile double sum;
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
static void *work(void *end)
{
    while (now() < *(double *)end)
        for (int i = 0; i < 1000; i++)
            sum += i;
    return 0;
}
int main(void)
{
    double end = now() + 1.0;
    pthread_t t;
    pthread_create(&t, 0, work, &end);
    work(&end);
    return pthread_join(t, 0);
}
"""

# The guest has no Python worth waiting for: it only records, and hands the kernel's own bytes over.
GUEST = """
set -e
mount -t tracefs nodev /sys/kernel/tracing 2>/dev/null || true
cd /sys/kernel/tracing
echo 0 > tracing_on; echo 8192 > buffer_size_kb; echo local > trace_clock
echo NO_OSNOISE_WORKLOAD > osnoise/options; echo osnoise > current_tracer; echo 0 > tracing_on
events="osnoise irq_vectors irq/irq_handler_entry irq/irq_handler_exit"
events="$events irq/softirq_entry irq/softirq_exit sched/sched_switch nmi/nmi_handler"
for e in $events; do
  [ -e events/$e/enable ] && echo 1 > events/$e/enable
done
echo > trace; echo 1 > tracing_on; %s; sleep 0.2; echo 0 > tracing_on
cat trace > /tmp/job/trace
for c in 0 1; do
  cat per_cpu/cpu$c/stats >> /tmp/job/stats
  cat per_cpu/cpu$c/trace_pipe_raw > /tmp/job/cpu$c & reader=$!
  while [ "$(sed -n 's/^entries: //p' per_cpu/cpu$c/stats)" != 0 ]; do sleep 0.2; done
  sleep 0.5; kill $reader
done
cat events/header_page > /tmp/job/header_page
for e in "irq/*" "irq_vectors/*" sched/sched_switch "nmi/*" "osnoise/*"; do
  cat events/$e/format
done > /tmp/job/formats
"""


# The emulated processor is too old for NumPy's wheels; recording needs none, so in the guest they
# are left out.
RECORDER = """
import json, os, sys
from unittest.mock import MagicMock
for name in ("numpy", "pandas", "pandas.api", "pandas.api.types"):
    sys.modules[name] = MagicMock()
sys.path.insert(0, {repository!r})
from nbhelpers.measurement import run_once
from nbhelpers.tracing._recorders import OsnoiseRecorder
from nbhelpers.workloads import program
recorder = OsnoiseRecorder("/tmp/job/traces")
try:
    row = run_once(program([{program!r}], start="exec"), [recorder], run=7)
    during = open("/sys/kernel/tracing/osnoise/options").read()
finally:
    recorder.close()
after = open("/sys/kernel/tracing/osnoise/options").read()
instances = os.listdir("/sys/kernel/tracing/instances")
print(json.dumps({{"row": row, "during": during, "after": after, "instances": instances}}))
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "two.c").write_text(PROGRAM)
    subprocess.run(
        ["cc", "-O1", "-pthread", "-o", tmp_path / "two", tmp_path / "two.c"], check=True
    )
    return tmp_path / "two"


@pytest.fixture
def guest(tmp_path):
    """Runs a command in the emulated PC; what it writes to /tmp/job is in the folder `job`."""
    (tmp_path / "job").mkdir()

    def run(command):
        environment = {**os.environ, "JOB": str(tmp_path / "job")}
        done = subprocess.run(
            [RUN, "-s", "240", "--", command], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    return run


@pytest.mark.timeout(280)
def test_osnoise_and_tracepoints_agree_event_by_event(tmp_path, program, guest, check_agreement):
    (tmp_path / "guest.sh").write_text(GUEST % program)
    guest(f"bash {tmp_path / 'guest.sh'}")
    job = tmp_path / "job"
    assert not re.search(r"(overrun|dropped events): [1-9]", (job / "stats").read_text())
    known, pages = _recording(job)
    header = WHOLE | {"clock": "local"} | known
    recording = write_tracepoints(tmp_path / "run-000000.tracepoints.gz", header, pages)
    assert check_agreement(job / "trace", recording, known, pages) > 300


def _recording(job):
    texts = re.split(r"^(?=name: )", (job / "formats").read_text(), flags=re.MULTILINE)
    formats = {
        text.partition("\n")[0].removeprefix("name: "): text for text in texts if text.strip()
    }
    return {"header_page": (job / "header_page").read_text(), "formats": formats}, {
        cpu: (job / f"cpu{cpu}").read_bytes() for cpu in (0, 1)
    }


@pytest.mark.timeout(280)
@pytest.mark.skipif(
    not (binary_folder() / "nbstart").exists(), reason="workloads are not built: make env"
)
def test_our_recorder_of_osnoise(tmp_path, program, guest):
    """A whole run by the start protocol, trace_clock mono while osnoise keeps to its own: read back
    in the time of the run.
    """
    (tmp_path / "record.py").write_text(
        RECORDER.format(repository=str(Path(__file__).parents[2]), program=str(program))
    )
    told = json.loads(
        guest(
            f"NOISEBOOK_STATE=/tmp/job/state {sys.executable} -B {tmp_path / 'record.py'}"
        ).splitlines()[-1]
    )
    row = told["row"]
    assert row["status"] == "ok" and row["trace_lost"] == 0 and told["instances"] == []
    assert (
        "NO_OSNOISE_WORKLOAD" in told["during"].split()
        and "OSNOISE_WORKLOAD" in told["after"].split()
    )
    path = tmp_path / "job/traces/run-000007.osnoise.gz"
    header = json.loads(gzip.decompress(path.read_bytes()).partition(b"\n")[0].partition(b": ")[2])
    events = read_osnoise(path, run=7)
    assert header["start_ns"] == row["start_ns"] and (events.groupby("cpu").size() > 50).all()
    assert events.start_ns.min() >= 0 and events.end_ns.max() <= row["end_ns"] - row["start_ns"]
    assert (
        not events.pid.isin(header["workload_pids"] + header["excluded_pids"]).any()
        and not (events.source == "two").any()
    )
    assert (events[events.kind == "irq"].interrupted == "workload").sum() > 20
