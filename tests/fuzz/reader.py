"""atheris on one reader of `tests/test_readers.py`: `python -m tests.fuzz.reader NAME FOLDER ...`.

Whatever is no NoisebookError is a finding, and so is a reading of more than five seconds. Each
place in our code counts once: its first input lies in FOLDER/found, and the search goes on. Further
words are options of libFuzzer.
"""

import hashlib
import signal
import sys
import traceback
import warnings
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["nbhelpers"]):
    from nbhelpers.errors import NoisebookError

    from ..test_readers import MUTATIONS, READERS

SLOW_S = 5
CORPUS = Path(__file__).with_name("corpus")


class Slow(BaseException):
    """A reading took too long."""


def _slow(number, frame) -> None:
    raise Slow


def place_of(error: BaseException) -> str:
    """The error's type, and the last line of ours that it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/nbhelpers/" in frame.filename]
    last = (ours or frames)[-1]
    return f"{type(error).__name__} {Path(last.filename).stem} {last.name} {last.lineno}"


def seeds(name: str, folder: Path) -> None:
    """The sample, its small mutations, and what was found earlier."""
    sample = READERS[name][2]
    for number, change in enumerate(MUTATIONS.values()):
        if len(data := change(sample)) <= 4096:
            (folder / f"seed-{number:02d}").write_bytes(data)
    for path in sorted(CORPUS.glob(f"{name.replace(' ', '-')}/*")):
        (folder / path.name).write_bytes(path.read_bytes())


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    read, ending, _ = READERS[name]
    (folder / "found").mkdir(exist_ok=True)
    (folder / "inputs").mkdir(exist_ok=True)
    seeds(name, folder / "inputs")
    path = folder / f"input{ending}"
    known: set[str] = set()

    def attempt(data: bytes) -> None:
        path.write_bytes(data)
        signal.setitimer(signal.ITIMER_REAL, SLOW_S)
        try:
            read(path)
        except NoisebookError:
            pass
        except (Exception, Slow) as error:
            where = place_of(error)
            if where not in known:
                known.add(where)
                digest = hashlib.sha256(data).hexdigest()[:8]
                (folder / "found" / f"{where.replace(' ', '_')}-{digest}").write_bytes(data)
                print(f"FOUND {name}: {where}: {error!r}"[:300], flush=True)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    warnings.simplefilter("ignore")
    options = ["-max_len=4096", "-rss_limit_mb=3072", "-handle_alrm=0", *sys.argv[3:]]
    atheris.Setup([sys.argv[0], *options, str(folder / "inputs")], attempt)
    signal.signal(signal.SIGALRM, _slow)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
