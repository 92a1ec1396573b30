"""The file that a victim reads: whole or not there, nobody else's, and gone with its owner."""

import os
import subprocess

import pytest
from noisebook_known_causes import victims
from noisebook_known_causes.campaigns import cause_campaign, planting_error
from noisebook_known_causes.victims import FILE_BYTES, input_file, input_path

from nbhelpers.errors import RunError
from nbhelpers.measurement import finished


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Where a victim's file lies, on a disk of the test's own."""
    monkeypatch.setattr(victims, "ON_DISK", str(tmp_path))
    return input_path("map")


@pytest.fixture
def victim(path):
    victim = input_file("map")
    yield victim
    victim.close()
    assert list(path.parent.iterdir()) == []


def test_it_is_made_for_us_alone_and_removed(path, victim):
    victim.before(None)
    found = path.stat()
    assert (found.st_size, found.st_mode & 0o777) == (FILE_BYTES, 0o600)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    victim.before(None)
    assert path.stat().st_ino == found.st_ino and victim.notes == ()
    victim.close()
    assert not path.exists()
    victim.before(None)  # a campaign that goes on
    assert path.stat().st_size == FILE_BYTES


@pytest.mark.parametrize("harm", ["torn", "readable by all", "a link", "another file", "gone"])
def test_a_file_that_is_not_as_it_was_made_is_made_anew_and_told(path, victim, tmp_path, harm):
    victim.before(None)
    whole = path.read_bytes()
    (tmp_path / "theirs").write_bytes(whole)
    {
        "torn": lambda: os.truncate(path, 100_000),
        "readable by all": lambda: path.chmod(0o644),
        "a link": lambda: (path.unlink(), path.symlink_to(tmp_path / "theirs")),
        "another file": lambda: (tmp_path / "theirs").rename(path),
        "gone": lambda: path.unlink(),
    }[harm]()
    victim.before(None)
    assert path.read_bytes() == whole and not path.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(victim.notes) == 1 and "made anew" in victim.notes[0]


def test_a_file_of_a_dead_owner_goes_and_one_in_use_stays(path, victim):
    left = path.with_name("input-source.cpp")
    left.write_bytes(b"left")
    victim.before(None)
    other = input_file("source")
    other.before(None)
    assert left.read_bytes() != b"left" and path.exists()
    other.close()


def test_a_folder_that_others_can_change_is_not_used(path):
    path.parent.chmod(0o777)
    assert input_path("map") != path


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk: needs root")
def test_a_full_disk_is_one_sentence_and_leaves_nothing(path, victim):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", path.parent], check=True)
    try:
        with pytest.raises(RunError, match="No space left"):
            victim.before(None)
        assert list(path.parent.iterdir()) == []
    finally:
        subprocess.run(["umount", path.parent], check=True)


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
