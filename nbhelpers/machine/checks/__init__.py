"""The doctor: what this machine can and cannot do for a study, and the command that fixes it.

Looking changes nothing on the machine, but what dead runs of Noisebook left changed is put back,
and the report says so.
"""

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import SettingError
from .. import settings
from .._read import read, writable
from ._checks import (
    RT_RUNTIME,
    Check,
    all_checks,
    fair_server,
    texts,
    tracing,
)
from ._trials import Trials, try_out

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 100
_NAME_WIDTH = 22
_SIGNS = {"yes": "yes", "limited": "limited", "no": "NO"}


@dataclass(frozen=True)
class Capabilities:
    """What the other parts may count on.

    "liftable" and "tracepoints" include mounting debugfs and tracefs first.

    Attributes
    ----------
    tracer
        "osnoise", "tracepoints" or "detours", the best there is.
    fifo
        SCHED_FIFO is granted to our children.
    rt_throttling_liftable
        sched_rt_runtime_us is -1 or may be set so.
    fair_server
        "absent", "liftable" or "locked".
    perf_software
        Software counters open and see the kernel; without it, switches and migrations would count
        as 0.
    perf_hardware
        Hardware counters open and count, at least in user space.
    """

    tracer: str
    fifo: bool
    rt_throttling_liftable: bool
    fair_server: str
    perf_software: bool
    perf_hardware: bool


@dataclass(frozen=True, repr=False)
class Doctor:
    """The findings.

    Attributes
    ----------
    checks
        For a person to read.
    capabilities
        For the other parts to decide by.
    repaired
        Sentences on what dead runs had left, see `settings.repair`.
    """

    checks: tuple[Check, ...]
    capabilities: Capabilities
    repaired: tuple[str, ...] = ()

    def table(self) -> "pd.DataFrame":
        """One row a check.

        Returns
        -------
        Columns `name`, `state` ("yes", "limited", "no"), `found`, `consequence`, `fix`.
        """
        import pandas as pd

        return pd.DataFrame(self.checks, columns=list(Check.__dataclass_fields__))

    def checks_text(self) -> str:
        """The checks for 100 columns: what is fine takes one line, the rest says what fixes it."""
        return "\n".join(line for check in self.checks for line in _lines(check))

    def replaced(self) -> list[str]:
        """Sentences on what replaces which part of the full method on this machine (Persson et al.
        2025, sections 4.1 and 4.3).
        """
        can = self.capabilities
        counters = "counters" if can.perf_software else "all counters"
        here = {
            can.tracer: can.tracer != "osnoise",
            "ordinary": not can.fifo,
            "throttled": can.fifo and not can.rt_throttling_liftable,
            "interrupted": can.fifo and can.fair_server == "locked",
            counters: not can.perf_hardware,
        }
        return [texts()["replaced"][name] for name in here if here[name]]

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{sum(check.state == state for check in self.checks)} {state}" for state in _SIGNS
        )
        return f"Doctor({counts}; tracer {self.capabilities.tracer})"

    def _repr_html_(self) -> str:
        import pandas as pd

        with pd.option_context("display.max_colwidth", None):
            return self.table().to_html(index=False, border=0, classes="checks", justify="left")


def doctor(root: str | Path = "/", trials: Trials | None = None) -> Doctor:
    """Find out what this user can do for a study on this machine.

    It needs no privilege and changes nothing but what dead runs of Noisebook had left changed.

    Parameters
    ----------
    root
        Folder of a recorded sysfs and procfs tree; "/" is this machine.
    trials
        How the trials went; by default they are made on this machine, and on a recorded one counted
        as failed.

    Returns
    -------
    Doctor, with `checks`, `capabilities` and a report for people: `print(doctor().checks_text())`.

    Examples
    --------
    >>> report = doctor()
    >>> report.capabilities.tracer in ("osnoise", "tracepoints", "detours")
    True
    >>> sorted(set(report.table()["state"]) - {"yes", "limited", "no"})
    []
    """
    here = Path(root) == Path("/")
    repaired, leftovers = _leftovers() if here else ((), ())
    made = trials or (try_out() if here else Trials())
    capabilities = Capabilities(
        tracer=tracing(root).tracer,
        fifo=made.fifo.state == "yes",
        rt_throttling_liftable=read(RT_RUNTIME, root) == "-1" or writable(RT_RUNTIME, root),
        fair_server=fair_server(root),
        perf_software=made.software.state == "yes",
        perf_hardware=made.hardware.state != "no",
    )
    return Doctor((*all_checks(root, made), *leftovers), capabilities, repaired)


def _leftovers() -> tuple[tuple[str, ...], tuple[Check, ...]]:
    """Sentences on what dead runs of Noisebook had left on this machine, and the check of it."""
    name, harm = "left by dead runs", "later measurements would run on a changed machine"
    try:
        found = tuple(settings.repair())
    except SettingError as error:
        return (), (Check(name, "no", error.what, error.why or "", error.fix or ""),)
    stays = [sentence for sentence in found if sentence.startswith(("not ", "left changed"))]
    if stays:
        fix = "do as these sentences say, then: make doctor"
        return found, (Check(name, "limited", "; ".join(stays), harm, fix),)
    sentences = "; ".join(found) or "nothing"
    return found, (Check(name, "yes", sentences, "the machine is as its owner set it"),)


def _lines(check: Check) -> list[str]:
    lines = wrapped(f"{check.name:<{_NAME_WIDTH}}{_SIGNS[check.state]:<9}", check.found)
    if check.state != "yes":
        lines += wrapped(" " * (_NAME_WIDTH + 2), check.consequence)
        lines += wrapped(" " * (_NAME_WIDTH + 2), f"fix: {check.fix}")
    return lines


def wrapped(first: str, text: str) -> list[str]:
    """The lines of a text behind its first words, `WIDTH` columns wide."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_on_hyphens=False,
        break_long_words=False,
    )
