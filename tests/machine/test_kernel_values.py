"""Values of kernel files that mean the same, and flags that are read for a user."""

import pytest

from nbhelpers.machine import allowed, kernel, privileged


@pytest.mark.parametrize(
    "one, other",
    [
        ("0-3", "0,1,2,3"),
        ("0-1,2-3", "0-3"),
        ("0-5,2", "0-5"),
        ("0-5,2-3,6", "0-6"),
        ("3,1,2", "1-3"),
        ("0000000f", "f"),
        ("00000000,000000ff", "ff"),
        ("Y", "1"),
    ],
)
def test_the_same_value(one, other):
    assert kernel.same(one, other)


@pytest.mark.parametrize(
    "one, other", [("0-3", "0-2"), ("0,2", "0-2"), ("0-5,2,7", "0-7"), ("f", "e"), ("N", "1")]
)
def test_another_value(one, other):
    assert not kernel.same(one, other)


def test_flags_that_only_root_reads_come_from_the_helper(monkeypatch, tmp_path):
    path = tmp_path / "options"
    path.mkdir()  # cannot be read
    monkeypatch.setattr(privileged, "OSNOISE_OPTIONS", str(path))
    monkeypatch.setattr(privileged, "may_help", lambda path, error: True)
    monkeypatch.setattr(privileged, "osnoise_options", lambda: "OSNOISE_WORKLOAD OTHER")
    assert kernel.has_flag(str(path), "OTHER") and not kernel.has_flag(str(path), "NO_OTHER")
    (tmp_path / "zzz").mkdir()
    for elsewhere in ("", str(tmp_path), str(tmp_path / "zzz")):
        with pytest.raises(OSError):
            kernel.has_flag(elsewhere, "OTHER")
    monkeypatch.setattr(privileged, "may_help", lambda path, error: False)
    with pytest.raises(OSError):
        kernel.has_flag(str(path), "OTHER")


def test_a_mount_that_is_refused_says_why():
    handle, number = kernel.detached("no-such-file-system")
    assert handle == -1 and number > 0


@pytest.mark.parametrize("length", [119, 120, 121, 200])
def test_a_long_path_is_cut_where_it_is_shown(length):
    path = "/proc/" + "x" * (length - 6)
    message = allowed.refusal(path, 1)
    shown = message.partition(" is not on the list")[0]
    assert shown == (path if length <= 120 else path[:117] + "…")
