"""The account of a run: where its time went, beside the ordinary runs."""

from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from ..account import Account
from ..palette import PAGE_IN, PARTS
from ..report.appearance import style
from ..report.images import DRAWING, embedded
from ._base import Control, Explorer

if TYPE_CHECKING:
    from IPython.display import HTML

MOST_CHOSEN = 8  # runs in the twin


def explore_account(account: Account | None) -> "Explorer | HTML":
    """Look at the account of one run after the other.

    Parameters
    ----------
    account
        Of the runs; None: there is none.

    Returns
    -------
    Explorer: the run can be chosen, the slowest first; where there is no account, a sentence that
    says why.
    """
    if account is None or not len(account.by_run):
        from IPython.display import HTML

        why = "There is no account of these runs: the speed of the CPUs was not recorded."
        return HTML(f"<p>{why} Measure stage 10 again where the probe can run.</p>")
    by_run = account.by_run.loc[account.slowest(len(account.by_run))]
    runs = by_run.index.tolist()
    chosen = [*runs[: MOST_CHOSEN - 1], runs[len(runs) // 2]]
    return Explorer(
        partial(_account, by_run / 1e6, account.by_run.loc[account.ordinary].mean() / 1e6),
        {"run": Control("run, slowest first", runs, runs[0])},
        [{"run": run} for run in chosen],
    )


def _account(by_run_ms: pd.DataFrame, ordinary_ms: pd.Series, run: int) -> str:
    """Two bars, and what the run took longer by part."""
    mine, place = by_run_ms.loc[run], by_run_ms.index.get_loc(run) + 1
    rows = pd.DataFrame({f"run {run}": mine, "ordinary runs (mean)": ordinary_ms})
    table = rows.assign(longer=mine - ordinary_ms).rename(index=lambda part: part.replace("_", " "))
    bars = table.iloc[:, :2].T.clip(lower=0)
    most_ms = float(by_run_ms.clip(lower=0).sum(axis=1).max())
    with DRAWING, style():
        look = {"stacked": True, "legend": False, "xlabel": "ms", "xlim": (0, most_ms)}
        axes = bars.plot.barh(color=[PARTS[part] for part in rows.index], **look)
        axes.figure.set_size_inches(PAGE_IN, 1.5)
        axes.figure.legend(loc="outside upper left", ncols=4)
        shown = embedded(axes.figure, "where the time of the run went, beside ordinary runs")
    table.columns = ["this run, ms", "ordinary, ms", "longer by, ms"]
    return (
        f"<p>Place {place} of {len(by_run_ms)}: {mine.sum() / 1e3:.3f} s,"
        f" {(mine - ordinary_ms).sum():.1f} ms longer than ordinary runs.</p>{shown}"
        + table.to_html(float_format=lambda ms: f"{ms:z.1f}", border=0)
    )
