"""Tries mutants and prints the score: `python -m tests.mutants [N] [--seed S] [--group G]`.

N mutants a group (default 15); about 10 s each on one core. Survivors are printed to be read; those
that no test can see are explained in explained.yml.
"""

import argparse
import random
import sys
import time
from pathlib import Path

import yaml

from .making import GROUPS, sample
from .runner import Score, try_all

EXPLAINED = Path(__file__).with_name("explained.yml")


def explained() -> dict[str, str]:
    """Change: why no test can see it."""
    rows = yaml.safe_load(EXPLAINED.read_text()) or []
    return {f"{row['module']}: {row['change']}": row["why"] for row in rows}


def without_line(change: str) -> str:
    """The change without its line, which moves."""
    return change.partition(": ")[2]


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    words.add_argument("count", type=int, nargs="?", default=15)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--group", choices=list(GROUPS))
    asked = words.parse_args()
    draw = random.Random(asked.seed)
    groups = [asked.group] if asked.group else list(GROUPS)
    mutants = [mutant for group in groups for mutant in sample(group, asked.count, draw)]
    began = time.monotonic()
    scores, known = try_all(mutants), explained()
    total = Score()
    for group, score in scores.items():
        raw = Score(score.killed, list(score.survived))
        for unclear in score.unclear:
            print(f"unclear    {unclear}")
        for mutant in list(score.survived):
            key = f"{mutant.path.stem}: {without_line(mutant.change)}"
            if key in known:
                score.survived.remove(mutant)
                print(f"equivalent {mutant.path.name}: {mutant.change} ({known[key]})")
            else:
                print(f"survived   {mutant.path.name}: {mutant.change}")
        share, low, high = score.interval()
        print(
            f"{group:12} {score.killed} of {score.count} killed:"
            f" {share:.0%} ({low:.0%} to {high:.0%});"
            f" with equivalents {raw.killed} of {raw.count}"
        )
        total.killed += score.killed
        total.survived += score.survived
    share, low, high = total.interval()
    print(
        f"{'all':12} {total.killed} of {total.count} killed: {share:.1%} ({low:.0%} to {high:.0%});"
        f" seed {asked.seed}, {time.monotonic() - began:.0f} s"
    )
    return int(share < 0.85)


if __name__ == "__main__":
    sys.exit(main())
