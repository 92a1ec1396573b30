"""One run: its times, its failures, and that nothing of it survives."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from nbhelpers.errors import InputError, RunError
from nbhelpers.measurement import Attachment, run_once
from nbhelpers.workloads import nbody, program

from ..machine.conftest import eventually
from .test_processes import length, sleeping

pytestmark = pytest.mark.usefixtures("binaries", "nothing_left")
REPOSITORY = Path(__file__).resolve().parents[2]
PROTOCOL = "noisebook: x seconds={seconds} start_ns={start} end_ns={end} verified={verified}"


def python(script: str, **options):
    return program([sys.executable, "-c", textwrap.dedent(script)], **options)


class Diary(Attachment):
    """Notes what it is called with, and how the process is doing then."""

    def __init__(self, name="", columns=None, fail_at=None):
        self.name, self.calls, self.columns, self.fail_at = name, [], columns or {}, fail_at

    def _note(self, call, *details):
        self.calls.append((self.name, call, *details))
        if call == self.fail_at:
            raise RuntimeError(f"planted at {call}")

    def before(self, workload):
        self._note("before")

    def armed(self, pid):
        self.pid = pid
        self._note("armed", Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode())

    def released(self, t0_ns):
        self._note("released", t0_ns - time.monotonic_ns() > 0)

    def after(self, run):
        self._note("after", run["status"], Path(f"/proc/{self.pid}").exists())
        return self.columns

    def close(self):
        self._note("close")


def test_nbody_row():
    row = run_once(nbody(500, threads=2), run=7)
    assert (row["status"], row["run"], row["threads"], row["verified"]) == ("ok", 7, 2, "yes")
    assert row["seconds"] == pytest.approx((row["end_ns"] - row["start_ns"]) * 1e-9, abs=1e-9)
    assert row["t0_ns"] <= row["start_ns"] < row["end_ns"]
    assert row["seconds"] < row["wall_seconds"] < row["elapsed_seconds"]
    assert row["user_s"] > 0 and row["max_rss_kb"] > 500 and row["checksum"].startswith("0x")


@pytest.mark.parametrize("start", ["main", "exec"])
def test_external_program_begins_at_the_common_start(start):
    script = "import time; print('took', time.monotonic_ns())"
    workload = python(script, start=start, seconds=r"took (?P<seconds>\d+)")
    row = run_once(workload, lead_ms=20)
    assert row["status"] == "ok"
    assert row["seconds"] >= row["t0_ns"] == row["start_ns"]
    timed = run_once(program("sleep 0.05", start=start))
    assert timed["seconds"] == timed["wall_seconds"] >= 0.05


def test_run_environment_and_place():
    cpu = max(os.sched_getaffinity(0))
    passed_on = {
        int(fd)
        for fd in os.listdir("/proc/self/fd")
        if Path(f"/proc/self/fd/{fd}").exists() and os.get_inheritable(int(fd))
    }
    script = f"""
        import os, sys
        assert os.environ["PLANTED"] == "yes" and os.sched_getaffinity(0) == {{{cpu}}}
        for word in ("READY", "GO_FD", "PRELOAD"):
            assert not any(word in name for name in os.environ)
        assert os.getpgrp() == os.getpid() and sys.stdin.read() == ""
        open_files = os.listdir("/proc/self/fd")
        assert len(open_files) - 1 == {len(passed_on | {0, 1, 2})}, open_files
    """
    for start in ("main", "exec"):
        row = run_once(replace(python(script, env={"PLANTED": "yes"}, start=start), cpus=(cpu,)))
        assert row["status"] == "ok", row["message"]


def limit_of(command: str) -> float:
    """What sleeps is to be stopped soon; what ends by itself has time enough on any machine."""
    return 0.3 if "sleep" in command else 30


@pytest.mark.parametrize("start", ["main", "exec"])
@pytest.mark.parametrize(
    "command, status, message",
    [
        ("exit 3", "exit 3", "the program failed"),
        ("echo oh dear >&2; exit 1", "exit 1", "oh dear"),
        ("kill -SEGV $$", "signal 11", "the program failed"),
        ("sleep 60", "timeout", "longer than 0.3 s"),
        ("true", "ok", ""),
    ],
)
def test_statuses(start, command, status, message):
    row = run_once(program(["sh", "-c", command], start=start, timeout_s=limit_of(command)))
    assert row["status"] == status and message in row["message"]
    assert (row["seconds"] is None) == (row["start_ns"] is None) == (status != "ok")
    assert row["wall_seconds"] > 0 and row["user_s"] >= 0


@pytest.mark.parametrize(
    "command, status, message",
    [
        ("exit 4", "exit 4", "before it was ready"),
        ("true", "no region", "did not wait"),
        ("sleep 60", "timeout", "ready to start"),
        ("exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; sleep 60", "timeout", "ready to start"),
        ("kill -KILL $$", "signal 9", "before"),
    ],
)
def test_programs_that_never_come_to_their_barrier(command, status, message):
    diary = Diary()
    workload = program(["sh", "-c", command], start="mark", timeout_s=limit_of(command))
    row = run_once(workload, [diary])
    assert row["status"] == status
    assert message in row["message"]
    assert row["seconds"] is row["t0_ns"] is None
    assert [call for _, call, *_ in diary.calls] == ["before"]


def test_a_program_that_cannot_start_is_an_error_of_the_user(monkeypatch, tmp_path):
    with pytest.raises(RunError, match="PATH"):
        run_once(replace(program("true"), command=("no-such-program",)))
    with pytest.raises(RunError, match="Argument list too long"):
        run_once(program(["true", "x" * 3_000_000]))
    monkeypatch.setenv("NOISEBOOK_BIN", str(tmp_path))
    with pytest.raises(RunError, match="make env"):
        run_once(nbody())


def marking(line: str, status: int = 0):
    """A program that keeps the protocol but prints what we want; {now} is its end."""
    return python(
        f"""
        import os, sys, time
        os.write(int(os.environ["NOISEBOOK_READY_FD"]), b"r")
        t0 = int.from_bytes(os.read(int(os.environ["NOISEBOOK_GO_FD"]), 8), sys.byteorder)
        while (now := time.monotonic_ns()) < t0 + 1000_000: pass
        print("chatter")
        print({line!r}.format(start=t0, end=now, seconds=(now - t0) * 1e-9, verified="yes"))
        sys.exit({status})
    """,
        start="mark",
    )


@pytest.mark.parametrize(
    "line, status",
    [
        (PROTOCOL, "ok"),
        (PROTOCOL.replace("{verified}", "no"), "unverified"),
        (PROTOCOL.replace(" verified={verified}", ""), "ok"),
        (PROTOCOL.replace("{seconds}", "nan"), "unreadable output"),
        (PROTOCOL.replace("{seconds}", "-1"), "unreadable output"),
        (PROTOCOL.replace("{end}", "{start}"), "unreadable output"),
        (PROTOCOL.replace("{end}", str(2**62)), "unreadable output"),
        (PROTOCOL.replace("start_ns", "begin"), "unreadable output"),
        ("noisebook x seconds=1", "unreadable output"),
        ("", "unreadable output"),
    ],
)
def test_protocol_lines(line, status):
    row = run_once(marking(line))
    assert row["status"] == status and (row["seconds"] is not None) == (status == "ok")


def test_own_keys_never_hide_columns():
    line = PROTOCOL + " status=mine run=99 colour=blue user_s=77 checksum=1e5x"
    row = run_once(marking(line), run=3)
    assert (row["status"], row["run"]) == ("ok", 3)
    assert (row["program_run"], row["program_status"], row["program_user_s"]) == (99, "mine", 77)
    assert (row["colour"], row["checksum"]) == ("blue", "1e5x")


def test_peak_memory_is_the_programs_or_missing():
    """A peak below the harness's own cannot be seen, so the large one is above it."""
    own_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    touched_kb = int(1.2 * own_kb) + 2**17
    assert run_once(program("true"))["max_rss_kb"] is None
    script = f"""
        import mmap; n = {touched_kb} * 1024; m = mmap.mmap(-1, n); m.madvise(15)
        for i in range(0, n, 4096): m[i] = 1
    """
    assert touched_kb < run_once(python(script))["max_rss_kb"] < touched_kb + 100_000


def test_chatty_programs_are_caught_within_bounds():
    script = """
        import sys
        sys.stdout.write("first" + "x" * 9_000_000 + "last 7 s")
        sys.stderr.write("e" * 3_000_000)
    """
    seen, written = Diary(), []
    seen.printed = lambda output, errors: written.extend((output, errors))
    row = run_once(python(script, seconds=r"last (?P<seconds>\d+) s"), [seen])
    assert row["status"] == "ok" and row["seconds"] == 7
    output, errors = written
    head, middle, tail = output.split("\n")
    assert head == "first" + "x" * (65536 - 5)
    assert middle == f"[{9_000_013 - len(head + tail)} bytes left out]"
    assert tail.endswith("xlast 7 s") and len(errors) < 2 * 65536 + 50


@pytest.mark.parametrize(
    "command, status",
    [("yes", "timeout"), ("yes & sleep 0.05", "ok"), ("yes >&2 & exit 3", "exit 3")],
)
def test_programs_that_print_for_ever(command, status):
    limit_s = 0.3 if status == "timeout" else 30
    row = run_once(program(["sh", "-c", command], timeout_s=limit_s))
    assert row["status"] == status and row["wall_seconds"] < 30


def test_attachments_are_called_in_order_and_read_in_reverse():
    outer, inner = Diary("outer", {"a": 1}), Diary("inner", {"b": 2})
    inner.calls = outer.calls
    row = run_once(program("sleep 0.01"), [outer, inner], lead_ms=200)
    assert outer.calls == [
        ("outer", "before"),
        ("inner", "before"),
        ("outer", "armed", outer.calls[2][2]),
        ("inner", "armed", outer.calls[2][2]),
        ("outer", "released", True),
        ("inner", "released", True),
        ("inner", "after", "ok", False),
        ("outer", "after", "ok", False),
    ]
    assert outer.calls[2][2].endswith("sleep") and row["a"] == 1 and row["b"] == 2


def test_attachments_may_fail_a_run_but_change_nothing_else():
    lost = Diary(columns={"status": "lost events"})
    assert run_once(program("true"), [lost])["status"] == "lost events"
    with pytest.raises(InputError, match="seconds"):
        run_once(program("true"), [Diary(columns={"seconds": 1})])


@pytest.mark.parametrize("call", ["armed", "released"])
def test_an_attachment_that_raises_kills_the_run(call):
    diary = Diary(fail_at=call)
    with pytest.raises(RuntimeError, match=call):
        run_once(program("sleep 60"), [diary])
    assert not Path(f"/proc/{diary.pid}").exists()


def test_interrupt_kills_the_run_and_is_raised_again():
    diary = Diary()
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    diary.released = lambda t0_ns: timer.start()
    with pytest.raises(KeyboardInterrupt):
        run_once(program("sh -c 'sleep 60 & sleep 60'"), [diary])
    timer.join()
    assert not Path(f"/proc/{diary.pid}").exists()


def test_sigterm_cleans_up_and_then_ends_the_process():
    seconds = length()
    script = f"""
        from nbhelpers.measurement import Attachment, run_once
        from nbhelpers.workloads import program
        class Printer(Attachment):
            def released(self, t0_ns): print("released", flush=True)
        try:
            workload = program(["sh", "-c", "setsid sleep {seconds} & sleep 60"])
            run_once(workload, [Printer()])
        finally:
            print("not reached: the default action of SIGTERM ends the process first")
    """
    words = [sys.executable, "-c", textwrap.dedent(script)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
    assert process.stdout.readline() == "released\n"
    assert eventually(lambda: sleeping(seconds))
    process.terminate()
    assert process.communicate(timeout=20)[0] == "" and process.returncode == -signal.SIGTERM
    assert not sleeping(seconds)


def test_two_hundred_runs_leak_nothing():
    workload, before = program("true"), len(os.listdir("/proc/self/fd"))
    for number in range(200):
        row = run_once(workload, run=number, lead_ms=0)
        assert row["status"] == "ok", row
    assert len(os.listdir("/proc/self/fd")) == before


class Preloads(Attachment):
    """Gives the run a variable and libraries."""

    def __init__(self, *libraries):
        self.libraries, self.variables = libraries, {"OF_THE_PROBE": "here"}


def test_libraries_in_a_folder_with_a_blank_are_loaded(tmp_path, monkeypatch, binaries):
    """Children find those that attachments add; the launcher's own closes its file again."""
    place = tmp_path / "a b:c"
    place.mkdir()
    for name in ("nbstart", "libnbstart.so", "libnbspeed.so"):
        shutil.copy2(Path(binaries) / name, place)
    monkeypatch.setenv("NOISEBOOK_BIN", str(place))
    script = """
        import os, subprocess
        maps = ["cat", "/proc/self/maps"]
        loaded = subprocess.run(maps, capture_output=True, text=True, check=True)
        own = open("/proc/self/maps").read()
        print("libnbspeed" in own, "libnbstart" in own, "libnbspeed" in loaded.stdout)
        files = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
        print([one for one in map(os.path.realpath, files) if "libnb" in one], loaded.stderr)
    """
    seen, written = Diary(), []
    seen.printed = lambda output, errors: written.append((output, errors))
    row = run_once(replace(python(script), start="main"), [seen, Preloads("libnbspeed.so")])
    assert row["status"] == "ok"
    assert written == [("True True True\n[] \n", "")]


def test_what_was_printed_is_known_by_its_size_its_lines_and_its_text_without_digits(binaries):
    def printed(line):
        return run_once(program(["sh", "-c", line]))

    long, other = printed("seq 100000; echo took 0.9 s"), printed("seq 100000; echo took 12.5 s")
    assert long["output_lines"] == other["output_lines"] == 100_001
    assert long["output_bytes"] == other["output_bytes"] - 1 == 588_895 + len("took 0.9 s\n")
    assert long["output_digest"] == other["output_digest"]
    assert printed("seq 100000; echo needed 1 s")["output_digest"] != long["output_digest"]
