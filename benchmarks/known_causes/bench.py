"""The recorded bench of known causes, scored: the attribution of this library beside two simple
ones, on one half.

    python benchmarks/known_causes/bench.py [--half held-out] [--answers FOLDER]

`tree`: the first split of a decision tree, slowest quarter against the others, all columns as they
are. `rank`: the column with the strongest rank correlation with the run time, if its p is below
0.01 after Bonferroni. Some minutes a half. The held-out half is for a final score only.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import pandas as pd
from noisebook_known_causes.scoring import answers_of, named_by_explain, score
from noisebook_known_causes.tables import DEVELOPMENT, HELD_OUT
from scipy.stats import spearmanr
from sklearn.tree import DecisionTreeClassifier

from nbhelpers.measurement import consequences, rates

LEVEL = 0.01
TIMES = ("seconds", "region_seconds", "wall_seconds", "start_ns", "end_ns", "run")


def numbers(runs: pd.DataFrame) -> pd.DataFrame:
    """The columns that are numbers, vary and are not the run time itself."""
    table = runs.select_dtypes("number").drop(columns=[*TIMES], errors="ignore").dropna(axis=1)
    return table.loc[:, table.nunique() > 1]


def first_split(runs: pd.DataFrame) -> list[str]:
    """What a plain decision tree splits on first."""
    table, seconds = numbers(runs), runs["seconds"]
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    tree.fit(table, seconds > seconds.quantile(0.75))
    at = tree.tree_.feature[0]
    return [str(table.columns[at])] if at >= 0 else []


def strongest_rank(runs: pd.DataFrame) -> list[str]:
    """The strongest rank correlation, totals as rates, if it is beyond chance."""
    table = numbers(rates(runs)).drop(columns=[*consequences()], errors="ignore")
    found = {name: spearmanr(table[name], runs["seconds"]) for name in table}
    first = sorted(found, key=lambda name: -abs(found[name].statistic))[:1]
    return [name for name in first if found[name].pvalue * len(found) < LEVEL]


METHODS = {"explain": named_by_explain, "tree": first_split, "rank": strongest_rank}


def card_table(scores: pd.DataFrame) -> str:
    """The scores as extras/known_causes/bench/CARD.md shows them."""
    results = [
        f"{row['count']} of {row['of']} ({100 * row['low']:.0f} % to {100 * row['high']:.0f} %)"
        for _, row in scores.iterrows()
    ]
    methods = list(scores["method"].unique())
    wide = scores.assign(result=results).pivot_table(
        index=["measure", "tables"], columns="method", values="result", aggfunc="first", sort=False
    )[methods]
    lines = [
        ["measure", "tables", *(f"`{name}`" for name in methods)],
        ["---"] * (2 + len(methods)),
    ]
    lines += [[*name, *row] for name, row in zip(wide.index, wide.to_numpy(), strict=True)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--half", choices=(DEVELOPMENT, HELD_OUT), default=DEVELOPMENT)
    parser.add_argument("--answers", type=Path, help="where the answers are written")
    parser.add_argument("--only", choices=tuple(METHODS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    scores = []
    for name in [options.only] if options.only else METHODS:
        began = time.monotonic()
        answers = answers_of(METHODS[name], options.half)
        print(f"{name}: {len(answers)} tables in {time.monotonic() - began:.0f} s", file=sys.stderr)
        if options.answers:
            options.answers.mkdir(parents=True, exist_ok=True)
            answers.to_csv(options.answers / f"{name}-{options.half}.csv", index=False)
        scores.append(score(answers, options.half).assign(method=name))
    print(f"{options.half.capitalize()} half; in brackets the 95 % Wilson interval:\n")
    print(card_table(pd.concat(scores)))


if __name__ == "__main__":
    main()
