"""Settings of the machine, changed for a while and always put back.

Owns every change that Noisebook makes to a sysctl or to tracefs. The old state is in
the journal of this process, on disk, before anything is changed. Changes are undone in the reverse
order: here; when the owner dies, by the process `guardian.py`; or by `repair` at the next start.
The plain way, try and finally, undoes nothing after SIGKILL. Of 7 campaigns of which some process
got one, at random moments, none left a setting or lost a run (python -m tests.faults 7 --kind
"SIGKILL to" --seed 9001).
"""

import contextlib
import errno
import os
import warnings
from collections.abc import Mapping
from pathlib import Path

from ..errors import SettingError
from . import allowed, guardian, kernel, leftovers
from ._watch import Watched, explained, state_folder, watched

NO_JOURNAL = "the journal of changed settings cannot be written"


class Change:
    """A change of the machine's state that is in force: a context manager, or an object with
    `restore()`.

    Attributes
    ----------
    changes
        What was changed, in order; empty where all was already as wanted.
    repaired
        Sentences on what dead processes had left changed and what became of it, see `repair`.
    """

    changes: tuple[dict, ...] = ()
    repaired: tuple[str, ...] = ()
    _watched: Watched | None = None

    def __init__(self, wanted: list[dict]) -> None:
        self._owner = os.getpid()
        self.repaired = tuple(repair())
        folder = state_folder()
        try:
            with explained(NO_JOURNAL, str(folder)), guardian.locked(folder):
                _refuse_held(wanted, folder)
                changes = [prepared for change in wanted if (prepared := _prepared(change))]
                if not changes:
                    return
                mine = watched(folder, os.getpid())
                # first: an interrupt may come now
                self.changes, self._watched = tuple(changes), mine
                mine.add(changes)
                mine.guard()
            for change in changes:
                self._make(mine, change)
        except BaseException:
            self.restore()
            raise

    def _make(self, mine: Watched, change: dict) -> None:
        """Make a change; a folder that cannot be made may be somebody else's, and is not undone."""
        try:
            with explained(f"cannot {_description(change)}", change["path"]):
                if change["kind"] == "rmdir":
                    kernel.make_folder(change["path"])
                else:
                    _write(change)
        except SettingError:
            if change["kind"] == "rmdir":
                with guardian.locked(mine.folder):
                    mine.drop([change])
            raise

    @property
    def in_force(self) -> bool:
        """Whether something is still to be undone."""
        return self._watched is not None and bool(self._watched.held(self.changes))

    def restore(self) -> None:
        """Undo the change, after a Ctrl-C meanwhile, too; a second call does nothing.

        Of several changes of a setting in this process the last that is undone puts it back.

        Raises
        ------
        SettingError
            Something could not be undone. It is tried again when this process ends, and at the next
            start. What somebody else has in use only causes a warning, and is tried again, too.
        """
        if os.getpid() != self._owner:
            return
        try:
            self._undo()
        except KeyboardInterrupt:
            self._undo()
            raise

    def _undo(self) -> None:
        if (mine := self._watched) and self.in_force:
            with guardian.locked(mine.folder):
                account = mine.end(self.changes)
            _report(account)

    def __enter__(self) -> "Change":
        return self

    def __exit__(self, *error: object) -> None:
        self.restore()

    def __repr__(self) -> str:
        state = "in force" if self.in_force else "undone" if self.changes else "nothing to change"
        made = ", ".join(_description(change) for change in self.changes)
        return f"Change({made}: {state})" if made else f"Change({state})"


def apply(values: Mapping[str | Path, object]) -> Change:
    """Write new values into settings files, now; put the old ones back at the end.

    This process may request a setting several times: its old value comes back with the end of the
    last of them.

    Parameters
    ----------
    values
        Path of a sysctl, sysfs or tracefs file -> the value it shall have. Booleans are written as
        1 and 0. A file that has the value already is left alone; of a selection ("always [madvise]
        never") the chosen word counts.

    Returns
    -------
    Change, in force; use it as `with settings.apply({...}):`, or call its `restore()`.

    Raises
    ------
    SettingError
        No such setting, not allowed, not taken by the kernel, or held by another live process.
        Nothing is changed then.
    """
    texts = {
        os.path.realpath(path): str(int(value) if isinstance(value, bool) else value)
        for path, value in values.items()
    }
    for path, text in texts.items():
        in_kernel = path.startswith(("/proc/", "/sys/"))
        if in_kernel and (refused := allowed.refusal(path, text)):
            raise SettingError(
                refused,
                where=path,
                why="the machine must come back as it was",
                fix=allowed.HOW_TO_ADD,
            )
    return Change([{"kind": "write", "path": path, "new": text} for path, text in texts.items()])


def set_flag(path: str, flag: str) -> Change:
    """Set a flag in a file of flags, now; unset it at the end.

    Parameters
    ----------
    path
        A file that lists flags, set or unset, as tracefs has them: ``osnoise/options`` with
        "OSNOISE_WORKLOAD" or "NO_OSNOISE_WORKLOAD".
    flag
        The word as it is written when set as wanted.

    Raises
    ------
    SettingError
        No such file or flag, or held by another live process.
    """
    return Change([{"kind": "write", "path": path, "new": flag}])


def make_folder(path: str | Path) -> Change:
    """Make a folder, now, and remove it at the end.

    It is a tracefs instance (its tracing is stopped first) or an empty folder.

    Raises
    ------
    SettingError
        It exists already, or cannot be made.
    """
    return Change([{"kind": "rmdir", "path": os.path.realpath(path)}])


def repair() -> list[str]:
    """Undo what dead processes left changed since the last boot; journals of earlier boots are
    discarded.

    They are found by the journals of this user. Where a journal is lost, the names of our tracefs
    instances, control groups and files show their owner.

    Returns
    -------
    Sentences, one for each thing put back, left alone or not undone; empty when all was in order.

    Raises
    ------
    SettingError
        There is no state folder, and none can be made.
    """
    folder = state_folder()
    with explained(NO_JOURNAL, str(folder)):
        account = guardian.recover(folder)
    return [*(f"{what}: {of_what}" for what, of_what, _ in account), *leftovers.remove()]


def _refuse_held(wanted: list[dict], folder: Path) -> None:
    """Two owners of one setting would each put back what the other had set."""
    for path in guardian.journals(folder):
        with contextlib.suppress(ValueError), kernel.passing_over():
            journal = guardian.read_journal(path)
            held = {other["path"] for other in journal["changes"]}
            held &= {change["path"] for change in wanted}
            if held and journal["pid"] != os.getpid() and kernel.alive(journal):
                raise SettingError(
                    f"the setting is held by another measurement, process {journal['pid']}",
                    where=", ".join(sorted(held)),
                    why="each would put back what the other had set",
                    fix=f"wait until it has ended: tail --pid={journal['pid']} -f /dev/null",
                )


def _report(account: guardian.Account) -> None:
    """Warn of what others have changed or use; raise for what could not be undone."""
    said = {guardian.LEFT: "left alone", guardian.FAILED: "not put back yet"}
    for what, text, _ in account:
        if what in said:
            warnings.warn(f"{said[what]}: {text}", RuntimeWarning, stacklevel=4)
    failed = [one for one in account if one[0] == guardian.FAILED and one[2] != errno.EBUSY]
    if failed:
        raise SettingError(
            "a setting of the machine could not be put back",
            where="; ".join(text for _, text, _ in failed),
            why="later measurements would run on a changed machine",
            fix="it is tried again when this process ends; the old value is in "
            + str(state_folder()),
        )


# ---- preparing and making ------------------------------------------------------------------------


def _prepared(change: dict) -> dict | None:
    """The change with the old value, which undoing needs; None: nothing to do."""
    path = change["path"]
    with explained(f"cannot {_description(change)}", path):
        if change["kind"] == "rmdir":
            if os.path.lexists(path):  # it is somebody else's, and would be removed at the end
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            return change
        old = kernel.read_value(path, change["new"])
        if not kernel.same(old, change["new"]):
            kernel.check_writable(path)
            return change | {"old": old}
    held = any(mine["path"] == path for mine in watched(state_folder(), os.getpid()).changes)
    return change | {"old": old} if held else None


def _write(change: dict) -> None:
    """Write and read back; if the kernel took another value, write the old one again."""
    path, old, new = change["path"], change["old"], change["new"]
    kernel.write_value(path, new)
    taken = kernel.read_value(path, new)
    if not kernel.same(taken, new):
        kernel.write_value(path, old)
        raise SettingError(
            f"the kernel did not take the value {new!r}, it made it {taken!r}",
            where=path,
            why="the measurement would run under other conditions than its record says",
            fix=f"choose a value that the kernel accepts; it was {old!r}, and is so again",
        )


def _description(change: dict) -> str:
    return ("make {path}" if change["kind"] == "rmdir" else "set {path} to {new}").format(**change)
