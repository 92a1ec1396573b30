"""The bench of known causes on the command line: blind tables for any attribution, and its score.

    python -m noisebook_known_causes export FOLDER [--half HALF]
    python -m noisebook_known_causes answer ANSWERS.csv [--half HALF]
    python -m noisebook_known_causes score ANSWERS.csv [--half HALF]

`export` writes one CSV a table, without the truth; `answer` writes this library's own answers;
`score` says how good answers are. HALF is development (the default) or held-out.
"""

import argparse
import sys
import warnings
from pathlib import Path

from nbhelpers.errors import NoisebookError
from nbhelpers.reading import read_csv

from .scoring import answers_of, score, score_in_words
from .tables import DEVELOPMENT, HELD_OUT, bench_tables


def _export(place: Path, half: str) -> str:
    place.mkdir(parents=True, exist_ok=True)
    tables = list(bench_tables(half))
    for one in tables:
        one.blind.to_csv(place / f"{one.id}.csv", index=False)
    return f"{len(tables)} tables in {place}"


def _answer(place: Path, half: str) -> str:
    answers = answers_of(half=half)
    answers.to_csv(place, index=False)
    return f"{len(answers)} answers in {place}"


def _score(place: Path, half: str) -> str:
    answers = read_csv(place, keep_default_na=False, dtype=str)
    return "\n".join(score_in_words(score(answers, half)))


def main(words: list[str] | None = None) -> int:
    """Run one of the commands; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m noisebook_known_causes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=("export", "answer", "score"))
    parser.add_argument("place", type=Path, metavar="FOLDER|ANSWERS.csv")
    parser.add_argument("--half", choices=(DEVELOPMENT, HELD_OUT), default=DEVELOPMENT)
    options = parser.parse_args(words)
    commands = {"export": _export, "answer": _answer, "score": _score}
    warnings.simplefilter("ignore")
    try:
        print(commands[options.command](options.place, options.half))
    except (NoisebookError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
