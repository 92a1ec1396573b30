/* Until when is a rank left alone by noise? */
#include "quiet.h"

uint64_t nb_quiet_until(const struct nb_noise *noise, uint32_t rank, uint64_t t)
{
    struct nb_place *at = &noise->place[rank];
    if (at->trace < 0 || (t >= at->from && t < at->until))
        return at->until;
    const int64_t *pair = noise->detour + 2 * noise->first[at->trace];
    int64_t count = noise->first[at->trace + 1] - noise->first[at->trace],
            period = noise->period[at->trace], free = noise->free[at->trace],
            place = nb_noise_place(noise, rank, t),
            k = nb_noise_count(pair, count, 0, place, at->hint);
    at->hint = (int32_t)k;
    if (k > 0 && place < nb_noise_end(pair, count, k - 1, period, free))
        return t;
    nb_noise_rests(noise, at, pair, count, k);
    return at->until;
}
