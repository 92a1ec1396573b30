/* What can start at once. */
#ifndef NB_ROOTS_H
#define NB_ROOTS_H

#include "state.h"

static inline uint32_t needs_of(const struct sim *sim, uint32_t op)
{
    return sim->needs_width == 1 ? ((uint8_t *)sim->needs)[op] : ((uint32_t *)sim->needs)[op];
}

/* How many operations of ranks low .. high - 1 wait for nothing. */
static inline uint32_t count_roots(const struct sim *sim, int64_t low, int64_t high)
{
    uint32_t count = 0;
    for (int64_t op = sim->s->rank_start[low]; op < sim->s->rank_start[high]; op++)
        count += needs_of(sim, (uint32_t)op) == 0;
    return count;
}

/* The operations of a rank that wait for nothing, in the order of their release; how many. `root`
 * grows with the need. */
static inline uint32_t roots_of(struct sim *sim, int64_t rank, uint32_t **root, uint32_t *room)
{
    const struct nb_schedule *s = sim->s;
    int64_t low = s->rank_start[rank], high = s->rank_start[rank + 1];
    if ((uint64_t)(high - low) > *room) {
        free(*root);
        *room = (uint32_t)(high - low);
        *root = malloc(*room * sizeof **root);
        if (!*root) {
            *room = 0;
            sim->stop = NB_STOP_MEMORY;
            return 0;
        }
    }
    uint32_t count = 0;
    for (int kind = NB_SEND; kind <= NB_CALC; kind++)
        for (int64_t op = low; op < high; op++)
            if (s->kind[op] == kind && needs_of(sim, (uint32_t)op) == 0)
                (*root)[count++] = (uint32_t)op;
    return count;
}
#endif
