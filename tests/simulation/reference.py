"""The LogGOPS model once more, slow and obvious, to test the engine against: one heap, plain lists,
exact fractions of integers.

Nothing is shared with nbhelpers.simulation. `compat` follows the description of the reference
simulator's behaviour; `exact` follows the documentation of `nbhelpers.simulation.simulate`.
"""

import heapq
import re
from dataclasses import astuple, dataclass, field
from pathlib import Path

WRAP = 2**64


@dataclass
class Op:
    kind: str
    size: int
    peer: int = -1
    tag: int = 0
    cpu: int = 0
    nic: int = 0
    after_done: list = field(default_factory=list)
    after_begun: list = field(default_factory=list)
    needs: int = 0
    ready: int = 0


class Stuck(Exception):
    pass


def parse_goal(path: Path) -> list[list[Op]]:
    """A GOAL text of the plain kind: `num_ranks`, rank blocks in order, labels before their use."""
    import gzip

    text = gzip.open(path, "rt").read() if path.suffix == ".gz" else path.read_text()
    ranks, labels, ops = [], {}, []
    for line in text.splitlines():
        words = re.sub(r"//.*", "", line).replace("{", " { ").split()
        if not words or words[0] == "num_ranks":
            continue
        if words[0] == "rank":
            labels, ops = {}, []
            ranks.append(ops)
        elif len(words) == 3 and words[1] in ("requires", "irequires"):
            needed = ops[labels[words[2]]]
            (needed.after_done if words[1] == "requires" else needed.after_begun).append(
                labels[words[0]]
            )
            ops[labels[words[0]]].needs += 1
        elif words[0] != "}":
            if words[0].endswith(":"):
                labels.setdefault(words[0][:-1], len(ops))
                words = words[1:]
            options = {
                words[i]: int(words[i + 1])
                for i in range(2, len(words) - 1)
                if words[i] in ("to", "from", "tag", "cpu", "nic")
            }
            ops.append(
                Op(
                    words[0],
                    int(words[1].rstrip("b")),
                    options.get("to", options.get("from", -1)),
                    options.get("tag", 0),
                    options.get("cpu", 0),
                    options.get("nic", 0),
                )
            )
    return ranks


# --- noise ----------------------------------------------------------------------------------------


def noise_compat(trace, phase, begin, length):
    """trace: (starts, durations, period) in whole ns."""
    starts, durations, period = trace
    place = ((begin + phase) % WRAP) % ((period - length) % WRAP)
    added, k = 0, 0
    if place > starts[0]:
        k = max(i for i in range(len(starts)) if starts[i] <= place)
        added = max(0, starts[k] + durations[k] - place)
    for i in range(k + 1, len(starts)):
        if starts[i] < place + length:
            added += durations[i]
    return added


def lost(trace, phase, t):
    """Time lost in [−phase, t): covered picoseconds of the periodic union; the trace in ps."""
    starts, durations, period = trace
    intervals = sorted(
        (s + shift * period, s + d + shift * period)
        for s, d in zip(starts, durations)
        for shift in (-1, 0)
    )
    pieces, union = [], []
    for low, high in intervals:
        low, high = max(low, 0), min(high, period)
        if high > low:
            pieces.append((low, high))
    for low, high in sorted(pieces):
        if union and low <= union[-1][1]:
            union[-1][1] = max(union[-1][1], high)
        else:
            union.append([low, high])
    whole = sum(high - low for low, high in union)
    turns, place = divmod(t + phase, period)
    return turns * whole + sum(min(high, place) - low for low, high in union if low < place)


def finish_exact(trace, phase, begin, work):
    """The first t with (t − begin) − lost(begin, t) = work, by bisection over whole picoseconds."""
    if trace is None or work == 0:
        return begin + work
    before = lost(trace, phase, begin)
    low, high = begin + work, begin + work
    while high - begin - (lost(trace, phase, high) - before) < work:
        high += max(work, trace[2])
    while low < high:
        middle = (low + high) // 2
        if middle - begin - (lost(trace, phase, middle) - before) >= work:
            high = middle
        else:
            low = middle + 1
    return low


# --- the simulation -------------------------------------------------------------------------------


class Reference:
    """program: list of ranks, each a list of Op. network: (L, o, g, G, O, S), in ns, or a
    `Piecewise`. traces: one a rank or None, with phases.
    """

    def __init__(self, program, network, traces=None, phases=None, mode="exact"):
        self.program, self.mode = program, mode
        scale = 1000 if mode == "exact" else 1
        if isinstance(network, tuple):
            L, o, g, G, O, self.S = network  # noqa: E741
            pieces = [(1, L, o, o, g, G, O)]
        else:
            pieces, self.S = [astuple(piece) for piece in network.pieces], network.S
        self.pieces = [
            (least, *(round(value * scale) for value in times), G * scale, O * scale)
            for least, *times, G, O in pieces  # noqa: E741
        ]
        self.scale = scale
        self.traces = traces or [None] * len(program)
        self.phases = phases or [0] * len(program)
        ops = [op for rank in program for op in rank]
        cpus = 1 + max((op.cpu for op in ops), default=0)
        nics = 1 + max((op.nic for op in ops), default=0)
        self.several_cpus, self.several = cpus > 1, cpus > 1 or nics > 1
        P = len(program)
        self.cpu = [[0] * cpus for _ in range(P)]
        self.gs = [[0] * nics for _ in range(P)]
        self.gr = [[0] * nics for _ in range(P)]
        self.posted = [[] for _ in range(P)]
        self.arrived = [[] for _ in range(P)]
        self.noise = [0] * P
        self.started = 0
        self.pending, self.taken = [[] for _ in range(P)], set()
        self.heap, self.seq = [], 0

    # costs

    def costs(self, size):
        """L, o, r, g, and what the bytes cost by O and by G."""
        least, L, o, r, g, G, O = [p for p in self.pieces if p[0] <= max(1, size)][-1]  # noqa: E741
        return L, o, r, g, *(self.per_byte(cost, size, least) for cost in (O, G))

    def per_byte(self, cost, size, least):
        if self.mode == "compat":
            return (size - least) * int(cost) % WRAP  # an empty message: minus one byte's cost
        return round((size - least) * cost) if size else 0

    def later(self, h, begin, length):
        """Compat's noise of an interval."""
        if self.traces[h] is None:
            return 0
        return noise_compat(self.traces[h], self.phases[h], begin, length)

    def finish(self, h, begin, work):
        return finish_exact(self.traces[h], self.phases[h], begin, work)

    # events

    def push(self, time, what, h, op, source=None):
        heapq.heappush(self.heap, (time % WRAP, self.seq, what, h, op, source))
        self.seq += 1

    def again(self, time, event):
        heapq.heappush(self.heap, (time % WRAP, *event[1:]))

    def release(self, h, ops):
        for kind in ("send", "recv", "calc"):
            for i in ops:
                op = self.program[h][i]
                if op.kind == kind:
                    time = self.cpu[h][op.cpu]
                    if kind == "send":
                        time = max(time, self.gs[h][op.nic])
                    if self.several_cpus and self.mode == "exact":
                        time = max(time, op.ready)
                    self.push(time, kind, h, i)

    def begun(self, h, i, t):
        self.started += 1
        self._down(h, self.program[h][i].after_begun, t)

    def done(self, h, i, t):
        self._down(h, self.program[h][i].after_done, t)

    def _down(self, h, ops, t):
        for i in ops:
            op = self.program[h][i]
            op.ready = max(op.ready, t)
            op.needs -= 1
            if op.needs == 0:
                self.free.setdefault(h, []).append(i)

    def run(self):
        for h, rank in enumerate(self.program):
            self.release(h, [i for i, op in enumerate(rank) if op.needs == 0])
        while self.heap:
            event = heapq.heappop(self.heap)
            self.free = {}
            getattr(self, event[2])(event)
            for h in sorted(self.free):
                self.release(h, self.free[h])
        if any(self.posted) or any(self.arrived) or self.started < sum(map(len, self.program)):
            raise Stuck
        unit = 1 / 1000 if self.mode == "exact" else 1.0
        return [max(clocks) * unit for clocks in self.cpu], [value * unit for value in self.noise]

    def calc(self, event):
        t, _, _, h, i, _ = event
        op = self.program[h][i]
        if self.cpu[h][op.cpu] > t:
            return self.again(self.cpu[h][op.cpu], event)
        work = op.size * self.scale
        end = (
            t + work + self.later(h, t, work) if self.mode == "compat" else self.finish(h, t, work)
        )
        self.noise[h] += end - t - work
        self.cpu[h][op.cpu] = end
        self.begun(h, i, t)
        self.done(h, i, end)

    def send(self, event):
        t, _, _, h, i, _ = event
        op = self.program[h][i]
        free = max(self.cpu[h][op.cpu], self.gs[h][op.nic])
        if free > t:
            return self.again(free, event)
        L, o, _, g, D, B = self.costs(op.size)
        if self.mode == "compat":
            noise = self.later(h, t, o)
            end, gap, arrival = t + o + D + noise, t + g + B, t + o + L
        else:
            left = self.finish(h, t, o)
            end = self.finish(h, t, o + D)
            gap, arrival = left - o + g + B, left + L
            noise = end - t - o - D
        self.noise[h] += noise
        self.cpu[h][op.cpu], self.gs[h][op.nic] = end % WRAP, gap % WRAP
        self.push(arrival, "message", op.peer, i, h)
        self.begun(h, i, t)
        if op.size <= self.S:
            self.done(h, i, end)

    def matching(self, h, source, tag):
        for i in self.posted[h]:
            op = self.program[h][i]
            if op.peer in (source, -1) and op.tag in (tag, -1):
                return i
        return None

    def raise_sender(self, h, i, cpu, nic, t):
        self.cpu[h][cpu] = max(self.cpu[h][cpu], t)
        self.gs[h][nic] = max(self.gs[h][nic], t)
        self.done(h, i, t)

    def message(self, event):
        t, _, _, h, i, source = event
        sent = self.program[source][i]
        found = self.matching(h, source, sent.tag)
        if self.mode == "compat":
            cpu, nic = sent.cpu, sent.nic
        elif found is None:
            cpu = nic = 0
        else:
            cpu, nic = self.program[h][found].cpu, self.program[h][found].nic
        if (source, i) in self.taken:
            return None
        free = max(self.cpu[h][cpu], self.gr[h][nic])
        if free > t:
            if event not in self.pending[h]:
                self.pending[h].append(event)
            return self.again(free, event)
        self.taken.add((source, i))
        self.pending[h] = [other for other in self.pending[h] if other[1] != event[1]]
        _, _, r, g, D, B = self.costs(sent.size)
        if self.mode == "compat":
            noise = self.later(h, t, r)
            end = t + r + noise + max(D, B)
        else:
            end = max(self.finish(h, t, r + D), self.finish(h, t, r) + B)
            noise = end - t - r - max(D, B)
        self.noise[h] += noise
        self.cpu[h][cpu], self.gr[h][nic] = end % WRAP, (t + g + B) % WRAP
        if found is None:
            self.arrived[h].append((source, sent.tag, i, end))
            return
        self.posted[h].remove(found)
        if sent.size > self.S:
            self.raise_sender(source, i, sent.cpu, sent.nic, t)
        self.done(h, found, end)

    def recv(self, event):
        t, _, _, h, i, _ = event
        op = self.program[h][i]
        self.begun(h, i, t)
        for entry in self.arrived[h]:
            source, tag, sent_i, end = entry
            if op.peer in (source, -1) and op.tag in (tag, -1):
                break
        else:
            self.posted[h].append(i)
            if (
                self.mode == "exact" and self.several
            ):  # whoever waits for another CPU may now have this receive's
                for other in {other[1]: other for other in self.pending[h]}.values():
                    if op.peer in (other[5], -1) and op.tag in (
                        self.program[other[5]][other[4]].tag,
                        -1,
                    ):
                        self.again(t, other)
            return
        self.arrived[h].remove(entry)
        sent = self.program[source][sent_i]
        size = op.size if self.mode == "compat" else sent.size
        if size > self.S and sent.size > self.S:
            like = op if self.mode == "compat" else sent
            self.raise_sender(source, sent_i, like.cpu, like.nic, t)
        self.done(h, i, max(t, end))
