"""Ranks in two groups, each with an agent and an injector as on a node of its own, begin together;
what goes wrong leaves nothing behind.
"""

import os
import socket
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from noisebook_nodes import _link
from noisebook_nodes.head import listening, run_on_nodes
from noisebook_nodes.launchers import Spread, spread_here

from nbhelpers.errors import InputError, RunError
from nbhelpers.mpi import installation
from nbhelpers.noise.signature import Signature
from tests.mpi import needs_mpi


def left() -> list[Path]:
    return list(Path("/dev/shm").glob(f"noisebook-node-{os.geteuid()}-*"))


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"[]\n",
        b'{"word": "w\xc3\xa4"}\n',
        b'{"word": "\\ud800"}\n',
        b"[" * 4000 + b"\n",
        b'{"word": "wo',
        b"x" * 9000,
    ],
)
def test_a_stranger_is_known_in_time_and_ends_nothing(said, monkeypatch):
    monkeypatch.setattr(_link, "GREETING_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        theirs = socket.create_connection(server.getsockname())
        with theirs, closing(_link.Link(server.accept()[0])) as link:
            theirs.sendall(said)
            assert not link.knows("word")


@pytest.mark.parametrize("nodes, host, heard", [(1, None, False), (1, "n1", True), (2, None, True)])
def test_one_node_is_awaited_on_loopback_alone(nodes, host, heard):
    """Each address of this machine is its own: one bound to the first does not hear the second."""
    server, _ = listening(Spread("srun", nodes), host)
    with server, socket.socket() as theirs:
        assert (theirs.connect_ex(("127.0.0.2", server.getsockname()[1])) == 0) is heard


@needs_mpi
def test_two_nodes_begin_together(monkeypatch):
    monkeypatch.setenv("NOISEBOOK_NODE_GROUPS", "2")
    before = left()
    hello = str(installation().programs / "hello")
    found = run_on_nodes(spread_here(4), [hello], timeout_s=100)
    assert found["node"].to_list() == [0, 1] and (found["status"] == "ok").all()
    assert (found["ranks"] == 2).all() and (found["region_seconds"] > 0).all()
    assert (found["start_ns"] >= found["t0_ns"]).all()
    assert found["t0_ns"].max() - found["t0_ns"].min() < 50e6  # one clock here: told together
    assert left() == before


@needs_mpi
@pytest.mark.long
def test_each_node_has_its_noise():
    noise = Signature(frequency_hz=100, share=0.025).config(1.0, [0])
    program = [str(installation().programs / "halo2d")]
    found = run_on_nodes(spread_here(2), program, noise, timeout_s=100)
    assert found["status"].to_list() == ["ok"] and found["injected_events"].item() > 0


@needs_mpi
@pytest.mark.long
def test_a_program_without_mpi_is_an_error_that_leaves_nothing():
    before = left()
    with pytest.raises(RunError, match="did not run on 1 node"):
        run_on_nodes(spread_here(2), ["true"], timeout_s=60)
    with pytest.raises(RunError, match="did not run on 1 node"):
        run_on_nodes(spread_here(2), ["sleep", "1000"], timeout_s=8)
    assert left() == before
    assert not subprocess.run(["pgrep", "-fx", "sleep 1000"], capture_output=True).stdout


def test_the_words_of_launchers():
    assert Spread("mpiexec of MPICH", 2, 4, path="/opt/mpiexec").command() == [
        "/opt/mpiexec",
        "-n",
        "8",
        "-ppn",
        "4",
    ]
    words = Spread("mpirun of Open MPI", 2, 3, ("--bind-to", "core")).command(["LD_PRELOAD"])
    assert words[0] == "mpirun" and words[-4:] == ["-x", "LD_PRELOAD", "--bind-to", "core"]
    assert words[words.index("--map-by") + 1] == "ppr:3:node" and "6" in words
    with pytest.raises(InputError, match="did you mean 'srun'"):
        Spread("aprun")
    with pytest.raises(InputError, match="a node or more"):
        Spread("srun", nodes=0)
