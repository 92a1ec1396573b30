"""Which settings may be changed, to which values, and at which risk: the list that
`noisebook-priv` is compiled with, workloads/allowed_settings.h.

Owns reading it, and the words of a refusal. What is not on the list is refused, whoever asks.
"""

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import NoisebookError
from ..places import shipped

_ENTRY = re.compile(
    r'^ALLOWED\("([^"]+)",\s*(NUMBER|WORD|CPUS|MASK),\s*"([^"]*)",\s*(LOW|HIGH)\)', re.MULTILINE
)
TRIGGERS = ("/proc/sys/vm/compact_memory", "/proc/sys/vm/drop_caches")
_HOW_TO_ADD = "what is worth a setting goes into workloads/allowed_settings.h, and then: make env"


@dataclass(frozen=True)
class AllowedSetting:
    """A row of the list.

    Attributes
    ----------
    path
        A star stands for one number.
    kind
        NUMBER, WORD, CPUS or MASK.
    range
        "least most" of a number; the words; empty for CPUs.
    risk
        "low" or "high".
    """

    path: str
    kind: str
    range: str
    risk: str

    def names(self, path: str) -> bool:
        """Whether a path is meant, with numbers or with the star."""
        pattern = re.escape(self.path).replace(r"\*", r"(\d{1,9}|\*)")
        return re.fullmatch(pattern, path, re.ASCII) is not None

    def takes(self, value: str) -> bool:
        """Whether a value is in the range."""
        if self.kind == "NUMBER":
            least, most = map(int, self.range.split())
            number = re.fullmatch(r"-?[0-9]{1,18}", value)
            return number is not None and least <= int(value) <= most
        if self.kind == "WORD":
            return value in self.range.split()
        return _is_cpu_list(value) if self.kind == "CPUS" else _is_mask(value)

    @property
    def words(self) -> str:
        """What it takes, for people."""
        if self.kind == "NUMBER":
            return "{} to {}".format(*self.range.split())
        return {
            "WORD": ", ".join(self.range.split()),
            "CPUS": "a list of CPUs of this machine",
            "MASK": "a mask of CPUs of this machine",
        }[self.kind]


def _is_cpu_list(text: str) -> bool:
    parts = [re.fullmatch(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", part) for part in text.split(",")]
    most = os.sysconf("SC_NPROCESSORS_CONF")
    return all(part and int(part[1]) <= int(part[2] or part[1]) < most for part in parts)


def _is_mask(text: str) -> bool:
    whole = re.fullmatch(r"[0-9a-f]+(,[0-9a-f]+)*", text)
    return whole is not None and int(text.replace(",", ""), 16) > 0


@cache
def settings_list() -> tuple[AllowedSetting, ...]:
    """The whole list, in its order.

    Examples
    --------
    >>> settings_list()[0].path, settings_list()[0].words
    ('/proc/sys/kernel/numa_balancing', '0 to 3')
    """
    text = (Path(shipped()) / "workloads/allowed_settings.h").read_text(encoding="utf-8")
    found = [
        AllowedSetting(path, kind, span, risk.lower())
        for path, kind, span, risk in _ENTRY.findall(text)
    ]
    if len(found) != len(re.findall("^ALLOWED", text, re.MULTILINE)):
        raise NoisebookError("a row of allowed_settings.h cannot be read", where="workloads")
    return tuple(found)


def allowed_setting(path: str) -> AllowedSetting | None:
    """The row that names a path exactly; None: it may not be changed."""
    return next((one for one in settings_list() if one.names(path)), None)


def refusal(path: str, value: str) -> tuple[str, str]:
    """Why a setting may not be changed so.

    Parameters
    ----------
    path
        The file, as the list has it: no other spelling of it counts.
    value
        What it is to become.

    Returns
    -------
    (what, fix) : what is wrong, and what to do; ("", "") where it may be changed.

    Examples
    --------
    >>> refusal("/proc/sys/vm/swappiness", "1")
    ('', '')
    >>> refusal("/proc/sys/kernel/core_pattern", "|/bin/x")[0]
    'this setting is not on the list of those that may be changed'
    >>> refusal("/proc/sys/vm/swappiness", "1000")
    ('1000 is out of the range of this setting', 'choose from 0 to 200')
    """
    found = allowed_setting(path)
    if found is None:
        return "this setting is not on the list of those that may be changed", _HOW_TO_ADD
    if not found.takes(value):
        return f"{value} is out of the range of this setting", f"choose from {found.words}"
    return "", ""


def risk_of(path: str) -> str:
    """The risk of a setting: "low" or "high"; what is not on the list is "high"."""
    found = allowed_setting(path)
    return found.risk if found else "high"
