"""Heat in a rod, by mpi4py: each rank has a part, swaps its ends with its neighbours each step, and
all ranks add up the heat every ten steps. For benchmarks/mpi_overhead.py.

    mpirun -n 2 python benchmarks/mpi4py_heat.py [CELLS [STEPS]]
"""

import sys
from array import array

from mpi4py import MPI


def main(cells: int = 2000, steps: int = 2000) -> None:
    world = MPI.COMM_WORLD
    left, right = (world.rank - 1) % world.size, (world.rank + 1) % world.size
    heat = array("d", [float(world.rank)]) * cells
    from_left, from_right = array("d", [0.0]), array("d", [0.0])
    before = world.allreduce(sum(heat))
    for step in range(steps):
        world.Sendrecv(heat[-1:], right, recvbuf=from_left, source=left)
        world.Sendrecv(heat[:1], left, recvbuf=from_right, source=right)
        wide = [from_left[0], *heat, from_right[0]]
        flows = [0.25 * (b - a) for a, b in zip(wide, wide[1:], strict=False)]
        heat = array("d", [h + b - a for h, a, b in zip(heat, flows, flows[1:], strict=False)])
        if step % 10 == 0:
            world.allreduce(sum(heat))
    if abs(world.allreduce(sum(heat)) - before) > 1e-6 * cells:
        world.Abort(1)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
