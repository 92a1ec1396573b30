"""`python -m noisebook_nodes.agent PROGRAM …`: what the launcher starts in the place of each rank.

One rank of a node is its agent: it makes the node's injector ready and lets the node's ranks begin.
The others become the program at once.
"""

import contextlib
import hashlib
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ._link import GROUPS, VARIABLE, Link

if TYPE_CHECKING:  # the ranks that only follow need none of it
    from nbhelpers.injection import Injector

    from ._meeting import Meeting

LEAD_NS = 5_000_000
COME_S = 60.0
_LOCAL_RANK = (
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "SLURM_LOCALID",
    "PALS_LOCAL_RANKID",
)
_LOCAL_SIZE = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PALS_LOCAL_SIZE")


def _number(names: tuple[str, ...]) -> int | None:
    return next((int(os.environ[name]) for name in names if os.environ.get(name)), None)


def _slurm_size() -> int:
    """Tasks on this node, from "4(x2),3" and the node's number."""
    counts: list[int] = []
    for part in os.environ.get("SLURM_STEP_TASKS_PER_NODE", "1").split(","):
        count, _, times = part.rstrip(")").partition("(x")
        counts += [int(count)] * int(times or 1)
    return counts[min(int(os.environ.get("SLURM_NODEID", 0)), len(counts) - 1)]


def place() -> tuple[int, int, int]:
    """Group of ranks on this machine (0, but for trials), number in it, and its size."""
    rank, size = _number(_LOCAL_RANK) or 0, _number(_LOCAL_SIZE) or _slurm_size()
    share = max(1, size // int(os.environ.get(GROUPS, 1)))
    return rank // share, rank % share, share


def _meeting_point(group: int) -> Path:
    word = hashlib.sha256(os.environ[VARIABLE].encode()).hexdigest()[:16]
    # the word is a secret of this job, and only a file of this user's is read
    name = f"noisebook-node-{os.geteuid()}-{word}-{group}"
    return Path("/dev/shm") / name  # nosec B108


def _become(command: list[str], env: dict[str, str]) -> None:
    os.execvpe(command[0], command, {**os.environ, **env})


def _is_ours(point: Path) -> bool:
    """What stands in it becomes the program's environment: nobody else may have written it."""
    with contextlib.suppress(OSError):
        found = os.lstat(point)
        return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
    return False


def follow(point: Path, command: list[str]) -> None:
    """Become the program when the node's agent has said where its ranks meet."""
    end = time.monotonic() + COME_S
    while not _is_ours(point):
        if time.monotonic() > end:
            raise SystemExit("noisebook: this node's agent did not come")
        time.sleep(0.01)
    lines = point.read_text().splitlines()
    _become(command, dict(line.split("=", 1) for line in lines))


def lead(point: Path, ranks: int, command: list[str]) -> int:
    """Be the node's agent; the program's exit status."""
    from ._meeting import Meeting

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what is held is given back
    host, port, word = os.environ[VARIABLE].rsplit(":", 2)
    link = Link(socket.create_connection((host, int(port)), timeout=COME_S))
    link.say(word=word)
    given = link.hear()
    injector = _injector(str(given.get("noise", "")))
    row: dict[str, object] = {"host": socket.gethostname(), "ranks": ranks, "status": "ok"}
    with Meeting(ranks) as meeting:
        new = point.with_suffix(".new")
        new.write_text("\n".join(f"{name}={value}" for name, value in meeting.env.items()))
        new.rename(point)
        child = subprocess.Popen(command, env={**os.environ, **meeting.env})
        try:
            _run(child, meeting, injector, link, row)
        finally:
            point.unlink(missing_ok=True)
            if child.poll() is None:
                child.send_signal(signal.SIGKILL)
            if injector:
                injector.close()
    link.say(**{name: _plain(value) for name, value in row.items()})
    link.close()
    return child.wait()


def _injector(text: str) -> "Injector | None":
    from nbhelpers.injection import Injector
    from nbhelpers.noise import NoiseConfig

    if not text:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "noise.json"
        path.write_text(text)
        return Injector(NoiseConfig.read(path))


def _run(
    child: subprocess.Popen,
    meeting: "Meeting",
    injector: "Injector | None",
    link: Link,
    row: dict[str, object],
) -> None:
    from nbhelpers.workloads import Region, program

    if injector:
        injector.before(program(["true"], region=Region("mpi")))
    if not meeting.all_came(COME_S, lambda: child.poll() is None):
        row["status"] = "not all ranks came to the end of MPI_Init"
        return
    if injector:
        injector.armed(child.pid)
    link.say(state="ready")
    if not link.hear().get("go"):
        row["status"] = "the head is gone"
        return
    t0_ns = time.monotonic_ns() + LEAD_NS
    meeting.begin(t0_ns)
    if injector:
        injector.released(t0_ns)
    status = child.wait()
    row |= {"t0_ns": t0_ns, "status": "ok" if status == 0 else f"exit {status}"}
    if status == 0:
        row |= _region(meeting)
    if injector:
        row |= injector.after({"run": 0, **row})


def _region(meeting: "Meeting") -> dict[str, object]:
    from ._meeting import NoRegion

    try:
        times = meeting.times(5.0)
    except NoRegion as error:
        return {"status": f"no region: {error}"}
    seconds = (times.end_ns - times.start_ns) * 1e-9
    return {"start_ns": times.start_ns, "end_ns": times.end_ns, "region_seconds": seconds}


def _plain(value: object) -> object:
    return value.item() if hasattr(value, "item") else value


def main() -> None:
    """Be the agent of the node, or one of its other ranks."""
    group, rank, ranks = place()
    point, command = _meeting_point(group), sys.argv[1:]
    if rank:
        follow(point, command)
    sys.exit(lead(point, ranks, command))


if __name__ == "__main__":
    main()
