/* Windows of simulated time; see windows.c. */
#ifndef NB_WINDOWS_H
#define NB_WINDOWS_H

#include "world.h"

/* All ranks of the part begin, at time 0. */
void nb_begin_ranks(struct world *w);

/* All that happens to the part's ranks in the window that begins then; w->soonest: when something
 * happens next, but for what other parts send. */
void nb_run_window(struct world *w, uint64_t begin);

/* Delivers what another part has sent to this one. */
void nb_open_parcels(struct world *w, const struct world *from);

#endif
