/* Most operations of the implicit evaluation meet no noise: until when is each rank left alone? */
#ifndef NB_QUIET_H
#define NB_QUIET_H

#include "world.h"

/* Until when nothing is lost from t on; t itself within a detour. */
uint64_t nb_quiet_until(const struct nb_noise *noise, uint32_t rank, uint64_t t);

/* The noise that an operation of this length meets: none, if the rank's quiet time lasts as long.
 */
static inline const struct nb_noise *noise_within(struct world *w, uint32_t rank, uint64_t t,
                                                  uint64_t length)
{
    if (!w->noise || t + length <= w->quiet[rank])
        return NULL;
    w->quiet[rank] = nb_quiet_until(w->noise, rank, t);
    return t + length <= w->quiet[rank] ? NULL : w->noise;
}

static inline uint64_t occupied(const struct world *w, int64_t bytes)
{
    return (uint64_t)w->network->o + nb_per_byte(w->network, w->network->O, (uint64_t)bytes);
}
#endif
