"""Programs for the slow implementation (lists of `Op`) turned into schedules, and random ones that
always can be carried out.
"""

import random

import numpy as np

from nbhelpers.simulation.schedule import Schedule

from .reference import Op

KINDS = {"send": 1, "recv": 2, "calc": 3}


def to_schedule(program: list[list[Op]], **options) -> Schedule:
    """The same program as flat arrays."""
    ops = [op for rank in program for op in rank]
    start = np.concatenate([[0], np.cumsum([len(rank) for rank in program])])
    pairs = {"after_done": ([], []), "after_begun": ([], [])}
    for base, rank in zip(start, program):
        for i, op in enumerate(rank):
            for name, (operation, needed) in pairs.items():
                operation += [base + j for j in getattr(op, name)]
                needed += [base + i] * len(getattr(op, name))
    return Schedule.from_arrays(
        [len(rank) for rank in program],
        np.array([KINDS[op.kind] for op in ops], int),
        np.array([0 if op.kind == "calc" else op.peer for op in ops], int),
        np.array([op.size for op in ops], np.int64),
        tag=np.array([op.tag for op in ops], int),
        cpu=np.array([op.cpu for op in ops], int),
        nic=np.array([op.nic for op in ops], int),
        requires=pairs["after_done"],
        irequires=pairs["after_begun"],
        **options,
    )


def random_program(
    seed: int,
    ranks: int = 5,
    messages: int = 14,
    cpus: int = 1,
    nics: int = 1,
    wildcards: bool = True,
    sizes: tuple[int, ...] = (1, 2, 8, 100, 70000, 200000),
    lonely: bool = False,
) -> list[list[Op]]:
    """Messages between random ranks, in a random order at each end, dependencies on earlier
    operations only.

    Rendezvous and late receives may still end in a circle of waiting; then both implementations
    have to notice. `lonely`: one receive has no message.
    """
    rng = random.Random(seed)
    program: list[list[Op]] = [[] for _ in range(ranks)]
    for _ in range(messages):
        source = rng.randrange(ranks)
        target = rng.randrange(ranks)
        tag = rng.choice((0, 0, 1))
        size = rng.choice(sizes)
        wild = wildcards and rng.random() < 0.15
        program[source].append(
            Op("send", size, target, tag, rng.randrange(cpus), rng.randrange(nics))
        )
        program[target].append(
            Op(
                "recv",
                size,
                -1 if wild else source,
                -1 if wild and rng.random() < 0.5 else tag,
                rng.randrange(cpus),
                rng.randrange(nics),
            )
        )
        for rank in (source, target):
            if rng.random() < 0.3:
                program[rank].append(
                    Op("calc", rng.choice((0, 1, 500, 3000, 40000)), cpu=rng.randrange(cpus))
                )
    if lonely:
        program[0].append(Op("recv", 1, ranks - 1, 77))
    for rank in program:
        if rng.random() < 0.5:
            rng.shuffle(rank)
        for i, op in enumerate(rank):
            for needed in rng.sample(range(i), min(i, rng.choice((0, 0, 1, 1, 2)))):
                (
                    rank[needed].after_done if rng.random() < 0.7 else rank[needed].after_begun
                ).append(i)
                op.needs += 1
    return program


def random_fan_in(seed: int) -> list[list[Op]]:
    """Many messages to rank 0, whose receives lie on several CPUs and NICs and come early or late:
    messages wait in crowds, which change as receives are posted and matched.
    """
    rng = random.Random(seed)
    senders, each = rng.randint(1, 5), rng.randint(2, 20)
    cpus, nics = rng.randint(1, 3), rng.randint(1, 3)
    sizes, style = (
        rng.choice([(1,), (1, 2, 5), (1, 100, 400)]),
        rng.choice(["any", "named", "both"]),
    )
    sent = [
        (source, rng.choice(sizes), rng.choice((0, 0, 1)))
        for source in range(1, senders + 1)
        for _ in range(each)
    ]
    root = []
    for source, size, tag in rng.sample(sent, len(sent)):
        wild = style == "any" or (style == "both" and rng.random() < 0.4)
        root.append(
            Op(
                "recv",
                size,
                -1 if wild else source,
                -1 if style == "any" else tag,
                rng.randrange(cpus),
                rng.randrange(nics),
            )
        )
    for _ in range(rng.randint(0, len(root) // 2)):
        calc = Op("calc", rng.choice((0, 1, 7, 20, 100)), cpu=rng.randrange(cpus))
        root.insert(rng.randint(0, len(root)), calc)
    program = [root]
    for rank in range(1, senders + 1):
        sends = [Op("send", size, 0, tag) for source, size, tag in sent if source == rank]
        for _ in range(rng.choice((0, each // 2))):
            sends.insert(rng.randint(0, len(sends)), Op("calc", rng.choice((1, 10, 50, 300))))
        program.append(sends)
    for ops, share in [(root, rng.choice((0, 0.1, 0.5, 1)))] + [(ops, 0.8) for ops in program[1:]]:
        for i in range(1, len(ops)):
            if rng.random() < share:
                needed = ops[rng.randrange(max(0, i - 3), i)]
                (needed.after_done if rng.random() < 0.7 else needed.after_begun).append(i)
                ops[i].needs += 1
    return program
