/* Exchanges round by round; see rounds.c. */
#ifndef NB_ROUNDS_H
#define NB_ROUNDS_H

#include "implicit.h"

/* True if the job is done; false if it takes the windows. */
int nb_by_rounds(struct nb_implicit *job, const struct nb_network *network,
                 const struct nb_noise *noise);

#endif
