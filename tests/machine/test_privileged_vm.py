"""What a container may lack, in an emulated PC whose root has every right, and whose kernel has
osnoise: the helper, started as sudo starts it (by root, with a socket of the user's).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nbhelpers.places import shipped
from nbhelpers.workloads import binary_folder
from tests.emulated import emulated_pc

RUN = emulated_pc()
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        RUN is None,
        reason="no emulated PC with osnoise: set NOISEBOOK_OSNOISE_VM to the program that runs a"
        " command in it",
    ),
]
GUEST = """
import ctypes, json, os, socket, subprocess, sys
sys.path.insert(0, {machine!r})
import privileged
ours, its = socket.socketpair()
if not os.fork():
    os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
    mine, helpers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    socket.send_fds(its, [b"x"], [helpers.fileno()])
    helpers.close()
    def ask(*words):
        mine.send(" ".join(map(str, words)).encode())
        return mine.recv(4096).decode()
    found = dict(before=ask("watch", "show"), set=ask("watch", "NO_OSNOISE_WORKLOAD"))
    found["during"] = ask("watch", "show")
    found["back"] = ask("watch", "OSNOISE_WORKLOAD")
    found["after"] = ask("watch", "show")
    found["other"] = ask("watch", "PANIC_ON_STOP")
    found["mount"] = ask("write", "/proc/sys/kernel/sched_rt_runtime_us", "-1")
    found["throttling"] = open("/proc/sys/kernel/sched_rt_runtime_us").read()
    found["put_back"] = ask("write", "/proc/sys/kernel/sched_rt_runtime_us", "950000")
    def fifo():
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            return "yes"
        except PermissionError:
            return "no"
    found["fifo_before"] = fifo()
    found["realtime"] = ask("realtime", os.getpid())
    found["fifo"] = fifo()
    its.send(json.dumps(found).encode())
    os._exit(0)
_, fds, *_ = socket.recv_fds(ours, 1, 1)
helper = subprocess.Popen([{helper!r}], stdin=fds[0])
os.close(fds[0])
print(ours.recv(1 << 16).decode())
"""


def guest_prints(folder: Path, script: str) -> dict | list:
    """What a script in the emulated PC prints last, as JSON."""
    (folder / "job").mkdir()
    (folder / "guest.py").write_text(script)
    assert RUN is not None
    done = subprocess.run(
        [RUN, "-s", "240", "--", f"{sys.executable} -B {folder / 'guest.py'}"],
        env={**os.environ, "JOB": str(folder / "job")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.timeout(280)
def test_a_user_sets_osnoise_and_takes_real_time_priority(tmp_path: Path) -> None:
    machine = str(shipped() / "nbhelpers/machine")
    helper = str(binary_folder().resolve() / "noisebook-priv")
    found = guest_prints(tmp_path, GUEST.format(machine=machine, helper=helper))
    assert "OSNOISE_WORKLOAD" in found["before"].split()
    assert "NO_OSNOISE_WORKLOAD" in found["during"].split()
    assert found["after"] == found["before"]
    assert found["other"].startswith("no 33")
    assert found["throttling"].strip() == "-1" and found["put_back"].startswith("ok")
    assert (found["fifo_before"], found["fifo"]) == ("no", "yes")
