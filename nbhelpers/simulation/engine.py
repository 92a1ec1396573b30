"""The simulator's front door: a schedule, a network and noise in, a result out.

Owns `simulate` and the errors of a schedule that can't be carried out; the engine itself is
simulator_c/engine.c. The plain way is the reference simulator, LogGOPSim: 107 of its results are
equal in the mode "compat" (tests/simulation/data). A dissemination among 65,536 ranks takes 44
bytes a message and 0.11 s of CPU time, there 435 bytes and 5.2 s (benchmarks/simulator.py).
"""

from typing import Any

import numpy as np

from ..errors import InputError
from ._binding import UNIT_NS, bind_network, bind_noise, bind_schedule, check_range
from ._simulator import ffi, lib
from .loggops import LogGOPS, Network
from .noise import Noise
from .result import Record, Result
from .schedule import SEND, Schedule, ScheduleError


class Deadlock(ScheduleError):
    """A schedule that stops before all is done: unmatched messages or receives, or operations that
    wait for each other in a circle.
    """


def simulate(
    schedule: Schedule,
    network: Network = LogGOPS(),
    noise: Noise | None = None,
    *,
    mode: str = "exact",
    critical_path: bool = False,
) -> Result:
    """Carry out a schedule in the LogGOPS model, with or without noise, and say when each rank is
    done.

    Parameters
    ----------
    schedule
        P ranks; see `Schedule`, `read_goal` and the patterns.
    network
        LogGOPS parameters, one set (`LogGOPS`) or by the size of messages (`Piecewise`).
    noise
        Which traces strike which ranks: `Noise.on_ranks`; None: none.
    mode
        "exact": whole picoseconds, no edges in a trace. "compat": whole nanoseconds, equal to the
        reference simulator LogGOPSim. See the notes.
    critical_path
        Record what happened when, and because of what: `Result.path`, `Result.culprits` and
        `Result.timeline` need it. 50 bytes an operation.

    Returns
    -------
    Result
        When each rank ended, its noise, and what was simulated.

    Raises
    ------
    Deadlock
        Not everything could be carried out; the message names the rank, the operation and the line.
    InputError
        Numbers that don't fit each other, or the mode.

    Notes
    -----
    Hoefler, Schneider, Lumsdaine: LogGOPSim, LSAP 2010; Hoefler, Schneider, Lumsdaine:
    Characterizing the influence of system noise on large-scale applications by simulation, SC 2010.

    In both modes a message is taken when it arrives, whether a receive is posted or not, and a
    receive costs nothing. What waits for a CPU or NIC goes in the order of its creation. A send of
    more than S bytes is done when the message is matched: the data travel at once, and the
    acknowledgement costs nothing.

    exact: a calculation, and the overhead o + (s − 1) O of a send or a reception, occupy the CPU
    until noise has left them that much time. A detour counts wherever it strikes, also in time that
    another has added. A message leaves when the sender's o is over, noise included. The receiver's
    CPU is busy until it has worked for o + (s − 1) O and the bytes are there, (s − 1) G after o:
    noise during that wait is absorbed. An empty message costs nothing by the byte. A message
    occupies the CPU and NIC of the receive that it matches, or CPU 0 and NIC 0 if none is posted. A
    message that waits for them is taken at once by a receive that is posted meanwhile elsewhere. An
    operation begins after the end of all that it requires, whatever CPU that ran on. A trace is a
    periodic function: nothing is lost at its edges.

    `Piecewise` (exact only): o at the sender, r in its place at the receiver, L and g are those of
    the piece that a message's size is in, and (s − 1) becomes (s − least).

    Equal times, in both modes: events happen in the order of their creation, and so does what waits
    for a CPU or NIC. An operation is created when the last thing happens that it requires; a
    message when its send begins, before what that lets go. An event that lets several operations go
    creates those of lower ranks first. Of one rank, sends come before receives, and those before
    calculations. Of one kind, those that required a begin (`irequires`) come before those that
    required an end (`requires`), each in the order of the file's dependencies. What requires
    nothing is created at time 0: rank by rank, sends, receives, calculations, each in the file's
    order.

    compat: the sender's CPU and NIC numbers count at the receiver. Noise counts only from the
    beginning of a send or a reception to its o, never on the message, nor on time that noise has
    added. Empty messages cost −O and −G. Of more than 16 operations that become ready at once the
    reference scrambles the order; here they go in the order of the file.

    Examples
    --------
    >>> pair = Schedule.from_arrays([1, 1], kind=[1, 2], peer=[1, 0], size=8)
    >>> simulate(pair, LogGOPS(L=2000, o=500, g=1000, G=1)).finish_ns
    array([ 500., 3007.])
    """
    bound_network = bind_network(network, mode)
    if noise is not None and getattr(noise, "ranks", None) != schedule.ranks:
        raise InputError(
            f"{noise!r} for a schedule of {schedule.ranks} ranks",
            fix=f"Noise.on_ranks(trace, {schedule.ranks})",
        )
    check_range(schedule, network, mode)
    record = Record.empty(schedule) if critical_path else None
    finish, injected = (np.zeros(schedule.ranks, np.uint64) for _ in range(2))
    times = [ffi.from_buffer("uint64_t[]", array) for array in (finish, injected)]
    outcome = ffi.new("struct nb_outcome *", {"finish": times[0], "noise": times[1]})
    bound_noise = bind_noise(noise, mode)
    bound_record = ffi.NULL if record is None else record.bind()
    stop = lib.nb_simulate(
        bind_schedule(schedule), bound_network, bound_noise, bound_record, outcome
    )
    _raise_for(stop, schedule, outcome)
    unit = UNIT_NS[mode]
    return Result(finish * unit, injected * unit, schedule, network, noise, mode, record)


def _raise_for(stop: int, schedule: Schedule, outcome: Any) -> None:
    """The error for a result of nb_simulate; none for 0."""
    if stop == lib.NB_STOP_MEMORY:
        raise MemoryError(f"no memory for simulating {schedule!r}")
    if stop == lib.NB_STOP_TIME:
        raise InputError(
            "simulated time has left 64 bits",
            where=_where(schedule, outcome.stopped_at),
            why="exact counts picoseconds up to 53 days, compat nanoseconds up to 146 years",
            fix="sizes are bytes, calculations ns: is a number in another unit?",
        )
    if stop == lib.NB_STOP_LONG:
        raise InputError(
            "an operation is as long as its rank's noise trace",
            where=_where(schedule, outcome.stopped_at),
            why=(
                "the reference simulator reads beyond its trace there, so compat has nothing to be"
                " equal to"
            ),
            fix="use mode='exact'",
        )
    if stop == lib.NB_STOP_STUCK:
        raise _deadlock(schedule, outcome)


def _where(schedule: Schedule, operation: int) -> str:
    return f"{schedule.name}: {schedule.where(operation)}" if operation >= 0 else schedule.name


# --- why nothing can happen any more --------------------------------------------------------------


def _deadlock(schedule: Schedule, outcome: Any) -> Deadlock:
    """The error that names the root: a receive or a message without a partner, or what waits."""
    receives, messages, unstarted = (
        [outcome.stuck[i] for i in range(outcome.stuck_count) if outcome.stuck_why[i] == why]
        for why in (lib.NB_WAITS_FOR_MESSAGE, lib.NB_NEVER_RECEIVED, lib.NB_NEVER_STARTED)
    )
    why = (
        f"{outcome.unmatched} receives, {outcome.unreceived} messages and {outcome.unstarted}"
        " operations are left over"
    )
    first = _where(schedule, (receives or messages or unstarted)[0])
    if not receives and not messages:
        why += "; is there a circle of operations that wait for each other?"
        return Deadlock("an operation that never starts", where=first, why=why)
    fix = "compare the peers, the tags and the numbers of sends and receives"
    if not receives:
        return Deadlock("a message that is never received", where=first, why=why, fix=fix)
    why = _partner(schedule, receives[0], messages) + why
    return Deadlock("a receive that no message ever matches", where=first, why=why, fix=fix)


def _partner(schedule: Schedule, receive: int, messages: list[int]) -> str:
    """What is left over at the same rank, which is often what was meant."""
    rank = int(schedule.rank_of(np.asarray(receive)))
    near = [op for op in messages if schedule.peer[op] == rank]
    if near:
        return f"not taken there: the message of {schedule.where(near[0])}; "
    sends = np.flatnonzero((schedule.kind == SEND) & (schedule.peer == rank))
    source = int(schedule.peer[receive])
    same = sends if source < 0 else sends[schedule.rank_of(sends) == source]
    return (
        f"{len(same)} sends to rank {rank}"
        + ("" if source < 0 else f" from rank {source}")
        + " are in the schedule; "
    )
