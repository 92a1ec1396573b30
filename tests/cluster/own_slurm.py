"""A Slurm for tests: munged, slurmctld and a slurmd a node as ordinary processes on this machine.

They listen on loopback, have a key and a folder of their own, and need neither systemd nor control
groups. Of the machine's own Slurm, if there is one, nothing is read or changed.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PROGRAMS = ("munged", "munge", "slurmctld", "slurmd", "sbatch", "scancel", "squeue", "setpriv")
CPUS, MEMORY_MB = 2, 4000  # of each node, as Slurm sees it
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"

_CONFIG = """\
ClusterName=noisebook
SlurmctldHost={host}({address})
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n.spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
"""
# Ends what is left of a Slurm when the tests are killed, that is when its standard input closes: a
# step of a job would look for its controller for an hour.
_GUARDIAN = """
read -r _
for file in $(grep -lszxF "SLURM_CONF=$0" /proc/[0-9]*/environ); do
    process=${file#/proc/}
    kill -9 "${process%/environ}"
done
"""


def missing() -> str:
    """Why there can be no Slurm here; empty if there can."""
    absent = [name for name in PROGRAMS if not shutil.which(name, path=_PATH)]
    if absent:
        return f"no {', '.join(absent)}: apt-get install munge slurmctld slurmd slurm-client"
    return "" if os.geteuid() == 0 else "only root can start jobs as slurmd does"


@dataclass
class Slurm:
    """One that runs."""

    folder: Path
    nodes: list[str]
    daemons: list[subprocess.Popen] = field(default_factory=list)

    def run(self, *command: str) -> str:
        """What a command of Slurm prints: nothing where it fails or has no answer."""
        with suppress(subprocess.TimeoutExpired):
            done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
            return done.stdout.strip()
        return ""

    def start(self, *command: object) -> None:
        """A daemon that dies with this process."""
        name = Path(str(command[0])).name
        with open(self.folder / f"{name}.{len(self.daemons)}.out", "wb") as output:
            words = ["setpriv", "--pdeathsig", "TERM", *map(str, command)]
            self.daemons.append(
                subprocess.Popen(words, stdout=output, stderr=output, cwd=self.folder)
            )

    def processes(self) -> list[int]:
        """Everything of its jobs that still runs."""
        ours = f"SLURM_CONF={self.folder}/slurm.conf"
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                environment = (process / "environ").read_text(errors="replace").split("\0")
                name = (process / "comm").read_text().strip()
            except OSError:  # it has ended
                continue
            of_a_job = any(text.startswith("SLURM_JOB_ID=") for text in environment)
            if ours in environment and (of_a_job or name == "slurmstepd"):
                found.append(int(process.name))
        return found

    def log(self) -> str:
        """The ends of all logs, for a failure."""
        paths = sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out")])
        return "\n".join(
            f"{path.name}: {path.read_text(errors='replace')[-800:]}" for path in paths
        )


def wait_until(true: Callable[[], object], what: str, slurm: Slurm, patience_s: float = 60) -> None:
    """Look twenty times a second; fail with the logs where that takes too long or a daemon died."""
    end = time.monotonic() + patience_s
    while not true():
        dead = any(daemon.poll() is not None for daemon in slurm.daemons)
        if dead or time.monotonic() > end:
            pytest.fail(f"{what} within {patience_s} s\n{slurm.log()}")
        time.sleep(0.05)


@contextmanager
def own_slurm(folder: Path, nodes: int) -> Iterator[Slurm]:
    """Slurm with nodes n0, n1, … in this process's environment, for a `with` block."""
    slurm = Slurm(folder, [f"n{number}" for number in range(nodes)])
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("SLURM", "SBATCH", "SCANCEL", "SQUEUE")):
                patch.delenv(name)
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        patch.setenv("PATH", _PATH)
        guardian = subprocess.Popen(
            ["sh", "-c", _GUARDIAN, f"{folder}/slurm.conf"],
            stdin=subprocess.PIPE,
            env={"PATH": _PATH},
            start_new_session=True,
        )
        try:
            _begin(slurm)
            yield slurm
        finally:
            _end(slurm)
            guardian.kill()
            guardian.communicate()


def _begin(slurm: Slurm) -> None:
    folder = slurm.folder
    (folder / "state").mkdir()
    key = folder / "munge.key"
    key.touch(0o400)
    key.write_bytes(secrets.token_bytes(1024))
    (folder / "slurm.conf").write_text(_configuration(slurm))
    (folder / "cgroup.conf").write_text(f"CgroupPlugin={_cgroup_plugin(slurm)}\n")
    files = [f"--{kind}-file={folder}/munge.{kind}" for kind in ("key", "pid", "seed", "log")]
    slurm.start("munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *files)
    proof = ("munge", f"--socket={folder}/munge.socket", "--no-input")
    wait_until(lambda: slurm.run(*proof), "munged did not answer", slurm)
    slurm.start("slurmctld", "-D", "-f", folder / "slurm.conf")
    for node in slurm.nodes:
        slurm.start("slurmd", "-D", "-N", node, "-f", folder / "slurm.conf")
    states = ("sinfo", "--noheader", "--Node", "--format=%T")
    idle = ["idle"] * len(slurm.nodes)
    wait_until(lambda: slurm.run(*states).split() == idle, "the nodes were not idle", slurm)


def _configuration(slurm: Slurm) -> str:
    """Bound to loopback where the name of this machine leads there."""
    host, (port, *ports) = socket.gethostname().split(".")[0], _free_ports(1 + len(slurm.nodes))
    address = _address(host)
    text = _CONFIG.format(host=host, address=address or "127.0.0.1", port=port, folder=slurm.folder)
    if address:
        text += "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\n"
    for node, own in zip(slurm.nodes, ports):
        text += (
            f"NodeName={node} NodeHostname={host} NodeAddr={address or '127.0.0.1'} Port={own}"
            f" CPUs={CPUS} RealMemory={MEMORY_MB}\n"
        )
    return text + "PartitionName=all Nodes=ALL Default=YES\n"


def _cgroup_plugin(slurm: Slurm) -> str:
    """What does nothing as long as no job is confined: slurmd looks for control groups at its
    start, and that of version 2 wants systemd.
    """
    version = slurm.run("slurmd", "-V").split()[-1]
    return "disabled" if tuple(map(int, version.split(".")[:2])) >= (24, 5) else "cgroup/v1"


def _address(host: str) -> str:
    """Where the machine's name leads, if that is loopback."""
    try:
        found = socket.gethostbyname(host)
    except OSError:
        return ""
    return found if found.startswith("127.") else ""


def _free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in held]
    for server in held:
        server.close()
    return ports


def _end(slurm: Slurm) -> None:
    """Cancel what runs, stop the daemons, and see that nothing is left."""
    slurm.run("scancel", "--user=root")
    _gone(slurm.processes, 30)
    for daemon in reversed(slurm.daemons):
        daemon.terminate()
    for daemon in slurm.daemons:
        try:
            daemon.wait(10)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
    left = _gone(slurm.processes, 10)
    for process in left:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    assert not left, f"these outlived their Slurm: {left}\n{slurm.log()}"


def _gone(found: Callable[[], list], seconds: float) -> list:
    end = time.monotonic() + seconds
    while (left := found()) and time.monotonic() < end:
        time.sleep(0.1)
    return left
