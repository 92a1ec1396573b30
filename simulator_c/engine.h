/* The engine: a schedule, a network, noise ─► when each rank ends. */
#ifndef NB_ENGINE_H
#define NB_ENGINE_H

#include "simulator.h"

enum nb_stop {
    NB_DONE = 0,
    NB_STOP_MEMORY = 1, /* no more memory */
    NB_STOP_TIME = 2,   /* time beyond 2^62 */
    NB_STOP_LONG = 3,   /* compat: operation `stopped_at` is as long as its rank's trace */
    NB_STOP_STUCK = 4   /* nothing can happen any more, but not all is done: see `stuck` */
};

enum nb_stuck { NB_NEVER_RECEIVED = 1, NB_WAITS_FOR_MESSAGE = 2, NB_NEVER_STARTED = 3 };
enum nb_via {
    NB_VIA_START = 0, /* nothing: it began at 0 */
    NB_VIA_CPU = 1,   /* the CPU, which the cause occupied to its end */
    NB_VIA_SEND_GAP = 2,
    NB_VIA_RECEIVE_GAP = 3, /* the NIC */
    NB_VIA_NETWORK = 4,     /* the message's arrival */
    NB_VIA_RENDEZVOUS = 5,  /* the begin of the cause, which matched a large send */
    /* several CPUs: the cause's end, or begin, which it requires */
    NB_VIA_DONE = 6,
    NB_VIA_BEGUN = 7
};

struct nb_schedule {
    int64_t ranks, operations;
    const int64_t *rank_start;
    const uint8_t *kind;
    const int32_t *peer;
    struct nb_column size, tag, cpu, nic;
    int32_t cpus, nics;
    const void *done_start, *begun_start; /* NULL: no dependencies of this sort */
    int32_t done_width, begun_width;      /* bytes of an entry: 4 or 8 */
    const int32_t *done_op, *begun_op;
};

/* What happened, for each operation and, at operations + i, for the message of send i. All NULL:
 * not wanted. */
struct nb_record {
    uint64_t *begin, *end; /* 2 * operations */
    uint64_t *arrival;     /* operations; of the sends' messages */
    /* 2 * operations: what it had to wait for last; none: 2^32 - 1 */
    uint32_t *cause;
    uint8_t *via;      /* 2 * operations: enum nb_via */
    uint32_t *last;    /* ranks: what ended last, */
    uint8_t *last_via; /* and how */
};

struct nb_outcome {
    uint64_t *finish;                         /* ranks */
    uint64_t *noise;                          /* ranks, or NULL */
    int64_t stopped_at;                       /* an operation, for NB_STOP_TIME and NB_STOP_LONG */
    int64_t unreceived, unmatched, unstarted; /* messages, receives, operations left over */
    int64_t stuck_count;
    int64_t stuck[48];     /* some of them: operations, */
    int32_t stuck_why[48]; /* enum nb_stuck */
};

int nb_simulate(const struct nb_schedule *schedule, const struct nb_network *network,
                const struct nb_noise *noise, const struct nb_record *record,
                struct nb_outcome *outcome);

#endif
