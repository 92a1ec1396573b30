/* Until when is a rank left alone by noise? */
#include "quiet.h"

uint64_t nb_quiet_until(const struct nb_noise *noise, uint32_t rank, uint64_t t)
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
