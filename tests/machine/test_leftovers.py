"""What dead processes leave: found by journal or by name, put back in the right order, said in one
line; and disks that fail.
"""

import contextlib
import mmap
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from nbhelpers.errors import SettingError
from nbhelpers.machine import _watch, doctor, kernel, leftovers, run_groups, settings

from .conftest import REPOSITORY, as_root, eventually
from .test_settings import journals, value

TRACED = """
import os, pathlib, signal, sys
from nbhelpers.tracing import Tracer
tracer = Tracer(sys.argv[1], source="tracepoints")
tracer.before(None)
tracer.armed(os.getpid())
"""
IN_OWN_MOUNTS = """
set -u
while umount /sys/kernel/tracing 2>/dev/null; do :; done
{mount}
"$1" -c "$2" "$3"
status=$?
for try in $(seq 200); do
    grep -qsa "guardian.py.$NOISEBOOK_STATE" /proc/[0-9]*/cmdline || break
    sleep 0.1
done
grep -c " /sys/kernel/tracing " /proc/mounts
exit $status
"""


@pytest.fixture
def dead(python):
    """The name of something that a process made that is dead now."""
    process = python("from nbhelpers.machine import kernel; print(kernel.owned_name('test'))")
    name, error = process.communicate(timeout=60)
    assert name, error
    return name.strip()


def instance_names() -> list[str]:
    return os.listdir(f"{kernel.file_system(kernel.TRACEFS)}/instances")


@pytest.fixture
def stray(dead):
    """A tracefs instance that records, without journal or owner."""
    folder = Path(kernel.file_system(kernel.TRACEFS), "instances", dead)
    folder.mkdir()
    assert (folder / "tracing_on").read_text().strip() == "1"
    yield dead
    with contextlib.suppress(OSError):
        folder.rmdir()


# ---- one journal, in reverse ---------------------------------------------------------------------


def test_nested_changes_that_end_in_the_wrong_order_end_at_the_first_value(knob, state):
    outer, inner = settings.apply({knob: "outer"}), settings.apply({knob: "inner"})
    outer.restore()
    assert value(knob) == "inner" and not outer.in_force
    inner.restore()
    assert value(knob) == "old" and not inner.in_force and journals(state) == []


def test_a_guardian_that_was_killed_is_replaced_at_the_next_change(tmp_path, state, python):
    for name in "ab":
        (tmp_path / name).write_text("old\n")
    process = python(
        "import os, signal, sys, time; from nbhelpers.machine import settings\na ="
        " settings.apply({sys.argv[1] + '/a': 'new'})\nos.kill(a._watched.process.pid,"
        " signal.SIGKILL); a._watched.process.wait()\nb = settings.apply({sys.argv[1] + '/b':"
        " 'new'}); print('ready', flush=True); time.sleep(1000)",
        tmp_path,
    )

    def both() -> set[str]:
        return {value(tmp_path / "a"), value(tmp_path / "b")}

    assert process.stdout.readline() == "ready\n" and both() == {"new"}
    process.kill()
    process.wait()
    assert eventually(lambda: both() == {"old"} and journals(state) == [])


# ---- interrupted while tracing -------------------------------------------------------------------


def in_own_mounts(program: str, state: Path, folder: Path, mounted: bool) -> tuple[int, str, int]:
    """Run a program in a mount namespace of its own: its exit status, its output, and how often
    tracefs is mounted in the end.
    """
    mount = "mount -t tracefs tracefs /sys/kernel/tracing" if mounted else ":"
    script = IN_OWN_MOUNTS.format(mount=mount)
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, program, folder],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        timeout=120,
        env=os.environ | {"NOISEBOOK_STATE": str(state), "PYTHONPATH": str(REPOSITORY)},
    )
    *output, count = done.stdout.splitlines()
    return done.returncode, "\n".join(output), int(count)


@as_root
@pytest.mark.parametrize("mounted", [True, False], ids=["mounted", "not mounted"])
@pytest.mark.parametrize(
    "how", ["SIGINT", pytest.param("SIGTERM", marks=pytest.mark.long), "SIGKILL"]
)
def test_an_interrupted_trace_leaves_no_instance_and_no_mount(tmp_path, state, how, mounted):
    program = (
        TRACED + "print(tracer._recorder._instance.path.name, flush=True); os.kill(os.getpid(),"
        f" signal.{how}); signal.pause()"
    )
    status, output, count = in_own_mounts(program, state, tmp_path, mounted)
    name = output.strip()
    assert status and kernel.owner_of(name) and name not in instance_names() and count == mounted
    assert eventually(lambda: journals(state) == [])


@as_root
@pytest.mark.long
@pytest.mark.timeout(600)
def test_interruptions_of_traced_and_injected_runs_leave_nothing(binaries):
    """The short version of benchmarks/interruptions.py: every end, at random moments, tracefs
    mounted and not.
    """
    command = [sys.executable, "benchmarks/interruptions.py", "3", str(os.getpid())]
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        env=os.environ | {"NOISEBOOK_BIN": str(binaries)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "12 interruptions" in done.stdout and "0 with something left" in done.stdout


# ---- without a journal ---------------------------------------------------------------------------


@as_root
def test_an_instance_without_owner_is_removed_and_one_of_the_living_stays(stray, state):
    living = kernel.owned_name("living")
    tracefs = kernel.file_system(kernel.TRACEFS)
    os.mkdir(f"{tracefs}/instances/{living}")
    try:
        [told] = settings.repair()
        assert stray not in instance_names() and living in instance_names()
    finally:
        os.rmdir(f"{tracefs}/instances/{living}")
    assert told.startswith("removed: the tracefs instance " + stray) and "which is dead" in told


@as_root
def test_what_cannot_be_removed_is_said_with_its_reason(stray, state):
    with open(f"{kernel.file_system(kernel.TRACEFS)}/instances/{stray}/trace_pipe"):
        [told] = settings.repair()
        assert told.startswith("not removed: the tracefs instance " + stray) and "busy" in told
        [check] = [check for check in doctor().checks if check.name == "left by dead runs"]
        assert check.state == "limited" and stray in check.found


def test_a_control_group_without_owner_is_removed_and_one_of_the_living_stays(dead, state):
    if not run_groups.base():
        pytest.skip("no control group can be made here")
    place = Path(run_groups.base())
    left, living = place / dead, place / kernel.owned_name("living")
    left.mkdir()
    living.mkdir()
    try:
        assert settings.repair() == [
            f"removed: the control group {left}, left by process {kernel.owner_of(dead)['pid']},"
            " which is dead"
        ]
        assert living.is_dir() and not left.exists()
    finally:
        living.rmdir()


def test_an_owner_in_another_pid_namespace_cannot_be_judged():
    owner = kernel.identity(os.getpid())
    assert kernel.alive(owner) and not kernel.alive(owner | {"started": 1})
    assert kernel.alive(owner | {"started": 1, "namespace": owner["namespace"] + 1})
    assert kernel.owner_of(kernel.owned_name("some-thing")).items() <= owner.items()
    assert [
        kernel.owner_of(name)
        for name in ("noisebook", "noisebook-12-tracepoints", "trace-cmd-1-2-3", "noisebook-1-2-3x")
    ] == [None] * 4


# ---- disks ---------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path, monkeypatch):
    """A state folder on a disk of 64 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=755", "tmpfs", folder], check=True)
    monkeypatch.setenv("NOISEBOOK_STATE", str(folder))
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(folder: Path) -> None:
    with contextlib.suppress(OSError), open(folder / "filler", "wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


@as_root
def test_on_a_full_disk_nothing_is_changed_and_it_says_why(small_disk, knob):
    fill(small_disk)
    with pytest.raises(SettingError, match="No space left") as told:
        settings.apply({knob: "new"})
    assert value(knob) == "old" and journals(small_disk) == []
    assert f"df {small_disk}" in told.value.fix
    (small_disk / "filler").unlink()
    with settings.apply({knob: "new"}):
        assert value(knob) == "new"


@as_root
def test_a_disk_that_fills_up_meanwhile_hinders_nobody_from_putting_back(
    small_disk, knob, tmp_path
):
    (tmp_path / "second").write_text("old\n")
    first, second = settings.apply({knob: "new"}), settings.apply({tmp_path / "second": "new"})
    fill(small_disk)
    second.restore()
    assert value(tmp_path / "second") == "old" and value(knob) == "new"
    first.restore()
    assert value(knob) == "old" and journals(small_disk) == []


@as_root
def test_a_read_only_folder_is_told_and_one_that_becomes_so_still_puts_back(small_disk, knob):
    change = settings.apply({knob: "new"})
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    change.restore()
    assert value(knob) == "old"
    with pytest.raises(SettingError, match="no folder for the journal|Read-only") as told:
        settings.apply({knob: "new"})
    assert value(knob) == "old" and told.value.fix
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    with settings.apply({knob: "newer"}):
        assert value(knob) == "newer"
    assert journals(small_disk) == []


HOLDS = """
import sys
from nbhelpers.machine.leftovers import RunFolder
folder = RunFolder("test")
(folder.path / "file").write_text("of a run")
print(folder.path, flush=True)
sys.stdin.read()
"""


def test_a_folder_in_memory_goes_when_its_owner_was_killed_and_not_before(state, python):
    owner = python(HOLDS)
    path = Path(owner.stdout.readline().strip())
    told = f"removed: {path}, left by process {owner.pid}, which is dead"
    assert str(path.parent) == leftovers.IN_MEMORY and path.stat().st_mode & 0o777 == 0o700
    assert told not in settings.repair() and (path / "file").exists()
    owner.kill()
    owner.communicate()
    assert told in settings.repair() and not path.exists()


def test_memory_of_killed_ranks_goes_and_that_of_live_ones_stays(state, tmp_path, monkeypatch):
    monkeypatch.setattr(leftovers, "IN_MEMORY", str(tmp_path))
    left, used, young, other = (
        tmp_path / name
        for name in ("mpich_shm_1_0", "sm_segment.pc.0.1.0", "sm_segment.pc.0.2.0", "mine")
    )
    for path in (left, used, young, other):
        path.write_bytes(bytes(4096))
        os.utime(path, (0, 0) if path != young else None)
    with used.open("r+b") as file, mmap.mmap(file.fileno(), 0):
        assert f"removed: {left}, left by ranks" in "\n".join(leftovers.remove())
    assert not left.exists() and used.exists() and young.exists() and other.exists()


@as_root
def test_a_name_of_ours_that_another_user_has_taken_stays(dead, state, tmp_path, monkeypatch):
    monkeypatch.setattr(leftovers, "IN_MEMORY", str(tmp_path))
    taken = tmp_path / dead
    taken.mkdir()
    os.chown(taken, 65534, 65534)
    folder = leftovers.RunFolder("test")
    assert leftovers.remove() == [] and taken.is_dir() and folder.path.parent == tmp_path
    folder.close()
    folder.close()
    assert not folder.path.exists()


def test_a_state_folder_that_somebody_else_may_have_laid_is_not_used(tmp_path, monkeypatch):
    """A link among temporary files, or a folder that everybody may write."""
    monkeypatch.delenv("NOISEBOOK_STATE", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("open", "real", "mine"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "open").chmod(0o777)
    candidates = [tmp_path / name for name in ("link", "open", "mine")]
    monkeypatch.setattr(_watch, "_state_candidates", lambda: candidates)
    assert _watch.state_folder() == tmp_path / "mine"
    candidates.pop()
    assert _watch.state_folder().name.startswith(f"noisebook-{os.geteuid()}-")
    monkeypatch.setenv("NOISEBOOK_STATE", "named")  # what is named has no other in its place
    with pytest.raises(SettingError, match="no folder for the journal"):
        _watch.state_folder()
