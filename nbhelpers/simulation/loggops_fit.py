"""LogGOPS parameters of one's own machine, out of times of round trips.

Owns the fits: numbers in, parameters with intervals out. Pure; `nbhelpers.mpi.pingpong` measures.
"""

from dataclasses import asdict, dataclass, field

import numpy as np
import pandas as pd

from ..errors import InputError
from .loggops import CallCosts, LogGOPS, Piece, Piecewise

FAMILIES = ("roundtrip", "burst", "delayed")
UNITS = {"L": "ns", "o": "ns", "g": "ns", "G": "ns a byte", "O": "ns a byte", "S": "bytes"}
QUANTILE = 0.25  # of repetitions
UNLIMITED = 2**40  # S where no size was found to wait for its receive


@dataclass(frozen=True, eq=False)
class LogGOPSFit:
    """LogGOPS parameters of a machine, and how well they describe it.

    Parameters
    ----------
    network
        Parameters fitted to all sizes together.
    table
        Index `parameter`; columns `value`, `low`, `high` (95 % bootstrap interval over rounds),
        `unit`, `n` (rounds).
    piecewise
        A piece from each measured size on, up to the next.
    """

    network: LogGOPS
    table: pd.DataFrame = field(repr=False)
    piecewise: Piecewise


def fit_loggops(times: pd.DataFrame, resamples: int = 100) -> LogGOPSFit:
    """Fit LogGOPS parameters to families of round trips.

    Parameters
    ----------
    times
        A row a repetition: `family` (roundtrip, burst, delayed, late; copy, sum, cold and made as
        well), `bytes`, `messages`, `delay_ns`, `round`, `ns`; see the notes.
    resamples
        Bootstrap samples of rounds, for the intervals; always the same.

    Returns
    -------
    LogGOPSFit
        Parameters and intervals.

    Raises
    ------
    InputError
        A family or column is missing, or fewer than two rounds or three sizes.

    Notes
    -----
    The lower quartile of the repetitions of a family and size stands for the undisturbed machine:
    other load only ever makes a round trip longer.

    PRTT(n, d, s) of Hoefler, Lichei, Rehm (IPDPS 2007), here in the simulator's model: n messages
    of s bytes, d apart, and one back. With D = (s − 1) O and B = (s − 1) G,

    * roundtrip, PRTT(1, 0, s) = 2 (2 o + L + max(D, B));
    * burst, (PRTT(n, 0, s) − PRTT(1, 0, s)) / (n − 1) = max(o + max(D, B), g + B);
    * delayed, (PRTT(n, d, s) − PRTT(1, 0, s)) / (n − 1) − d = o + D, if d is long enough;
    * late: the send of more than S bytes lasts until its receive is posted.

    Above S a send lasts until its message is taken, so burst and delayed are o + L at least. A gap
    g below o never shows, and is then given as o: it changes no time. Lines are fitted to shares,
    (fitted − measured) / measured, so that small and large messages count alike.

    `piecewise` has all three families as they were measured at each size, and lines between sizes;
    only their G is of the mean of roundtrip and burst. Its `calls` are of the families copy, sum,
    cold and made. What one line for all sizes does worse, and by how much, `benchmarks/loggops.py`
    prints.

    Examples
    --------
    >>> sizes, rounds = [1, 1001, 100_001], [0, 1]
    >>> cell = lambda family, s, k, n, d, ns: dict(
    ...     family=family, bytes=s, round=k, messages=n, delay_ns=d, ns=ns
    ... )
    >>> rows = [
    ...     cell(*row)
    ...     for k in rounds
    ...     for s in sizes
    ...     for row in [
    ...         ("roundtrip", s, k, 1, 0, 2 * (2 * 500 + 1000 + 0.5 * (s - 1))),
    ...         ("burst", s, k, 2, 0, 4000 + (s - 1) + 600 + 0.5 * (s - 1)),
    ...         ("delayed", s, k, 2, 10**6, 4000 + (s - 1) + 500 + 10**6),
    ...     ]
    ... ]
    >>> fit_loggops(pd.DataFrame(rows), resamples=10).table["value"].round(3).tolist()[:5]
    [1000.0, 500.0, 600.0, 0.5, 0.0]
    """
    _check(times)
    rounds = [part for _, part in times.groupby("round")]
    rng, drawn = np.random.default_rng(0), []
    for _ in range(resamples):
        chosen = rng.integers(0, len(rounds), len(rounds))
        drawn.append(_parameters(pd.concat([rounds[one] for one in chosen])))
    network, draws = _parameters(times), pd.DataFrame(map(asdict, drawn))
    table = pd.DataFrame(
        {
            "value": pd.Series(asdict(network), dtype=float),
            "low": draws.quantile(0.025),
            "high": draws.quantile(0.975),
            "unit": pd.Series(UNITS),
            "n": len(rounds),
        }
    )
    table = table.loc[list(UNITS)].rename_axis("parameter")
    pieces = _piecewise(_costs(times), network.S, _call_costs(times))
    return LogGOPSFit(network, table, pieces)


def _check(times: pd.DataFrame) -> None:
    missing = {"family", "bytes", "messages", "delay_ns", "round", "ns"} - set(times)
    if missing:
        raise InputError(f"a table without {', '.join(sorted(missing))}", where="fit_loggops")
    for family in FAMILIES:
        sizes = times.loc[times["family"] == family, "bytes"].nunique()
        if sizes < 3:
            raise InputError(
                f"{sizes} sizes of the family {family}", where="fit_loggops", fix="≥ 3"
            )
    if times["round"].nunique() < 2:
        raise InputError("one round", where="fit_loggops", why="rounds are resampled", fix="≥ 2")


# --- what a message costs, by size ----------------------------------------------------------------


def _costs(times: pd.DataFrame) -> pd.DataFrame:
    """Index bytes; columns roundtrip (half of one), burst and delayed (of one message more), ns."""
    more = times["messages"] - 1
    cells = times.assign(ns=times["ns"] - times["delay_ns"] * more, more=more.clip(lower=1))
    cells = cells.groupby(["family", "bytes"])
    ns = cells["ns"].quantile(QUANTILE).unstack("family")
    trip, more = ns["roundtrip"], cells["more"].first().unstack("family")
    costs = {"roundtrip": trip / 2}
    costs |= {name: (ns[name] - trip) / more[name] for name in ("burst", "delayed")}
    return pd.DataFrame(costs).dropna().clip(lower=0)


def _threshold(times: pd.DataFrame) -> int:
    """The largest size below the first whose send waits for its late receive."""
    late = times[times["family"] == "late"]
    share = (late["ns"] / late["delay_ns"]).groupby(late["bytes"]).min()
    waits = share > 0.5
    if not waits.any():
        return UNLIMITED
    eager = waits.index[waits.index < waits.idxmax()]
    return int(eager.max()) if len(eager) else 0


def _line(sizes: np.ndarray, ns: np.ndarray, least: float = 0.0) -> tuple[float, float]:
    """a and b of a + b (s − 1) with a ≥ least, b ≥ 0 and the least squares of shares."""
    ns = np.maximum(ns, 1.0)
    rows = np.stack([1 / ns, (sizes - 1) / ns], axis=1)
    (a, b), *_ = np.linalg.lstsq(rows, np.ones(len(ns)), rcond=None)
    if b < 0:
        return max(least, float(np.sum(1 / ns) / np.sum(1 / ns**2))), 0.0
    if a < least:
        x = rows[:, 1]
        a, b = least, float(x @ (1 - least / ns) / (x @ x)) if x.any() else 0.0
    return float(a), max(0.0, float(b))


def _parameters(times: pd.DataFrame) -> LogGOPS:
    """Overheads and g from eager messages, L and G from all."""
    costs, S = _costs(times), _threshold(times)
    eager = costs[costs.index <= S]
    eager = costs if len(eager) < 2 else eager
    o, O = _line(eager.index.to_numpy(float), eager["delayed"].to_numpy())
    trip, G = _line(costs.index.to_numpy(float), costs["roundtrip"].to_numpy(), 2 * o)
    gaps = eager["burst"].to_numpy() - (eager.index.to_numpy(float) - 1) * G
    g = max(o, float(np.median(gaps[: (len(gaps) + 1) // 2])))
    return LogGOPS(L=trip - 2 * o, o=o, g=g, G=G, O=min(O, G), S=S)


def _call_costs(times: pd.DataFrame) -> CallCosts:
    """Copies and sums of the larger half of sizes, whose time can be told; of cold round trips the
    time beyond the shortest, and never less after a longer computation.
    """
    ns = times.groupby(["family", "bytes"])["ns"].quantile(QUANTILE).unstack("family")
    large = ns.iloc[len(ns) // 2 :]
    copy, add = (
        float((large[name] / large.index).median()) if name in large else 0.0
        for name in ("copy", "sum")
    )
    make = float(ns["made"].median()) if "made" in ns else 0.0
    cold = times[times["family"] == "cold"]
    if cold.empty:
        return CallCosts(copy, add, make)
    cold = cold.assign(nth=cold.groupby(["round", "bytes"]).cumcount())
    took = cold.groupby(["nth", "bytes"])["ns"].quantile(QUANTILE).unstack("bytes")
    longer = (took - took.min()).iloc[1:].cummax()  # what the first found was another family's
    after = cold.groupby("nth")["delay_ns"].quantile(QUANTILE).iloc[1:].cummax()
    rows = [[0] * (1 + len(took.columns)), *np.column_stack([after, longer]).tolist()]
    return CallCosts(copy, add, make, tuple(map(int, took)), tuple(map(tuple, rows)))


def _piecewise(costs: pd.DataFrame, S: int, calls: CallCosts) -> Piecewise:
    """A send takes o, its reception r, messages follow one another g apart; L is the rest of the
    trip. Beyond S a send lasts until its message is there: its o and r are those of the largest
    eager message, and L has the data's time, so that the sender waits for it, too.
    """
    costs = costs[costs.index > 0]
    sizes = costs.index.to_numpy(float)
    trip, burst = (costs[name].to_numpy() for name in ("roundtrip", "burst"))
    last = max(0, int((sizes <= S).sum()) - 1)  # of the eager ones
    o = costs["delayed"].to_numpy()[np.minimum(np.arange(len(sizes)), last)]
    o = np.minimum(o, np.minimum(burst, trip / 2))
    r = np.where(sizes <= S, np.minimum(burst, trip - o), o)
    L = np.minimum(trip - o - r, burst + (trip - r).min() - o)  # none overtakes a larger one
    G, O = (np.diff(ns) / np.diff(sizes) for ns in ((trip + burst) / 2, o))
    G = np.maximum(G, 0)
    G, O = (np.append(slope, slope[-1:]) for slope in (G, np.clip(O, 0, G)))
    rows = np.stack([L, o, trip - o - L, burst, G, O], axis=1).tolist()
    least = [1, *map(int, sizes[1:])]
    return Piecewise(tuple(Piece(n, *row) for n, row in zip(least, rows, strict=True)), S, calls)
