"""What is compared: two sides, each a program as it is started and what accompanies its runs.

Owns how a side differs from the other by its environment or by mitigations.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..measurement import Attachment
from ..mitigation import Treatment, treat_workload
from ..workloads import Workload

OLD, NEW = "old", "new"


@dataclass(frozen=True)
class Side:
    """One of the two that are compared.

    Attributes
    ----------
    workload
        What is run.
    attachments
        Accompany its runs, such as a mitigation.
    label
        What sentences call it; empty: its command.
    """

    workload: Workload
    attachments: tuple[Attachment, ...] = ()
    label: str = ""

    @property
    def text(self) -> str:
        """The label, or the command as a shell would read it."""
        if self.label:
            return self.label
        program, *arguments = self.workload.command
        return shlex.join([program.rsplit("/", 1)[-1], *arguments])


def configured(
    workload: Workload,
    env: Mapping[str, str] | None = None,
    mitigations: Sequence[str] = (),
    watched: bool = False,
) -> Side:
    """A side with variables set and mitigations in force.

    Parameters
    ----------
    workload
        The program.
    env
        Variables added to its environment.
    mitigations
        Names (`nbhelpers.mitigation.mitigations`); each is proven to be in effect during each run.
    watched
        Whether to look at the process as often as the other side does that has mitigations.

    Raises
    ------
    InputError, Unavailable
        A mitigation that does not exist or cannot be done here; see
        `nbhelpers.mitigation.treat_workload`.

    Examples
    --------
    >>> from nbhelpers.workloads import program
    >>> configured(program("sleep 0.01"), {"OMP_NUM_THREADS": "1"}).text
    'sleep 0.01, OMP_NUM_THREADS=1'
    """
    env = dict(env or {})
    changed = replace(workload, env=tuple((dict(workload.env) | env).items()))
    attachments: tuple[Attachment, ...] = ()
    for name in mitigations:
        treated = treat_workload(name, changed)
        changed, attachments = treated.workload, (*attachments, *treated.attachments)
    if watched and not attachments:
        attachments = (Treatment("none", (), changed),)
    settings = [*(f"{name}={value}" for name, value in env.items()), *mitigations]
    side = Side(changed, attachments)
    return replace(side, label=", ".join([Side(workload).text, *settings]))
