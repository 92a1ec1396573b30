"""One fault after the other: what is disturbed, when, and what is counted afterwards.

Each has folders of its own for data, state and temporary files. Nothing is lost if every run that
was acknowledged is still there, unchanged; nothing is left if setting, processes, control groups,
instances and files are as before when the next campaign has ended.
"""

import contextlib
import fcntl
import itertools
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nbhelpers.files import opened_folder
from nbhelpers.injection.injector import THROTTLING
from nbhelpers.machine import kernel
from nbhelpers.records import append_record, read

from ..processes import REPOSITORY, mounted
from .child import CALM, SETTING, VALUE, WORKLOADS

CHILD = str(Path(__file__).with_name("child.py"))
RUNS = 4
PATIENCE_S = 60.0
ROLES = ("harness", "workload", "guardian", "supervisor", "lane", "harness and guardian", "all")
ENDS = {
    "SIGKILL": (signal.SIGKILL,),
    "SIGTERM": (signal.SIGTERM,),
    "SIGINT": (signal.SIGINT,),
    "SIGHUP": (signal.SIGHUP,),
    "SIGQUIT": (signal.SIGQUIT,),
    "SIGSTOP, SIGCONT": (signal.SIGSTOP, signal.SIGCONT),
    "SIGSTOP, SIGKILL": (signal.SIGSTOP, signal.SIGKILL),
}
MOST_MEMORY_KIB = 600_000
CHANGED = {SETTING: str(VALUE), THROTTLING: "-1"}  # what a campaign sets


@dataclass
class Outcome:
    """What came of one fault; every count but `tried` and `acknowledged` should be 0."""

    tried: int = 1
    acknowledged: int = 0
    lost: int = 0
    settings: int = 0
    processes: int = 0
    groups: int = 0
    instances: int = 0
    files: int = 0
    tracebacks: int = 0
    not_resumed: int = 0
    remarks: list[str] = field(default_factory=list)

    @property
    def bad(self) -> int:
        """How much went wrong."""
        return sum(
            getattr(self, name)
            for name in vars(self)
            if name not in ("tried", "acknowledged", "remarks")
        )


@dataclass
class Place:
    """The folders of one fault, its token, and its environment."""

    folder: Path
    token: str
    began: float = field(default_factory=time.time)

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {
            "PYTHONPATH": str(REPOSITORY),
            "NOISEBOOK_STATE": str(self.folder / "state"),
            "TMPDIR": str(self.folder / "tmp"),
        }

    def command(self, workload: str, runs: int = RUNS, data: str = "data") -> list[str]:
        return [sys.executable, CHILD, str(self.folder / data), workload, self.token, str(runs)]


class Harness:
    """A campaign that runs, and what it said."""

    def __init__(self, place: Place, command: list[str], **options: object):
        self.place = place
        self.heard: str | None = None  # what it had said when its power was cut
        self.output = (place.folder / f"output-{time.monotonic_ns()}").open("w+")
        self.errors = (place.folder / f"errors-{time.monotonic_ns()}").open("w+")
        self.process = subprocess.Popen(
            command,
            env=place.environment,
            stdout=self.output,
            stderr=self.errors,
            start_new_session=True,
            **options,  # type: ignore[call-overload]
        )

    def has_begun(self) -> bool:
        """Wait until its runs begin; False: it ended before."""
        until = time.monotonic() + PATIENCE_S
        while "begins" not in self.said() and time.monotonic() < until:
            if self.process.poll() is not None:
                return False
            time.sleep(0.005)
        return True

    def said(self) -> str:
        self.output.seek(0)
        return self.output.read() if self.heard is None else self.heard

    def complaint(self) -> str:
        self.errors.seek(0)
        return self.errors.read()

    def acknowledged(self) -> int:
        return self.said().count("done ")

    def end(self) -> None:
        """Wait; what does not end is killed."""
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def close(self) -> None:
        self.output.close()
        self.errors.close()


# ---- who is there --------------------------------------------------------------------------------


def _living() -> Iterator[tuple[int, bytes, bytes]]:
    """pid, words and environment of every living process but this one."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{name}/cmdline").read_bytes()
            environment = Path(f"/proc/{name}/environ").read_bytes()
            if int(name) != os.getpid() and kernel.start_time(int(name)) is not None:
                yield int(name), words, environment


def ours(place: Place) -> dict[int, bytes]:
    """Living processes of a fault: by the token, or by the state folder in the environment."""
    state = f"NOISEBOOK_STATE={place.folder / 'state'}".encode()
    token = place.token.encode()
    return {
        pid: words
        for pid, words, environment in _living()
        if token in words or state in environment.split(b"\0")
    }


def in_role(place: Place, harness: Harness, role: str) -> list[int]:
    """The processes of a role at this moment."""
    if role == "harness":
        return [harness.process.pid]
    living = ours(place)
    named = {pid: _name(pid) for pid in living}
    guardians = [pid for pid, words in living.items() if b"guardian.py" in words]
    injected = {
        "supervisor": [pid for pid, name in named.items() if name == "nb-supervisor"],
        "lane": [pid for pid, name in named.items() if name == "nb-injector"],
    }
    special = {harness.process.pid, *guardians, *injected["supervisor"], *injected["lane"]}
    return {
        "guardian": guardians,
        "workload": [pid for pid in living if pid not in special],
        "harness and guardian": [harness.process.pid, *guardians],
        "all": list(living),
        **injected,
    }[role]


def send(number: signal.Signals, pids: Iterable[int]) -> None:
    """Send a signal to processes, some of which may have ended."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


# ---- what is left --------------------------------------------------------------------------------


def groups() -> set[str]:
    """Control groups of ours whose owner is dead."""
    found = set()
    for place in {place for place, kind in mounted() if kind in ("cgroup", "cgroup2")}:
        for parent, names, _ in os.walk(place):
            found |= {os.path.join(parent, name) for name in names if _of_the_dead(name)}
    return found


def _of_the_dead(name: str) -> bool:
    owner = kernel.owner_of(name)
    return owner is not None and not kernel.alive(owner)


def instances() -> set[str]:
    """tracefs instances of ours whose owner is dead."""
    with contextlib.suppress(OSError):
        names = os.listdir(f"{kernel.file_system(kernel.TRACEFS)}/instances")
        return set(filter(_of_the_dead, names))
    return set()


def files(place: Place) -> list[Path]:
    """Temporary files of ours that nobody uses any more."""
    left = [*(place.folder / "tmp").glob("*"), *(place.folder / "state").glob("*.journal")]
    return left + [path for path in Path("/dev/shm").iterdir() if _of_the_dead(path.name)]


def settings_now() -> dict[str, str]:
    """What a campaign changes of the machine, as it is.

    Raises
    ------
    RuntimeError
        It is what a campaign would set: nothing would be changed, and nothing left changed.
    """
    found = {path: Path(path).read_text().strip() for path in CHANGED}
    if found[SETTING] == CHANGED[SETTING]:
        raise RuntimeError(f"{SETTING} was left at {VALUE}: echo 1 | sudo tee {SETTING}")
    return found


def _put_back(before: dict[str, str]) -> int:
    """How many settings are as a campaign sets them, and were not; they are as before then."""
    left = [
        path
        for path, value in before.items()
        if Path(path).read_text().strip() == CHANGED[path] != value
    ]
    for path in left:
        Path(path).write_text(before[path])
    return len(left)


def count(place: Place, outcome: Outcome, before: dict[str, str], patience_s: float = 5) -> None:
    """What is not as it was."""
    until = time.monotonic() + patience_s
    while ours(place) and time.monotonic() < until:
        time.sleep(0.02)
    left = ours(place)
    outcome.processes += len(left)
    outcome.remarks += [f"left: {words.decode(errors='replace')[:90]}" for words in left.values()]
    outcome.settings += _put_back(before)
    outcome.groups += len(groups())
    outcome.instances += len(instances())
    found = files(place)
    outcome.files += len(found)
    outcome.remarks += [f"file: {path.name}" for path in found]
    outcome.remarks += [path.read_text() for path in found if path.suffix == ".journal"]
    send(signal.SIGKILL, left)


def note_words(harness: Harness, outcome: Outcome, wrong: bool = False) -> None:
    """Its last words, if they are known to be wrong, or a traceback but that of a Ctrl-C."""
    words = harness.complaint().strip()
    if wrong or ("Traceback" in words and not words.endswith("KeyboardInterrupt")):
        outcome.tracebacks += 1
        outcome.remarks.append(words[-300:])


def judge(
    place: Place, harness: Harness, outcome: Outcome, data: str = "data", answers: bool = False
) -> None:
    """Runs that were acknowledged and are not there, and words that are no message; `answers`: it
    had to end well or with one.
    """
    kept = read(place.folder / data / "runs.jsonl")
    fine = sum(row.get("status") == "ok" for row in kept.rows)
    outcome.acknowledged += harness.acknowledged()
    lost = max(0, harness.acknowledged() - fine) + len(kept.damage)
    outcome.lost += lost
    outcome.remarks += [f"of {harness.acknowledged()} acknowledged: {kept}"[:900]] if lost else []
    failed = harness.process.returncode and "refused" not in harness.complaint()
    note_words(harness, outcome, bool(answers and failed))


def resume(place: Place, outcome: Outcome, runs: int = RUNS) -> None:
    """The same campaign again, which has to complete without a run twice."""
    again = Harness(place, place.command("plain", runs))
    again.end()
    rows = read(place.folder / "data/runs.jsonl").rows
    numbers = [row["run"] for row in rows]
    fine = sum(row["status"] == "ok" for row in rows)
    whole = "complete" in again.said() and len(set(numbers)) == len(numbers) and fine == runs
    if not whole:
        outcome.not_resumed += 1
        outcome.remarks.append(f"{fine} ok of {numbers}: {again.complaint().strip()[-300:]}")
    again.close()


@contextlib.contextmanager
def place_of(draw: random.Random) -> Iterator[Place]:
    """Folders of one fault, which go with it."""
    with tempfile.TemporaryDirectory(prefix="faults-", dir="/var/tmp") as name:
        for inside in ("state", "tmp"):
            Path(name, inside).mkdir()
        yield Place(Path(name), f"{draw.randrange(10**8):08d}")


# ---- the kinds -----------------------------------------------------------------------------------


@dataclass
class Trial:
    """A campaign that is to be disturbed, and what came of it."""

    place: Place
    harness: Harness
    outcome: Outcome
    complaint: str = ""  # when it has ended


@contextlib.contextmanager
def campaign(
    draw: random.Random,
    workload: str = "plain",
    runs: int = RUNS,
    through: Callable[[Place], list[str]] = lambda place: [],
    answers: bool = False,
    resumes: bool = True,
    **options: object,
) -> Iterator[Trial]:
    """Start it, have it disturbed, wait for its end, count.

    Parameters
    ----------
    through
        Words before the command, such as those of `unshare`.
    answers, resumes
        Whether it has to end well or with a message, and whether it goes on afterwards.
    options
        Of `subprocess.Popen`.
    """
    before = settings_now()
    with place_of(draw) as place:
        command = [*through(place), *place.command(workload, runs)]
        trial = Trial(place, Harness(place, command, **options), Outcome())
        yield trial
        trial.harness.end()
        judge(place, trial.harness, trial.outcome, answers=answers)
        if resumes:
            resume(place, trial.outcome, runs)
        count(place, trial.outcome, before)
        trial.complaint = trial.harness.complaint()
        trial.harness.close()


def by_signal(role: str, end: str) -> Callable[[random.Random], Outcome]:
    """Signals to the processes of a role, at a random moment of a campaign."""

    def fault(draw: random.Random) -> Outcome:
        with campaign(draw) as trial:
            if trial.harness.has_begun():
                time.sleep(draw.uniform(0, 1.2))
                for number in ENDS[end]:
                    send(number, in_role(trial.place, trial.harness, role))
                    if number == signal.SIGSTOP:
                        time.sleep(draw.uniform(0.01, 0.3))
        return trial.outcome

    return fault


def killed_after_the_last_run(draw: random.Random) -> Outcome:
    """Harness and guardian, while they put the machine back: the next call measures nothing."""
    with campaign(draw) as trial:
        while trial.harness.process.poll() is None and trial.harness.acknowledged() < RUNS:
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 0.02))
        send(signal.SIGKILL, in_role(trial.place, trial.harness, "harness and guardian"))
    return trial.outcome


def by_workload(workload: str) -> Callable[[random.Random], Outcome]:
    """A workload that misbehaves by itself."""

    def fault(draw: random.Random) -> Outcome:
        with campaign(draw, workload, resumes=False) as trial:
            peak = 0
            while trial.harness.process.poll() is None:
                with contextlib.suppress(OSError, StopIteration):
                    status = Path(f"/proc/{trial.harness.process.pid}/status").read_text()
                    rows = status.splitlines()
                    peak = max(
                        peak, next(int(row.split()[1]) for row in rows if row.startswith("VmHWM"))
                    )
                time.sleep(0.05)
            if peak > MOST_MEMORY_KIB:
                trial.outcome.lost += 1
                trial.outcome.remarks.append(f"the harness took {peak >> 10} MiB")
        return trial.outcome

    return fault


def full_disk(which: str) -> Callable[[random.Random], Outcome]:
    """A small disk for the data, the state or temporary files, in a mount namespace of its own.

    It goes with its namespace, so what is on it is copied first; there the campaign goes on.
    """

    def fault(draw: random.Random) -> Outcome:
        def mounted(place: Place) -> list[str]:
            target = "/dev/shm" if which == "shm" else str(place.folder / which)
            os.makedirs(target, exist_ok=True)
            size = draw.choice(["4k", "8k", "16k"])
            script = (
                f'mount -t tmpfs -o size={size} tmpfs "$0" || exit;'
                f' "$@"; status=$?; cp -rT "$0" {place.folder}/kept; exit $status'
            )
            return ["unshare", "--mount", "sh", "-c", script, target]

        runs = 20 if which == "data" else RUNS
        with campaign(draw, runs=runs, through=mounted, answers=True) as trial:
            trial.harness.end()
            if which == "data":
                _moved(trial.place.folder / "kept", trial.place.folder / "data")
        return trial.outcome

    return fault


def _moved(kept: Path, data: Path) -> None:
    """In the place of a folder that a disk was mounted on."""
    data.rmdir()
    kept.rename(data)


SHUTDOWN, NO_FLUSH = 0x8004587D, struct.pack("I", 2)  # FS_IOC_SHUTDOWN; its log is not written


def power_cut(draw: random.Random) -> Outcome:
    """The ext4 of the data stops at a random moment, without what was not forced to disk.

    What is said later does not count: power that is cut ends the program, too. Here it lives on,
    and the kernel may tell it that a transaction was committed which it gave up (in 5 of 150 cuts,
    35 to 75 us after the end of the call).
    """

    with campaign(draw, through=_disk_mounted, answers=True) as trial:
        data = trial.place.folder / "data"
        try:
            if trial.harness.has_begun():
                time.sleep(draw.uniform(0, 1.2))
                with opened_folder(data) as handle:
                    trial.harness.heard = trial.harness.said()
                    fcntl.ioctl(handle, SHUTDOWN, NO_FLUSH)
            trial.harness.end()
        finally:
            _mounted_anew(trial.place)
        shutil.copytree(data, data.with_name("kept"))
        subprocess.run(["umount", data], check=True)
        _moved(data.with_name("kept"), data)
    return trial.outcome


def power_cut_of_records(draw: random.Random) -> Outcome:
    """As `power_cut`, of records alone, which are appended as fast as the disk takes them."""
    outcome = Outcome()
    with place_of(draw) as place:
        _disk_mounted(place)
        data = place.folder / "data"
        reader, writer = os.pipe()
        if not (pid := os.fork()):
            with contextlib.suppress(OSError):
                for number in itertools.count():
                    append_record(data / "runs.jsonl", {"run": number})
                    os.write(writer, b".")
            os._exit(0)
        time.sleep(draw.uniform(0, 0.2))
        os.set_blocking(reader, False)
        with opened_folder(data) as handle:
            with contextlib.suppress(BlockingIOError):
                outcome.acknowledged = len(os.read(reader, 1 << 16))
            fcntl.ioctl(handle, SHUTDOWN, NO_FLUSH)
        os.waitpid(pid, 0)
        os.close(reader)
        os.close(writer)
        _mounted_anew(place)
        kept = read(data / "runs.jsonl")
        outcome.lost = max(0, outcome.acknowledged - len(kept.rows)) + len(kept.damage)
        subprocess.run(["umount", data], check=True)
    return outcome


def _disk_mounted(place: Place) -> list[str]:
    """An ext4 of 16 MiB where the data go; there are no words before the command."""
    image, data = place.folder / "disk", place.folder / "data"
    data.mkdir()
    with image.open("wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, data], check=True)
    (data / "lost+found").rmdir()
    return []


def _mounted_anew(place: Place) -> None:
    """What is on the disk, from a copy: somebody's mount namespace may hold the first."""
    image, data = place.folder / "disk", place.folder / "data"
    subprocess.run(["umount", data], check=True)
    shutil.copy(image, image.with_name("copy"))
    subprocess.run(["mount", "-o", "loop", image.with_name("copy"), data], check=True)


# the mount alone is read-only, and only in a namespace of its own: others go on tracing
READ_ONLY = ["unshare", "--mount", "sh", "-c"]
READ_ONLY += [
    f"grep -q ' {kernel.TRACEFS} tracefs ' /proc/self/mounts ||"
    f" mount -t tracefs nodev {kernel.TRACEFS} || exit;"
    f' mount -o remount,bind,ro {kernel.TRACEFS} && exec "$@"',
    "sh",
]


def read_only_tracefs(draw: random.Random) -> Outcome:
    """The campaign traces, where nobody may write what is traced."""

    with campaign(draw, "traced", through=lambda place: READ_ONLY, answers=True) as trial:
        pass
    if "tracefs" not in trial.complaint:
        trial.outcome.tracebacks += 1
        trial.outcome.remarks.append(f"says nothing of tracefs: {trial.complaint[-300:]}")
    return trial.outcome


def clock_step(draw: random.Random) -> Outcome:
    """The time of day jumps by an hour, back or forth, for all that the campaign starts."""

    def stepped(place: Place) -> list[str]:
        at_ns = time.monotonic_ns() + int(draw.uniform(0.5, 2.5) * 1e9)
        return stepping_clock(place.folder, at_ns, draw.choice([-3600, 3600]))

    with campaign(draw, through=stepped) as trial:
        pass
    return trial.outcome


def stepping_clock(folder: Path, at_ns: int, step_s: int) -> list[str]:
    """Words before a command whose time of day jumps at a time of the monotonic clock."""
    source, library = Path(__file__).with_name("clock.c"), folder / "clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
    return ["env", f"LD_PRELOAD={library}", f"CLOCK_STEP={at_ns} {step_s}"]


def cpu_taken_away(draw: random.Random) -> Outcome:
    """The CPU on which noise is injected leaves the campaign's set, as if it went offline."""
    root = Path("/sys/fs/cgroup/cpuset")
    group = root / f"faults-{os.getpid()}"
    group.mkdir()
    try:
        for name in ("cpuset.cpus", "cpuset.mems"):
            (group / name).write_text((root / name).read_text())

        def enter() -> None:
            (group / "tasks").write_text(str(os.getpid()))

        with campaign(draw, preexec_fn=enter) as trial:
            if trial.harness.has_begun():
                time.sleep(draw.uniform(0, 0.6))
                (group / "cpuset.cpus").write_text("1")
    finally:
        _removed(group)
    return trial.outcome


def _removed(group: Path) -> None:
    until = time.monotonic() + 5
    while group.exists() and time.monotonic() < until:
        with contextlib.suppress(OSError):
            group.rmdir()
        time.sleep(0.05)


def short_of(what: str) -> Callable[[random.Random], Outcome]:
    """Few descriptors, small files, or little memory."""

    def limited() -> None:
        limits = {
            "descriptors": (resource.RLIMIT_NOFILE, 24),
            "file size": (resource.RLIMIT_FSIZE, 3000),
            "processes": (resource.RLIMIT_STACK, 1 << 20),
        }
        number, value = limits[what]
        resource.setrlimit(number, (value, value))

    def fault(draw: random.Random) -> Outcome:
        with campaign(draw, runs=20, answers=True, preexec_fn=limited) as trial:
            pass
        return trial.outcome

    return fault


def out_of_memory(draw: random.Random) -> Outcome:
    """The kernel kills in a memory group that is too small."""
    group = Path("/sys/fs/cgroup/memory") / f"faults-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(draw.randrange(60, 160) << 20))

        def enter() -> None:
            (group / "tasks").write_text(str(os.getpid()))

        with campaign(draw, preexec_fn=enter) as trial:
            pass
    finally:
        _removed(group)
    return trial.outcome


def two_campaigns(same: bool) -> Callable[[random.Random], Outcome]:
    """Two at a time, in one folder or in two; one may be killed while it waits."""

    def fault(draw: random.Random) -> Outcome:
        outcome, before = Outcome(), settings_now()
        with place_of(draw) as place:
            first = Harness(place, place.command("plain"))
            first.has_begun()
            second = Harness(place, place.command("plain", data="data" if same else "other"))
            if draw.random() < 0.3:
                time.sleep(draw.uniform(0, 1))
                second.process.kill()
            for one in (first, second):
                one.end()
            judge(place, first, outcome)
            if not same:
                judge(place, second, outcome, "other")
            refused = "another campaign is measuring into this folder" in second.complaint()
            killed = second.process.returncode == -signal.SIGKILL
            if same and not (refused or killed or "complete" in second.said()):
                outcome.not_resumed += 1
                outcome.remarks.append(second.complaint().strip()[-300:])
            resume(place, outcome)
            count(place, outcome, before)
            first.close()
            second.close()
        return outcome

    return fault


def kinds() -> dict[str, Callable[[random.Random], Outcome]]:
    """Every kind of fault that can be tried here, by its name."""
    found = {f"{end} to {role}": by_signal(role, end) for end in ENDS for role in ROLES}
    found["SIGKILL after the last run"] = killed_after_the_last_run
    found |= {f"workload: {name}": by_workload(name) for name in WORKLOADS if name not in CALM}
    found |= {
        f"little: {what}": short_of(what) for what in ("descriptors", "file size", "processes")
    }
    found["two campaigns, one folder"] = two_campaigns(True)
    found["two campaigns, two folders"] = two_campaigns(False)
    if os.geteuid() == 0:
        found |= {
            f"disk full: {which}": full_disk(which) for which in ("data", "state", "tmp", "shm")
        }
        if os.access("/sys/fs/cgroup/memory/tasks", os.W_OK):
            found["out of memory"] = out_of_memory
        if os.access("/sys/fs/cgroup/cpuset/tasks", os.W_OK) and (os.cpu_count() or 1) > 1:
            found["CPU taken away"] = cpu_taken_away
        if os.access("/dev/loop-control", os.W_OK) and shutil.which("mkfs.ext4"):
            found |= {"power cut": power_cut, "power cut of records": power_cut_of_records}
        if not _read_only_refused():
            found["read-only tracefs"] = read_only_tracefs
    found["clock step"] = clock_step
    return found


def _read_only_refused() -> str:
    """Why tracefs cannot be mounted read-only here; nothing: it can."""
    done = subprocess.run([*READ_ONLY, "true"], capture_output=True, text=True)
    return done.stderr.strip() or "refused" if done.returncode else ""


def not_tried() -> dict[str, str]:
    """Kinds that are not tried here, and why."""
    here = kinds()
    reasons = {"disk full: data": "mounting takes root"}
    reasons["power cut"] = "there is no loop device, or no mkfs.ext4"
    for name, controller in (("out of memory", "memory"), ("CPU taken away", "cpuset")):
        reasons[name] = f"there is no {controller} controller of version 1 to write to"
    reasons["read-only tracefs"] = f"tracefs is not made read-only here: {_read_only_refused()}"
    return {name: why for name, why in reasons.items() if name not in here}
