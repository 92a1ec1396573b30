"""What a worker does: a round of runs on its node, in a process of its own.

Owns the files that are recorded of a node. The process ends with its worker, however that ends,
and puts back what its runs had changed.
"""

import ctypes
import fcntl
import os
import signal
import socket
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

NODE = "NOISEBOOK_NODE"  # the node's name, for the program that is measured
_SET_PARENT_DEATH_SIGNAL = 1  # prctl(2)
_MOST_WORDS = 2000  # of what a failed round printed


def names_of(dask_worker: Any) -> tuple[str, str]:
    """The name of the node that a worker runs on, and the worker's own.

    Where Slurm has a name for the node it is that one: `--exclude` and `scontrol` know it.
    """
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname(), str(dask_worker.name)


def folder_is_shared(token: str, folder: str) -> bool:
    """Whether a worker sees the campaign's folder."""
    return (Path(folder) / token).is_file()


def measure_round(job: bytes, folder: str, node: str) -> str:
    """Runs on a worker: start the process that measures; return "" or why it failed.

    Parameters
    ----------
    job
        A pickled `(workload, runs, metrics)`.
    folder
        Folder of the node.
    node
        Its name.
    """
    done = subprocess.run(
        [sys.executable, "-m", "noisebook_nodes._task", folder],
        input=job,
        capture_output=True,
        env={**os.environ, NODE: node},
        check=False,
    )
    return "" if done.returncode == 0 else done.stderr.decode(errors="replace")[-_MOST_WORDS:]


def run(folder: Path, job: bytes) -> None:
    """The process that measures: describe the node once, then measure what is missing."""
    import cloudpickle

    from nbhelpers.measurement import Campaign, Cell, metrics

    _end_with_parent()
    workload, runs, layers = cloudpickle.loads(job)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".task", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # the process of a worker that died may still be cleaning
        _describe(folder)
        cells = [Cell(workload.name, workload)]
        Campaign(folder, cells, runs, attachments=metrics(*layers)).run()


def _describe(folder: Path) -> None:
    """What the node can do, what it is, and what the injector costs on it."""
    from nbhelpers.files import write_json
    from nbhelpers.injection.overheads import measure_overheads
    from nbhelpers.machine import describe, doctor

    if (folder / "node.json").exists():
        return
    found = doctor()
    write_json(
        folder / "node.json",
        {
            "host": socket.gethostname(),
            "machine": describe().to_dict(),
            "doctor": [asdict(check) for check in found.checks],
            "replaced": found.replaced(),
            "calibration": asdict(measure_overheads()),
        },
    )


def _end_with_parent() -> None:
    """The death of the worker ends this process in order: the program is killed, settings are put
    back.
    """

    def stop(number, frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)


if __name__ == "__main__":  # the process that measures on a node; a worker starts it
    from nbhelpers.errors import NoisebookError

    try:
        run(Path(sys.argv[1]), sys.stdin.buffer.read())
    except NoisebookError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
