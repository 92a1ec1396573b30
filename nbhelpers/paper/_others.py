"""The published tables and numbers of four papers, with this study's beside them: Cui et al. 2023,
Ferreira et al. 2008, Hoefler et al. 2010 and Frachtenberg et al. 2026.

Owns which of our results belongs to which of theirs; the verdicts are those of the stages.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ..report import published_results, published_table
from ._grids import BOTH, HEADING, MISSING, OURS, PUBLISHED, Grid, Row, number, with_interval
from ._saved import claims_grid, saved

_OPENMP, _RANKS, _SCALE = "60-openmp-variability", "75-mpi-at-scale", "80-noise-at-scale"
_TREATED = "55-mitigate-and-compare"
_RESULT = ("published", "accepted", "simulator", "ours", "seeds", "verdict", "of what")


def cui(results: Path) -> list[Grid]:
    """Tables 1 and 2 of Cui et al. 2023, and its findings."""
    return [
        _parameters(results / _OPENMP),
        _schedbench(results / _OPENMP),
        claims_grid(results / _OPENMP, "cui2023-findings", "Cui"),
    ]


def _parameters(stage: Path) -> Grid:
    theirs, ours = published_table("cui2023-table1"), saved(stage / "parameters.csv")
    names, rows = ("schedbench", "syncbench"), []
    mine = {row["parameter"]: row for row in ours.to_dict("records")}
    for row in theirs.to_dict("records"):
        here = mine.get(row["parameter"], {})
        rows += [
            Row(row["parameter"], PUBLISHED, tuple(number(row[name], "g") for name in names)),
            Row(row["parameter"], OURS, tuple(number(here.get(name), "g") for name in names)),
        ]
    caption = f"Table 1: {theirs.attrs['caption']}"
    return Grid("cui2023-table1", caption, names, tuple(rows), _absent(ours, stage))


def _schedbench(stage: Path) -> Grid:
    """Table 2, a run a row as in the paper, this machine's columns beside theirs."""
    theirs, ours = published_table("cui2023-table2"), saved(stage / "dynamic.csv")
    ours = ours[~ours["platform"].isin(set(theirs["platform"]))] if len(ours) else theirs.iloc[:0]
    both = pd.concat([theirs, ours], ignore_index=True)
    columns = list(dict.fromkeys(zip(both["platform"], both["threads"], strict=True)))
    names = tuple(f"{platform}, {count} thread{'s' * (count > 1)}" for platform, count in columns)
    cells = {
        (row["platform"], row["threads"], row["run"]): row["mean_us"]
        for row in both.to_dict("records")
    }
    rows = [
        Row(
            f"run {run}",
            BOTH,
            tuple(number(cells.get((*column, run)), ".2f") for column in columns),
        )
        for run in sorted(set(theirs["run"]))
    ]
    notes = (
        *_absent(ours, stage),
        "The columns of this machine are ours. Iterations and threads differ (table 1), so"
        " what is judged is the claim, not a cell.",
    )
    caption = f"Table 2: {theirs.attrs['caption']}"
    return Grid("cui2023-table2", caption, names, tuple(rows), notes)


def ferreira(results: Path) -> list[Grid]:
    """What Ferreira et al. 2008 say of slow-downs, simulated and measured."""
    return [
        _results_grid(results, "ferreira2008-slowdowns", ("ferreira2008-text1",)),
        _real_ranks(results / _RANKS),
    ]


def hoefler(results: Path) -> list[Grid]:
    """What the talk says of noise at scale, and of Beckman et al. 2006 which it simulates again."""
    return [
        _systems(),
        _results_grid(results, "hoefler2010-slides", ("hoefler2010-slides1",)),
        _results_grid(results, "beckman2006-allreduce", ("beckman2006-text1",)),
    ]


def _results_grid(results: Path, name: str, tables: tuple[str, ...]) -> Grid:
    """Published results, the reference simulator's and ours, as stage 80 judged them."""
    theirs = published_results({}, tables)
    table = saved(results / _SCALE / "published-results.csv")
    mine = {(row["source"], row["statement"]): row for row in table.to_dict("records")}
    rows = [
        Row(row["statement"], BOTH, _result(row, mine.get((row["source"], row["statement"]))))
        for row in theirs.to_dict("records")
    ]
    caption = "; ".join(published_table(one).attrs["caption"] for one in tables)
    notes = (
        *_absent(table, results / _SCALE),
        "Ours: median with 95 % interval over seeds of the simulation. Verdict: whether ours lies"
        " within the accepted range, the published one widened by 20 % of its excess; no verdict"
        " where the source prints no number. Simulator: LogGOPSim run again.",
    )
    return Grid(name, caption, _RESULT, tuple(rows), notes)


def _result(theirs: Mapping[str, Any], ours: Mapping[str, Any] | None) -> tuple[str, ...]:
    ours = ours or {}
    case, verdict = ours.get("case", ""), ours.get("verdict", "")
    return (
        *(theirs[name] or MISSING for name in ("published", "accepted", "reference")),
        with_interval(ours, ("ours", "low", "high")),
        number(ours.get("seeds"), ".0f") if ours.get("seeds") else MISSING,
        verdict if isinstance(verdict, str) and verdict else MISSING,
        case if isinstance(case, str) else "",
    )


def _real_ranks(stage: Path) -> Grid:
    """The paper's claims on real ranks of this machine."""
    ours = saved(stage / "verdicts.csv")
    rows = []
    for row in ours.to_dict("records"):
        shares = ("accumulated", "accumulated_low", "accumulated_high")
        percent = {name: 100 * row[name] for name in shares}
        cells = (
            row["claim"],
            with_interval(percent, shares, ".1f", " %"),
            f"{row['rounds']:.0f}",
            row["verdict"],
        )
        rows.append(Row(f"{row['program']}, {row['ranks']} ranks, {row['noise']}", OURS, cells))
    caption = "What the paper claims of programs, on real MPI ranks of this study's machine."
    columns = ("claim", "accumulated slow-down", "rounds", "verdict")
    return Grid("ferreira2008-ranks", caption, columns, tuple(rows), _absent(ours, stage))


def _systems() -> Grid:
    theirs = published_table("hoefler2010-noise1")
    rows = [
        Row(
            row["machine"],
            PUBLISHED,
            (number(row["resolution_ns"], "g"), f"{row['overhead_percent']} %"),
        )
        for row in theirs.to_dict("records")
    ]
    return Grid(
        "hoefler2010-systems",
        theirs.attrs["caption"],
        ("resolution (ns)", "overhead"),
        tuple(rows),
        ("This machine's noise stands on the pages of stages 00 and 82.",),
    )


def frachtenberg(results: Path) -> list[Grid]:
    """Table 3 of Frachtenberg et al. 2026, and what this study treated in the same form."""
    theirs, ours = (
        published_table("frachtenberg2026-table3"),
        saved(results / _TREATED / "tried.csv"),
    )
    rows: list[Row] = []
    for hardware, group in theirs.groupby("hardware", sort=False):
        rows.append(Row(f"On the {hardware}", HEADING))
        rows += [
            Row(row["benchmark"], PUBLISHED, _treated(row)) for row in group.to_dict("records")
        ]
    rows.append(Row("This study's machine", HEADING))
    rows += [Row("stage 55", OURS, _tried(row)) for row in ours.to_dict("records")]
    columns = ("factor", "mitigation", "mean, s", "mean ratio", "SD ratio", "CV ratio", "verdict")
    notes = (
        *_absent(ours, results / _TREATED),
        "Not measured here: the paper's programs (SPEC, TailBench, Rodinia, MLPerf and models on a"
        " GPU). Ours is the whole way on a program of this project: factor, mitigation, mean and"
        " coefficient of variation (CV) after over before, with 95 % intervals.",
    )
    caption = f"Table 3: {theirs.attrs['caption']}"
    return [Grid("frachtenberg2026-table3", caption, columns, tuple(rows), notes)]


def _treated(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        row["factor"],
        row["mitigation"],
        f"{row['mean_before']:.3f} → {row['mean_after']:.3f}",
        *(f"{row[name]:.3f}" for name in ("mean_ratio", "sd_ratio", "cv_ratio")),
        MISSING,
    )


def _tried(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        MISSING,
        row["mitigation"],
        MISSING,
        with_interval(row, ("mean_ratio", "mean_low", "mean_high"), ".3f"),
        MISSING,
        with_interval(row, ("cv_ratio", "cv_low", "cv_high"), ".3f"),
        f"{row['verdict']}, n = {row['runs']:.0f}",
    )


def _absent(table: pd.DataFrame, stage: Path) -> tuple[str, ...]:
    return () if len(table) else (f"{MISSING} not measured here: stage {stage.name} has no table.",)
