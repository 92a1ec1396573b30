"""Schedules executed symbolically and adversarially: what a message can carry for certain, whatever
the timing. Plain Python, on purpose.

A send carries what its rank has itself, and what came with those receives that are *guaranteed* to
be over when it starts: those it depends on, directly or through others. Nothing else counts,
however likely it is to have arrived.
"""

from collections import defaultdict, deque
from collections.abc import Callable

from nbhelpers.simulation.schedule import RECV, SEND, Schedule


class Flow:
    """Who sends to which receive, and in which order everything can happen; fails if something can
    never happen.
    """

    def __init__(self, schedule: Schedule):
        self.schedule = schedule
        self.kind, self.peer, self.size, self.tag = (
            schedule.column(name).tolist() for name in ("kind", "peer", "size", "tag")
        )
        self.rank = [
            r
            for r in range(schedule.ranks)
            for _ in range(schedule.rank_start[r], schedule.rank_start[r + 1])
        ]
        self.needs = defaultdict(list)
        for operation, needed in zip(*(side.tolist() for side in schedule.edges()), strict=True):
            self.needs[operation].append(needed)
        self.begun = list(
            zip(*(side.tolist() for side in schedule.edges("irequires")), strict=True)
        )
        self.source = self._match()
        self.order = self._order()

    def _match(self) -> dict[int, int]:
        waiting = defaultdict(deque)
        for i, kind in enumerate(self.kind):
            if kind == SEND:
                waiting[self.rank[i], self.peer[i], self.tag[i]].append(i)
        source = {
            i: waiting[self.peer[i], self.rank[i], self.tag[i]].popleft()
            for i, kind in enumerate(self.kind)
            if kind == RECV
        }
        assert not any(waiting.values()), "messages that nobody receives"
        assert all(self.size[receive] == self.size[send] for receive, send in source.items()), (
            "sizes of sends and receives differ"
        )
        return source

    def _order(self) -> list[int]:
        """Operations in an order that can happen, by the beginning of sends and the end of all
        others; all messages are rendezvous.

        2 i is the beginning of operation i, 2 i + 1 its end.
        """
        after, waits = defaultdict(list), [0] * (2 * len(self.kind))

        def edge(first: int, second: int) -> None:
            after[first].append(second)
            waits[second] += 1

        for i in range(len(self.kind)):
            edge(2 * i, 2 * i + 1)
            for needed in self.needs[i]:
                edge(2 * needed + 1, 2 * i)
        for operation, needed in self.begun:
            edge(2 * needed, 2 * operation)
        for receive, send in self.source.items():
            edge(2 * send, 2 * receive + 1)
            edge(2 * receive, 2 * send + 1)
        ready, order = deque(i for i, count in enumerate(waits) if not count), []
        while ready:
            order.append(at := ready.popleft())
            for then in after[at]:
                waits[then] -= 1
                if not waits[then]:
                    ready.append(then)
        assert len(order) == len(waits), (
            "the schedule blocks if every message waits for its receive"
        )
        return [at // 2 for at in order if at % 2 != (self.kind[at // 2] == SEND)]

    def run(self, own: Callable, outgoing: Callable, merge: Callable) -> list:
        """What every rank has in the end.

        own(rank) ─► state; outgoing(rank, state, number of the send in its rank, to, bytes) ─►
        message; merge(rank, state, message, number of the receive in its rank) ─► state. States are
        never changed in place.
        """
        receives, sends, known, message = defaultdict(list), defaultdict(list), {}, {}
        number = {}
        for i, kind in enumerate(self.kind):
            lists = receives if kind == RECV else sends
            if kind in (SEND, RECV):
                number[i] = len(lists[self.rank[i]])
                lists[self.rank[i]].append(i)
        closure = {}
        for i in self.order:
            closure[i] = 0
            for needed in self.needs[i]:
                closure[i] |= closure[needed] | (
                    1 << number[needed] if self.kind[needed] == RECV else 0
                )

        def state(rank: int, over: int) -> object:
            if not over:
                return own(rank)
            if (rank, over) not in known:
                last = over.bit_length() - 1
                receive = receives[rank][last]
                known[rank, over] = merge(
                    rank, state(rank, over & ~(1 << last)), message[self.source[receive]], last
                )
            return known[rank, over]

        for i in self.order:
            if self.kind[i] == SEND:
                message[i] = outgoing(
                    self.rank[i],
                    state(self.rank[i], closure[i]),
                    number[i],
                    self.peer[i],
                    self.size[i],
                )
        return [state(rank, (1 << len(receives[rank])) - 1) for rank in range(self.schedule.ranks)]


def knowledge(schedule: Schedule) -> list[set[int]]:
    """The ranks whose data have certainly reached each rank, if every message carries all that is
    there.
    """
    masks = Flow(schedule).run(
        lambda rank: 1 << rank,
        lambda rank, state, *_: state,
        lambda rank, state, message, _: state | message,
    )
    return [{source for source in range(schedule.ranks) if mask >> source & 1} for mask in masks]
