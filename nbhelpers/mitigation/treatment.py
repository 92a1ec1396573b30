"""A mitigation applied to runs: put in force for one run, proved to be in effect in the process
itself, undone whatever happens.

Owns the attachment that does so, and the cells of a campaign that interleaves treated runs with
untreated ones.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import is_dataclass
from typing import NamedTuple

from ..errors import SettingError, Unavailable
from ..measurement import Attachment, Cell, run_once
from ..workloads import Workload
from . import _proc
from .action import Action, Momentary, NotYet, Unproven
from .knowledge import Mitigation, named_mitigation

BASELINE = "baseline"
NOT_IN_EFFECT = "mitigation not in effect"
NOT_PROVEN = "mitigation not proven"  # it may have been, and nothing showed it
# after the start; then after twice the time each, so that a long run is hardly disturbed
_FIRST_LOOK_S = 0.002
# what was seen to act in this process: mitigation, command, place among its actions
_seen: set[tuple[str, tuple[str, ...], int]] = set()


class _Unseen(Unproven):
    """The program was not looked at, so that nothing that it wrote can prove anything."""


class Treatment(Attachment):
    """Puts actions in force for each run and proves it.

    Without actions it only looks, as often, so that untreated runs are disturbed as much.

    The proof is taken when the process waits at the barrier, and again 2, 4, 8, … ms after its
    start, so that what the program or somebody else changes in the first half of a run is noticed.
    A run whose mitigation is not in effect has the status "mitigation not in effect", one that
    nothing showed to be "mitigation not proven", each with the reason; both are excluded.

    Parameters
    ----------
    name
        The value of the column `mitigation`.
    actions
        What is done.
    workload
        The untreated one.
    """

    def __init__(self, name: str, actions: Sequence[Action] = (), workload: Workload | None = None):
        self.name = name
        self.actions = tuple(actions)
        self.workload = workload
        words = [repr(one) if is_dataclass(one) else type(one).__name__ for one in self.actions]
        self.identity = f"mitigation {name}: {', '.join(words)}" if words else ""
        self.wrapper = tuple(word for one in self.actions for word in one.wrapper())
        self._held = ExitStack()
        self._watch: _Watch | None = None
        self._wrong: str | None = None
        self._unproved: dict[int, str] = {}  # actions (by place), and why
        self._launcher = False

    def __repr__(self) -> str:
        kinds = ", ".join(type(action).__name__ for action in self.actions)
        return f"Treatment({self.name}: {kinds or 'nothing'})"

    def before(self, workload: Workload) -> None:
        self.close()
        self._wrong, self._launcher = None, workload.start == "exec"
        self._unproved = {
            place: _Unseen(f"the program ended before {type(action).__name__} could be looked at")
            for place, action in enumerate(self.actions)
        }
        try:
            for action in self.actions:
                self._held.enter_context(action.held(workload))
        except BaseException:
            self.close()
            raise

    def armed(self, pid: int) -> None:
        for action in self.actions:
            try:
                action.arm(pid)
            except PermissionError as error:
                raise SettingError(
                    f"{type(action).__name__}: {error.strerror}",
                    why="the run would be measured without its mitigation",
                    fix="run as root",
                ) from None
            except ProcessLookupError:  # it was killed at the barrier; the run will say so
                break
        self._look(pid, in_launcher=self._launcher)
        self._watch = _Watch(pid, self._while_running)

    def released(self, t0_ns: int) -> None:
        if self._watch:
            self._watch.begin(t0_ns)

    def printed(self, output: str, errors: str) -> None:
        self._stop()
        for place, reason in list(self._unproved.items()):
            if type(reason) is Unproven and self.actions[place].confirmed(errors):
                del self._unproved[place]

    def after(self, run: dict) -> dict:
        self._stop()
        self.close()
        unproved = (
            reason
            for place, reason in self._unproved.items()
            if not (isinstance(reason, Momentary) and self._key(place) in _seen)
        )
        wrong = self._wrong or next(unproved, None)
        columns = {"mitigation": self.name}
        if wrong and run.get("status") == "ok":
            status = NOT_PROVEN if isinstance(wrong, Unproven) else NOT_IN_EFFECT
            columns |= {"status": status, "message": f"{self.name}: {wrong}"}
        return columns

    def close(self) -> None:
        self._stop()
        self._held.close()

    def _look(self, pid: int, in_launcher: bool = False) -> None:
        """Note what is proved, what is wrong, and what can't be proved yet; nothing if the process
        is about to end, as it is empty then.
        """
        answers = {
            place: action.check(pid)
            for place, action in enumerate(self.actions)
            if not (in_launcher and action.needs_program)
        }
        if not _proc.alive(pid):
            return
        for place, answer in answers.items():
            if answer is None:
                self._unproved.pop(place, None)
                _seen.add(self._key(place))
            elif isinstance(answer, Unproven):
                if place in self._unproved:
                    self._unproved[place] = answer
            elif isinstance(answer, NotYet):
                # although proved before: the process may have executed another program since
                self._unproved[place] = answer
            else:
                self._wrong = self._wrong or answer

    def _key(self, place: int) -> tuple[str, tuple[str, ...], int]:
        return self.name, tuple(self.workload.command) if self.workload else (), place

    def _while_running(self, pid: int) -> None:
        self._look(pid, self._launcher and os.path.basename(_proc.executable(pid)) == "nbstart")

    def _stop(self) -> None:
        watch, self._watch = self._watch, None
        if watch:
            watch.end()


class _Watch:
    """A thread that looks at a process while it runs, at doubling intervals, until `end`."""

    def __init__(self, pid: int, look: Callable[[int], None]):
        self._pid = pid
        self._look = look
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._pidfd = os.pidfd_open(pid)

    def begin(self, t0_ns: int) -> None:
        self._thread = threading.Thread(
            target=self._go, args=(t0_ns,), name="mitigation watch", daemon=True
        )
        self._thread.start()

    def _go(self, t0_ns: int) -> None:
        after_s = _FIRST_LOOK_S
        while True:
            wait_s = (t0_ns - time.monotonic_ns()) * 1e-9 + after_s
            if self._stop.wait(max(0.0, wait_s)) or not self._exists():
                return
            self._look(self._pid)
            after_s = max(2 * after_s, (time.monotonic_ns() - t0_ns) * 1e-9 + _FIRST_LOOK_S)

    def _exists(self) -> bool:
        """Whether the process lives, by its pidfd: a pid may be somebody else's by now."""
        try:
            signal.pidfd_send_signal(self._pidfd, 0)
        except OSError as error:
            return not isinstance(error, ProcessLookupError)
        return True

    def end(self) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()
        os.close(self._pidfd)


class TreatedWorkload(NamedTuple):
    """A workload with a mitigation: as it is started, and the attachments of its runs."""

    workload: Workload
    attachments: tuple[Treatment, ...]


def treat_workload(
    mitigation: str | Mitigation | Iterable[Action], workload: Workload
) -> TreatedWorkload:
    """The workload with a mitigation, and the attachment that puts it in force for each run.

    Parameters
    ----------
    mitigation
        Its id, the mitigation, or actions.
    workload
        The untreated one.

    Returns
    -------
    TreatedWorkload, which unpacks as (workload, attachments).

    Raises
    ------
    InputError
        No such mitigation.
    Unavailable
        It can't be automated or not be done here; the message has the reason and the fix.
    """
    name, actions = _actions_of(mitigation)
    changed = workload
    settled: list[Action] = []
    for action in actions:
        if not (answer := action.possible(changed)):
            raise Unavailable(
                f"the mitigation '{name}' can't be applied here: {answer.reason}",
                fix=answer.fix or None,
            )
        settled.append(action.settled(changed))
        changed = action.applied_to(changed)
    return TreatedWorkload(changed, (Treatment(name, settled, workload),))


def why_unproven(
    mitigation: str | Mitigation,
    workload: Workload,
    attachments: Sequence[Attachment] = (),
    tries: int = 5,
) -> str:
    """Why nothing shows that a mitigation acts on a program here, by running it; "" if it does.

    Parameters
    ----------
    mitigation, workload
        The mitigation or its id, and the program; see `treat_workload`.
    attachments
        Accompany the runs.
    tries
        Runs, of which one has to show it: what a program uses for a moment only, such as huge
        pages, is not seen by every look.
    """
    treated = treat_workload(mitigation, workload)
    message = ""
    with ExitStack() as stack:
        accompanied = (*treated.attachments, *attachments)
        for attachment in accompanied:
            stack.callback(attachment.close)
        for _ in range(tries):
            row = run_once(treated.workload, accompanied)
            if row["status"] == "ok":
                return ""
            message = row["message"] or row["status"]
    return message


def _actions_of(mitigation: str | Mitigation | Iterable[Action]) -> tuple[str, tuple[Action, ...]]:
    if isinstance(mitigation, str):
        mitigation = named_mitigation(mitigation)
    if not isinstance(mitigation, Mitigation):
        actions = tuple(mitigation)
        return "+".join(type(action).__name__ for action in actions), actions
    if not mitigation.automated:
        raise Unavailable(
            f"the mitigation '{mitigation.id}' can't be automated",
            fix="; ".join(mitigation.by_hand),
        )
    return mitigation.id, mitigation.actions


def treatment_cells(workload: Workload, names: Iterable[str | Mitigation]) -> list[Cell]:
    """The untreated cell and a cell for each mitigation, to be interleaved by a campaign.

    Parameters
    ----------
    workload
        The untreated one.
    names
        Mitigations, or their ids.

    Returns
    -------
    Cells; the first is `BASELINE`, the others are named by the mitigations.

    Raises
    ------
    InputError, Unavailable
        A mitigation that does not exist, or cannot be done here; see `treat_workload`.
    """
    cells = [Cell(BASELINE, workload, attachments=(Treatment("none", (), workload),))]
    for mitigation in names:
        treated, [treatment] = treat_workload(mitigation, workload)
        cells.append(
            Cell(treatment.name, treated, attachments=(treatment,), compared_with=(BASELINE,))
        )
    return cells
