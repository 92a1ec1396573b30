"""Settings of the machine, changed for a while and always put back.

Owns every change that Noisebook makes to a sysctl, to tracefs or to a mount. The old state is in a journal on disk before
anything is changed; `guardian.py`, a process of its own, undoes it when the owner dies, `repair` at the next start.
"""

import contextlib
import ctypes
import errno
import os
import signal
import subprocess
import threading
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..errors import SettingError
from . import guardian
from ._watch import dismiss, explained, start_guardian, state_folder, write_journal


class Change:
    """A change of the machine's state that is in force: a context manager, or an object with `restore()`.

    Attributes
    ----------
    changes : what was changed, in order; empty where all was already as wanted.
    left : sentences on what could not be put back because somebody else had changed it meanwhile.
    """

    changes: tuple[dict, ...] = ()
    left: tuple[str, ...] = ()
    _journal: Path | None = None
    _guardian: subprocess.Popen | None = None

    def __init__(self, wanted: list[dict]):
        self._owner = os.getpid()
        repair()
        folder = state_folder()
        with guardian.locked(folder):
            _refuse_held([change for change in wanted if change["kind"] != "umount"], folder)
            changes = [prepared for change in wanted if (prepared := _PREPARE[change["kind"]](change))]
            if not changes:
                return
            self.changes = tuple(changes)
            self._journal = write_journal(folder, changes)
        try:
            self._guardian = start_guardian(self._journal)
            self._make(changes)
        except BaseException:
            self.restore()
            raise

    def _make(self, changes: list[dict]) -> None:
        """Make the changes; one that fails is not ours to undo (the folder may just have been made by somebody else)."""
        for number, change in enumerate(changes):
            try:
                with explained(f"cannot {_told(change)}", change["path"]):
                    _MAKE[change["kind"]](change)
            except SettingError:
                self.changes = tuple(changes[:number])
                raise

    def restore(self) -> None:
        """Undo the change; a second call does nothing.

        Raises
        ------
        SettingError : something could not be undone. It is tried again when this process ends, and at the next start;
            so is what somebody else has in use, which is only warned of.
        """
        if self._journal is None or os.getpid() != self._owner:
            return
        with _undisturbed(), self._partners_waiting():
            left, failed = guardian.settle(self._journal, self.changes)
            if not failed:
                self._journal, self.left = None, tuple(left)
                dismiss(self._guardian)
        _report(left, failed)

    def _partners_waiting(self) -> contextlib.ExitStack:
        """Nobody joins or leaves a shared change while it is undone; a folder of journals that is gone holds no partners."""
        stack = contextlib.ExitStack()
        if any(change.get("shared") for change in self.changes):
            with contextlib.suppress(OSError):
                stack.enter_context(guardian.locked(self._journal.parent))
        return stack

    def __enter__(self) -> "Change":
        return self

    def __exit__(self, *error: object) -> None:
        self.restore()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.restore()

    def __repr__(self) -> str:
        state = "in force" if self._journal else "undone" if self.changes else "nothing to change"
        return f"Change({', '.join(_told(change) for change in self.changes)}{': ' if self.changes else ''}{state})"


def changed(values: Mapping[str | Path, object], shared: bool = False) -> Change:
    """Give settings files new values, now; put the old ones back at the end.

    Parameters
    ----------
    values : path of a sysctl, sysfs or tracefs file -> the value it shall have. Booleans are written as 1 and 0. A file
        that has the value already is left alone; of a selection ("always [madvise] never") the chosen word counts.
    shared : others, in this process and in others, may ask for the same values meanwhile, shared too; the old ones come back with the
        end of the last of them, whoever that is.

    Returns
    -------
    Change, in force; use it as `with changed({...}):`, or call its `restore()`.

    Raises
    ------
    SettingError : no such setting, not allowed, not taken by the kernel, or held by another live process. Nothing is
        changed then.
    """
    return Change([{"kind": "write", "path": _absolute(path), "new": str(int(value) if isinstance(value, bool) else value)} | _sharing(shared)
                   for path, value in values.items()])


def _sharing(shared: bool) -> dict:
    return {"shared": True} if shared else {}


def flagged(path: str | Path, flag: str) -> Change:
    """Set a flag in a file of flags, now; unset it at the end.

    Parameters
    ----------
    path : a file that lists flags, set or unset, as tracefs has them: ``osnoise/options`` with "OSNOISE_WORKLOAD" or
        "NO_OSNOISE_WORKLOAD".
    flag : the word as it is written when set as wanted.

    Raises
    ------
    SettingError : no such file or flag, not allowed, or held by another live process.
    """
    return Change([{"kind": "flag", "path": _absolute(path), "new": flag}])


def made_folder(path: str | Path) -> Change:
    """Make a folder, now, and remove it at the end: a tracefs instance (tracing is stopped first) or an empty folder.

    Raises
    ------
    SettingError : it exists already, or cannot be made.
    """
    return Change([{"kind": "rmdir", "path": _absolute(path)}])


def mounted(fstype: str, path: str | Path, shared: bool = False) -> Change:
    """Mount a kernel file system (tracefs, debugfs), now, and unmount it at the end; left alone where it is mounted already.

    Parameters
    ----------
    shared : what others who share it have mounted is unmounted with the end of the last of them; see `changed`.

    Raises
    ------
    SettingError : the kernel lacks the file system, or this user may not mount it.
    """
    return Change([{"kind": "umount", "path": _absolute(path), "fstype": fstype} | _sharing(shared)])


def repair() -> list[str]:
    """Undo what dead processes left changed since the last boot; journals of earlier boots are discarded.

    Returns
    -------
    list of str, a sentence for each thing put back, left alone or not undone; empty when all was in order.
    """
    undone, left, failed = guardian.recover(state_folder())
    return [*(f"put back: {path}" for path in undone), *(f"left alone: {remark}" for remark in left),
            *(f"not undone: {reason}" for reason in failed)]


def _absolute(path: str | Path) -> str:
    return os.path.realpath(os.fspath(path))


def _refuse_held(wanted: list[dict], folder: Path) -> None:
    """Two owners of one setting that do not share it would each put back what the other had set."""
    for path in guardian.journals(folder):
        with contextlib.suppress(OSError, ValueError):
            journal = guardian.read_journal(path)
            held = {other["path"] for other in journal["changes"] for change in wanted
                    if other["path"] == change["path"] and not guardian.is_shared(change, other)}
            if held and journal["pid"] != os.getpid() and guardian.alive(journal):
                raise SettingError(f"the setting is held by another measurement, process {journal['pid']}",
                                   where=", ".join(sorted(held)), why="each would put back what the other had set",
                                   mend=f"wait until it has ended: tail --pid={journal['pid']} -f /dev/null")


def _report(left: list[str], failed: list[tuple[int, str]]) -> None:
    """Warn of what others have changed or use; raise for what should have been undone and was not."""
    for remark in left:
        warnings.warn(f"left alone: {remark}", RuntimeWarning, stacklevel=4)
    for _, sentence in failed:
        warnings.warn(f"not put back yet: {sentence}", RuntimeWarning, stacklevel=4)
    wrong = [sentence for number, sentence in failed if number != errno.EBUSY]
    if wrong:
        raise SettingError("a setting of the machine could not be put back", where="; ".join(wrong),
                           why="later measurements would run on a changed machine",
                           mend="it is tried again when this process ends; the old value is in " + str(state_folder()))


# ---- preparing: what undoes the change, or None where there is nothing to do ---------------------------------------

def _prepare_write(change: dict) -> dict | None:
    path = change["path"]
    with explained(f"cannot change the setting to {change['new']!r}", path):
        old = guardian.read_value(path)
        if guardian.same(old, change["new"]):
            sharers = guardian.partners(state_folder(), change)
            return change | {"old": sharers[0]["old"]} if sharers else None
        os.close(os.open(path, os.O_WRONLY))
    return change | {"old": old}


def _prepare_flag(change: dict) -> dict | None:
    path, flag = change["path"], change["new"]
    with explained(f"cannot set the flag {flag}", path):
        if guardian.has_flag(path, flag):
            return None
        if not guardian.has_flag(path, guardian.opposite(flag)):
            raise SettingError(f"there is no flag {flag}", where=path, why="the kernel would not know what is wanted", mend=f"cat {path}")
        os.close(os.open(path, os.O_WRONLY))
    return change


def _prepare_folder(change: dict) -> dict:
    if os.path.lexists(change["path"]):
        raise SettingError("the folder exists already", where=change["path"],
                           why="it is somebody else's, and would be removed at the end",
                           mend=f"choose another name, or remove it: rmdir {change['path']}")
    return change


def _prepare_mount(change: dict) -> dict | None:
    """Whoever made a mount finds it busy, and leaves it, while another has a file of it open."""
    mounted_already = guardian.is_mounted(change["fstype"], change["path"])
    return None if mounted_already and not guardian.partners(state_folder(), change) else change


_PREPARE = {"write": _prepare_write, "flag": _prepare_flag, "rmdir": _prepare_folder, "umount": _prepare_mount}


# ---- making -------------------------------------------------------------------------------------------------------

def _write(change: dict) -> None:
    """Write and read back; a kernel that takes another value than asked for gets the old one again at once."""
    path, old, new = change["path"], change["old"], change["new"]
    guardian.write_value(path, new)
    taken = guardian.read_value(path)
    if not guardian.same(taken, new):
        guardian.write_value(path, old)
        raise SettingError(f"the kernel did not take the value {new!r}, it made it {taken!r}", where=path,
                           why="the measurement would run under other conditions than its record says",
                           mend=f"choose a value that the kernel accepts; it was {old!r}, and is so again")


def _mount(change: dict) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with guardian.locked(state_folder()):
        if change.get("shared") and guardian.is_mounted(change["fstype"], change["path"]):
            return
        if libc.mount(b"nodev", os.fsencode(change["path"]), change["fstype"].encode(), 0, None) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _flag(change: dict) -> None:
    guardian.write_value(change["path"], change["new"])
    if not guardian.has_flag(change["path"], change["new"]):
        raise OSError(errno.EINVAL, "the flag was not taken")


_MAKE = {"write": _write, "flag": _flag, "rmdir": lambda change: os.mkdir(change["path"]), "umount": _mount}


def _told(change: dict) -> str:
    return {"write": "set {path} to {new}", "flag": "set {new} in {path}", "rmdir": "make {path}", "umount": "mount {fstype} at {path}"}[
        change["kind"]].format(**change)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back until all is put back, then let them act."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    caught = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not None]
    handlers = {number: signal.signal(number, lambda number, _: came.append(number)) for number in caught}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)
