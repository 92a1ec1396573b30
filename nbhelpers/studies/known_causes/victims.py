"""The programs that suffer: their commands, their places, the files that they read or write.

Owns how a victim of the catalogue becomes a workload, and the making and removing of its files.
"""

import fcntl
import functools
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from ...errors import NoisebookError, RunError, Unavailable
from ...machine import leftovers
from ...measurement import Attachment
from ...workloads import Workload, binary_folder, program_path
from .catalogue import Dose, Victim
from .planting import VictimFile

INPUT_BYTES = 2**20
_SCRIPT = Path(__file__).with_name("victim.py")


def victim_workload(dose: Dose, cpus: tuple[int, ...], file: Path | None) -> Workload:
    """The victim of a dose as a workload, on the CPUs that it may use."""
    victim = dose.victim
    env = {"OMP_NUM_THREADS": str(victim.threads)} if victim.threads else {}
    return Workload(
        f"victim {victim.id}",
        "external",
        victim_command(dose, file),
        env=tuple(env.items()),
        start=victim.start,
        cpus=cpus if victim.threads == 2 else cpus[-1:],
    )


def victim_command(dose: Dose, file: Path | None, extra: int | None = None) -> tuple[str, ...]:
    """The words of a victim's command; `extra` in place of the dose's."""
    places = {
        "bin": str(binary_folder()),
        "python": sys.executable,
        "script": str(_SCRIPT),
        "file": str(file),
        "size": str(dose.size),
        "extra": str(dose.extra if extra is None else extra),
    }
    if "{cc1plus}" in dose.victim.command:
        places["cc1plus"] = _compiler_proper()
    first, *words = (word.format_map(places) for word in dose.victim.command)
    return (str(_installed(first)), *words)


def _installed(name: str) -> Path:
    try:
        return program_path(name)
    except RunError as error:
        raise Unavailable(f"the victim cannot run: {error.what}", fix=error.fix) from None


@functools.cache
def _compiler_proper() -> str:
    """The C++ compiler itself, without the driver that starts it."""
    answer = ""
    try:
        command = [str(program_path("g++")), "-print-prog-name=cc1plus"]
        answer = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except NoisebookError:
        pass
    if not os.path.isabs(answer):
        raise Unavailable("there is no GNU C++ compiler", fix="apt install g++")
    return answer


def victim_path(victim: Victim) -> Path | None:
    """Where a victim's file lies, while there is one."""
    if victim.file in ("map", "disk"):
        return leftovers.scratch_folder() / f"victim-{victim.file}"
    return input_path(victim.file) if victim.file else None


def victim_files(victim: Victim) -> list[Attachment]:
    """What makes a victim's file and removes it at the end."""
    if victim.file in ("map", "disk"):
        return [
            VictimFile(leftovers.scratch_folder() / f"victim-{victim.file}", victim.file == "disk")
        ]
    return [InputFile(victim.file)] if victim.file else []


def input_path(kind: str, letters: float = 0.0) -> Path:
    """Where an input lies; its name says all that its content depends on."""
    ending = ".cpp" if kind == "source" else ".txt"
    return leftovers.scratch_folder() / f"input-{kind}-{letters:g}{ending}"


class InputFile(Attachment):
    """A file that a program reads, made before the first run of a campaign and removed at its end.

    Parameters
    ----------
    kind
        "text" (1 MiB of words) or "source" (a C++ source).
    letters
        Of a text: the share of it that is of four letters, where gzip searches longer.
    """

    def __init__(self, kind: str, letters: float = 0.0):
        self.kind, self.letters = kind, letters
        self._handle = -1

    def before(self, workload: Workload) -> None:
        if self._handle < 0:
            path = input_path(self.kind, self.letters)
            self._handle = _written(path, _input(self.kind, self.letters))

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
            path = input_path(self.kind, self.letters)
            leftovers.remove_if_unused(path)
            leftovers.remove_if_unused(path.with_name(path.name + ".gz"))


def _written(path: Path, content: bytes) -> int:
    """Write a file under another name, then give it its own; returns a descriptor that locks it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".input-")
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
        with open(handle, "wb", closefd=False) as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError as error:
        os.close(handle)
        Path(temporary).unlink(missing_ok=True)
        raise RunError(
            f"the input of a victim cannot be written: {error.strerror}",
            where=path,
            fix=f"make room for it: df {path.parent}",
        ) from None
    return handle


@functools.cache
def _input(kind: str, letters: float) -> bytes:
    """Always the same bytes for the same arguments."""
    numbers = random.Random(INPUT_BYTES)
    if kind == "source":
        return "\n".join(_template(number) for number in range(60)).encode()
    words = [
        "".join(numbers.choices("abcdefghijklmnopqrstuvwxyz", k=number % 7 + 2))
        for number in range(3000)
    ]
    text = " ".join(numbers.choices(words, k=INPUT_BYTES // 5)).encode()[:INPUT_BYTES]
    length = round(letters * INPUT_BYTES)
    return "".join(numbers.choices("acgt", k=length)).encode() + text[length:]


def _template(number: int) -> str:
    """A template that is instantiated fifty deep."""
    name = f"S{number}"
    value = "static constexpr long v ="
    return (
        f"template<int N> struct {name} {{ {value} {name}<N - 1>::v + N; }};\n"
        f"template<> struct {name}<0> {{ {value} {number}; }};\n"
        f"static_assert({name}<50>::v == {number + 1275});"
    )
