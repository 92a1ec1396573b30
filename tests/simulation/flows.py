"""Max-min fair flows in fractions, all worked out anew at each change: slow, and written without a
look at the engine.
"""

from fractions import Fraction


def rates(paths: list[list[int]], capacity: list[Fraction]) -> list[Fraction]:
    """Rates by the definition: raise all at the same speed; those on a full link stop."""
    rate, growing = [Fraction(0)] * len(paths), set(range(len(paths)))
    while growing:
        room = []
        for link, whole in enumerate(capacity):
            on = [i for i, path in enumerate(paths) if link in path]
            several = sum(i in growing for i in on)
            if several:
                room.append((whole - sum(rate[i] for i in on)) / several)
        step = min(room)
        for i in growing:
            rate[i] += step
        full = {
            link
            for link, whole in enumerate(capacity)
            if sum(rate[i] for i, path in enumerate(paths) if link in path) == whole
        }
        growing = {i for i in growing if not full & set(paths[i])}
    return rate


def ends(
    begins: list[int], work: list[int], paths: list[list[int]], capacity: list[Fraction]
) -> list[Fraction]:
    """When each flow has done its work."""
    left = [Fraction(w) for w in work]
    end: list[Fraction | None] = [None] * len(work)
    now = Fraction(0)
    while None in end:
        active = [i for i, begin in enumerate(begins) if end[i] is None and begin <= now]
        rate = rates([paths[i] for i in active], capacity)
        changes = [Fraction(b) for i, b in enumerate(begins) if end[i] is None and b > now]
        changes += [now + left[i] / r for i, r in zip(active, rate)]
        then = min(changes)
        for i, r in zip(active, rate):
            left[i] -= r * (then - now)
            if left[i] == 0:
                end[i] = then
        now = then
    return [e for e in end if e is not None]
