"""Settings under guard: on files, sysctls and tracefs, with owners that end in every way."""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbhelpers.errors import SettingError
from nbhelpers.machine import _watch, guardian, kernel, settings

from .conftest import as_nobody, as_root, eventually, sleeps

STACK = Path("/proc/sys/kernel/perf_event_max_stack")  # which is not on the list
INTERVAL = Path("/proc/sys/vm/stat_interval")
TRACING = Path("/sys/kernel/tracing")

OWNER = """
import os, sys, time
from nbhelpers.machine import settings
with settings.apply({sys.argv[1]: sys.argv[2]}) as change:
    %s
    print(change._watched.process.pid, flush=True)
    sys.stdin.read()
"""


def value(path: Path) -> str:
    return path.read_text().strip()


def journals(folder: Path) -> list[Path]:
    return list(folder.glob("*.journal"))


def gone(pid: int) -> bool:
    return kernel.start_time(pid) is None


def write_by_hand(folder: Path, changes: list[dict], **owner: object) -> Path:
    """A journal as a dead owner leaves it: the pid lived once, with another start time than whoever
    has it now.
    """
    journal = {
        "format": guardian.FORMAT,
        "pid": os.getppid(),
        "started": -1,
        "boot": kernel.boot_id(),
        "changes": changes,
    } | owner
    folder.mkdir(exist_ok=True)
    path = folder / f"{journal['pid']}-{len(journals(folder)):026d}.journal"
    path.write_text(json.dumps(journal))
    return path


# ---- values --------------------------------------------------------------------------------------


@given(st.integers(0, 2**64 - 1))
def test_a_mask_is_the_same_in_groups_and_with_zeros(mask):
    digits = f"{mask:016x}"
    assert kernel.same(f"{mask:x}", f"{digits[:8]},{digits[8:]}") and kernel.same(
        f"{mask:X}\n", digits
    )
    assert not kernel.same(f"{mask:x}", f"{mask + 1:x}")


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("always [madvise] never", "madvise", True),
        ("[local] global mono", "mono", False),
        ("1\n", "Y", True),
        ("N", "0", True),
        ("950000", "950000\n", True),
        ("-1", "1", False),
        ("1 2", "1\t2\n", True),
        ("1,2", "12", False),
        ("", "0", False),
        ("10", "010", True),
        ("0-2,5", "0,1,2,5", True),
        ("0-2,5", "0,1,2,4", False),
    ],
)
def test_what_the_kernel_shows_is_compared_by_its_meaning(one, other, equal):
    assert kernel.same(one, other) == equal == kernel.same(other, one)


# ---- in one process ------------------------------------------------------------------------------


def test_the_value_holds_inside_and_the_old_one_after(knob, state):
    with settings.apply({knob: "new"}) as change:
        assert value(knob) == "new"
        [made] = json.loads(journals(state)[0].read_text())["changes"]
        assert made == change_of(knob)
        pid = change._watched.process.pid
        assert not gone(pid) and os.getsid(pid) == pid != os.getsid(0)
    assert value(knob) == "old" and journals(state) == [] and gone(pid)


def test_it_is_put_back_after_an_error_and_once_only(knob):
    with pytest.raises(ZeroDivisionError), settings.apply({knob: 1}):
        assert value(knob) == "1"
        1 / 0
    assert value(knob) == "old"
    change = settings.apply({str(knob): True})
    assert value(knob) == "1"
    change.restore()
    knob.write_text("later\n")
    change.restore()
    assert value(knob) == "later" and "undone" in repr(change)


def test_what_is_as_wanted_is_left_alone_and_needs_no_guardian(knob, state):
    knob.write_text("old [same] other\n")
    before = knob.stat().st_mtime_ns
    with settings.apply({knob: "same"}) as change:
        assert (change.changes, change._watched, journals(state)) == ((), None, [])
    assert knob.stat().st_mtime_ns == before


def test_the_old_word_of_a_selection_is_written_back(knob):
    knob.write_text("always [madvise] never\n")
    with settings.apply({knob: "never"}):
        pass
    assert value(knob) == "madvise"


def test_a_value_that_somebody_else_set_meanwhile_stays_and_is_reported(knob, state):
    with (
        pytest.warns(
            RuntimeWarning, match="'theirs', set by somebody else meanwhile; it was 'old'"
        ),
        settings.apply({knob: "new"}),
    ):
        knob.write_text("theirs\n")
    assert value(knob) == "theirs" and journals(state) == []


def test_a_setting_that_does_not_exist_changes_nothing(knob, tmp_path, state):
    with pytest.raises(SettingError, match="No such file") as error:
        settings.apply({knob: "new", tmp_path / "absent": 1})
    assert error.value.where == str(tmp_path / "absent") and error.value.fix
    assert value(knob) == "old" and journals(state) == []


def test_a_forked_child_that_leaves_the_block_puts_nothing_back(knob):
    with settings.apply({knob: "new"}) as change:
        if (pid := os.fork()) == 0:
            change.restore()
            os._exit(0)
        os.waitpid(pid, 0)
        assert value(knob) == "new" and not gone(change._watched.process.pid)
    assert value(knob) == "old"


def test_a_guardian_that_was_killed_does_not_matter_to_a_living_owner(knob):
    with settings.apply({knob: "new"}) as change:
        os.kill(change._watched.process.pid, signal.SIGKILL)
    assert value(knob) == "old"


def test_without_a_guardian_nothing_is_changed(knob, state, monkeypatch):
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(SettingError, match="guardian process did not start"):
        settings.apply({knob: "new"})
    assert value(knob) == "old" and journals(state) == []


# ---- owners that die -----------------------------------------------------------------------------


@pytest.fixture
def owner(python, knob):
    """Start a process that holds the knob; returns it and the pid of its guardian."""

    def start(path: Path = knob, new: str = "new", also: str = "pass"):
        process = python(OWNER % also, path, new)
        line = process.stdout.readline()
        assert line, process.stderr.read()
        assert not kernel.same(path.read_text(), "old")
        return process, int(line)

    return start


@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGSEGV],
)
@pytest.mark.parametrize("whole_group", [False, True])
def test_it_is_put_back_after_every_signal(owner, knob, state, number, whole_group):
    process, pid = owner()
    (os.killpg if whole_group else os.kill)(process.pid, number)
    process.wait()
    assert eventually(lambda: value(knob) == "old" and gone(pid)) and journals(state) == []


def test_children_that_outlive_the_owner_do_not_keep_the_guardian_waiting(owner, knob):
    process, pid = owner(also="child = os.fork() or time.sleep(1000)")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert eventually(lambda: value(knob) == "old" and gone(pid))
    os.killpg(process.pid, signal.SIGKILL)


def test_nested_changes_of_a_dead_owner_end_at_the_first_value(owner, knob):
    process, pid = owner(
        new="outer",
        also=(
            "a = settings.apply({sys.argv[1]: 'inner'}); b = settings.apply({sys.argv[1]:"
            " 'inmost'})"
        ),
    )
    assert value(knob) == "inmost"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert eventually(lambda: value(knob) == "old" and gone(pid))


def test_the_guardian_does_not_mind_what_kills_others(owner, knob):
    process, pid = owner()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(pid, number)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert eventually(lambda: value(knob) == "old")


def test_the_guardian_sleeps_without_waking_up(owner):
    _, pid = owner()
    assert sleeps(pid)


def test_a_second_owner_is_refused_until_the_first_is_gone(owner, knob):
    process, _ = owner()
    for new in ("another", "new"):
        with pytest.raises(SettingError, match=f"process {process.pid}"):
            settings.apply({knob: new})
    assert value(knob) == "new"
    process.communicate(timeout=30)
    with settings.apply({knob: "another"}):
        assert value(knob) == "another"
    assert value(knob) == "old"


def test_both_killed_is_repaired_at_the_next_start(owner, knob, state):
    process, pid = owner()
    os.kill(pid, signal.SIGKILL)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert value(knob) == "new" and len(journals(state)) == 1
    assert settings.repair() == [f"put back: {knob}"]
    assert value(knob) == "old" and settings.repair() == [] and journals(state) == []


# ---- held by several ---------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)], ids=str)
def test_what_several_hold_in_a_process_is_put_back_by_the_last(knob, state, order):
    changes = [settings.apply({knob: "new"}) for _ in range(3)]
    for left, number in enumerate(order):
        [journal] = journals(state)
        assert value(knob) == "new" and len(json.loads(journal.read_text())["changes"]) == 3 - left
        changes[number].restore()
    assert value(knob) == "old" and journals(state) == []


def test_without_the_folder_of_journals_it_is_still_put_back(knob, state):
    change = settings.apply({knob: "new"})
    shutil.rmtree(state)
    change.restore()
    assert value(knob) == "old"


# ---- journals left behind ------------------------------------------------------------------------


def change_of(knob: Path) -> dict:
    return {"kind": "write", "path": str(knob), "old": "old", "new": "new"}


def test_a_crash_between_journal_and_setting_changes_nothing(knob, state):
    write_by_hand(state, [change_of(knob)])
    settings.repair()
    assert value(knob) == "old" and journals(state) == []


def test_a_next_change_repairs_first(knob, tmp_path, state):
    knob.write_text("new\n")
    write_by_hand(state, [change_of(knob)])
    with settings.apply({knob: "newer"}):
        assert value(knob) == "newer"
    assert value(knob) == "old"


PARENT = {"pid": os.getppid(), "started": kernel.start_time(os.getppid())}


@pytest.mark.parametrize(
    "owner_of_it, stays",
    [
        ({"boot": "00000000-0000-0000-0000-000000000000"}, False),
        (PARENT, True),
        # homes of a cluster: it is of another boot, and yet in force
        ({"boot": "another", "node": "another-node"}, True),
    ],
    ids=["of an earlier boot", "of the living", "of another machine"],
)
def test_a_journal_of_others_is_not_undone(knob, state, owner_of_it, stays):
    knob.write_text("new\n")
    write_by_hand(state, [change_of(knob)], **owner_of_it)
    assert settings.repair() == [] and value(knob) == "new" and bool(journals(state)) == stays


def test_several_journals_are_undone_newest_first(knob, state):
    knob.write_text("c\n")
    for old, new in (("old", "a"), ("a", "b"), ("b", "c")):
        write_by_hand(state, [change_of(knob) | {"old": old, "new": new}])
    settings.repair()
    assert value(knob) == "old" and journals(state) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"format": "other"}',
        '{"format": "noisebook journal 1"}',
        '{"format": "noisebook journal 1", "boot": "BOOT", "pid": 1, "started": 0}',
    ],
)
def test_a_damaged_journal_is_reported_and_stops_nothing(knob, state, text):
    state.mkdir()
    (state / "1-2.journal").write_text(text.replace("BOOT", kernel.boot_id()))
    (state / ".1-2.journal.abc").write_text("what a killed writer has left")
    [told] = settings.repair()
    assert "cannot be used" in told and told.endswith(f"rm {state}/1-2.journal")
    assert [path.name for path in state.glob("*journal*")] == ["1-2.journal"]
    with settings.apply({knob: "new"}):
        assert value(knob) == "new"
    assert value(knob) == "old"


def test_a_setting_that_is_gone_meanwhile_is_no_obstacle(tmp_path, state):
    write_by_hand(state, [change_of(tmp_path / "gone")])
    assert "is gone" in settings.repair()[-1] and journals(state) == []


def test_the_journals_of_others_are_never_obeyed(knob, state):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    knob.write_text("new\n")
    os.chown(write_by_hand(state, [change_of(knob)]), 65534, 65534)
    assert "belongs to another user" in settings.repair()[0] and value(knob) == "new"


# ---- folders -------------------------------------------------------------------------------------


def test_a_folder_that_somebody_else_makes_first_is_not_removed(tmp_path, state, monkeypatch):
    """Between our look and our mkdir: here, while the guardian starts."""
    start = _watch.start_guardian
    monkeypatch.setattr(
        _watch, "start_guardian", lambda journal: (tmp_path / "made").mkdir() or start(journal)
    )
    with pytest.raises(SettingError, match="File exists"):
        settings.make_folder(tmp_path / "made")
    assert (tmp_path / "made").is_dir() and journals(state) == []


def test_a_folder_that_exists_is_not_taken_and_one_in_use_is_kept(tmp_path, state):
    with pytest.raises(SettingError, match="File exists"):
        settings.make_folder(tmp_path)
    change = settings.make_folder(tmp_path / "made")
    (tmp_path / "made" / "file").write_text("theirs")
    with pytest.raises(SettingError, match="Directory not empty"), pytest.warns(RuntimeWarning):
        change.restore()
    (tmp_path / "made" / "file").unlink()
    change.restore()
    assert not (tmp_path / "made").exists()


# ---- the real machine ----------------------------------------------------------------------------

needs_stack = pytest.mark.skipif(not os.access(STACK, os.W_OK), reason=f"needs a writable {STACK}")


@needs_stack
def test_a_real_sysctl_is_put_back_after_sigkill(owner):
    before = value(INTERVAL)
    process, pid = owner(INTERVAL, "7" if before != "7" else "8")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert eventually(lambda: gone(pid)) and value(INTERVAL) == before


@needs_stack
def test_a_value_that_the_kernel_refuses_undoes_all_of_it(knob, state):
    before = value(STACK)
    for wrong, words in (("99999999", "Invalid argument"), ("0x40", "made it '64'")):
        changes = [
            {"kind": "write", "path": str(path), "new": new}
            for path, new in ((knob, "new"), (STACK, wrong))
        ]
        with pytest.raises(SettingError, match=words):
            settings.Change(changes)
    assert (value(knob), value(STACK), journals(state)) == ("old", before, [])


def test_what_is_not_on_the_list_is_not_changed(knob, state):
    before = value(STACK)
    for path, new, words in (
        (STACK, 64, "not on the list"),
        (INTERVAL, 0, "may be a number from 1 to 300"),
        ("/proc/sys/vm/../kernel/core_pattern", "|/bin/x", "not on the list"),
        ("/proc/self/oom_score_adj", 1, "not on the list"),
        ("/sys/kernel/mm/../../power/state", "mem", "not on the list"),
    ):
        with pytest.raises(SettingError, match=words):
            settings.apply({knob: "new", path: new})
    assert (value(knob), value(STACK), journals(state)) == ("old", before, [])


@as_root
def test_for_nobody_a_sysctl_is_refused_and_nothing_is_left(open_folder):
    def change() -> list[str]:
        os.environ |= {"XDG_STATE_HOME": str(open_folder), "NOISEBOOK_STATE": ""}
        with pytest.raises(SettingError, match="Permission denied") as told:
            settings.apply({INTERVAL: 7})
        return [told.value.fix, str(_watch.state_folder())]

    fix, folder = as_nobody(change)
    assert "run as root" in fix and folder == str(open_folder / "noisebook")
    assert journals(Path(folder)) == []


def instance(suffix: str) -> Path:
    """A tracefs instance of ours to be made, whether or not somebody has mounted tracefs."""
    return TRACING / "instances" / kernel.owned_name(suffix)


def exists(folder: Path) -> bool:
    return os.path.isdir(kernel.reachable(str(folder)))


@as_root
def test_a_tracefs_instance_is_removed_and_its_selection_put_back(state):
    folder = instance("test")
    clock = str(folder / "trace_clock")
    with settings.make_folder(folder):
        with settings.Change([{"kind": "write", "path": clock, "new": "mono"}]):
            assert kernel.read_value(clock) == "mono"
        assert kernel.read_value(clock) == "local"
        kernel.write_value(str(folder / "events/sched/sched_switch/enable"), "1")
    assert not exists(folder)


@as_root
def test_an_instance_in_use_is_warned_of_and_removed_later(state):
    folder = instance("busy")
    change = settings.make_folder(folder)
    with open(kernel.reachable(str(folder / "trace_pipe"))):
        with pytest.warns(RuntimeWarning, match="not put back yet"):
            change.restore()
        assert exists(folder) and len(journals(state)) == 1
    change.restore()
    assert not exists(folder) and journals(state) == []


@as_root
def test_a_flag_is_set_and_unset(state):
    options, flag = f"{kernel.TRACEFS}/trace_options", "overwrite"  # the kernel's default
    assert kernel.read_value(options, flag) == flag
    with settings.set_flag(options, "nooverwrite") as change:
        assert kernel.read_value(options, flag) == "nooverwrite" and change.changes
        settings.set_flag(options, "nooverwrite").restore()
        assert kernel.read_value(options, flag) == "nooverwrite", "held by the first"
    assert kernel.read_value(options, flag) == flag
