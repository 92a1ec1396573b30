/* The evaluation window by window; see windows.c. */
#ifndef NB_WINDOWS_H
#define NB_WINDOWS_H

#include "world.h"

/* From the start to the end, or until w->failed, or until ties need a history. */
void nb_run_windows(struct world *w);

#endif
