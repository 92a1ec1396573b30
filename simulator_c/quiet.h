/* Most operations of the implicit evaluation meet no noise: until when is each rank left alone? For
 * implicit.c only. */
#ifndef NB_QUIET_H
#define NB_QUIET_H

#include "world.h"

/* Until when nothing is lost from t on; t itself within a detour. */
static uint64_t quiet_until(const struct nb_noise *noise, uint32_t rank, uint64_t t)
{
    int32_t trace = noise->rank_trace[rank];
    if (trace < 0)
        return NEVER;
    const int64_t *pair = noise->detour + 2 * noise->first[trace];
    int64_t count = noise->first[trace + 1] - noise->first[trace], period = noise->period[trace],
            free = noise->free[trace];
    int64_t place = (int64_t)((t + (uint64_t)noise->phase[rank]) % (uint64_t)period);
    int64_t k = nb_noise_count(pair, count, 0, place, noise->hint ? noise->hint[rank] : 0);
    if (noise->hint)
        noise->hint[rank] = (int32_t)k;
    if (k > 0 && place < nb_noise_end(pair, count, k - 1, period, free))
        return t;
    return t + (uint64_t)((k < count ? pair[2 * k] : period + (count ? pair[0] : 0)) - place);
}

/* The noise that an operation of this length meets: none, if the rank's quiet time lasts as long.
 */
static inline const struct nb_noise *noise_within(struct world *w, uint32_t rank, uint64_t t,
                                                  uint64_t length)
{
    if (!w->noise || t + length <= w->quiet[rank])
        return NULL;
    w->quiet[rank] = quiet_until(w->noise, rank, t);
    return t + length <= w->quiet[rank] ? NULL : w->noise;
}

static inline uint64_t occupied(const struct world *w, int64_t bytes)
{
    return (uint64_t)w->network->o + nb_per_byte(w->network, w->network->O, (uint64_t)bytes);
}
#endif
