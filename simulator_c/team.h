/* One simulation on two threads; see team.c. */
#ifndef NB_TEAM_H
#define NB_TEAM_H

#include "state.h"

/* Can two threads carry it out, and come to the same result? */
int nb_team_can(const struct sim *sim);

/* Carries out all of a simulation that is prepared. 0, and nothing has happened: there is no second
 * thread. The ranks from sim->share.split on then belong to sim->other. */
int nb_team_run(struct sim *sim);

/* What belongs to `sim` of a rank's state: the thread's that dealt with it. */
static inline struct sim *owner_of(struct sim *sim, int64_t rank)
{
    return sim->other && rank >= sim->share.split ? sim->other : sim;
}

#endif
