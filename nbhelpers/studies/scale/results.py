"""The rows of the studies that stand beside published results, by the names that these have in
data/published. A row that was published under another noise is left out: a reader may have changed
its cell.

`nbhelpers.report.published_results` puts them there, and leaves out names that were not published.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

Row = dict[str, object]
LOOP_RANKS = 128
REGULAR, BECKMAN, BOTTLENECK = "1000 Hz x 100 us", "1000 Hz x 200 us", "alps"
_NUMBERS = ("median", "low", "high", "seeds")
FITTED = "SAGE 10 Hz x 2500 us"  # its computation was chosen by this row


def named(
    table: pd.DataFrame, names: str | Iterable[str], case: str = "{ranks} ranks"
) -> dict[str, Row]:
    """Rows of a table by names of published results.

    Parameters
    ----------
    table
        With `median`, and perhaps `low`, `high`, `seeds`.
    names
        Names of published results, one a row of the table; a text: that of its only row, if any.
    case
        What was simulated; columns stand in braces.

    Examples
    --------
    >>> named(pd.DataFrame({"ranks": [8], "median": [1.5], "seeds": 30}), ["regular-8"])
    {'regular-8': {'median': 1.5, 'seeds': 30, 'case': '8 ranks'}}
    """
    names = [names] * len(table) if isinstance(names, str) else names
    return {
        name: {end: row[end] for end in _NUMBERS if end in row} | {"case": case.format(**row)}
        for name, row in zip(names, table.to_dict("records"), strict=True)
    }


def collective_results(
    regular: pd.DataFrame,
    beckman: pd.DataFrame,
    systems: pd.DataFrame,
    speeds: pd.DataFrame,
    messages: pd.DataFrame,
    loops: pd.DataFrame,
    together: pd.DataFrame,
    blue_gene: pd.DataFrame,
) -> dict[str, Row]:
    """Results of single collectives.

    Parameters
    ----------
    regular
        `slowdowns` of 1000 Hz x 100 µs, co-scheduled and not.
    beckman
        The same of Beckman's noises.
    systems
        `slowdowns` under every system's noise, on its network.
    speeds
        Times in µs and gains, a row for each noise and speed of the network; those of the noise
        `BOTTLENECK` count.
    messages
        With a column `bytes`.
    loops
        Times of a collective alone and in a loop.
    together
        `slowdowns` under co-scheduled noises; those under `BOTTLENECK` count.
    blue_gene
        The same on the network of BG/P; its noise `BECKMAN` counts.
    """
    regular = regular[regular["noise"] == REGULAR]
    speeds = speeds[speeds["noise"] == BOTTLENECK]
    together = together[together["noise"] == BOTTLENECK]
    near = regular[regular["ranks"] == regular.loc[regular["ranks"] <= 8192, "ranks"].max()]
    alone = regular[~regular["cosched"]].sort_values("ranks")
    shown = systems.assign(percent=100 * systems["overhead_share"])
    ends = speeds[["noisy_us", "noisy_low_us", "noisy_high_us"]].to_numpy()
    times = speeds.assign(**dict(zip(_NUMBERS, ends.T)))
    return {
        **named(near, near["cosched"].map({False: "regular-8192", True: "cosched-8192"})),
        **named(alone, "regular-" + alone["ranks"].astype(str)),
        **named(alone.tail(1), "regular-largest"),
        **named(beckman, beckman["noise"]),
        **_on_blue_gene(blue_gene[blue_gene["noise"] == BECKMAN]),
        **named(shown, "system-" + shown["noise"], "{ranks} ranks, {percent:.2f} % overhead"),
        **named(
            times,
            [f"time-{speed:g}" for speed in times["speed"]],
            "{ranks} ranks; without noise {ideal_us:.1f}",
        ),
        "overhead-rank": _correlation(systems),
        **_gain(speeds),
        **_absorbed(messages),
        **named(together, "cosched-alps"),
        **_loops(loops),
    }


def single_runs(table: pd.DataFrame, name: str, case: str, of: str = "run") -> dict[str, Row]:
    """Rows beside one published run (or system), by its name: the range of ours, in which a further
    one lies with probability (n - 1)/(n + 1), whatever the distribution.

    Examples
    --------
    >>> table = pd.DataFrame({"median": [2.0], "least": 1.0, "most": 4.0, "seeds": 39})
    >>> row = single_runs(table, "ferreira-128", "128 ranks")["ferreira-128"]
    >>> row["low"], row["high"], row["case"]
    (1.0, 4.0, '128 ranks; the range of ours, which holds a further run by 95 %')
    """
    table = table.assign(low=table["least"], high=table["most"])
    holds = (table["seeds"] - 1) / (table["seeds"] + 1)
    table = table.assign(percent=(100 * holds).round().astype(int))
    case += f"; the range of ours, which holds a further {of} by {{percent}} %"
    return {key: row | {"single": True} for key, row in named(table, name, case).items()}


def _on_blue_gene(table: pd.DataFrame) -> dict[str, Row]:
    case = "{ranks} ranks; L of BG/P 4.5 µs (no source, so fitted to), others the reference's"
    rows = single_runs(table, "beckman-32k", case)
    return {name: row | {"fitted": True} for name, row in rows.items()}


def _correlation(systems: pd.DataFrame) -> Row:
    """Spearman's, of overhead and slow-down over the systems; NaN where all are slowed alike."""
    from scipy.stats import spearmanr

    columns = systems[["overhead_share", "median"]]
    varies = (columns.nunique() > 1).all()
    rho, p_value = spearmanr(columns) if varies else (np.nan, np.nan)
    return {
        "median": float(rho),
        "seeds": int(systems["seeds"].min()),
        "case": f"{len(systems)} systems, p = {p_value:.2g}, {systems['ranks'].max()} ranks",
    }


def _gain(speeds: pd.DataFrame) -> dict[str, Row]:
    fast = speeds.sort_values("speed").tail(1)
    fast = fast[["noise", "ranks", "ideal_gain_share", "seeds"]].assign(median=fast["gain_share"])
    case = "{noise}, {ranks} ranks; without noise {ideal_gain_share:.0%}"
    return named(fast, "network-gain", case)


def _absorbed(messages: pd.DataFrame) -> dict[str, Row]:
    """What is absorbed on the system that small messages suffer most on: the larger ones' slow-down
    over theirs, and from the ends of both intervals the widest.
    """
    small, large = (messages[messages["bytes"] == size] for size in (1, 2**20))
    both = small.merge(large, on=["noise", "ranks"], suffixes=("_small", "_large"))
    worst = both.nlargest(1, "median_small")
    ends = {"median": "median", "low": "high", "high": "low"}
    ratios = {to: worst[f"{to}_large"] / worst[f"{over}_small"] for to, over in ends.items()}
    worst = worst.assign(**ratios, seeds=worst["seeds_small"])
    return named(worst, "one-mib", "{noise}, {ranks} ranks")


def _loops(loops: pd.DataFrame) -> dict[str, Row]:
    trees = loops[(loops["pattern"] == "binomial_bcast") & (loops["ranks"] == 128)]
    ratio = trees["call_us"] / trees["single_us"]
    trees = trees.assign(median=ratio, low=ratio, high=ratio, seeds=1)
    names = trees["loop"].map({"fixed root": "pipelining", "rotated root": "rotation"})
    rows = named(trees, names, "no noise, so nothing is drawn")
    return {name: row | {"exact": True} for name, row in rows.items()}


def injected_results(calls: pd.DataFrame, codes: pd.DataFrame) -> dict[str, Row]:
    """Results of loops of collectives and applications under injected noise (Ferreira et al. 2008).

    Parameters
    ----------
    calls
        Slow-downs of loops, a row each: `called` (allreduce, bcast with rotated roots, bcast-fixed
        with the same root), `ranks`, `noise`, `cosched`.
    codes
        Slow-downs of POP, SAGE, CTH; of several rows for a code and a noise the last counts. Beside
        the paper stands what is left after each rank's own overhead is taken off.
    """
    called = calls["called"].where(
        calls["ranks"] == LOOP_RANKS, calls["called"] + "-" + calls["ranks"].astype(str)
    )
    called = called.mask(calls["cosched"], "cosched") + " " + calls["noise"]
    net = codes[["median", "low", "high"]].sub(codes["overhead_share"], axis=0)
    names = codes["application"] + " " + codes["noise"]
    found = named(calls, called)
    found |= named(codes.assign(**net), names, "skeleton, {ranks} ranks")
    if FITTED in found:
        found[FITTED] |= {"fitted": True}
        found[FITTED]["case"] = f"{found[FITTED]['case']}; its 10 ms are fitted to this row"
    longest = calls[called == "allreduce 10 Hz x 2500 us"]
    return found | single_runs(longest, "ferreira-128", "{ranks} ranks")


def application_results(systems: pd.DataFrame, sweep: pd.DataFrame) -> dict[str, Row]:
    """Results of applications under published noise.

    Parameters
    ----------
    systems
        Slow-downs of POP under the noise of each published system, on its network. The row is the
        geometric mean of all systems, with their range: theirs is one of four others.
    sweep
        Slow-downs of Sweep3D's trace, by `mode`.
    """
    exact = sweep.loc[sweep["mode"] == "exact", "median"].item()
    case = f"its trace, 4 ranks, the reference's rule; exact: {exact:.3f}"
    found = named(sweep[sweep["mode"] == "compat"], "sweep3d-serial", case)
    rows = systems[systems["application"] == "POP"]
    if rows.empty:
        return found
    slowed = rows["median"]
    table = rows.head(1).assign(least=slowed.min(), most=slowed.max(), seeds=len(rows))
    table["median"] = np.exp(np.log(slowed).mean())
    case = f"skeleton, {{ranks}} ranks, mean of {len(rows)} other systems than theirs"
    return found | single_runs(table, "pop-scale", case, "system")
