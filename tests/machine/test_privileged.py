"""noisebook-priv as an attacker sees it: what it does for its user, and what it does for nobody.

The requests are real, on real settings of this machine, which come back as they were.
"""

import contextlib
import errno
import json
import os
import random
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nbhelpers.machine import kernel, privileged, settings
from nbhelpers.machine.privileged import INSTANCES, Helper
from nbhelpers.measurement._knowledge import layers
from nbhelpers.places import shipped
from nbhelpers.tracing._recorders import EVENTS, SOFTIRQ_EVENTS
from nbhelpers.workloads import binary_folder

from .conftest import NOBODY, as_nobody, eventually, reached_by_all

STAT_INTERVAL = "/proc/sys/vm/stat_interval"
WRITEBACK = "/proc/sys/vm/dirty_writeback_centisecs"
MEMORY_KIB = os.sysconf("SC_PHYS_PAGES") * (os.sysconf("SC_PAGE_SIZE") // 1024)
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="giving rights to a program takes root")


@pytest.fixture(scope="module")
def program() -> Iterator[Path]:
    """An installed helper."""
    if not shutil.which("setcap"):
        pytest.skip("no setcap here (libcap2-bin)")
    with reached_by_all(0o755) as folder:
        done = subprocess.run(
            ["sh", shipped() / "workloads/install_privileged.sh", folder],
            cwd=binary_folder().parents[1],
            env={**os.environ, "PRIV_GROUP": "nogroup"},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            pytest.skip(done.stdout.strip())
        yield folder / "noisebook-priv"


def asked(helper: Helper, *words: object) -> int:
    """0, or the number of the refusal."""
    try:
        _, fd = helper.request(*words)
    except OSError as error:
        return error.errno or -1
    if fd >= 0:
        os.close(fd)
    return 0


def refusals(program: Path, requests: list[tuple]) -> list[int]:
    def all_of_them() -> list[int]:
        helper = Helper([str(program)])
        try:
            return [asked(helper, *words) for words in requests]
        finally:
            helper.close()

    found = as_nobody(all_of_them)
    assert isinstance(found, list), found
    return found


def test_a_user_changes_a_setting_of_the_list_and_puts_it_back(program: Path) -> None:
    old = Path(STAT_INTERVAL).read_text().strip()
    other = "9" if old != "9" else "8"

    def change() -> list[str]:
        helper = Helper([str(program)])
        seen = []
        for value in (other, old):
            helper.request("write", STAT_INTERVAL, value)
            seen.append(Path(STAT_INTERVAL).read_text().strip())
        helper.close()
        return seen

    assert as_nobody(change) == [other, old]


def test_at_its_end_it_puts_back_what_nobody_else_has_set_since(program: Path) -> None:
    path = Path(STAT_INTERVAL)
    old = path.read_text()

    def change() -> list[str]:
        one, other = Helper([str(program)]), Helper([str(program)])
        one.request("write", STAT_INTERVAL, 21)
        other.request("write", STAT_INTERVAL, 22)
        one.close()
        seen = path.read_text().strip()
        other.close()
        return [seen, path.read_text().strip()]

    try:
        assert as_nobody(change) == ["22", "21"]
    finally:
        path.write_text(old)


# `test_allowed_alike` has all the others
REFUSED = {
    ("/proc/sys/kernel/core_pattern", "1"): errno.EACCES,
    ("/proc/sys/vm/../kernel/core_pattern", "1"): errno.EACCES,
    ("/sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq", "1"): errno.EACCES,
    ("/etc/passwd", "1"): errno.EACCES,
    (STAT_INTERVAL, "5;6"): errno.EDOM,
    ("/sys/devices/virtual/workqueue/cpumask", "-1"): errno.EDOM,
    ("/proc/irq/1/smp_affinity_list", "0;1"): errno.EDOM,
}


def test_what_is_not_on_the_list_or_out_of_its_range_is_refused(program: Path) -> None:
    found = refusals(program, [("write", *pair) for pair in REFUSED])
    assert dict(zip(REFUSED, found)) == REFUSED


def test_a_setting_that_could_not_be_put_back_is_left_alone(program: Path) -> None:
    """0 switches writeback off: the helper could not write it again."""
    with settings.Change([{"kind": "write", "path": WRITEBACK, "new": "0"}]):
        assert refusals(program, [("write", WRITEBACK, "500")]) == [errno.ERANGE]
        assert Path(WRITEBACK).read_text().strip() == "0"


def test_processes_and_instances_of_others_are_refused(program: Path) -> None:
    theirs = f"noisebook-{os.getpid()}-{kernel.start_time(os.getpid())}-1-word"
    requests = [("perf", 1, 3, pid, -1, 0) for pid in (1, os.getpid(), 0)]
    requests += [("realtime", pid) for pid in (1, os.getpid(), -1)]
    assert set(refusals(program, requests)) == {errno.EPERM}
    folder = f"{kernel.file_system(kernel.TRACEFS)}/instances/{theirs}"
    os.mkdir(folder)
    try:
        requests = [("look", theirs), ("untrace", theirs), ("knob", theirs, "tracing_on", 0)]
        assert set(refusals(program, requests)) == {errno.EPERM}
    finally:
        os.rmdir(folder)
    requests = [("trace", theirs), ("trace", "noisebook-1-1-1"), ("trace", "../x"), ("trace", "x")]
    assert set(refusals(program, requests)) == {errno.EACCES}


def test_only_counters_that_count_are_opened(program: Path) -> None:
    def ask() -> list[int]:
        helper = Helper([str(program)])
        me = os.getpid()
        requests: list[tuple] = [
            ("perf", 5, 0, me, -1, 0),  # breakpoints
            ("perf", 6, 0, me, -1, 0),  # whatever the kernel numbers dynamically
            ("perf", 1, 3, me, 0, 0),  # a thread and a CPU
            ("perf", 1, 3, -1, 0, 0),  # a CPU: others', too
            ("perf", 1, 3, -1, -1, 0),
            ("perf", 1, 3, me, -1, 1 << 10),  # a flag that nobody needs
            ("perf", 1, 3, me, -1, 2),
        ]
        return [asked(helper, *words) for words in requests]

    assert as_nobody(ask) == [errno.EINVAL] * 6 + [0]


def tracepoints() -> dict[str, int]:
    """All events of this kernel that are asked for here, with their numbers."""
    folder = Path(kernel.file_system(kernel.TRACEFS), "events")
    found = [path for event in (*EVENTS, *SOFTIRQ_EVENTS) for path in folder.glob(event)]
    found += [folder / "sched/sched_process_exec", *map(folder.joinpath, COUNTED)]
    return {
        str(path.relative_to(folder)): int((path / "id").read_text())
        for path in found
        if path.is_dir()
    }


EVERYBODYS = ("sched:sched_switch", "irq:irq_handler_entry", "irq:irq_handler_exit")
COUNTED = [
    metric.where["event"].replace(":", "/")
    for layer in layers().values()
    for source in layer.sources
    for metric in source.metrics
    if ":" in metric.where.get("event", "")
]


def test_what_noisebook_records_and_counts_is_on_the_list_and_nothing_else(program: Path) -> None:
    numbers = tracepoints()

    def ask() -> dict[str, list[int]]:
        helper, name, me = Helper([str(program)]), kernel.owned_name("list"), os.getpid()
        helper.request("trace", name)
        events = [str(Path(*Path(event).parts[-2:])).replace("/", ":") for event in numbers]
        found = {
            event: [
                asked(helper, "knob", name, "set_event", event),
                asked(helper, "event", event.replace(":", "/")),
                asked(helper, "perf", 2, number, me, -1, 0),
            ]
            for event, number in zip(events, numbers.values())
        }
        helper.request("untrace", name)
        return found

    answers = as_nobody(ask)
    assert isinstance(answers, dict), answers
    recorded = {event for event, (error, *_) in answers.items() if not error}
    counted = {event for event, (_, *errors) in answers.items() if not any(errors)}
    assert {error for errors in answers.values() for error in errors} == {0, 33, 13}
    assert counted == {*(e.replace("/", ":") for e in COUNTED), "sched:sched_switch"} & {*answers}
    wanted = [
        event
        for event in numbers
        if any(Path(event).match(one) for one in (*EVENTS, *SOFTIRQ_EVENTS))
    ]
    assert recorded == {event.replace("/", ":") for event in wanted}


@pytest.mark.parametrize("killed", ["maker", "helper"])
def test_instances_of_a_user_have_limits_and_end_with_their_maker(
    program: Path, killed: str
) -> None:
    """When its helper was killed, the next instance takes the place."""
    most_kib = MEMORY_KIB // 8 // 4 // os.sysconf("SC_NPROCESSORS_CONF")

    def make(pipe: int) -> None:
        helper = Helper([str(program)])
        names = [kernel.owned_name(f"many{i}") for i in range(5)]
        found = [asked(helper, "trace", name) for name in names]
        sizes = (most_kib + 64, 8)
        found += [asked(helper, "knob", names[0], "buffer_size_kb", size) for size in sizes]
        os.write(pipe, json.dumps([names, found]).encode())
        os.kill(os.getpid() if killed == "maker" else helper._process.pid, signal.SIGKILL)
        helper._process.wait()
        os._exit(0)

    def ask() -> list:
        reader, writer = os.pipe()
        if not (child := os.fork()):
            make(writer)
        names, found = json.loads(os.read(reader, 4096))
        os.waitpid(child, 0)
        other = Helper([str(program)])
        if killed == "helper":
            assert asked(other, "trace", kernel.owned_name("next")) == 0
        gone = eventually(lambda: all(asked(other, "look", one) == errno.ENOENT for one in names))
        return [*found, gone]

    assert as_nobody(ask) == [0, 0, 0, 0, errno.EDQUOT, errno.EDOM, 0, True]


def test_it_lies_at_an_address_drawn_anew() -> None:
    header = (binary_folder() / "noisebook-priv").read_bytes()[:18]
    assert int.from_bytes(header[16:18], sys.byteorder) == 3  # ET_DYN


def test_a_user_records_the_kernel_and_nothing_else(program: Path) -> None:
    def record() -> dict:
        os.environ["NOISEBOOK_PRIV"] = str(program)
        name = kernel.owned_name("word")
        privileged.make_instance(INSTANCES + name)
        fd = privileged.open_instance(INSTANCES + name)
        folder = Path(f"/proc/self/fd/{fd}")
        text = (folder / "events/sched/sched_switch/format").read_text()
        found: dict = {"format": len(text), "written": []}
        privileged.write(f"{INSTANCES}{name}/set_event", "\n".join(EVERYBODYS))
        privileged.write(f"{INSTANCES}{name}/tracing_on", "1")
        time.sleep(0.02)
        privileged.write(f"{INSTANCES}{name}/tracing_on", "0")
        raw = os.open(folder / "per_cpu/cpu0/trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK)
        found["bytes"] = len(os.read(raw, 1 << 16))
        os.close(raw)
        found["refused"] = [
            asked(privileged.helper(), "knob", name, *pair)
            for pair in (
                ("set_event", "syscalls:*"),
                ("set_event", "sched:*"),
                ("set_event", "sched:sched_switch,sched:sched_process_exec"),
                ("set_event", "irq_vectors:vector_alloc"),
                ("set_event", "kprobes:x"),
                ("set_event", "*:*"),
                ("set_event", "sched:x/../y"),
                ("current_tracer", "function"),
                ("trace_marker", "x"),
                ("../../tracing_on", "0"),
                ("buffer_size_kb", str(1 << 30)),
            )
        ]
        for file in ("set_event", "set_ftrace_filter", "events/sched/sched_switch/trigger"):
            with contextlib.suppress(PermissionError):
                open(folder / file, "w").close()
                found["written"].append(file)
        os.close(fd)
        privileged.remove_instance(INSTANCES + name)
        found["left"] = asked(privileged.helper(), "look", name)
        return found

    found = as_nobody(record)
    assert isinstance(found, dict), found
    assert found["format"] > 500 and found["bytes"] >= 4096
    assert set(found["refused"]) == {errno.EDOM}
    assert found["written"] == [] and found["left"] == errno.ENOENT


MALFORMED = [
    b"",
    b" ",
    b"write",
    b"write  1",
    b"write /proc/sys/vm/swappiness 1\n",
    b"write /proc/sys/vm/swappiness 1 extra",
    b"write /proc/sys/vm/swappiness\x001",
    b"write /proc/sys/vm/swappiness 1\x00",
    b"WRITE /proc/sys/vm/swappiness 1",
    "write /proc/sys/vm/swappiness １".encode(),
    b"a b c d e f g h",
    b"x" * 5000,
    b"list",
]


def test_what_is_no_request_is_refused(program: Path) -> None:
    """Also three thousand random changes of requests: the helper goes on and changes nothing."""
    settings_before = [Path(path).read_text() for path in (STAT_INTERVAL, WRITEBACK)]

    def send() -> list[str]:
        ours, helper = raw_helper([str(program)])
        answers = []
        for message in (*MALFORMED[1:], *_mutants(3000)):
            ours.send(message)
            answers.append(ours.recv(5000)[:2].decode())
        ours.close()
        answers.append(str(helper.wait(10)))
        return answers

    answers = as_nobody(send)
    assert isinstance(answers, list), answers
    assert set(answers[:-1]) == {"no"} and answers[-1] == "0"
    assert [Path(path).read_text() for path in (STAT_INTERVAL, WRITEBACK)] == settings_before


def _mutants(count: int) -> Iterator[bytes]:
    """Requests with bytes changed."""
    draw = random.Random(1)
    valid = [
        b"write /proc/sys/vm/stat_interval 5",
        b"knob noisebook-1-2-3-x set_event sched:sched_switch",
        b"perf 1 3 77 -1 0",
        b"untrace noisebook-1-2-3-x",
        b"event sched/sched_switch",
    ]
    for _ in range(count):
        text = bytearray(draw.choice(valid))
        for _ in range(draw.randint(1, 4)):
            text[draw.randrange(len(text))] = draw.choice(b"\0\n /.*-:,\xff")
        if bytes(text) not in valid:
            yield bytes(text)


def test_no_right_is_in_effect_between_requests(program: Path) -> None:
    def idle() -> dict[str, str]:
        helper = Helper([str(program)])
        status = Path(f"/proc/{helper._process.pid}/status").read_text()
        helper.close()
        return dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)

    rows = as_nobody(idle)
    assert isinstance(rows, dict), rows
    assert int(rows["CapEff"], 16) == 0
    assert rows["Uid"].split() == [str(NOBODY)] * 4
    assert rows["NoNewPrivs"] == "1"
    assert rows["Seccomp"] == "2"  # a filter, which all these tests go through


def test_under_sudo_it_serves_the_user_and_not_shipped() -> None:
    """sudo starts it as root, with a socket that the user has made."""
    ours, its = socket.socketpair()

    def hand_over() -> str:
        mine, helpers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        socket.send_fds(its, [b"x"], [helpers.fileno()])
        helpers.close()
        mine.send(b"perf 1 3 1 -1 0")
        refused = mine.recv(100).decode()
        mine.send(b"write /proc/sys/vm/stat_interval 400")
        return refused + "; " + mine.recv(100).decode()

    with ours, its, ThreadPoolExecutor() as pool:
        answer = pool.submit(as_nobody, hand_over)
        _, fds, *_ = socket.recv_fds(ours, 1, 1)
        helper = subprocess.Popen([str(binary_folder() / "noisebook-priv")], stdin=fds[0])
        os.close(fds[0])
    assert helper.wait(10) == 0
    said = "no 1 the thread is not this user's; no 33 the value is out of its range"
    assert answer.result() == said


def raw_helper(command: list[str]) -> tuple[socket.socket, subprocess.Popen]:
    """The helper with a bare socket, for what the library would not send."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(10)
    with its:
        return ours, subprocess.Popen(command, stdin=its, stderr=subprocess.DEVNULL)


def test_a_request_with_two_descriptors_is_refused_and_they_are_closed(program: Path) -> None:
    def send() -> tuple[str, bool]:
        ours, helper = raw_helper([str(program)])
        reader, writer = os.pipe()
        socket.send_fds(ours, [b"latency -1"], [writer, writer])
        os.close(writer)
        answer = ours.recv(5000)[:5].decode()
        closed = bool(select.select([reader], [], [], 1)[0])
        ours.close()
        helper.wait(10)
        return answer, closed

    assert as_nobody(send) == [f"no {errno.EBADMSG}", True]


def test_without_rights_a_request_is_refused_in_words() -> None:
    """Not with what an earlier request left on the stack."""

    def ask() -> str:
        ours, helper = raw_helper([str(binary_folder() / "noisebook-priv")])
        events = ",".join(["sched:sched_switch"] * 200)
        for request in (f"knob noisebook-1-2-3-x set_event {events}", "event sched/sched_switch"):
            ours.send(request.encode())
            answer = ours.recv(5000).decode("latin-1")
        ours.close()
        helper.wait(10)
        return answer

    assert as_nobody(ask) == "no 1 Operation not permitted"


def test_an_instance_that_cannot_be_shown_is_not_left(program: Path) -> None:
    """Without descriptors, which its user may take from the running helper."""

    def ask() -> list[int]:
        name = kernel.owned_name("few")
        helper = Helper([str(program)])
        resource.prlimit(helper._process.pid, resource.RLIMIT_NOFILE, (5, 5))
        made = asked(helper, "trace", name)
        helper.close()
        other = Helper([str(program)])
        return [made, asked(other, "untrace", name)]

    assert as_nobody(ask) == [errno.EMFILE, errno.ENOENT]


def test_an_instance_is_not_left_by_who_does_not_wait_for_the_answer(program: Path) -> None:
    def ask() -> int:
        name = kernel.owned_name("gone")
        ours, helper = raw_helper([str(program)])
        ours.send(f"trace {name}".encode())
        ours.close()
        helper.wait(10)
        return asked(Helper([str(program)]), "look", name)

    assert as_nobody(ask) == errno.ENOENT


def test_started_by_hand_it_does_nothing(program: Path) -> None:
    done = subprocess.run([program], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 2
    assert "is started by Noisebook" in done.stderr


def test_after_a_kill_the_guardian_of_a_user_puts_back_what_root_must(
    program: Path, open_folder: Path
) -> None:
    old = Path(STAT_INTERVAL).read_text().strip()
    other = "9" if old != "9" else "8"
    alive = []

    def change() -> str:
        """The process ends at once after it, without putting anything back."""
        state = str(open_folder / "state")
        pythons = (sys.executable, "/usr/bin/python3")  # of the guardian: ours may be root's
        sys.executable = next(path for path in pythons if os.access(path, os.X_OK))
        os.environ |= {"NOISEBOOK_PRIV": str(program), "NOISEBOOK_STATE": state}
        alive.append(settings.apply({STAT_INTERVAL: other}))
        return Path(STAT_INTERVAL).read_text().strip()

    seen = as_nobody(change)
    if "guardian" in str(seen) or seen == "StopIteration: ":
        pytest.skip("Python, or this folder, cannot be reached by another user")
    assert seen == other
    assert eventually(lambda: Path(STAT_INTERVAL).read_text().strip() == old)
