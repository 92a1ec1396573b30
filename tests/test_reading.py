"""A file is read in a child: its answer comes back, its end is an error, and nothing is left."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError, LostEvents
from nbhelpers.reading import in_child, read_csv, read_parquet


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "input"
    file.write_bytes(bytes(1_000_000))
    return file


def test_the_child_has_the_limits_that_the_file_gives_it(path):
    kinds = (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_CORE)

    def limits():
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        room = resource.getrlimit(kinds[0])[0] - pages * resource.getpagesize()
        soft = [resource.getrlimit(kind)[0] for kind in kinds[1:]]
        return os.getpid(), room / 2**20, soft, signal.getitimer(signal.ITIMER_REAL)[0]

    child, room_mib, soft, alarm_s = in_child(limits, path, "table")
    assert child != os.getpid()
    assert room_mib == pytest.approx(128 + 100_000_000 / 2**20, abs=20)
    assert soft == [20, 0]
    assert 150 < alarm_s <= 200
    assert in_child(limits, path, "table", 1_000_000)[1] == pytest.approx(128 + 19, abs=20)
    assert in_child(os.getpid, path, "table", 200_000) == os.getpid()  # what is small has no child


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (lambda: bytearray(1 << 30), "lack of memory: it may take 20 s and 223 MiB"),
        (lambda: [[] for _ in range(10**8)], "lack of memory"),
        (lambda: os.kill(os.getpid(), signal.SIGSYS), "SIGSYS"),
        (lambda: (signal.setitimer(signal.ITIMER_REAL, 0.1), time.sleep(60)), "SIGALRM"),
        (
            lambda: (resource.setrlimit(resource.RLIMIT_CPU, (1, 9)), list(iter(int, 1))),
            "SIGXCPU|lack",
        ),
        (lambda: os._exit(1), "lack of memory"),
    ],
    ids=["memory", "objects", "crash", "clock", "CPU time", "no answer"],
)
def test_the_end_of_the_child_is_an_error_that_names_the_file(read, said, path):
    with pytest.raises(InputError, match=said) as raised:
        in_child(read, path, "table")
    assert raised.value.where == path
    with pytest.raises(ChildProcessError):  # none is left
        os.waitpid(-1, os.WNOHANG)


def test_an_error_comes_back_as_it_was(path):
    def read():
        raise LostEvents("the kernel lost 3 events", where=path, fix="record again")

    with pytest.raises(LostEvents, match="lost 3 events") as raised:
        in_child(read, path, "trace")
    assert (raised.value.where, raised.value.fix) == (path, "record again")


def test_a_table_comes_back_with_its_types(tmp_path):
    times = pd.date_range("2026-01-01", periods=3, tz="UTC")
    table = pd.DataFrame(
        {
            "kind": pd.Categorical(["b", None, "a"], ["b", "a", "c"], ordered=True),
            "text": ["x", None, "y"],
            "whole": pd.array([1, None, 3], "Int64"),
            "small": np.array([1, 2, 3], "int8"),
            "time": times,
            "list": [[1], [], [2, 3]],
        }
    )
    table.to_parquet(tmp_path / "table.parquet")
    read = read_parquet(tmp_path / "table.parquet")
    pd.testing.assert_frame_equal(read, pd.read_parquet(tmp_path / "table.parquet"))
    chosen = read_parquet(tmp_path / "table.parquet", columns=["small", "kind"])
    assert list(chosen) == ["small", "kind"]


def test_a_process_with_busy_threads_reads(tmp_path):
    """Each holds locks of pandas, of malloc, of the interpreter, at any moment of a fork."""
    path, ended = tmp_path / "table.csv", threading.Event()
    path.write_text("a,b\n" + "1,2\n" * 100)

    def work():
        while not ended.is_set():
            pd.read_csv(path, engine="c").to_csv(os.devnull)
            print(end="")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        assert all(len(read_csv(path)) == 100 for _ in range(20))
    finally:
        ended.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_process_that_has_read_nothing_before_reads_a_table(kind, tmp_path):
    """Arrow's own pool reserves a GiB of addresses when it is first used, which is in the child."""
    table = pd.DataFrame({"name": ["a", "b"], "value": [1.0, 2.0]})
    path = tmp_path / f"a ü.{kind}"
    table.to_csv(path, index=False) if kind == "csv" else table.to_parquet(path)
    code = f"from nbhelpers.reading import read_{kind}; print(len(read_{kind}({str(path)!r})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("2\n", "")
