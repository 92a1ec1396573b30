"""The bench of known causes: each planted in a quarter of the runs; is it named first, and is
nothing found where there is nothing?

    python benchmarks/known_causes/score.py [--runs 40] [--folder FOLDER] [CAUSE ...]

Beside it, on the same runs, what a plain decision tree splits on first (slowest quarter against the
others, all counters as they are). Strictly, the culprit's CPU time and memory do not count as the
cause. About two minutes with 40 runs a cause. With --folder the runs are kept, and only scored the
next time; --recorded scores those of the repository, of all causes.
"""

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import pandas as pd
from sklearn.tree import DecisionTreeClassifier

from nbhelpers.measurement import finished
from nbhelpers.studies.known_causes.campaigns import cause_runs, planting_error
from nbhelpers.studies.known_causes.catalogue import causes
from nbhelpers.studies.known_causes.scores import (
    score_causes,
    score_nothing,
    score_sentences,
    shows,
)

RECORDED = Path(__file__).resolve().parents[2] / "data" / "recorded" / "52-known-causes"


def plain_root(runs: pd.DataFrame) -> str:
    """The first split of a tree on everything that is a number, and was not the outcome itself."""
    runs = finished(runs)
    numbers = runs.select_dtypes("number").drop(columns=["seconds"]).dropna(axis=1)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(
        numbers, runs["seconds"] > runs["seconds"].quantile(0.75)
    )
    return str(numbers.columns[tree.tree_.feature[0]]) if tree.tree_.feature[0] >= 0 else ""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "causes", nargs="*", default=None, metavar="CAUSE", help=", ".join(causes())
    )
    parser.add_argument(
        "--runs", type=int, default=40, help="runs of each cause, a multiple of four"
    )
    parser.add_argument("--folder", help="where the runs are kept")
    parser.add_argument(
        "--recorded", action="store_true", help="score the recorded runs, measure nothing"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    names = options.causes or list(causes())
    for name in names:
        if not options.recorded and (error := planting_error(name)):
            print(f"left out: {name}: {error.what}")
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as temporary:
        began = time.monotonic()
        folder = RECORDED if options.recorded else options.folder or temporary
        runs = cause_runs(folder, names, options.runs, options.seed, recorded_only=options.recorded)
        measured = time.monotonic()
        scores = score_causes(runs, options.seed)
        scores["plain_tree"] = [plain_root(table) for table in runs.values()]
        plain = sum(
            shows(root, causes()[name].shown_by + causes()[name].trail)
            for name, root in zip(scores["cause"], scores["plain_tree"])
        )
        nothing = score_nothing(runs, 1, options.seed)
        strictly = sum(
            shows(root, causes()[name].on_victim)
            for name, root in zip(scores["cause"], scores["plain_tree"])
        )
    shown = scores.drop(columns=["what", "runs", "right", "countable"])
    print(shown.to_string(index=False, float_format=lambda value: f"{value:.3f}"))
    print("\n".join(score_sentences(scores, nothing)))
    print(
        f"A plain tree splits first on a counter of the cause or its trail in {plain} of"
        f" {len(scores)}, strictly in {strictly}, and has no way to say that there is nothing."
    )
    print(f"measured in {measured - began:.0f} s, scored in {time.monotonic() - measured:.0f} s")


if __name__ == "__main__":
    main()
