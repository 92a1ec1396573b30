"""A disk that is full, or may only be read: one sentence and what to do; what was written before is
whole, and the same command goes on.

The disks are real ones: small file systems in memory, mounted in a namespace of the test's own.
"""

import errno
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from nbhelpers.errors import DiskError, NoisebookError
from nbhelpers.files import disk_error, shortage

from .processes import run
from .test_make import OUTSIDE, PRIVATE, REPOSITORY, needs_mounts
from .test_stages import house, notebook, place  # noqa: F401


def on_a_small_disk(
    place: Path, script: str, size: str = "64k", env: dict | None = None
) -> subprocess.CompletedProcess:
    """A shell script beside a file system of that size at `place`, where it is the working
    directory.
    """
    place.mkdir(parents=True, exist_ok=True)
    folder = shlex.quote(str(place))
    command = f"mount -t tmpfs -o size={size} tmpfs {folder} && cd {folder} && {script}"
    environment = env or {**OUTSIDE, "PYTHONPATH": str(REPOSITORY)}
    return run(*PRIVATE, "sh", "-c", command, env=environment)


PYTHON = shlex.quote(sys.executable)


def test_the_error_is_both_ours_and_the_systems():
    full = OSError(errno.ENOSPC, "No space left on device")
    said = disk_error(full, Path.cwd() / "no such folder" / "file")
    assert all(isinstance(said, kind) for kind in (DiskError, OSError, NoisebookError))
    assert said.errno == errno.ENOSPC and str(said).startswith("the disk is full")
    assert f"see df -h {shlex.quote(str(Path.cwd()))}" in str(said)
    assert disk_error(OSError(errno.EACCES, "Permission denied"), "file") is None
    assert "no memory" in str(shortage(RuntimeError("can't allocate read lock")))
    assert shortage(RuntimeError("another")) is None


@needs_mounts
@pytest.mark.parametrize(
    "call",
    [
        "write_atomically('file', b'x' * 200_000)",
        "write_json('deep/er/file.json', 'x' * 200_000)",
        "append_record('runs.jsonl', {'x': 'x' * 200_000})",
    ],
)
def test_what_is_written_to_a_full_disk_leaves_the_old_content_and_says_what_to_do(tmp_path, call):
    code = f"""
from nbhelpers.errors import NoisebookError
from nbhelpers.files import *
from nbhelpers.records import append_record, read_records
write_atomically('file', b'old'); append_record('runs.jsonl', {{'run': 0}})
try:
    {call}
except NoisebookError as error:
    print(error)
assert open('file', 'rb').read() == b'old' and read_records('runs.jsonl') == [{{'run': 0}}]
append_record('runs.jsonl', {{'run': 1}})
assert [record['run'] for record in read_records('runs.jsonl')] == [0, 1]
"""
    done = on_a_small_disk(tmp_path / "disk", f"{PYTHON} -c {shlex.quote(code)}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("the disk is full\n  where: ")
    assert "what to do: make room (see df -h" in done.stdout


@needs_mounts
def test_a_file_system_that_can_only_be_read_is_told_as_such(tmp_path):
    code = "from nbhelpers.files import write_json; write_json('file.json', 1)"
    script = f"mount -o remount,ro . && {PYTHON} -c {shlex.quote(code)}"
    done = on_a_small_disk(tmp_path / "disk", script)
    assert "DiskError: the file system can only be read" in done.stderr
    assert "use a copy in a place where you may write" in done.stderr


CAMPAIGN = """
import sys
from nbhelpers.errors import NoisebookError
from nbhelpers.records import read_records
from nbhelpers.measurement import Campaign, Cell
from nbhelpers.workloads import program
try:
    table = Campaign('campaign', [Cell('a', program(['true']))], 40).run()
except NoisebookError as error:
    sys.exit(f'{len(read_records("campaign/runs.jsonl"))} runs are kept. {error}')
assert list(table['run']) == list(range(40)) and (table['status'] == 'ok').all()
"""


@pytest.mark.long
@needs_mounts
@pytest.mark.usefixtures("binaries")
@pytest.mark.timeout(600)
def test_a_campaign_on_a_disk_that_fills_up_goes_on_when_there_is_room(tmp_path):
    once = f"{PYTHON} -c {shlex.quote(CAMPAIGN)}"
    script = f"head -c 44k /dev/zero >filler; {once}; echo first: $?; rm filler && {once}"
    done = on_a_small_disk(tmp_path / "disk", script)
    assert done.returncode == 0 and "first: 1" in done.stdout, done.stdout + done.stderr
    assert "runs are kept. the disk is full" in done.stderr and "Traceback" not in done.stderr
    assert 0 < int(done.stderr.split(" runs are kept")[0].split()[-1]) < 40


@needs_mounts
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "cell",
    [
        "from nbhelpers.files import write_text\n_ = write_text('../build/big', 'x' * 2_000_000)",
        "_ = open('../build/big', 'w').write('x' * 2_000_000)",
    ],
    ids=["by our own writing", "by any other"],
)
def test_a_stage_on_a_full_disk_says_so_without_a_traceback(house, cell):  # noqa: F811
    notebook(house, "00-machine", cell)
    script = f"cd .. && {PYTHON} -m nbhelpers stage 00-machine --profile quick"
    done = on_a_small_disk(house / "build", script, size="1m", env=place(house)["env"])
    assert done.returncode in (1, 2), done.stderr
    assert "the disk is full" in done.stderr and "make room" in done.stderr
    assert "Traceback" not in done.stderr and "00-machine.html" not in done.stdout
