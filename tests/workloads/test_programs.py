"""The C programs: nbody against an independent computation, noisebook.h, the launcher and the
preload library.
"""

import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def run(*words, **options):
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=30, **options
    )


def values(output: str) -> dict[str, str]:
    line = output.splitlines()[-1]
    assert line.startswith("noisebook: ")
    return dict(word.split("=") for word in line.split()[2:])


def splitmix_uniform(seed: int, counters: np.ndarray) -> np.ndarray:
    """splitmix64's output function on a counter, from its definition."""
    bits = np.uint64(seed << 40) + (counters.astype(np.uint64) + np.uint64(1)) * np.uint64(
        0x9E3779B97F4A7C15
    )
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((bits ^ (bits >> np.uint64(31))) >> np.uint64(11)).astype(float) * 2.0**-53


def simulate(bodies: int, steps: int, dt: float, seed: int) -> tuple[float, float]:
    """Energy before and after, by NumPy."""
    u = splitmix_uniform(seed, np.arange(5 * bodies).reshape(bodies, 5))

    def vectors(length, up, turn):
        up, angle = 2 * up - 1, 2 * np.pi * turn
        flat = np.sqrt(1 - up**2)
        return length * np.stack([flat * np.cos(angle), flat * np.sin(angle), up])

    x, v = vectors(np.cbrt(u[:, 0]), u[:, 1], u[:, 2]), vectors(np.sqrt(0.6), u[:, 3], u[:, 4])
    v -= v.mean(axis=1, keepdims=True)

    def forces():
        d = x[:, None, :] - x[:, :, None]
        r2 = (d**2).sum(axis=0) + 0.05**2
        return (d * r2**-1.5).sum(axis=2) / bodies, r2

    def energy():
        r2 = forces()[1]
        return ((v**2).sum() / 2 - ((r2**-0.5).sum() - bodies / 0.05) / 2 / bodies) / bodies

    before, a = energy(), forces()[0]
    for _ in range(steps):
        v += dt / 2 * a
        x += dt * v
        a = forces()[0]
        v += dt / 2 * a
    return before, energy()


def test_nbody_agrees_with_numpy(binaries):
    words = ["--bodies", "200", "--steps", "50", "--time-step", "2e-3", "--seed", "7"]
    got = values(run(binaries / "nbody", *words).stdout)
    before, after = simulate(200, 50, 2e-3, 7)
    assert float(got["energy"]) == pytest.approx(after, rel=1e-11)
    assert float(got["energy_drift"]) == pytest.approx(abs(after / before - 1), rel=1e-2)


def test_nbody_gives_the_same_bits_on_any_number_of_threads(binaries):
    def line(threads: int, *words) -> dict:
        env = {"OMP_NUM_THREADS": str(threads)}
        command = (binaries / "nbody", "--bodies", 501, "--steps", 5, *words)
        return values(run(*command, env=env).stdout)

    lines = [line(threads) for threads in (1, 2, 3, 7)]
    assert [one["threads"] for one in lines] == ["1", "2", "3", "7"]
    assert len({one["checksum"] for one in lines}) == 1
    assert line(2, "--seed", 2)["checksum"] != lines[0]["checksum"]


def test_broken_barrier_is_said_and_survived(binaries):
    env = {"NOISEBOOK_READY_FD": "999", "NOISEBOOK_GO_FD": "998"}
    done = run(binaries / "nbody", "--bodies", 64, env=env)
    assert done.returncode == 0
    assert "no barrier" in done.stderr
    assert values(done.stdout)["verified"] == "yes"
    done = run(
        binaries / "nbody", "--bodies", 64, env={"NOISEBOOK_READY_FD": "x", "NOISEBOOK_GO_FD": "-1"}
    )
    assert done.returncode == 0 and not done.stderr


def at_barrier(command, start_in_ns, **options):
    """Start a program with a barrier, answer it, and return the start time, the process's output
    and its exit status.
    """
    (ready, their_ready), (their_go, go) = os.pipe(), os.pipe()
    env = dict(
        options.pop("env", {}), NOISEBOOK_READY_FD=str(their_ready), NOISEBOOK_GO_FD=str(their_go)
    )
    process = subprocess.Popen(
        [str(word) for word in command],
        env=env,
        pass_fds=(their_ready, their_go),
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )
    os.close(their_ready), os.close(their_go)
    assert os.read(ready, 2) == b"r"
    t0_ns = time.monotonic_ns() + start_in_ns
    os.write(go, t0_ns.to_bytes(8, sys.byteorder, signed=True))
    output = process.communicate(timeout=30)[0]
    os.close(ready), os.close(go)
    return t0_ns, output, process.returncode


def test_region_begins_at_the_agreed_time_and_not_before(binaries):
    t0_ns, output, _ = at_barrier([binaries / "nbody", "--bodies", 64], 50_000_000)
    assert int(values(output)["start_ns"]) >= t0_ns


def test_a_start_time_in_the_past_means_now(binaries):
    t0_ns, output, status = at_barrier([binaries / "nbody", "--bodies", 64], -(10**12))
    assert status == 0 and int(values(output)["start_ns"]) > t0_ns + 10**12 // 2


def test_preload_waits_before_main_and_forgets_itself(binaries):
    script = """
import os, time
print(time.monotonic_ns(), [v for v in os.environ if "PRELOAD" in v or "NOISEBOOK" in v])
"""
    library = ("--preload", binaries / "libnbstart.so")
    command = [binaries / "nbstart", *library, "--", sys.executable, "-c", script]
    t0_ns, output, _ = at_barrier(command, 30_000_000)
    began_ns, _, names = output.partition(" ")
    assert int(began_ns) >= t0_ns and names.strip() == "[]"


def test_preload_keeps_what_the_user_preloads(binaries, tmp_path):
    library, own = ("--preload", binaries / "libnbstart.so"), tmp_path / "empty.so"
    subprocess.run(["cc", "-shared", "-o", own, "-xc", "/dev/null"], check=True)
    words = [binaries / "nbstart", *library, "--", "sh", "-c", "echo [$LD_PRELOAD]"]
    assert run(*words, env=os.environ | {"LD_PRELOAD": str(own)}).stdout == f"[{own}]\n"


def test_launcher_waits_when_asked(binaries):
    script = "import os, time; print(time.monotonic_ns(), os.environ.get('NOISEBOOK_READY_FD'))"
    t0_ns, output, _ = at_barrier(
        [binaries / "nbstart", "--wait", "--", sys.executable, "-c", script], 30_000_000
    )
    assert int(output.split()[0]) >= t0_ns and output.split()[1] == "None"


def test_launcher_statuses(binaries, tmp_path):
    nbstart = binaries / "nbstart"
    assert run(nbstart, "--", "sh", "-c", "exit 9").returncode == 9
    missing = run(nbstart, "--", "no-such-program")
    assert missing.returncode == 127 and "no-such-program" in missing.stderr
    (tmp_path / "text").write_text("no program")
    assert run(nbstart, "--", tmp_path / "text").returncode == 126


@pytest.mark.parametrize(
    "words", ["", "true", "--", "--fifo 0 -- true", "--fifo x -- true", "--cpus", "--nope -- true"]
)
def test_a_wrong_command_line_of_the_launcher_is_said(binaries, words):
    done = run(binaries / "nbstart", *words.split())
    assert done.returncode == 125 and "usage" in done.stderr


@pytest.mark.parametrize("cpus", ["", "x", "1-", "3-1", "99999", "1023", "0,1022"])
def test_cpus_that_are_not_here_are_said(binaries, cpus):
    done = run(binaries / "nbstart", "--cpus", cpus, "--", "true")
    assert done.returncode == 125 and "CPUs" in done.stderr


def test_launcher_sets_cpus_group_and_policy(binaries):
    script = """
import os
print(os.getpgrp() == os.getpid(), sorted(os.sched_getaffinity(0)), os.sched_getscheduler(0))
"""
    cpu, python = max(os.sched_getaffinity(0)), ("--", sys.executable, "-c", script)
    assert run(binaries / "nbstart", "--cpus", cpu, *python).stdout == f"True [{cpu}] 0\n"
    done = run(binaries / "nbstart", "--fifo", 1, *python)
    if "SCHED_FIFO" in done.stderr:
        pytest.skip(f"no real-time scheduling for this user: {done.stderr.strip()}")
    assert done.stdout.endswith(f"{os.SCHED_FIFO}\n")


def test_program_dies_with_its_parent(binaries):
    script = (
        f"import subprocess, sys\np = subprocess.Popen([{str(binaries / 'nbstart')!r}, '--',"
        " 'sleep', '60'])\nprint(p.pid, flush=True)\nsys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    child = int(parent.stdout.readline())
    while "sleep" not in open(f"/proc/{child}/cmdline").read():
        time.sleep(0.005)
    pidfd = os.pidfd_open(child)
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    assert select.select([pidfd], [], [], 10)[0], "the program outlived its parent"
    os.close(pidfd)


def test_launcher_whose_parent_is_gone_kills_itself(binaries):
    assert (
        run(binaries / "nbstart", "--parent", 2**22 - 1, "--", "true").returncode == -signal.SIGKILL
    )


@pytest.mark.parametrize(("folder", "goal"), [("", "stream"), ("mpi", "hello"), ("sycl", "stream")])
def test_flags_of_the_environment_do_not_slow_the_programs(tmp_path, folder, goal):
    """A conda environment sets them; they are for packages, which run on any machine."""
    words = ("make", "-n", "-C", REPOSITORY / "workloads" / folder, f"BIN={tmp_path}")
    flags = {"CFLAGS": "-Og -march=nocona", "CXXFLAGS": "-Og -march=nocona"}
    done = run(*words, tmp_path / goal, env=os.environ | flags)
    assert done.returncode == 0, done.stderr
    assert "nocona" not in done.stdout and re.search(r" -O[23]\b", done.stdout), done.stdout


@pytest.mark.long
def test_sources_are_clean_under_the_sanitizers(tmp_path):
    flags = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
    made = (f"BIN={tmp_path}", f"CFLAGS={flags}", f"{tmp_path}/nbody")
    done = run("make", "-C", REPOSITORY / "workloads", *made)
    if "cannot find" in done.stderr:
        pytest.skip("the compiler's sanitizer libraries are not installed")
    assert done.returncode == 0, done.stderr
    done = run(tmp_path / "nbody", "--bodies", 99, "--steps", 3, env={"OMP_NUM_THREADS": "2"})
    assert done.returncode == 0, done.stderr
