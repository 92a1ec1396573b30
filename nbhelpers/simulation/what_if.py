"""What a traced program would do elsewhere: on another network, on more ranks, under noise.

Owns how a trace is read whatever it is, how noise and networks are named in a word, what the
critical path consists of, and what of a run the Perfetto viewer shows.
"""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ..extras import traces
from ..mpi import Calls, read_calls
from ..mpi.pingpong import measure_pingpong
from .detours import Detours, periodic
from .engine import simulate
from .goal import read_goal
from .loggops import LogGOPS, Network, known_network
from .loggops_fit import fit_loggops
from .machines import spread_over, traces_of
from .noisy_cases import summary
from .replicates import replicate, seeds_of
from .result import Result
from .schedule import Schedule
from .traces import asking, schedule_of_calls

_SIGNATURE = re.compile(r"(\d*\.?\d+) ?(?:Hz)? ?[x×] ?(\d*\.?\d+) ?(?:us|µs)?")
_MOST_DRAWN, _MOST_RANKS = 100_000, 16  # operations; then the ranks with most of the path
_NOISE_TRACK = 1000
_MUCH = 0.01  # of the computation, of a call that only asks
_HOW = {
    True: "Computations: as traced, and drawn from those; the noise of the recording is in them.",
    False: "Computations: medians of those between the same two calls, so without most of the noise"
    " that the trace was recorded under (--drawn: as traced).",
}


def read_trace(
    path: str | Path, times: int = 1, drawn: bool = False, network: Network = LogGOPS()
) -> tuple[Schedule, list[str]]:
    """A schedule, and a sentence for each thing to know of it: from a folder of our own MPI layer
    (`nbhelpers.mpi.CallTrace`), from what an installed extra reads, or from a GOAL file.

    Parameters
    ----------
    path
        The folder of a run, or the file.
    times
        So many times the ranks, for all but a GOAL file.
    drawn
        Likewise: True: computations are as traced, those of further ranks drawn from them, all
        with the noise that the program was recorded under (`schedule_of_calls`). False: each is the
        median of those between the same two calls of its rank, so that noise does not count twice.
    network
        Whose calls' own costs the schedule of calls has.

    Raises
    ------
    InputError
        What the readers find, or `times` for a file.
    """
    if calls := _calls(Path(path)):
        how: dict[str, Any] = {"drawn": 0} if drawn else {"medians": True}
        how |= {"times": times, "costs": network.calls}
        schedule = schedule_of_calls(calls, name=str(path), **how)
        asked = asking(calls)
        said = [
            f"{name}: {share:.0%} of what counts as computation." for name, share in asked.items()
        ]
        return schedule, [_HOW[drawn], *calls.notes, *said[: int((asked > _MUCH).sum())]]
    if times > 1:
        raise InputError(
            f"{times} times as many ranks as in a GOAL file",
            where=path,
            why="it does not say which of its messages are a collective's, to be made anew",
            fix="give the folder of a run that nbhelpers.mpi.CallTrace wrote",
        )
    return read_goal(path), []


def _calls(path: Path) -> Calls | None:
    """The calls of a run, by the reader that knows its files; None: a GOAL file."""
    for pattern, read in traces().items():
        if path.match(pattern) or any(path.glob(pattern)):
            return read(path)
    return read_calls(path) if path.is_dir() else None


def noise_named(name: str) -> list[Detours]:
    """Noise by a word: "none"; "here" records this machine now, for 10 s; a recording's file; or
    frequency × duration in Hz and µs.

    Examples
    --------
    >>> [round(trace.overhead, 3) for trace in noise_named("10 Hz x 2500 us")]
    [0.025]
    """
    if name == "none":
        return []
    if name == "here" or Path(name).is_file():
        return traces_of(None if name == "here" else name)
    if numbers := _SIGNATURE.fullmatch(name):
        return [periodic(*map(float, numbers.groups()))]
    raise InputError(
        f"no noise is called '{name}'",
        fix="here, none, the file of a recording, or a frequency (Hz) × duration (µs): 10x2500",
    )


def network_named(name: str) -> Network:
    """A network by a word: "here" is what ping-pongs between two ranks of this machine give, by the
    size of messages; else a machine of data/knowledge/networks.yml.

    Examples
    --------
    >>> network_named("alps").L
    1900
    """
    if name != "here":
        return known_network(name)
    return fit_loggops(measure_pingpong(rounds=6), resamples=1).piecewise


def whatif(
    schedule: Schedule,
    network: Network = LogGOPS(),
    traces: Sequence[Detours] = (),
    seeds: int = 10,
) -> tuple[dict[str, Any], Result]:
    """How long a schedule takes, without noise and under it.

    Parameters
    ----------
    schedule
        See `read_trace`.
    network
        The network's parameters.
    traces
        Noise of one machine (`noise_named`); each rank draws which it has, and its phase.
    seeds
        Replicates, each with other phases.

    Returns
    -------
    `ranks`, `messages`, `ideal_ms` (without noise) and under noise the slow-down: `median`, `low`,
    `high` (95 % bootstrap interval of the median), `least`, `most`, `seeds`. And one run with its
    critical path: of the replicates the one in the middle, without noise the only one.
    """
    call = partial(simulate, schedule, network)
    ideal = call(critical_path=not traces)
    row: dict[str, float] = {"ranks": schedule.ranks, "messages": schedule.messages}
    row |= {"ideal_ms": ideal.makespan_ns / 1e6}
    if not traces:
        return row, ideal
    noise = spread_over(traces, schedule.ranks)
    took = replicate(call, noise, seeds)
    row |= summary(took / ideal.makespan_ns)
    middle = int(np.argsort(took, kind="stable")[(seeds - 1) // 2])
    return row, call(noise.with_seed(int(seeds_of(seeds)[middle])), critical_path=True)


def reasons(result: Result) -> pd.DataFrame:
    """What the critical path of a run consists of, the largest part first.

    Parameters
    ----------
    result
        Of `whatif`, or of `simulate(…, critical_path=True)`.

    Returns
    -------
    `what` (computation, messages or noise), `where` (a rank; of a message "from → to"; of noise
    the rank and its source), `ms`, `share` (of the run's time).

    Examples
    --------
    >>> from nbhelpers.simulation import patterns
    >>> reasons(simulate(patterns.dissemination(2, 1), critical_path=True))["where"].tolist()
    ['1 → 0']
    """
    path, schedule = result.path(), result.schedule
    sends = (path["via"] == "network").to_numpy()
    peer = schedule.peer[np.where(sends, schedule.rank_start[path["rank"]] + path["op"], 0)]
    link = (path["rank"].astype(str) + " → " + pd.Series(peer).astype(str)).where(sends)
    link = link.where(path["what"] != "reception", link.shift())  # of the message that came
    what = np.where(path["what"] == "calc", "computation", "messages")
    where = link.fillna("rank " + path["rank"].astype(str))
    parts = [pd.DataFrame({"what": what, "where": where, "ms": path["clean_ns"] / 1e6})]
    if result.noise is not None:
        hits = result.struck()
        of = "rank " + hits["rank"].astype(str) + ": " + hits["source"].astype(str)
        parts.append(pd.DataFrame({"what": "noise", "where": of, "ms": hits["path_ns"] / 1e6}))
    table = pd.concat(parts).groupby(["what", "where"], as_index=False)["ms"].sum()
    table = table[table["ms"] > 0].sort_values("ms", ascending=False, ignore_index=True)
    return table.assign(share=table["ms"] / (result.makespan_ns / 1e6))


def tracks_of_result(result: Result) -> dict[str, pd.DataFrame]:
    """A simulated run as slices for `nbhelpers.perfetto.write_tracks`: first the critical path,
    then each rank with its CPUs and its noise. Of a long run the 16 ranks that are most on the
    path.

    Parameters
    ----------
    result
        As for `reasons`.
    """
    along = result.path()
    most = along["rank"].value_counts().index[:_MOST_RANKS].to_numpy()
    drawn = result.timeline(most if len(result.schedule) > _MOST_DRAWN else None)
    drawn = drawn[drawn["what"] != "message"]
    track = drawn["cpu"].mask(drawn["what"] == "detour", _NOISE_TRACK)
    drawn = drawn.assign(
        track=track, name=drawn["source"].where(drawn["source"] != "", drawn["what"])
    )
    name = "rank " + along["rank"].astype(str) + ": " + along["what"]
    along = along.rename(columns={"begin_ns": "start_ns"}).assign(track=0, name=name)
    along = along[along["end_ns"] > along["start_ns"]]
    return {"critical path": along} | {f"rank {rank}": own for rank, own in drawn.groupby("rank")}
