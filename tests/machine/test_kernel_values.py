"""Values of kernel files that mean the same, and flags that are read for a user."""

import pytest

from nbhelpers.machine import kernel, privileged


def test_flags_that_only_root_reads_come_from_the_helper(monkeypatch, tmp_path):
    path = tmp_path / "options"
    path.mkdir()  # cannot be read
    monkeypatch.setattr(privileged, "OSNOISE_OPTIONS", str(path))
    monkeypatch.setattr(privileged, "may_help", lambda path, error: True)
    monkeypatch.setattr(privileged, "osnoise_options", lambda: "OSNOISE_WORKLOAD NO_OTHER")
    assert kernel.read_value(str(path), "OTHER") == "NO_OTHER"
    assert kernel.read_value(str(path), "NO_OSNOISE_WORKLOAD") == "OSNOISE_WORKLOAD"
    with pytest.raises(OSError):
        kernel.read_value(str(tmp_path), "OTHER")
    monkeypatch.setattr(privileged, "may_help", lambda path, error: False)
    with pytest.raises(OSError):
        kernel.read_value(str(path), "OTHER")


@pytest.mark.parametrize(
    "shown, like, value",
    [
        ("always [madvise] never", "never", "madvise"),
        ("4096 131072 6291456", "4096", "4096 131072 6291456"),
        ("A\nNO_B\n", "B", "NO_B"),
        ("A\nNO_B\n", "NO_A", "A"),
        ("A\nNO_B\n", "C", "A NO_B"),
    ],
)
def test_only_a_file_of_flags_is_read_by_flag(tmp_path, shown, like, value):
    (tmp_path / "file").write_text(shown)
    assert kernel.read_value(str(tmp_path / "file"), like) == value


def test_a_mount_that_is_refused_says_why():
    with pytest.raises(OSError, match="no-such-file-system is not mounted, and cannot be"):
        kernel._detached("no-such-file-system")
