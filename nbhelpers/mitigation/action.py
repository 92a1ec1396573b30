"""What a mitigation does: the interface of every action, and whether it can be done here.

Owns `Action` and `Possible`; the actions themselves are in `program`, `scheduling`,
`settings` and `groups`.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from ..workloads import Workload


@dataclass(frozen=True)
class Possible:
    """Whether something can be done here; if not, why, and the command that would fix it."""

    yes: bool
    reason: str = ""
    fix: str = ""

    def __bool__(self) -> bool:
        return self.yes

    def __repr__(self) -> str:
        return "Possible(yes)" if self.yes else f"Possible(no: {self.reason})"


YES = Possible(True)


def with_variables(workload: Workload, variables: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The environment of a workload with some variables set."""
    return tuple((dict(workload.env) | dict(variables)).items())


class NotYet(str):
    """Why a check fails that may succeed later, when threads or libraries are there.

    The last answer counts.
    """


class Unproven(str):
    """Why nothing shows at this moment whether it is in effect; an earlier proof stands."""


class Momentary(Unproven):
    """An `Unproven` effect that is there for moments only: a proof from an earlier run of the
    same program in this process stands, too.
    """


class Action:
    """One thing that a mitigation does to a program or to the machine; the methods do nothing
    unless overridden.

    For each run, in this order: `held` is entered before anything is started; `arm` acts on
    the process that waits at the barrier; `check` is called then, and again while it runs. `held`
    is left when it has ended.

    Attributes
    ----------
    needs_program
        The check looks at the program itself, which a launcher that waits in its place (start
        "exec") is not yet.
    risk
        "none" (touches the program only), "low" (changes the machine for the length of a run),
        "high" (may make it unresponsive); worked out of what it does, never declared.
    """

    needs_program: bool = False

    @property
    def risk(self) -> str:
        """The risk of what it does."""
        return "none"

    def possible(self, workload: Workload | None = None) -> Possible:
        """Whether it can be done here, by this user, to this workload. Changes nothing."""
        return YES

    def settled(self, workload: Workload) -> "Action":
        """The same action with what depends on the workload decided, such as which CPUs "one"
        means.
        """
        return self

    def applied_to(self, workload: Workload) -> Workload:
        """The workload as it is started."""
        return workload

    def wrapper(self) -> tuple[str, ...]:
        """A tool that is started in the program's place and executes it, with its options."""
        return ()

    def held(self, workload: Workload) -> AbstractContextManager:
        """In force for the run."""
        return nullcontext()

    def arm(self, pid: int) -> None:
        """The process waits at the barrier."""

    def check(self, pid: int) -> str | None:
        """What is not as it should be; None: it is seen to be in effect; `NotYet`: check again
        later; `Unproven`: that cannot be seen.
        """
        return Unproven(f"nothing shows whether {type(self).__name__} is in effect")

    def confirmed(self, errors: str) -> bool:
        """Whether what the program wrote to its standard error proves what `check` cannot see."""
        return False


class Prepared(Action):
    """An action that is over when the run begins, and leaves nothing to undo; `done` is true from
    then to the end of the run.
    """

    done: bool = False

    def prepare(self) -> None:
        """Do it; return when it is done."""

    @contextmanager
    def held(self, workload: Workload) -> Iterator[None]:
        self.prepare()
        object.__setattr__(self, "done", True)  # a frozen dataclass may note it, too
        try:
            yield
        finally:
            object.__setattr__(self, "done", False)

    def check(self, pid: int) -> str | None:
        return None if self.done else f"{type(self).__name__} was not done before the run"
