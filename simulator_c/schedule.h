/* Schedules: dependencies grouped by what they wait for, and checked. */
#ifndef NB_SCHEDULE_H
#define NB_SCHEDULE_H

#include "engine.h"

/* Pairs (operation, needed), global numbers of `width` bytes (4 or 8), in any order ─► CSR:
 * local[start[needed] ..] are the operations that it releases, numbered within the rank, in the
 * pairs' order. `start` is zeroed, operations + 1 entries of start_width bytes. Returns -1, or the
 * first pair that joins two ranks. */
int64_t nb_schedule_group(const int64_t *rank_start, int64_t ranks, int64_t pairs,
                          const void *operation, const void *needed, int width, void *start,
                          int start_width, int32_t *local);

/* -1, or the first operation of which something depends that its rank does not have, or that
 * depends on itself. */
int64_t nb_schedule_bad_edge(const int64_t *rank_start, int64_t ranks, const void *start,
                             int start_width, const int32_t *local);

#endif
