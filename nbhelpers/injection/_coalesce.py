"""The floor rule: what becomes of events that are shorter than what an injection costs on this
machine.

Owns how short events of one class are carried by others; pure. Noise is moved, by at most a stated
time, and never made up.
"""

from typing import NamedTuple

import numpy as np

DROPPED = -1


class Carried(NamedTuple):
    """Start and length of each event with all that it carries, and the event that carries it."""

    start_ns: np.ndarray
    duration_ns: np.ndarray
    into: np.ndarray


def coalesce(
    start_ns: np.ndarray, duration_ns: np.ndarray, shortest_ns: int, window_ns: int
) -> Carried:
    """Let short events be carried by others of their class.

    1. A short event is carried by the nearest long one that is no farther away than the window:
       that one gets longer.
    2. Short events that are left are gathered in order of time. As soon as their sum reaches the
       shortest length, while all of them lie within one window, they become one event about their
       centre of gravity. The first of them carries it.
    3. What is still left is carried by the nearest event of step 2 within the window, or dropped.

    Parameters
    ----------
    start_ns
        Starts of the events of one class on one CPU, ascending; the events do not overlap.
    duration_ns
        Their lengths.
    shortest_ns
        Shorter events are short.
    window_ns
        Farther than this no noise is moved.

    Returns
    -------
    Carried; `into` is the event's own place where it is injected, and −1 where it is dropped.
    """
    start, into = start_ns.copy(), np.arange(len(start_ns))
    short = np.flatnonzero(duration_ns < shortest_ns)
    long = np.flatnonzero(duration_ns >= shortest_ns)
    into[short] = _nearest(start_ns[short], long, start_ns[long], duration_ns[long], window_ns)
    short = short[into[short] == DROPPED]
    firsts, ends = _groups(start_ns[short], duration_ns[short], shortest_ns, window_ns)
    members, group = _members(firsts, ends)
    hosts, members = short[firsts], short[members]
    into[members] = hosts[group]
    start[hosts], length = _about_centre(start_ns, duration_ns, members, group, len(hosts))
    short = short[into[short] == DROPPED]
    into[short] = _nearest(start_ns[short], hosts, start[hosts], length, window_ns)
    carried = into >= 0
    total = np.bincount(into[carried], duration_ns[carried], len(start)).astype(np.int64)
    return Carried(start, total, into)


def _nearest(
    start: np.ndarray,
    hosts: np.ndarray,
    host_start: np.ndarray,
    host_length: np.ndarray,
    window_ns: int,
) -> np.ndarray:
    """For each start the host that is nearest, or −1 where none is within the window."""
    if not len(hosts):
        return np.full(len(start), DROPPED)
    after = np.searchsorted(host_start, start, side="right")
    before, after = np.maximum(after - 1, 0), np.minimum(after, len(hosts) - 1)
    since = np.maximum(
        np.maximum(start - (host_start + host_length)[before], host_start[before] - start), 0
    )
    until = np.abs(host_start[after] - start)
    return np.where(
        np.minimum(since, until) <= window_ns,
        hosts[np.where(since <= until, before, after)],
        DROPPED,
    )


def _groups(
    start: np.ndarray, length: np.ndarray, shortest_ns: int, window_ns: int
) -> tuple[np.ndarray, np.ndarray]:
    """First member and one past the last of each group, places in order of time; greedy."""
    count = len(start)
    sums = np.concatenate([[0], np.cumsum(length)])
    # the sum up to there reaches the shortest length
    end = np.searchsorted(sums, sums[:-1] + shortest_ns)
    last = np.minimum(end, count) - 1
    full = (
        (end <= count) & (start[last] + length[last] - start <= window_ns)
        if count
        else np.zeros(0, bool)
    )
    places = np.where(full, np.arange(count), count)
    # the next place where a group can begin
    following = np.append(np.minimum.accumulate(places[::-1])[::-1], count).tolist()
    ends, firsts, place = end.tolist(), [], 0
    while (place := following[place]) < count:
        firsts.append(place)
        place = ends[place]
    begins = np.array(firsts, dtype=np.int64)
    return begins, end[begins]


def _members(firsts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of all members, group by group, and the group of each."""
    sizes = ends - firsts
    group = np.repeat(np.arange(len(firsts)), sizes)
    return np.arange(len(group)) + np.repeat(firsts - np.cumsum(sizes) + sizes, sizes), group


def _about_centre(
    start: np.ndarray, length: np.ndarray, members: np.ndarray, group: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Start and length of an event that has the sum of the members' lengths, and their centre of
    gravity.
    """
    total = np.bincount(group, length[members], count).astype(np.int64)
    # counted from each group's first member: exact where times are large
    origin = start[members[np.searchsorted(group, np.arange(count))]]
    middle = (start[members] - origin[group]) + length[members] / 2
    centre = np.bincount(group, middle * length[members], count) / np.maximum(total, 1)
    return np.maximum(origin + np.rint(centre - total / 2).astype(np.int64), 0), total
