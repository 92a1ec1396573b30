"""The recorded bench of known causes, scored: the attribution of this library beside plain rivals,
on one half.

    python benchmarks/known_causes/bench.py [--half held-out] [--answers FOLDER]

All see the columns that `explain` would search, totals as rates, and the ranks of their values.
`rank`: the strongest rank correlation with the run time, if its p is at most 0.01 after Bonferroni.
`always`: the same, without a test. `lasso`: of the first five columns of a lasso's path the one in
most of 100 halves of the runs, if in 90 (Meinshausen and Bühlmann 2010: then at most 0.2 false
columns a table are expected of 160). `boosting`: of gradient boosting of the run times, the column
whose permutation costs most on unseen runs (five folds), if the model predicts them better than
their mean. `tree`: the first split, slowest quarter against the others. `NAME again`: an answer
counts if its first leader comes back in the fresh runs of the other doses (e-value of at least 20,
`nbhelpers.attribution.replication`). Some minutes a half. The held-out half is for a final score
only.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from noisebook_known_causes.tables import DEVELOPMENT, HELD_OUT, bench_tables
from scipy.stats import spearmanr
from score import answers_of, named_by_explain, score
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import lars_path
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeClassifier

from nbhelpers.attribution.replication import ENOUGH, fresh_evidence
from nbhelpers.attribution.screening import candidate_columns
from nbhelpers.measurement import consequences, rates
from nbhelpers.outcomes import Outcome

LEVEL = 0.01
HALVES, FIRST, STABLE = 100, 5, 0.9  # of the lasso
FOLDS, TREES, SHUFFLES = 5, 50, 3  # of boosting
AGAIN = ("explain", "rank", "always")


def ranked(runs: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    """The columns that `explain` would search, and the run times, by ranks; gaps at the middle."""
    table, _ = candidate_columns(rates(runs), consequences=consequences())
    places = table.rank(pct=True).fillna(0.5)
    return places.loc[:, places.nunique() > 1], runs["seconds"].rank(pct=True)


def first_split(runs: pd.DataFrame) -> list[str]:
    """What a plain decision tree splits on first."""
    table, seconds = ranked(runs)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(table, seconds > 0.75)
    at = tree.tree_.feature[0]
    return [str(table.columns[at])] if at >= 0 else []


def strongest_rank(runs: pd.DataFrame, level: float = LEVEL) -> list[str]:
    """The strongest rank correlation, if it is beyond chance."""
    table, seconds = ranked(runs)
    found = {str(name): spearmanr(table[name], seconds) for name in table}
    first = sorted(found, key=lambda name: -abs(found[name].statistic))[:1]
    return [name for name in first if found[name].pvalue * len(found) <= level]


def always_rank(runs: pd.DataFrame) -> list[str]:
    return strongest_rank(runs, np.inf)


def stable_lasso(runs: pd.DataFrame) -> list[str]:
    """The column that enters a lasso's path early in most halves of the runs."""
    table, seconds = ranked(runs)
    random, entered = np.random.default_rng(0), np.zeros(table.shape[1])
    for _ in range(HALVES):
        half = random.permutation(len(table))[: len(table) // 2]
        columns = table.to_numpy()[half]
        spread = columns.std(axis=0)
        columns = (columns - columns.mean(axis=0)) / np.where(spread, spread, 1)
        wanted = seconds.to_numpy()[half]
        _, active, _ = lars_path(columns, wanted - wanted.mean(), method="lasso", max_iter=FIRST)
        entered[active] += 1 / HALVES
    return [str(table.columns[entered.argmax()])] if entered.max() >= STABLE else []


def boosted(runs: pd.DataFrame) -> list[str]:
    """The column whose permutation costs a boosted model most on unseen runs."""
    table, seconds = ranked(runs)
    values, wanted, random = table.to_numpy(), seconds.to_numpy(), np.random.default_rng(0)
    costs, errors = np.zeros(table.shape[1]), 0.0
    for fit, test in KFold(FOLDS, shuffle=True, random_state=0).split(values):
        model = GradientBoostingRegressor(n_estimators=TREES, max_depth=2, random_state=0)
        model.fit(values[fit], wanted[fit])
        error = ((model.predict(values[test]) - wanted[test]) ** 2).sum()
        errors += error
        for column in np.flatnonzero(model.feature_importances_):  # of others the cost is 0
            shuffled = np.tile(values[test], (SHUFFLES, 1))
            shuffled[:, column] = random.permutation(shuffled[:, column])
            after = model.predict(shuffled) - np.tile(wanted[test], SHUFFLES)
            costs[column] += (after**2).sum() / SHUFFLES - error
    better = errors < ((wanted - wanted.mean()) ** 2).sum()
    return [str(table.columns[costs.argmax()])] if better else []


METHODS = {
    "explain": named_by_explain,
    "rank": strongest_rank,
    "always": always_rank,
    "lasso": stable_lasso,
    "boosting": boosted,
    "tree": first_split,
}


def replicated(answers: pd.DataFrame, half: str) -> pd.DataFrame:
    """The answers whose first leader comes back in the runs of the cause's other doses."""
    tables = {one.id: one for one in bench_tables(half)}

    def evidence(answer: pd.Series) -> float:
        one = tables[answer["table"]]
        name, own = answer["leaders"].partition(" ")[0], rates(one.blind)
        if name not in own:
            return 0.0
        direction = spearmanr(own[name], own["seconds"], nan_policy="omit").statistic
        alike = [o for o in tables.values() if (o.cause.id, o.kind) == (one.cause.id, one.kind)]
        fresh = [rates(other.blind) for other in alike if other is not one]
        found = [fresh_evidence(runs, Outcome("seconds"), name, direction) for runs in fresh]
        return float(np.prod(found))

    return answers[answers.apply(evidence, axis="columns") >= ENOUGH]


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
        if name in AGAIN:
            again = score(replicated(answers, options.half), options.half)
            scores.append(again.assign(method=f"{name} again"))
    print(f"{options.half.capitalize()} half; in brackets the 95 % Wilson interval:\n")
    print(card_table(pd.concat(scores)))


if __name__ == "__main__":
    main()
