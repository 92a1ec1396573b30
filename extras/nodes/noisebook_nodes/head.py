"""The head: starts the program by the site's launcher, and lets the nodes' agents begin together.

Owns the table of what the nodes observed.
"""

import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from nbhelpers.errors import RunError
from nbhelpers.noise import NoiseConfig

from ._link import GROUPS, VARIABLE, Link
from .launchers import Spread


def run_on_nodes(
    spread: Spread,
    command: Sequence[str],
    noise: NoiseConfig | Sequence[NoiseConfig] | None = None,
    *,
    timeout_s: float = 300.0,
    host: str | None = None,
) -> pd.DataFrame:
    """Run an MPI program on several nodes, each with an injector of its own, one time.

    The launcher starts every rank through an agent. On each node one agent makes the injector
    ready, and all ranks of the node wait at the end of their MPI_Init. When all nodes are ready
    they are told to begin; the timed region goes to the begin of MPI_Finalize.

    Parameters
    ----------
    spread
        The launcher, nodes, and ranks on each.
    command
        The program's words. Noisebook must lie under the same path on all nodes.
    noise
        A config for all nodes (co-scheduled noise), one for each, or None.
    timeout_s
        Time limit of the whole run, in seconds.
    host
        Address at which the nodes reach this machine; None: its name, or this machine's own
        (127.0.0.1) where there is one node.

    Returns
    -------
    pandas.DataFrame
        One row a node: `node`, `host`, `ranks`, `status`, `start_ns` and `end_ns` (CLOCK_MONOTONIC
        of that node), `region_seconds`, and the injector's columns.

    Raises
    ------
    RunError
        The launcher failed, a node's agent did not come, or time ran out; no process is left on
        this machine.
    """
    configs = _per_node(noise, spread.nodes)
    word = secrets.token_hex(16)
    server, address = listening(spread, host)
    with server, tempfile.TemporaryFile() as printed:
        started = _start(spread, command, f"{address}:{word}", printed)
        try:
            links = _gather(server, word, spread, started, configs, time.monotonic() + timeout_s)
            rows = [_observed(link, node) for node, link in sorted(links.items())]
            started.wait(timeout=30)
        except (subprocess.TimeoutExpired, TimeoutError, ChildProcessError) as error:
            printed.seek(0)
            text = printed.read()[-2000:].decode(errors="replace").strip()
            raise RunError(
                f"the program did not run on {spread.nodes} node(s): {error}",
                where=" ".join([*spread.command(), *command]),
                why=text or "the launcher said nothing",
                fix="start the same words by hand; nodes must reach this machine by TCP (host=…)",
            ) from None
        finally:
            _end(started)
    return pd.DataFrame(rows)


def listening(spread: Spread, host: str | None) -> tuple[socket.socket, str]:
    """A socket for the agents and where they find it: on loopback where they are on this machine;
    several nodes may reach it by any of its networks.
    """
    alone = spread.nodes == 1 and host is None
    server = socket.create_server(("127.0.0.1" if alone else "", 0))
    name = "127.0.0.1" if alone else host or socket.gethostname()
    return server, f"{name}:{server.getsockname()[1]}"


def _per_node(
    noise: NoiseConfig | Sequence[NoiseConfig] | None, nodes: int
) -> list[NoiseConfig | None]:
    if noise is None or isinstance(noise, NoiseConfig):
        return [noise] * nodes
    return [noise[node % len(noise)] for node in range(nodes)]


def _start(spread: Spread, command: Sequence[str], link: str, printed) -> subprocess.Popen:
    variables = {VARIABLE: link, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    names = [*variables, *(name for name in (GROUPS, "NOISEBOOK_BIN") if name in os.environ)]
    words = [*spread.command(names), sys.executable, "-m", "noisebook_nodes.agent", *command]
    return subprocess.Popen(
        words,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=printed,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _gather(server, word, spread, started, configs, deadline) -> dict[int, Link]:
    """One link a node; each was given its noise and told to begin when all were ready."""
    links: dict[int, Link] = {}
    nodes = int(os.environ.get(GROUPS, spread.nodes))
    while len(links) < nodes:
        _wait_for(server, started, deadline, "an agent")
        link = Link(server.accept()[0])
        if not link.knows(word):
            link.close()
            continue
        node = len(links)
        config = configs[node % len(configs)]
        link.say(node=node, noise=_text(config))
        links[node] = link
    for link in links.values():
        _wait_for(link, started, deadline, "a node's injector and ranks")
        if link.hear().get("state") != "ready":
            raise ChildProcessError("a node's agent ended before its ranks were ready")
    for link in links.values():
        link.say(go=True)
    for link in links.values():
        _wait_for(link, started, deadline, "the end of the program", even_if_over=True)
    return links


def _wait_for(one, started, deadline, what: str, even_if_over: bool = False) -> None:
    while True:
        ready = select.select([one], [], [], 0.2)[0]
        if time.monotonic() > deadline:  # though strangers may come, one after the other
            raise TimeoutError(f"waited too long for {what}")
        if ready:
            return
        if started.poll() is not None and not even_if_over:
            raise ChildProcessError(f"the launcher ended with status {started.returncode}")


def _text(config: NoiseConfig | None) -> str:
    if config is None:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        return config.write(Path(folder) / "noise.json").read_text()


def _observed(link: Link, node: int) -> dict:
    row = link.hear()
    link.close()
    return {"node": node, **(row or {"status": "the agent died"})}


def _end(started: subprocess.Popen) -> None:
    if started.poll() is None:
        os.killpg(started.pid, signal.SIGTERM)
        try:
            started.wait(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()
