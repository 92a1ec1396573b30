"""The file that a victim reads: whole or not there, nobody else's, and gone with its owner."""

import os
import signal
import subprocess

import pytest

from nbhelpers.errors import RunError, Unavailable
from nbhelpers.machine import leftovers, settings
from nbhelpers.measurement import finished
from nbhelpers.studies.known_causes import planting
from nbhelpers.studies.known_causes.campaigns import cause_campaign, planting_error
from nbhelpers.studies.known_causes.planting import FILE_BYTES, VictimFile

from ..processes import run_python

KILLED_WHILE_WRITING = """
import os, pathlib, signal, sys
from nbhelpers.studies.known_causes import planting
whole = planting._content()
planting._content = lambda: whole[:100_000]
os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
planting.VictimFile(pathlib.Path(sys.argv[1])).before(None)
"""


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Where a victim's file lies, on a disk of the test's own."""
    monkeypatch.setattr(leftovers, "ON_DISK", (str(tmp_path),))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(leftovers.tempfile, "tempdir", None)
    return leftovers.scratch_folder() / "victim-map"


@pytest.fixture
def victim(path):
    victim = VictimFile(path)
    yield victim
    victim.close()
    assert list(path.parent.iterdir()) == []


def test_it_is_made_for_us_alone_and_removed(path, victim):
    victim.before(None)
    found = path.stat()
    assert (found.st_size, found.st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (
        FILE_BYTES,
        0o600,
        0o700,
    )
    victim.before(None)
    assert path.stat().st_ino == found.st_ino and victim.notes == ()
    victim.close()
    assert not path.exists()
    victim.before(None)  # a campaign that goes on
    assert path.stat().st_size == FILE_BYTES


@pytest.mark.parametrize(
    "harm",
    ["torn", "empty", "other content", "longer", "readable by all", "a link", "another file"],
)
def test_a_file_that_is_not_as_it_was_made_is_made_anew_and_told(path, victim, tmp_path, harm):
    victim.before(None)
    whole = path.read_bytes()
    (tmp_path / "theirs").write_bytes(whole)
    (tmp_path / "theirs").chmod(0o600)
    {
        "torn": lambda: os.truncate(path, 100_000),
        "empty": lambda: os.truncate(path, 0),
        "other content": lambda: path.write_bytes(b"\0" + whole[1:]),
        "longer": lambda: path.write_bytes(whole + b"x"),
        "readable by all": lambda: path.chmod(0o644),
        "a link": lambda: (path.unlink(), path.symlink_to(tmp_path / "theirs")),
        "another file": lambda: (tmp_path / "theirs").rename(path),
    }[harm]()
    victim.before(None)
    assert (
        path.read_bytes() == whole
        and not path.is_symlink()
        and path.stat().st_mode & 0o777 == 0o600
    )
    assert len(victim.notes) == 1 and "made anew" in victim.notes[0]


@pytest.mark.parametrize(
    "left", [b"", b"x" * 100_000, b"x" * FILE_BYTES], ids=["nothing", "torn", "other content"]
)
def test_what_lies_there_before_is_not_trusted(path, victim, left):
    path.write_bytes(left)
    path.chmod(0o600)
    victim.before(None)
    assert path.read_bytes() == planting._content()


def test_a_harness_killed_while_it_writes_leaves_no_file_of_that_name(path, victim):
    done = run_python(KILLED_WHILE_WRITING, path)
    assert done.returncode == -signal.SIGKILL and not path.exists()
    [torn] = path.parent.iterdir()
    assert torn.stat().st_size == 100_000
    assert settings.repair() == [f"removed: {torn}, left by a dead process"] and not torn.exists()
    victim.before(None)
    assert path.stat().st_size == FILE_BYTES


def test_a_file_of_a_dead_owner_goes_and_one_in_use_stays(path, victim):
    path.write_bytes(b"left")
    assert settings.repair() == [f"removed: {path}, left by a dead process"]
    other = VictimFile(path)
    for one in (victim, other):
        one.before(None)
    assert settings.repair() == []
    other.close()
    victim.before(None)
    assert path.exists() and victim.notes == ()


def test_a_victim_may_write_its_file(path):
    victim = VictimFile(path, written=True)
    victim.before(None)
    with open(path, "r+b") as file:
        file.write(b"written by the victim")
    inode = path.stat().st_ino
    victim.before(None)
    assert path.stat().st_ino == inode and victim.notes == ()
    os.truncate(path, 1)
    victim.before(None)
    assert path.stat().st_size == FILE_BYTES
    victim.close()


def test_a_folder_that_others_can_change_is_not_used(tmp_path, path, monkeypatch):
    path.parent.chmod(0o777)
    with pytest.raises(Unavailable, match="no private folder"):
        leftovers.scratch_folder()
    path.parent.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    path.parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unavailable, match="no private folder"):
        leftovers.scratch_folder()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk: needs root")
def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], check=True)
    try:
        with pytest.raises(RunError, match="No space left") as told:
            VictimFile(small / "victim-map").before(None)
        assert "df" in told.value.fix and list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_torn_file_of_an_earlier_campaign_does_not_shorten_the_runs(binaries, tmp_path, path):
    """100 kB left of 16 MiB were trusted: 8 of 8 runs ok, in a thousandth of their time."""
    if error := planting_error("dropped-cache"):
        pytest.skip(f"it can't be planted here: {error.what}")
    path.write_bytes(os.urandom(100_000))
    path.chmod(0o600)
    sizes = []
    campaign = cause_campaign(tmp_path / "runs", "dropped-cache", 4)
    campaign.attachments[0].armed = lambda pid: sizes.append(path.stat().st_size)
    assert len(finished(campaign.run())) == 4 and sizes == [FILE_BYTES] * 4
    assert not path.exists()
