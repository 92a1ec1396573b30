"""The programs that suffer: their commands, their places, the files that they read or write.

Owns how a victim of the catalogue becomes a workload, and the making and removing of its files.
"""

import contextlib
import fcntl
import functools
import os
import random
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from nbhelpers.errors import NoisebookError, RunError, Unavailable
from nbhelpers.machine import state_folder
from nbhelpers.measurement import Attachment
from nbhelpers.workloads import Workload, binary_folder, program_path

from .catalogue import Dose, Victim

INPUT_BYTES, FILE_BYTES = 2**20, 2**24
ON_DISK = "/var/tmp"  # nosec B108 (/tmp often lies in memory)
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
    return input_path(victim.file) if victim.file else None


def victim_files(victim: Victim) -> list[Attachment]:
    """What makes a victim's file and removes it at the end."""
    return [input_file(victim.file)] if victim.file else []


def input_path(kind: str, letters: float = 0.0) -> Path:
    """Where a file lies, in a folder that only this user can look into; its name says all that its
    content depends on.
    """
    name = {"map": "victim-map", "disk": "victim-disk", "source": "input-source.cpp"}
    return _folder() / name.get(kind, f"input-{kind}-{letters:g}.txt")


def _folder() -> Path:
    """On a disk; the same for all campaigns of this user, as commands name what lies in it."""
    for parent in (Path(ON_DISK), state_folder()):
        folder = parent / f"noisebook-scratch-{os.geteuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if found.st_uid == os.geteuid() and found.st_mode == stat.S_IFDIR | 0o700:
            return folder
    raise Unavailable(
        "there is no private folder for the files of victims",
        where=folder,
        fix=f"remove it: rm -r {folder}",
    )


def remove_if_unused(path: Path) -> None:
    """Remove the file of a victim unless somebody holds a lock on it."""
    with contextlib.suppress(FileNotFoundError, BlockingIOError), path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()


def input_file(kind: str, letters: float = 0.0) -> "VictimFile":
    """The file of a victim.

    Parameters
    ----------
    kind
        "map" or "disk" (16 MiB that do not compress), "text" (1 MiB of words) or "source" (C++).
    letters
        Share of a text (0 to 1) that consists of four letters, where gzip searches longer.
    """
    return VictimFile(input_path(kind, letters), functools.partial(_input, kind, letters))


class VictimFile(Attachment):
    """A file that a victim reads or writes: made before the first run of a campaign, whole and on
    the disk before each run, removed at the end.

    Parameters
    ----------
    path
        Where.
    content
        Makes its bytes, always the same.

    Raises
    ------
    RunError
        The file cannot be made, for want of room for example; raised by `before`.
    """

    def __init__(self, path: Path, content: Callable[[], bytes]):
        self.path, self._content = path, content
        self._handle, self._length, self._made = -1, 0, False

    def before(self, workload: Workload) -> None:
        """Make the file anew if somebody changed it; a lock shows others that it is in use."""
        if not self._whole():
            if self._made:
                changed = f"{self.path} had been changed by somebody else"
                self.notes = (*self.notes, f"{changed}, and was made anew before a run")
            self._make()
        self._made = True

    def _whole(self) -> bool:
        """Whether the file at the path is ours, of its length, and nobody else's to read."""
        if self._handle < 0 or not self.path.exists():
            return False
        named, held = os.lstat(self.path), os.fstat(self._handle)
        same = (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)
        return same and held.st_mode == stat.S_IFREG | 0o600 and held.st_size == self._length

    def _make(self) -> None:
        """Write the file under another name, onto the disk, and only then give it its own."""
        self._let_go()
        for path in self.path.parent.iterdir():  # of campaigns that were killed
            remove_if_unused(path)
        content = self._content()
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=".victim-")
        try:
            fcntl.flock(handle, fcntl.LOCK_SH)
            with open(handle, "wb", closefd=False) as file:
                file.write(content)
            os.fsync(handle)
            os.replace(temporary, self.path)
        except OSError as error:
            os.close(handle)
            Path(temporary).unlink(missing_ok=True)
            raise RunError(
                f"the file of a victim cannot be written: {error.strerror}",
                where=self.path,
                why=f"without its {len(content):,} bytes the cause cannot be planted",
                fix=f"make room for it: df {self.path.parent}",
            ) from None
        self._handle, self._length = handle, len(content)

    def _let_go(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def close(self) -> None:
        """Remove the file, and what gzip made of it, unless another process uses it too."""
        self._let_go()
        if self._made:
            self._made = False
            remove_if_unused(self.path)
            remove_if_unused(self.path.with_name(self.path.name + ".gz"))


def _input(kind: str, letters: float) -> bytes:
    """Always the same bytes for the same arguments."""
    if kind in ("map", "disk"):  # a file system cannot compress it
        return random.Random(FILE_BYTES).randbytes(FILE_BYTES)
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
