/* Ranks dealt with by one thread or two; see parts.c. */
#ifndef NB_PARTS_H
#define NB_PARTS_H

#include "world.h"

/* From the start to the end, on as many threads as the job asks for and as pay; 0, or why not
 * (enum nb_implicit_stop). w->ties: of all parts. */
int nb_run_parts(struct world *w);

/* A message of the last window to a rank of another part. */
void nb_send_parcel(struct world *w, uint32_t to, const struct node *message);

/* The most entries that the history of these ranks can have: a message has its state entry and
 * perhaps one for a reception that found it there; so has a computation. */
uint64_t nb_history_room(const struct nb_implicit *job, uint32_t first, uint32_t last);

#endif
