"""The campaign: rounds in which every node measures once, and what happens when a worker dies.

Owns the folder of a campaign over nodes: one folder a node, each a campaign by itself.
"""

import os
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from nbhelpers.errors import InputError, RunError
from nbhelpers.files import write_json
from nbhelpers.measurement import recorded_runs
from nbhelpers.progress import task
from nbhelpers.reading import read_json
from nbhelpers.workloads import Workload, as_workload

from ._task import folder_is_shared, measure_round, names_of
from .workers import submit_again

_PLAN = "nodes.json"
_POLL_S = 0.1


def measure_on_nodes(
    workers: Any,
    command: str | Sequence[str] | Workload,
    folder: str | os.PathLike,
    rounds: int = 8,
    runs: int = 3,
    *,
    metrics: Sequence[str] = (),
    start_s: float = 600.0,
    restart_s: float = 60.0,
    **keywords: Any,
) -> pd.DataFrame:
    """Measure a program on every node, in rounds; each finished run is on disk at once.

    A node measures under its measuring lock, so that nothing else of Noisebook runs there. The same
    call goes on where an earlier one stopped. A worker that dies costs its round of that node: it
    is measured again when a worker on that node is back, and finished runs stay.

    Parameters
    ----------
    workers
        A cluster of `local_workers`, `slurm_workers` or `pbs_workers`, or any Dask cluster.
    command
        A `Workload`, or a command for `nbhelpers.program`. It must exist on all nodes; the variable
        NOISEBOOK_NODE has the node's name.
    folder
        On a file system that all nodes share.
    rounds
        How often every node measures: what the comparison rests on.
    runs
        Runs of a node in a round.
    metrics
        Names of metric layers; see `nbhelpers.measurement.metrics`.
    start_s
        How long to wait for the workers that were asked for; then those that are there measure.
    restart_s
        How long to wait for the worker of a node to come back; then the node is left out.
    keywords
        Keywords of `nbhelpers.program`, for a command.

    Returns
    -------
    DataFrame
        Runs of all nodes, with the columns of `recorded_on_nodes`; `attrs["notes"]` says what was
        lost and what was done again.

    Raises
    ------
    InputError
        No round or run, or a node does not see the folder.
    RunError
        No worker came, or no node measured anything.
    """
    if rounds < 1 or runs < 1:
        raise InputError(f"{rounds} rounds of {runs} runs", fix="at least one of each")
    from distributed import Client

    workload = as_workload(command, **keywords)
    place = Path(folder).absolute()
    place.mkdir(parents=True, exist_ok=True)
    _keep_runs_a_round(place, runs)
    with Client(workers) as client:
        notes = _wait_for_workers(client, _expected(workers), start_s)
        _check_shared(client, place)
        layers = tuple(metrics)
        going = _Rounds(client, workers, workload, place, runs, layers, restart_s, notes=notes)
        with task("measuring on nodes", rounds * len(going.nodes), "rounds of a node") as shown:
            for number in range(1, rounds + 1):
                going.measure(number, lambda: shown.update(1))
    return _recorded(place, going.notes)


def recorded_on_nodes(folder: str | os.PathLike) -> pd.DataFrame:
    """Return the runs of all nodes of a campaign.

    Parameters
    ----------
    folder
        The folder in which `measure_on_nodes` stored the runs.

    Returns
    -------
    DataFrame
        One row a run: the columns of `nbhelpers.recorded_runs`, and `node` and `node_round` (from
        0). The machine, doctor and calibration of a node lie in ``FOLDER/NODE/node.json``.

    Raises
    ------
    RunError
        Nothing was recorded there.
    """
    return _recorded(Path(folder), [])


def _recorded(folder: Path, notes: list[str]) -> pd.DataFrame:
    tables = [
        recorded_runs(path.parent).assign(node=path.parent.name)
        for path in sorted(folder.glob("*/runs.jsonl"))
    ]
    if not tables:
        raise RunError(
            "no node measured anything",
            where=folder,
            why="; ".join(notes),
            fix="run the same command on one node: noisebook run -- COMMAND",
        )
    table = pd.concat(tables, ignore_index=True)
    table["node_round"] = table["round"] // read_json(folder / _PLAN)["runs"]
    table.attrs = {**tables[0].attrs, "notes": notes}
    return table


def _keep_runs_a_round(folder: Path, runs: int) -> None:
    """A round has the same number of runs always, or rounds could not be compared."""
    path = folder / _PLAN
    before = read_json(path)["runs"] if path.exists() else runs
    if before != runs:
        raise InputError(
            f"{runs} runs a round, where earlier rounds have {before}",
            where=folder,
            fix=f"runs={before}, or another folder",
        )
    write_json(path, {"runs": runs})


def _expected(workers: Any) -> int:
    plan = getattr(workers, "plan", None) or getattr(workers, "workers", None)
    return max(1, len(plan or ()))


def _wait_for_workers(client: Any, expected: int, start_s: float) -> list[str]:
    """Wait until all are there; return a note where some did not come."""
    try:
        client.wait_for_workers(expected, timeout=start_s)
        return []
    except TimeoutError:
        here = len(client.nthreads())
    if not here:
        raise RunError(
            f"no worker came within {start_s:g} s",
            why="the jobs are still in the queue, or ended as they began",
            fix="look at the queue (squeue, qstat) and the jobs' output; wait longer by start_s=",
        )
    return [f"{expected - here} of {expected} workers did not come within {start_s:g} s"]


def _check_shared(client: Any, folder: Path) -> None:
    token = f".token-{secrets.token_hex(8)}"
    (folder / token).touch()
    try:
        seen = client.run(folder_is_shared, token, str(folder), on_error="ignore")
    finally:
        (folder / token).unlink()
    blind = sorted(address for address, sees in seen.items() if not sees)
    if blind:
        raise InputError(
            f"{len(blind)} of {len(seen)} workers do not see the campaign's folder",
            where=folder,
            why="every finished run is written there at once",
            fix="name a folder on a file system that all nodes share",
        )


@dataclass
class _Rounds:
    """Sends each node its rounds, and sends them again where a worker died."""

    client: Any
    cluster: Any
    workload: Workload
    folder: Path
    runs: int
    metrics: tuple[str, ...]
    restart_s: float
    nodes: dict[str, str] = field(default_factory=dict)  # name -> address of its worker
    notes: list[str] = field(default_factory=list)
    names: dict[str, tuple[str, str]] = field(default_factory=dict)  # address -> host, own name
    shared: set[str] = field(default_factory=set)  # machines with several workers

    def __post_init__(self) -> None:
        self.nodes = self._found()

    def measure(self, number: int, on_done: Any) -> None:
        """One round: all nodes at the same time, until each has measured or was left out."""
        waiting = {node: self._submit(node, number) for node in self.nodes}
        while waiting:
            found = self._found()
            for node, future in list(waiting.items()):
                if future.done():
                    self._settle(node, future)
                    del waiting[node]
                    on_done()
                elif found.get(node) != self.nodes[node]:
                    waiting.update(self._again(node, number, waiting.pop(node)))
            time.sleep(_POLL_S)

    def _found(self) -> dict[str, str]:
        """The workers that are there, by the name of their node; where several share a machine,
        with the worker's own name.
        """
        known = self.client.nthreads()
        new = [address for address in known if address not in self.names]
        if new:
            self.names |= self.client.run(names_of, workers=new, on_error="ignore")
        here = {address: self.names[address] for address in known if address in self.names}
        hosts = [host for host, _ in here.values()]
        self.shared |= {host for host in hosts if hosts.count(host) > 1}
        return {
            _file_name(f"{host}-{own}" if host in self.shared else host): address
            for address, (host, own) in here.items()
        }

    def _submit(self, node: str, number: int) -> Any:
        import cloudpickle

        job = cloudpickle.dumps((self.workload, number * self.runs, self.metrics))
        return self.client.submit(
            measure_round,
            job,
            str(self.folder / node),
            node,
            workers=[self.nodes[node]],
            allow_other_workers=False,
            pure=False,
            retries=0,
        )

    def _settle(self, node: str, future: Any) -> None:
        """A round that failed on a node takes the node out, and no other."""
        why = future.result() if future.status == "finished" else str(future.exception())
        if why:
            self.notes.append(f"{node} was left out: {why.strip()}")
            del self.nodes[node]

    def _again(self, node: str, number: int, future: Any) -> dict[str, Any]:
        """The worker of a node is gone: its round goes to the one that comes back there."""
        future.cancel()
        host, own = self.names[self.nodes[node]]
        until = time.monotonic() + self.restart_s
        while time.monotonic() < until:
            submit_again(self.cluster, own, host)
            address = self._found().get(node)
            if address and address != self.nodes[node]:
                self.notes.append(f"the worker of {node} died in round {number}; measured again")
                self.nodes[node] = address
                return {node: self._submit(node, number)}
            time.sleep(_POLL_S)
        self.notes.append(f"{node} was left out: its worker died in round {number}")
        del self.nodes[node]
        return {}


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", text)
