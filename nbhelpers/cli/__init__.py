"""The command `noisebook`: one verb for each thing that the notebooks do, over the same functions.

Owns the command line: its words, its errors, its exit statuses. What the verbs do is in `_programs`
and `_verbs`.
"""

import json
import os
import shlex
import sys
from collections.abc import Sequence

from ..errors import InputError, NoisebookError, RunError, printable
from ..files import shortage
from ..progress import for_command
from . import _programs, _verbs  # they declare the verbs
from ._parser import parsed

DONE, FAULT, REFUSED, PROGRAM_FAILED, STOPPED = 0, 1, 2, 3, 130


def main(words: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit status.

    Parameters
    ----------
    words
        After `noisebook`; None: those of this process.

    Returns
    -------
    0 it was done, whatever was found; 1 a fault of Noisebook (with a traceback); 2 it cannot be
    done as requested, the message has the reason and the fix; 3 the program could not be run;
    130 stopped by Ctrl-C, what was measured is kept.
    """
    arguments = None
    try:
        arguments = parsed(sys.argv[1:] if words is None else list(words))
        if arguments is None:
            return DONE
        with for_command():
            answer = arguments.verb(arguments)
        _show(answer, arguments.json)
    except NoisebookError as error:
        return _complain(error)
    except KeyboardInterrupt:
        return _stopped(arguments)
    except BrokenPipeError:  # `noisebook … | head`
        # Python flushes its output at its end, which would fail again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (OSError, MemoryError, RuntimeError) as error:
        if found := shortage(error) or _not_allowed(error, arguments):
            return _complain(found)
        raise
    return answer.status if answer else DONE


def _show(answer: _verbs.Answer | None, as_json: bool) -> None:
    if answer is not None:
        text = json.dumps(answer.data, indent=1, default=str) if as_json else answer.text
        print(printable(text), flush=True)


def _complain(error: NoisebookError) -> int:
    print(f"noisebook: {error}", file=sys.stderr)
    return PROGRAM_FAILED if isinstance(error, RunError) else REFUSED


def _not_allowed(error: BaseException, arguments: object) -> NoisebookError | None:
    """What another user made, root say (sudo make paper), and this one cannot go on with."""
    if not (isinstance(error, PermissionError) and error.filename):
        return None
    folder = getattr(arguments, "data_folder", None) or os.path.dirname(error.filename)
    mine = f"sudo chown -R $USER {shlex.quote(str(folder))}"
    return InputError(
        f"this user may not write here: {error.strerror}",
        where=error.filename,
        fix=f"go on as the user who began, or take it over: {mine}",
    )


def _stopped(arguments: object) -> int:
    folder = getattr(arguments, "data_folder", None)
    continued = getattr(arguments, "continued", "the same command")
    message = (
        f"What was measured is kept in {folder}; {continued} goes on from there."
        if folder
        else "Nothing was kept: give --folder to keep what is measured."
    )
    print(f"\nStopped. {message}", file=sys.stderr)
    return STOPPED
