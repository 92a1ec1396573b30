"""A mitigation applied to runs: put in force for one run, proved to be in effect in the process
itself, undone whatever happens.

Owns the attachment that does so, and the cells of a campaign that interleaves treated runs with
untreated ones.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, is_dataclass

from ..errors import InputError, SettingError, Unavailable
from ..measurement import Attachment, Cell
from ..workloads import Workload
from . import _proc
from .action import Action, NotYet
from .knowledge import Mitigation, mitigations

BASELINE = "baseline"
NOT_IN_EFFECT = "mitigation not in effect"
_FIRST_LOOK_S = (
    0.002  # after the start; then after twice the time each, so that a long run is hardly disturbed
)


class Treatment(Attachment):
    """Puts actions in force for each run and proves it; without actions it only looks, as often, so
    that untreated runs are disturbed as much.

    The proof is taken when the process waits at the barrier, and again 2, 4, 8, … ms after its
    start, so that what the program or somebody else changes in the first half of a run is noticed.
    A run whose mitigation is not in effect has the status "mitigation not in effect": it is no
    data.

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
        self.name, self.actions = name, tuple(actions)
        self.workload = workload
        said = [repr(one) if is_dataclass(one) else type(one).__name__ for one in self.actions]
        self.identity = f"mitigation {name}: {', '.join(said)}" if said else ""
        self._held, self._inherited, self._watch = ExitStack(), ExitStack(), None
        self._wrong: str | None = None
        self._open: dict[int, str] = {}  # actions (by place) that were not proved yet, and why
        self._launcher = False

    def __repr__(self) -> str:
        return (
            f"Treatment({self.name}:"
            f" {', '.join(type(action).__name__ for action in self.actions) or 'nothing'})"
        )

    def before(self, workload: Workload) -> None:
        self.close()
        self._wrong, self._launcher = None, workload.start == "exec"
        self._open = {
            place: f"the program ended before {type(action).__name__} could be looked at"
            for place, action in enumerate(self.actions)
        }
        try:
            for action in self.actions:
                self._held.enter_context(action.held(workload))
            for action in self.actions:
                self._inherited.enter_context(action.inherited())
        except BaseException:
            self.close()
            raise

    def armed(self, pid: int) -> None:
        self._inherited.close()
        for action in self.actions:
            with _explained(action):
                action.arm(pid)
        self._look(pid, in_launcher=self._launcher)
        self._watch = _Watch(pid, self._while_running)

    def released(self, t0_ns: int) -> None:
        if self._watch:
            self._watch.begin(t0_ns)

    def after(self, run: dict) -> dict:
        self._stop()
        self.close()
        wrong = self._wrong or next(
            (f"it could not be verified: {reason}" for reason in self._open.values()), None
        )
        columns = {"mitigation": self.name}
        if wrong and run.get("status") == "ok":
            columns |= {"status": NOT_IN_EFFECT, "message": f"{self.name}: {wrong}"}
        return columns

    def close(self) -> None:
        self._stop()
        try:
            self._inherited.close()
        finally:
            self._held.close()

    def _look(self, pid: int, in_launcher: bool = False) -> None:
        """Note what is proved, what is wrong, and what can't be told yet; nothing of it if the
        process is about to end, as it is empty then.
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
                self._open.pop(place, None)
            elif isinstance(answer, NotYet):
                self._open[place] = (
                    # what was proved before: the process may have executed another program since
                    answer
                )
            else:
                self._wrong = self._wrong or answer

    def _while_running(self, pid: int) -> None:
        self._look(pid, self._launcher and os.path.basename(_proc.executable(pid)) == "nbstart")

    def _stop(self) -> None:
        watch, self._watch = self._watch, None
        if watch:
            watch.end()


@contextmanager
def _explained(action: Action) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise SettingError(
            f"{type(action).__name__}: {os.strerror(error.errno)}",
            why="the run would be measured without its mitigation",
            fix="run as root",
        ) from None
    except ProcessLookupError:  # the process has been killed at the barrier; the run will say so
        return


class _Watch:
    """A thread that looks at a process while it runs, at doubling intervals, until it is told to
    end.
    """

    def __init__(self, pid: int, look: Callable[[int], None]):
        self._pid, self._look, self._stop, self._thread = pid, look, threading.Event(), None
        self._pidfd = os.pidfd_open(pid)

    def begin(self, t0_ns: int) -> None:
        self._thread = threading.Thread(
            target=self._go, args=(t0_ns,), name="mitigation watch", daemon=True
        )
        self._thread.start()

    def _go(self, t0_ns: int) -> None:
        after_s = _FIRST_LOOK_S
        while (
            not self._stop.wait(max(0.0, (t0_ns - time.monotonic_ns()) * 1e-9 + after_s))
            and self._exists()
        ):
            self._look(self._pid)
            after_s = max(2 * after_s, (time.monotonic_ns() - t0_ns) * 1e-9 + _FIRST_LOOK_S)

    def _exists(self) -> bool:
        """Asked of the pidfd, since a pid may be somebody else's by now."""
        with suppress(PermissionError):
            try:
                signal.pidfd_send_signal(self._pidfd, 0)
            except ProcessLookupError:
                return False
        return True

    def end(self) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()
        os.close(self._pidfd)


@dataclass(frozen=True)
class TreatedWorkload:
    """What `mitigated` gives: the workload as it is started, and the attachments that go with its
    runs.
    """

    workload: Workload
    attachments: tuple[Attachment, ...] = field(default=())

    def __iter__(self) -> Iterator[object]:
        return iter((self.workload, self.attachments))


def treat_workload(
    mitigation: str | Mitigation | Iterable[Action], workload: Workload
) -> TreatedWorkload:
    """The workload with a mitigation, and the attachment that puts it in force for each run.

    Raises
    ------
    InputError
        No such mitigation.
    Unavailable
        It can't be automated, or not done here; the message says why and what to do.
    """
    name, actions = _actions_of(mitigation)
    changed, settled = workload, []
    for action in actions:
        if not (answer := action.possible(changed)):
            raise Unavailable(
                f"the mitigation '{name}' can't be applied here: {answer.reason}",
                fix=answer.fix or None,
            )
        settled.append(action.settled(changed))
        changed = action.applied_to(changed)
    return TreatedWorkload(changed, (Treatment(name, settled, workload),))


def _actions_of(mitigation: str | Mitigation | Iterable[Action]) -> tuple[str, tuple[Action, ...]]:
    if isinstance(mitigation, str):
        if mitigation not in mitigations():
            raise InputError(
                f"there is no mitigation '{mitigation}'",
                fix="see what there is: mitigation.available_mitigations()",
            )
        mitigation = mitigations()[mitigation]
    if not isinstance(mitigation, Mitigation):
        actions = tuple(mitigation)
        return "+".join(type(action).__name__ for action in actions), actions
    if not mitigation.automated:
        raise Unavailable(
            f"the mitigation '{mitigation.id}' can't be automated",
            fix="; ".join(mitigation.by_hand),
        )
    return mitigation.id, mitigation.actions


@contextmanager
def mitigated(
    mitigation: str | Mitigation | Iterable[Action], workload: Workload
) -> Iterator[TreatedWorkload]:
    """A mitigation for the length of a block: gives (workload, attachments) to run; nothing of it
    is left afterwards.

    It is in force during each run, not between them, so that baseline runs may be made in the same
    block.

    Examples
    --------
    >>> from nbhelpers.measurement import run_once
    >>> from nbhelpers.workloads import program
    >>> with mitigated("aslr-off", program("sleep 0.01")) as (workload, attachments):
    ...     run_once(workload, attachments)["status"]
    'ok'
    """
    gives = treat_workload(mitigation, workload)
    try:
        yield gives
    finally:
        for attachment in gives.attachments:
            attachment.close()


def treatment_cells(workload: Workload, names: Iterable[str | Mitigation]) -> list[Cell]:
    """The baseline and a cell for each mitigation, to be interleaved by a campaign.

    Raises
    ------
    InputError, Unavailable
        See `treat_workload`.
    """
    treatments = [treat_workload(name, workload) for name in names]
    return [
        Cell(BASELINE, workload, attachments=(Treatment("none", (), workload),)),
        *(
            Cell(
                item.attachments[0].name,
                item.workload,
                attachments=item.attachments,
                compared_with=(BASELINE,),
            )
            for item in treatments
        ),
    ]
