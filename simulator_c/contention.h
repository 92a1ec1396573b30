/* Messages as flows that share links: max-min fair rates, worked out anew when a flow begins or
 * ends, among the flows that this can concern. Knows nothing of ranks or operations. */
#ifndef NB_CONTENTION_H
#define NB_CONTENTION_H

#include "simulator.h"

/* A message on its way. */
struct flight {
    uint64_t since;  /* when it began */
    uint64_t begins; /* when it begins, then: since when its rate holds */
    uint64_t ends;
    /* ps of work at rate 1 that are left; 1: as fast as a NIC; its rate before the update */
    double left, rate, was;
    double most; /* the rate that its slowest link would give it alone */
    uint32_t op, from, to, seq;
    int32_t route;
    uint32_t place; /* in the heap of those that move */
    uint32_t stamp; /* of the last update that it was part of */
};

struct contention;

/* NULL: no memory. */
struct contention *nb_contention_new(const struct nb_links *links);
void nb_contention_free(struct contention *c);

/* A flow that will begin; 0: no memory. */
int nb_contention_add(struct contention *c, const struct flight *flight);

/* When something happens next; UINT64_MAX: nothing. */
uint64_t nb_contention_next(const struct contention *c);

/* All that happens up to `now`, which is at most nb_contention_next(); how many flows have ended,
 * and which: valid until the next call. -1: no memory. */
int64_t nb_contention_advance(struct contention *c, uint64_t now, const struct flight **ended);

#endif
