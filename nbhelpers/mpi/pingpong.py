"""Ping-pong families between two real ranks: the times that LogGOPS parameters are fitted to.

Owns the starting and reading of workloads/mpi/pingpong.c; the fit is
`nbhelpers.simulation.loggops_fit`.
"""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from ..errors import InputError, NoisebookError
from ..progress import task
from ..reading import read_csv
from ._installation import installation

COLUMNS = ("family", "bytes", "messages", "delay_ns", "round", "ns", "send_ns")
_REPETITIONS, _BURST = 3, 10  # the second in messages


def measure_pingpong(
    sizes: Sequence[int] = (), *, rounds: int = 10, timeout_s: float = 300.0
) -> pd.DataFrame:
    """Measure families of round trips between two ranks of this machine.

    Parameters
    ----------
    sizes
        Bytes; none: 15 from 1 B to 1 MiB.
    rounds
        Every round takes all families and sizes three times each, in an order of its own.
    timeout_s
        Seconds after which the ranks are ended.

    Returns
    -------
    DataFrame
        A row a repetition: `family` (roundtrip, burst, delayed, late, copy, sum, cold, made),
        `bytes`, `messages`, `delay_ns` (between messages; late: before the receive; cold: of the
        computation before), `round`, `ns` (late: of the send), `send_ns` (in all send calls
        together). attrs: `mpi`.

    Raises
    ------
    Unavailable
        No MPI is here; the message says `make mpi`.
    NoisebookError
        The ranks failed, or took too long; nothing of them is left.
    """
    mpi = installation()
    with tempfile.TemporaryDirectory(prefix="noisebook-") as folder:
        file = Path(folder) / "times"
        numbers = [rounds, _REPETITIONS, _BURST, 0, *sizes]  # 0: the seed of the orders
        command = [*mpi.command(2), str(mpi.programs / "pingpong"), str(file), *map(str, numbers)]
        with task("ping-pong between two ranks", urgent=True):
            _run(command, timeout_s)
        times = read_pingpong(file)
    times.attrs = {"mpi": str(mpi)}
    return times


def read_pingpong(path: str | Path) -> pd.DataFrame:
    """The table that the program wrote.

    Parameters
    ----------
    path
        Path of the file that the program wrote.

    Raises
    ------
    InputError
        It is not such a file, or cut short.
    """
    times = read_csv(path, "table of a ping-pong", sep=" ")
    if tuple(times) != COLUMNS or times.isna().any().any():
        raise InputError("not a table of a ping-pong, or cut short", where=path)
    return times


def _run(command: Sequence[str], timeout_s: float) -> None:
    """An error with the last lines if it failed."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, errors="replace") as ranks:
        try:
            output, errors = ranks.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise NoisebookError(
                f"the ping-pong was not done after {timeout_s:g} s",
                where=" ".join(command),
                fix="fewer rounds or sizes, or a larger timeout_s",
            ) from None
        finally:
            _end(ranks)
    if ranks.returncode:
        said = [line for line in (errors or output).splitlines() if line.strip("- ")][:3]
        raise NoisebookError(
            f"the ping-pong failed (status {ranks.returncode})",
            where=" ".join(command),
            why=" / ".join(said) or "it said nothing",
        )


def _end(launcher: subprocess.Popen) -> None:
    """A launcher that is asked to end takes its ranks with it; one that is killed does not."""
    if launcher.poll() is None:
        launcher.terminate()
        try:
            launcher.wait(10)
        except subprocess.TimeoutExpired:
            launcher.kill()
            launcher.wait()
