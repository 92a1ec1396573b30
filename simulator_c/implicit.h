/* Regular collectives without a schedule: what a rank sends and receives follows from its number;
 * see implicit.c. */
#ifndef NB_IMPLICIT_H
#define NB_IMPLICIT_H

#include "simulator.h"

/* Shift: in round r to rank + step[r]. Xor: to place XOR step[r], see shapes.h. The others need no
 * steps. */
enum nb_pattern {
    NB_SHIFT = 0,
    NB_XOR = 1,
    NB_BCAST = 2,
    NB_REDUCE = 3,
    NB_SCATTER = 4,
    NB_GATHER = 5,
    NB_ALLTOALL = 6,
    NB_HALO = 7
};

/* When may a round begin? Blocking: when the last is over; its receptions are posted then. Ordered:
 * the same for sends, but all receptions of a repetition are posted at its beginning. Freely: that,
 * too, and a send waits for the reception of the round before only. */
enum nb_order { NB_BLOCKING = 0, NB_FREELY = 1, NB_ORDERED = 2 };

enum nb_implicit_stop {
    NB_IMPLICIT_DONE = 0,
    NB_IMPLICIT_MEMORY = 1,
    NB_IMPLICIT_UNFINISHED = 2,
    NB_IMPLICIT_TIME = 3
};

struct nb_implicit {
    int32_t pattern, order; /* enum nb_pattern, enum nb_order */
    int32_t rotate;         /* repetition i has its root at (root + i) mod ranks */
    uint32_t ranks, repetitions, rounds, root, radix;
    /* halo: ranks along each axis, 1 where there is none; the first varies fastest */
    uint32_t dims[3];
    /* with noise: record a history of all events from the start, for many will happen in the same
     * moment; try it round by round */
    int32_t with_history, by_rounds;
    int32_t periodic;     /* halo: the grid closes upon itself */
    int32_t threads;      /* 1 or 2; the results are the same */
    const uint32_t *step; /* [rounds] */
    const int64_t *bytes; /* of a message: [rounds]; halo: [3], by direction */
    /* bytes that do not divide into equal parts: into how many, of how much, and the ring's first
     * chunk; parts 0: they do */
    int64_t parts, total, first;
    const int64_t *compute_ns; /* before each repetition; NULL: 0 ns before each but the first */
    /* strides of compute_ns: entry [repetition * compute_repetitions + rank * compute_ranks] */
    uint64_t compute_ranks, compute_repetitions;
    uint64_t *finish, *noise; /* [ranks], ps; noise may be NULL where there is none */
    /* out: messages; windows of time, 0: by rounds; not 0: a history of all events was recorded to
     * order some of them */
    uint64_t messages, windows, ties;
};

int nb_implicit_evaluate(struct nb_implicit *job, const struct nb_network *network,
                         const struct nb_noise *noise);
#endif
