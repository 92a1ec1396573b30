"""Tries faults and prints what was lost and left.

    python -m tests.faults [N] [--seed S] [--kind K]

About 4 s each; without --kind all kinds take turns. The status is 1 if anything was lost or left.
"""

import argparse
import random
import sys
import time

from .matrix import Outcome, kinds, not_tried

COLUMNS = (
    *("tried", "acknowledged", "lost", "settings", "processes", "groups", "instances", "files"),
    *("tracebacks", "not_resumed"),
)


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    words.add_argument("count", type=int, nargs="?", default=320)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--kind", default="", help="only kinds with this in their name")
    asked = words.parse_args()
    known = {name: fault for name, fault in kinds().items() if asked.kind in name}
    if not known:
        sys.exit(f"no kind has '{asked.kind}' in its name: {', '.join(kinds())}")
    totals = {name: Outcome(tried=0) for name in known}
    began = time.monotonic()
    for number in range(asked.count):
        name = list(known)[number % len(known)]
        outcome = known[name](random.Random(f"{asked.seed} {number}"))
        for column in COLUMNS:
            setattr(totals[name], column, getattr(totals[name], column) + getattr(outcome, column))
        for remark in outcome.remarks if outcome.bad else ():
            print(f"fault {number} ({name}): {remark}", flush=True)
    print(f"{asked.count} faults, seed {asked.seed}, {time.monotonic() - began:.0f} s")
    _print_table(totals)
    return int(any(outcome.bad for outcome in totals.values()))


def _print_table(totals: dict[str, Outcome]) -> None:
    wide = max(map(len, totals)) + 2
    print(" " * wide + "  ".join(COLUMNS))
    rows = {name: outcome for name, outcome in totals.items() if outcome.tried}
    total = Outcome(tried=0)
    for name, outcome in rows.items():
        print(f"{name:{wide}}" + _numbers(outcome))
        for column in COLUMNS:
            setattr(total, column, getattr(total, column) + getattr(outcome, column))
    print(f"{'all':{wide}}" + _numbers(total))
    for name, why in not_tried().items():
        print(f"not tried: {name}: {why}")


def _numbers(outcome: Outcome) -> str:
    return "  ".join(f"{getattr(outcome, column):{len(column)}d}" for column in COLUMNS)


if __name__ == "__main__":
    sys.exit(main())
