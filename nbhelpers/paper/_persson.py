"""The tables of Persson et al. 2025 in the paper's form, this study's cells beneath each of theirs.

Owns which of our rows belongs to which of theirs: the same model, the noise config of the same
number, and the same configuration.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ..report import published_table
from ..report.publications import published_verdicts
from ._grids import HEADING, MISSING, OURS, PUBLISHED, VERDICT, Grid, Row, number, with_interval
from ._saved import claims_grid, saved

STAGE = "40-mitigations"
CONFIGS = ("Rm", "RmHK", "RmHK2", "TP", "TPHK", "TPHK2")
_NAMES = {3: "nbody", 4: "stream", 5: "minife"}
_INCREASE = ("increase_percent", "low_percent", "high_percent")
_SAME_RULE = (
    "Verdict: whether our increase lies within the published one, widened by 20 % of its excess"
    " (0.01 of the run time at least); all cells of tables 3 to 5 are judged together."
)
_OTHER_NOISE = (
    "Each machine is disturbed by its own worst traces, so a cell compares how much the program"
    " loses, not the same noise. Seconds are of other problem sizes and are not judged. Ours: mean"
    " over the runs, with the 95 % interval of the increase."
)


def grids(results: Path) -> list[Grid]:
    """All tables of the paper, 1 to 7, and its findings as they were judged."""
    return [
        _tracing(results),
        _spread(results),
        *_increases(results),
        _average(results),
        _accuracy(results),
        claims_grid(results / STAGE, "persson2025-findings", "Persson"),
    ]


def _caption(table: int) -> str:
    return f"Table {table}: {published_table(f'persson2025-table{table}').attrs['caption']}"


def _tracing(results: Path) -> Grid:
    ours = saved(results / STAGE / "tracing.csv")
    rows: list[Row] = []
    for theirs in published_table("persson2025-table1").to_dict("records"):
        cells = (
            number(theirs["tracing_off_seconds"], ".9g"),
            number(theirs["tracing_on_seconds"], ".9g"),
            number(theirs["increase_percent"], ".2f", " %"),
        )
        rows.append(Row(theirs["benchmark"], PUBLISHED, cells))
        mine = ours[ours["benchmark"] == theirs["benchmark"]] if len(ours) else ours
        rows += [_traced(row) for row in mine.to_dict("records")] or [Row("", OURS, (MISSING,) * 3)]
    notes = ("Ours: OpenMP, then SYCL, with the 95 % interval of the increase.",)
    return Grid(
        "persson2025-table1", _caption(1), ("off (s)", "on (s)", "increase"), tuple(rows), notes
    )


def _traced(row: Mapping[str, Any]) -> Row:
    seconds = (number(row["tracing_off_seconds"]), number(row["tracing_on_seconds"]))
    increase = with_interval(row, _INCREASE, ".2f", " %")
    return Row(row["model"], OURS, (*seconds, f"{increase}, n = {row['runs']:.0f}"))


def _spread(results: Path) -> Grid:
    """Table 2: standard deviations, averaged over the programs."""
    ours = saved(results / STAGE / "spread.csv")
    theirs = published_table("persson2025-table2")
    rows: list[Row] = []
    for model, group in theirs.groupby("model", sort=False):
        values = group.set_index("config")["sd_ms"]
        rows.append(
            Row(str(model), PUBLISHED, tuple(number(values[name], "g") for name in CONFIGS))
        )
        cells = (
            with_interval(_one(ours, model=model, config=name), ("sd_ms", "low_ms", "high_ms"))
            for name in CONFIGS
        )
        rows.append(Row(str(model), OURS, tuple(cells)))
    notes = (*_reasons(results), "Of standard deviations there is no verdict a cell.")
    return Grid("persson2025-table2", _caption(2), CONFIGS, tuple(rows), notes)


def _increases(results: Path) -> list[Grid]:
    """Tables 3 to 5: 168 cells."""
    pairs, places, tables = [], [], {}
    for table, name in _NAMES.items():
        tables[table] = saved(results / STAGE / f"{name}.csv")
        for theirs in published_table(f"persson2025-table{table}").to_dict("records"):
            places.append((table, *_key(theirs), theirs["config"]))
            pairs.append((_factor(theirs), _found(_compared(tables[table], theirs))))
    verdicts = dict(zip(places, published_verdicts(pairs), strict=True))
    return [_increase_grid(results, table, tables[table], verdicts) for table in _NAMES]


def _key(theirs: Mapping[str, Any]) -> tuple:
    return theirs["platform"], theirs["model"], theirs["smt"], theirs["noise_config"]


def _factor(theirs: Mapping[str, Any]) -> dict[str, Any]:
    """A published increase as a slow-down."""
    factor = 1 + theirs["increase_percent"] / 100
    return {
        "statement": f"{theirs['benchmark']} {theirs['model']} {theirs['config']}",
        "quantity": "slow-down",
        "published_low": factor,
        "published_high": factor,
    }


def _found(row: Mapping[str, Any] | None) -> dict[str, float]:
    if row is None:
        return {}
    median, low, high = (1 + row[name] / 100 for name in _INCREASE)
    return {"median": median, "low": low, "high": high, "seeds": row["runs"]}


def _compared(ours: pd.DataFrame, theirs: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Our row for a published one; None for those with SMT, which our configurations lack."""
    if theirs["smt"] == "on":
        return None
    trace = f"#{theirs['noise_config']}"
    return _one(ours, model=theirs["model"], trace=trace, config=theirs["config"])


def _one(ours: pd.DataFrame, **wanted: object) -> Mapping[str, Any] | None:
    if not len(ours) or not set(wanted) <= set(ours.columns):
        return None
    chosen = ours
    for name, value in wanted.items():
        chosen = chosen[chosen[name] == value]
    return chosen.to_dict("records")[0] if len(chosen) else None


def _increase_grid(
    results: Path, table: int, ours: pd.DataFrame, verdicts: Mapping[tuple, str]
) -> Grid:
    theirs, rows = published_table(f"persson2025-table{table}"), []
    keys = ["platform", "model", "smt", "noise_config"]
    platform = ""
    for key, group in theirs.groupby(keys, sort=False):
        if key[0] != platform:
            platform = str(key[0])
            rows.append(Row(f"{group['benchmark'].iloc[0]} on {platform}", HEADING))
        cells = {row["config"]: row for row in group.to_dict("records")}
        label = f"{key[1]}{' SMT' if key[2] == 'on' else ''} #{key[3]}"
        mine = {config: _compared(ours, row) for config, row in cells.items()}
        rows += [
            Row(label, PUBLISHED, tuple(_theirs(cells[name]) for name in CONFIGS)),
            Row(label, OURS, tuple(_ours(mine[name]) for name in CONFIGS)),
        ]
        judged = tuple(verdicts.get((table, *key, name)) or MISSING for name in CONFIGS)
        if set(judged) != {MISSING}:
            rows.append(Row(label, VERDICT, judged))
    notes = (*_reasons(results), _OTHER_NOISE, _SAME_RULE)
    return Grid(f"persson2025-table{table}", _caption(table), CONFIGS, tuple(rows), notes)


def _theirs(row: Mapping[str, Any]) -> str:
    return f"{number(row['seconds'], 'g')} s\n{number(row['increase_percent'], '.1f')} %"


def _ours(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return MISSING
    return f"{number(row['seconds'])} s\n{with_interval(row, _INCREASE, '.1f', ' %')}"


def _reasons(results: Path) -> tuple[str, ...]:
    """Why cells are empty, each reason one time, as the stage wrote it down."""
    table = saved(results / STAGE / "configurations.csv")
    if not len(table):
        return (f"{MISSING} not measured here: stage {STAGE} has no results.",)
    reasons: dict[str, list[str]] = {}
    for row in table[~table["measured"].fillna(False).astype(bool)].to_dict("records"):
        if row["name"] in CONFIGS or row["name"] in ("Rm-SMT", "TP-SMT"):
            missing = row["missing"]
            why = missing if isinstance(missing, str) else "it is not part of this profile"
            reasons.setdefault(why, []).append(row["name"])
    said = "; ".join(f"{', '.join(names)}: {why}" for why, names in reasons.items())
    return (f"{MISSING} not measured here: {said}.",) if said else ()


def _average(results: Path) -> Grid:
    """Table 6: natural traces first, then noise that was planted."""
    ours = saved(results / STAGE / "resilience.csv")
    theirs = published_table("persson2025-table6").to_dict("records")
    noises = list(dict.fromkeys(ours["noise"])) if len(ours) else [""]
    rows: list[Row] = []
    for model in ("OMP", "SYCL"):
        group = {row["config"]: row for row in theirs if row["model"] == model}
        published = (number(group[name]["increase_percent"], ".2f", " %") for name in CONFIGS)
        rows.append(Row(model, PUBLISHED, tuple(published)))
        for noise in noises:
            rows += _averages(ours, model, noise, group)
    notes = (
        *_reasons(results),
        "Ours: first under the noise of this machine's own worst runs (natural), then under noise"
        " that was planted to be heavier. Verdict by the rule of tables 3 to 5.",
    )
    return Grid("persson2025-table6", _caption(6), CONFIGS, tuple(rows), notes)


def _averages(ours: pd.DataFrame, model: str, noise: str, theirs: Mapping[str, Any]) -> list[Row]:
    found = {name: _one(ours, model=model, noise=noise, config=name) for name in CONFIGS}
    pairs = [
        (_factor(theirs[name] | {"benchmark": "average"}), _found(_with_runs(found[name])))
        for name in CONFIGS
    ]
    label = f"{model}, {noise}" if noise else model
    cells = tuple(with_interval(found[name], _INCREASE, ".1f", " %") for name in CONFIGS)
    judged = tuple(verdict or MISSING for verdict in published_verdicts(pairs))
    cells = tuple(f"{cell}\n{noise}" if cell != MISSING else cell for cell in cells)
    return [Row(label, OURS, cells), Row(label, VERDICT, judged)]


def _with_runs(row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """An average is over rows of tables 3 to 5: they are its units."""
    return None if row is None else {**row, "runs": row["rows"]}


def _accuracy(results: Path) -> Grid:
    """Table 7: how far the replays' mean is from the anomaly."""
    ours = saved(results / STAGE / "accuracy.csv")
    ours = ours[ours["mode"] == "improved"] if len(ours) else ours
    rows: list[Row] = []
    for theirs in published_table("persson2025-table7").to_dict("records"):
        smt = " SMT" if theirs["smt"] == "on" else ""
        sign = "(−) " if theirs["printed_minus"] == "yes" else ""
        label = f"{theirs['benchmark']} {theirs['config']}-{theirs['model']}{smt}"
        published = f"{sign}{number(theirs['accuracy_percent'], '.2f')} %"
        rows.append(Row(label, PUBLISHED, (published, MISSING, MISSING)))
    labels = [
        f"{row['benchmark']} {row['config']}-{row['model']} {row['trace']}"
        for row in ours.to_dict("records")
    ]
    for label, row in zip(labels, ours.to_dict("records"), strict=True):
        rows.append(Row(label, OURS, _accurate(row)))
    columns = ("accuracy", "replayed / anomaly", "not disturbed")
    notes = (
        "Accuracy: |mean of the replayed runs / anomaly − 1|. Not disturbed: the same, without"
        " any replay; a replay no nearer than that explains nothing. No verdict: the paper's"
        " traces are of another machine.",
    )
    return Grid("persson2025-table7", _caption(7), columns, tuple(rows), notes)


def _accurate(row: Mapping[str, Any]) -> tuple[str, ...]:
    undisturbed = row.get("undisturbed_percent", math.nan)
    return (
        number(row["error_percent"], ".1f", " %"),
        with_interval(row, ("ratio", "low", "high")),
        number(undisturbed, ".1f", " %"),
    )
