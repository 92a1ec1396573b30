"""What every error of Noisebook says: what is wrong, where, why it matters, and the command that
fixes it.

In a notebook the message stands alone, without a traceback; `str(error)` is the whole message.
"""

import difflib
from collections.abc import Iterable


def printable(text: str) -> str:
    r"""A text that may hold what a file or a program said, for a terminal: a name with an escape
    sequence in it would move the cursor, or worse.

    Examples
    --------
    >>> printable("kd\x1b[2J\nnext line")
    'kd�[2J\nnext line'
    """
    return "".join(one if one.isprintable() or one in "\n\t" else "�" for one in text)


FEW = 5  # names that are all said


def nearest(name: str, known: Iterable[str]) -> str:
    """What somebody may have meant by a name that there is not.

    Examples
    --------
    >>> nearest("nbodi", ["nbody", "stream"]), nearest("x", ["nbody", "stream"])
    ("did you mean 'nbody'? There are nbody, stream", 'choose from nbody, stream')
    """
    known = list(known)
    near, every = difflib.get_close_matches(name, known, 1), ", ".join(known) or "none"
    if not near:
        return f"choose from {every}"
    return f"did you mean '{near[0]}'?" + f" There are {every}" * (len(known) <= FEW)


class NoisebookError(Exception):
    """Base of all errors that a user can fix.

    Parameters
    ----------
    what
        One sentence, what is wrong.
    where
        The file, line or field it was found in.
    why
        Why it matters, in one sentence.
    fix
        What to do, if possible a command to paste.
    """

    def __init__(
        self, what: str, *, where: object = None, why: str | None = None, fix: str | None = None
    ):
        self.what, self.where, self.why, self.fix = what, where, why, fix
        parts = (("where", where), ("why it matters", why), ("what to do", fix))
        lines = [what, *(f"  {name}: {text}" for name, text in parts if text)]
        super().__init__(printable("\n".join(lines)))

    def _render_traceback_(self) -> list[str]:
        """IPython prints these lines in place of a traceback."""
        return f"{type(self).__name__}: {self}".splitlines()


class InputError(NoisebookError):
    """A file, a field or an argument that cannot be used as it is."""


def check_choice(
    what: str, value: object, choices: Iterable[object], where: object = None, more: str = ""
) -> None:
    """Refuse a value that is none of those that there are; `more` is another way."""
    if value not in (known := [*choices]):
        fix = nearest(str(value), map(str, known)) + more
        raise InputError(f"there is no {what} '{value}'", where=where, fix=fix)


class LostEvents(InputError):
    """A trace in which the kernel lost events: every duration around a gap would be wrong, so it is
    refused.
    """


class RunError(NoisebookError):
    """A program that could not be started, or failed so often that a campaign makes no sense."""


class SettingError(NoisebookError):
    """A setting of the machine that could not be changed, or not be put back."""


class Unavailable(NoisebookError):
    """Something that this machine, or this user, cannot do; `make doctor` says how to get it."""


class DiskError(NoisebookError, OSError):
    """A file that cannot be written: the disk is full, or may only be read.

    It is an `OSError` too, with its number, for those who expect one.
    """

    __str__ = Exception.__str__  # the whole message, where OSError shows number and name
