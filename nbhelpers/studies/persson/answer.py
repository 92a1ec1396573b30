"""The answer to the title of the study's page: which mitigation helps against noise, and its price.

Owns its words; the verdicts and numbers are those of `findings_table`.
"""

from typing import Any

import numpy as np
import pandas as pd

from ...answers import LONGEST, Answer
from ...statistics.claims import (
    INCONCLUSIVE,
    NONE,
    NOT_MEASURABLE,
    REPRODUCED,
    REVERSED,
    p_text,
)
from ..answers_words import open_answer, some_groups

# of each mitigation the configurations or models that are compared
_COMPARED = {
    "housekeeping": "RmHK / Rm",
    "pinning": "TP / Rm",
    "SYCL in place of OpenMP": "SYCL / OpenMP",
}
_HELPS, _NO_HELP = "helps", "does not help"
_OUTCOMES = {REPRODUCED: _HELPS, REVERSED: "makes it worse", NONE: _NO_HELP}
_NO_GAIN_CLAIMED = {REPRODUCED: _NO_HELP, REVERSED: _HELPS}  # the paper says that it does not help


def mitigation_answer(judged: pd.DataFrame, ratios: pd.DataFrame) -> Answer:
    """Which mitigation makes the slowdown under heavy replayed noise smaller, by the verdicts.

    Parameters
    ----------
    judged
        Of `findings_table`, with the findings of `persson_findings`.
    ratios
        Of `run_ratios`, under planted traces: what the small figure shows.

    Examples
    --------
    >>> names = ["effect_percent", "low_percent", "high_percent", "rounds", "paper_percent"]
    >>> judged = pd.DataFrame(
    ...     [
    ...         ("housekeeping helps (slowdown RmHK / Rm)", "reproduced", -15, -19, -11, 8, -10.8),
    ...         ("pinning does not (slowdown TP / Rm)", "inconclusive", 2, -3, 7, 8, 2.0),
    ...         ("SYCL does (slowdown SYCL / OpenMP)", "not measurable here", *4 * [None], None),
    ...     ],
    ...     columns=["finding", "verdict", *names],
    ... ).assign(why="", source="Persson et al. 2025, sec. 6 (1)")
    >>> ratios = pd.DataFrame({"config": ["Rm", "RmHK"], "ratio": [1.4, 1.2]})
    >>> found = mitigation_answer(judged, ratios)
    >>> found.answer, found.value
    ('housekeeping', -15.0)
    """
    rows = _rows(judged)
    outcomes = {name: _outcome(name, row) for name, row in rows.items()}
    helping = [name for name in rows if outcomes[name] == _HELPS]
    shown = (helping or _measured(rows) or list(rows))[0]
    groups = {str(config): part["ratio"] for config, part in ratios.groupby("config", sort=False)}
    known = _numbers(shown, rows[shown]) | {"groups": some_groups(groups)}
    counted = "; ".join(
        f"{' and '.join(names)}: {outcome}" for outcome, names in _grouped(outcomes).items()
    )
    sentence = f"Under heavy replayed noise, {counted}."
    if helping:
        name = " and ".join(helping)
        return Answer(name if len(name) <= LONGEST else helping[0], sentence, **known)
    if set(outcomes.values()) <= {INCONCLUSIVE, NOT_MEASURABLE}:
        return open_answer(sentence, **known)
    return Answer("none is shown to help", sentence, **known)


def _rows(judged: pd.DataFrame) -> dict[str, pd.Series]:
    """The finding on each mitigation."""
    return {
        name: judged[judged["finding"].str.endswith(f"(slowdown {pair})")].iloc[0]
        for name, pair in _COMPARED.items()
    }


def _measured(rows: dict[str, pd.Series]) -> list[str]:
    """The mitigations of which there is a number, those that can be judged here first."""
    known = [name for name, row in rows.items() if pd.notna(row["low_percent"])]
    return sorted(known, key=lambda name: rows[name]["verdict"] == NOT_MEASURABLE)


def _numbers(name: str, row: pd.Series) -> dict[str, Any]:
    """The change of the slowdown by one mitigation, and the paper's."""
    known: dict[str, Any] = {
        "quantity": f"slowdown under noise, {name} ({_COMPARED[name]})",
        "unit": "%",
        "n": int(row["rounds"]) if pd.notna(row["rounds"]) else 0,
        "n_of": "rounds",
        "figure": "mitigations-planted",
        "axis": "slowdown under planted noise (times)",
    }
    for field, column in (("value", "effect"), ("low", "low"), ("high", "high")):
        known[field] = float(row[f"{column}_percent"])
    theirs = row["paper_percent"]
    if pd.notna(theirs):
        known["published"] = f"{theirs:+.1f} % ({row['source']}, Tables 3 to 5)"
    return known


def mitigation_sentences(judged: pd.DataFrame) -> list[str]:
    """What was found of each mitigation, and what one that helps costs in average noise.

    Parameters
    ----------
    judged
        As of `mitigation_answer`.
    """
    rows = _rows(judged)
    said = []
    for name, row in rows.items():
        outcome = _outcome(name, row)
        price = _price(judged, name) if outcome == _HELPS else ""
        said.append(f"{name[0].upper()}{name[1:]}: {outcome}; {_change(row)}.{price}")
    return said


def _outcome(name: str, row: pd.Series) -> str:
    words = _NO_GAIN_CLAIMED if name == "pinning" else _OUTCOMES
    return words.get(row["verdict"], row["verdict"])


def _grouped(outcomes: dict[str, str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name, outcome in outcomes.items():
        groups.setdefault(outcome, []).append(name)
    return groups


def _change(row: pd.Series) -> str:
    """The change of the slowdown with its interval, p and count, and the reason of no verdict."""
    parts = []
    if pd.notna(row["low_percent"]):
        p_value = f", p {p_text(row['p_corrected'])} corrected" * pd.notna(row["p_corrected"])
        parts.append(
            f"slowdown {row['effect_percent']:+.1f} %, 95 % interval {row['low_percent']:+.1f} to"
            f" {row['high_percent']:+.1f}{p_value}, n = {row['rounds']} rounds"
        )
        if pd.notna(row["run_time_percent"]):
            longer = f", longer in {row['longer_cells']} cells"
            parts.append(f"the run time itself {row['run_time_percent']:+.1f} %{longer}")
    return "; ".join([*parts, row["why"]] if row["why"] else parts)


def _price(judged: pd.DataFrame, name: str) -> str:
    """What a mitigation does to the run times of programs in average noise."""
    of_programs = judged["finding"].str.extract(rf"average noise \((\S+), {_COMPARED[name]}\)$")[0]
    measured = judged[of_programs.notna() & np.isfinite(judged["effect_percent"].astype(float))]
    changes = ", ".join(
        f"{of_programs[row.Index]} by {row.effect_percent:+.1f} % (n = {row.rounds} rounds)"
        for row in measured.itertuples()
    )
    return f" In average noise {name} changes the run time of {changes}." if changes else ""
