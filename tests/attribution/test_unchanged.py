"""The attribution of fixed tables is what it was."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribution import classify, explain, filter_columns, find_cutoff, layer_effect
from nbhelpers.attribution import cutoff as cutoffs
from nbhelpers.attribution._mixtures import fit_mixtures
from nbhelpers.attribution._modes import modes_of, resolution
from nbhelpers.attribution._one_class import fit_one_class
from nbhelpers.attribution._words import as_html
from nbhelpers.attribution.chance import accuracy_by_chance
from nbhelpers.attribution.classes import RULES
from nbhelpers.attribution.consequences import PowerLaw
from nbhelpers.attribution.explanation import search_of
from nbhelpers.attribution.groups import correlated_groups
from nbhelpers.attribution.known_counters import known_counter
from nbhelpers.attribution.null import null_distribution
from nbhelpers.attribution.screening import candidate_columns

from ..unchanged import check, plain


def outcomes(seed: int) -> dict[str, np.ndarray]:
    """Run times of one class, of two, with a tail, in steps, and rounded."""
    random = np.random.default_rng(seed)
    return {
        "normal": random.normal(1, 0.02, 120),
        "skewed": random.lognormal(0, 0.3, 150),
        "modes": np.where(random.random(130) < 0.25, 1.3, 1.0) + random.normal(0, 0.02, 130),
        "three": random.choice([1.0, 1.2, 1.5], 200) + random.normal(0, 0.02, 200),
        "tail": np.where(random.random(160) < 0.06, 1.5, 1.0) * random.normal(1, 0.01, 160),
        "drift": random.normal(1, 0.01, 100) + np.linspace(0, 0.2, 100),
        "rounded": np.round(random.normal(1, 0.1, 140), 1),
        "waves": 1 + 0.1 * np.sin(np.arange(120) / 3) + random.normal(0, 0.01, 120),
        "few": random.normal(1, 0.02, 13),
        "fewer": random.normal(1, 0.02, 9),
    }


def campaign(seed: int, kind: str) -> pd.DataFrame:
    """A campaign whose slow runs have a cause of this kind."""
    random = np.random.default_rng(seed)
    runs = 300 if kind == "counter" else 140
    slow = random.random(runs) < 0.2
    seconds = random.normal(0.4, 0.006, runs)
    table: dict[str, object] = {"run": np.arange(runs), "status": "ok"}
    for number in range(6):
        table[f"noise{number}"] = random.poisson(200, runs)
    if kind == "counter":
        seconds = seconds + slow * random.uniform(0.1, 0.2, runs)
        table["cause"] = random.poisson(100, runs) + slow * random.poisson(300, runs)
        for number in range(3):
            table[f"copy{number}"] = table["cause"] * random.normal(1, 0.2, runs)
    elif kind == "category":
        table["node"] = random.choice(["a", "b", "c", "d"], runs)
        seconds = seconds + 0.1 * (table["node"] == "b")
    elif kind == "pair":
        both = (table["noise1"] > 200) ^ (table["noise4"] > 200)  # type: ignore[operator]
        seconds = seconds + 0.1 * both
    elif kind == "ends":
        seconds = seconds + 0.1 * (np.abs(table["noise2"] - 200) > 18)  # type: ignore[operator]
    elif kind == "drift":
        seconds = seconds + np.linspace(0, 0.1, runs)
        table["clock"] = np.linspace(0, 5, runs) + random.normal(0, 0.3, runs)
    elif kind == "levels":
        seconds = seconds + np.repeat([0.0, 0.06, 0.02], [50, 40, 50]) + 0.03 * slow
        table["culprit"] = random.poisson(100, runs) + slow * random.poisson(200, runs)
        table["phase"] = np.repeat([1.0, 3.0, 2.0], [50, 40, 50]) + random.normal(0, 0.1, runs)
    elif kind == "waves":
        seconds = seconds + 0.05 * np.sin(np.arange(runs) / 4)
        table["wave"] = np.sin(np.arange(runs) / 4 + 1) + random.normal(0, 0.2, runs)
    elif kind == "rates":
        seconds = seconds + slow * 0.15
        faults = 1000 + slow * 900 + random.poisson(30, runs)
        table |= {"page_faults": faults, "page_faults_per_s": faults / seconds}
        table |= {"task_clock_s": seconds * 1.98, "task_clock_s_per_s": 1.98}
    table["seconds"] = seconds
    return pd.DataFrame(table)


def inside(runs: pd.DataFrame, seed: int) -> dict[str, object]:
    """What the search found, with classes and without, and what chance would have."""
    found: dict[str, object] = {}
    for name, cutoff in (("searched", None), ("given", 0.43)):
        start, seen = search_of(runs, None, cutoff, (), seed, 20, None, None, None)
        if seen is not None:
            found[name] = {
                "found": seen.found,
                "best": seen.found.best,
                "labels": seen.search.labels_of(seen.found),
                "null": null_distribution(seen.search, start.order, 24, 0.0, seed),
                "plain": null_distribution(seen.search, None, 24, 0.0, seed),
                "leaders": seen.leaders,
                "led": seen.led_values,
            }
    return found


KINDS = ("counter", "category", "pair", "ends", "drift", "levels", "waves", "rates", "none")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_classes(seed):
    found: dict[str, object] = {}
    for name, values in outcomes(seed).items():
        cutoff = find_cutoff(values, seed)
        found[name] = {
            "cutoff": cutoff,
            "slow": cutoff.slow(values),
            "higher": find_cutoff(values, seed, higher_is_better=True),
            "classes": {how: classify(values, how, seed=seed) for how in RULES},
            "at": classify(values, at=[1.02, 1.2], seed=seed),
            "table": classify(values, seed=seed).table(values),
            "modes": modes_of(values, np.random.default_rng(seed)),
            "modes sentence": modes_of(values, np.random.default_rng(seed)).sentence(),
            "resolution": resolution(np.unique(values), values.size),
            "thinned": cutoffs.thinned(values),
            "iqr": cutoffs.iqr(values),
            "tail": cutoffs.find_tail(values, np.random.default_rng(seed)),
            "bulk": cutoffs.bulk_scores(values),
        }
        counts = np.histogram(values, 64)[0].astype(float)[None, :]
        found[name] |= {"mixtures": fit_mixtures(counts, 2.0, 3)}  # type: ignore[operator]
        found[name] |= {"one": fit_one_class(counts)}  # type: ignore[operator]
    check(f"classes-{seed}", found)


@pytest.mark.parametrize("kind", KINDS)
def test_explanations(kind):
    found = {}
    for seed in (1, 2):
        runs = campaign(seed, kind)
        one = explain(runs, seed=seed, permutations=60)
        kept = {name: value for name, value in plain(one).items() if name != "tree"}
        columns, excluded = candidate_columns(runs)
        found[str(seed)] = {
            "explained": kept,
            "words": [one.summary, as_html(one)],
            "above": explain(runs, cutoff=0.43, seed=seed, permutations=40).summary,
            "higher": explain(runs, seed=seed, permutations=20, higher_is_better=True).summary,
            "without": explain(runs, exclude=["cause"], seed=seed, permutations=20).summary
            if "cause" in runs
            else None,
            "columns": list(columns),
            "excluded": excluded,
            "groups": correlated_groups(columns.select_dtypes("number")),
            "chance": accuracy_by_chance(runs, one, seed=seed, shuffles=5),
            "inside": inside(runs, seed),
        }
    check(f"explained-{kind}", found)


def test_counters_and_tables():
    runs = campaign(4, "rates")
    slow = runs["seconds"].to_numpy() > 0.47
    total = runs["page_faults"].to_numpy(float)[:, None]
    law = PowerLaw(total, runs["seconds"].to_numpy(), slow, np.ones(1, bool))
    wide = pd.concat(
        [runs, pd.DataFrame(np.random.default_rng(1).normal(size=(len(runs), 60))).add_prefix("w")],
        axis=1,
    )
    filtered = filter_columns(wide, "seconds", most=12)
    random = np.random.default_rng(5)
    weak = pd.DataFrame(random.normal(size=(len(runs), 80))).add_prefix("z")
    weak = weak.add(np.linspace(0, 0.6, 80) * (runs["seconds"] - 0.43).to_numpy()[:, None] * 20)
    several = filter_columns(weak.assign(seconds=runs["seconds"]), "seconds", most=60)
    names = ("cycles", "instructions", "page_faults_per_s", "steal_s", "run", "ctx_involuntary")
    check(
        "counters",
        {
            "law": [law.verdicts(), law.consequences(), law.jumps(), law.across, law.within],
            "several": [several.columns, several.dropped, list(several.runs)],
            "filtered": [filtered.columns, filtered.dropped, list(filtered.runs)],
            "known": [known_counter(name) for name in names],
            "layer": [
                layer_effect(
                    runs["seconds"].to_numpy(), factor * runs["seconds"].to_numpy()[::-1], "layer"
                ).sentence
                for factor in (1.0, 1.05)
            ],
        },
    )
