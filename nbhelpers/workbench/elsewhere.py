"""What a file of another tool says: which columns separate its slow runs, or who took the CPUs.

Owns the way from such a file to sentences and one table; the readers are
`measurement.other_tools` and `tracing.text`.
"""

from pathlib import Path

import pandas as pd

from ..attribution import explain
from ..empty import because
from ..measurement import consequences, run_notes
from ..outcomes import outcome_of
from ..tracing import noise_summary
from ..tracing.foreign import read_foreign_traces
from .recorded import is_table, runs_of


def explain_file(path: str | Path, outcome: str | None = None) -> tuple[list[str], pd.DataFrame]:
    """What a file of another tool says.

    Parameters
    ----------
    path
        Runs: .csv, .parquet, or .json of hyperfine, pyperf or Google Benchmark. Or a trace: text of
        perf script, trace-cmd report, traceconv systrace or babeltrace. "": none.
    outcome
        Column to explain, of runs.

    Returns
    -------
    sentences
        Of runs, for each command or benchmark, how long it takes and what is associated with slow
        runs; of a trace, what others took from its busiest program.
    table
        The factors by `cell`, or noise by kind and source (`nbhelpers.tracing.noise_summary`).

    Raises
    ------
    InputError
        It cannot be read, or has neither runs nor events.
    """
    if not str(path):
        return [], because(pd.DataFrame(), "no file of another tool was named")
    return _of_runs(Path(path), outcome) if is_table(Path(path)) else _of_trace(Path(path))


def _of_runs(path: Path, outcome: str | None) -> tuple[list[str], pd.DataFrame]:
    runs = runs_of(path)
    cells = runs.groupby("cell", sort=False) if "cell" in runs else [(path.name, runs)]
    sentences, factors = [], []
    for cell, of_cell in cells:
        found = explain(of_cell.dropna(axis=1, how="all"), outcome, consequences=consequences())
        judged = outcome_of(of_cell, outcome)
        values = of_cell[judged.name]
        spread = f"{values.median():.4g} ({values.min():.4g} to {values.max():.4g}) {judged.unit}"
        sentences.append(f"{cell}: {spread.strip()}, median and range, n = {len(values)}.")
        sentences.append(found.summary)
        if len(found.factors):
            factors.append(found.factors.reset_index().assign(cell=cell).set_index("cell"))
    table = pd.concat(factors) if factors else pd.DataFrame()
    notes = run_notes(runs) if "status" in runs else []
    return [*sentences, *notes], because(table, "nothing separates the slow runs")


def _of_trace(path: Path) -> tuple[list[str], pd.DataFrame]:
    runs, events = read_foreign_traces(path, "")
    run, noise = runs.iloc[0], noise_summary(events, runs)
    cpus, share = len(events.attrs["cpus"]), noise["cpu_share"].sum()
    of_cpus = f"{cpus} CPU{'s' * (cpus != 1)}"
    said = (
        f"{run['program'] or 'No program'} had most CPU time; while it was there"
        f" ({run['seconds']:.4g} s, {of_cpus}), interrupts and other threads had {share:.2%} of"
        f" all CPU time in {len(events)} events."
    )
    return [said], noise
