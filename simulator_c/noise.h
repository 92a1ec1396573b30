/* What noise does to an occupied interval; used by the engine and by the implicit evaluation.
 *
 * exact: the trace is a periodic function of time, lost or not. Work that begins at t ends at the
 * first moment at which the time since t that was not lost reaches it; so a detour that falls into
 * added time counts, and so does one that began long before. compat: the reference simulator's
 * rule, see nb_noise_added.
 */
#ifndef NB_NOISE_H
#define NB_NOISE_H

#include "simulator.h"

/* How many of the pairs have a key (column 0 or 1, sorted) <= at? Gallops from `hint`, which only
 * has to be in 0..count. */
static inline int64_t nb_noise_count(const int64_t *pair, int64_t count, int column, int64_t at,
                                     int64_t hint)
{
    int64_t low = hint, high = hint, step = 1;
    if (hint > 0 && pair[2 * (hint - 1) + column] > at) {
        high = hint - 1;
        while (high - step >= 0 && pair[2 * (high - step) + column] > at) {
            high -= step;
            step *= 2;
        }
        low = high - step >= 0 ? high - step + 1 : 0;
    } else {
        while (low + step <= count && pair[2 * (low + step - 1) + column] <= at) {
            low += step;
            step *= 2;
        }
        high = low + step <= count ? low + step - 1 : count;
    }
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (pair[2 * middle + column] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* exact: the end of lost stretch k of a trace. */
static inline int64_t nb_noise_end(const int64_t *pair, int64_t count, int64_t k, int64_t period,
                                   int64_t free)
{
    return k + 1 < count ? pair[2 * k + 2] - (pair[2 * k + 3] - pair[2 * k + 1])
                         : period - (free - pair[2 * k + 1]);
}

/* exact: when does work that begins at t end? No work at all is done at once, even within a detour.
 */
static inline uint64_t nb_noise_finish(const struct nb_noise *noise, uint32_t rank, uint64_t t,
                                       uint64_t work)
{
    if (!noise || noise->rank_trace[rank] < 0 || work == 0)
        return t + work;
    int32_t trace = noise->rank_trace[rank];
    const int64_t *pair = noise->detour + 2 * noise->first[trace];
    int64_t count = noise->first[trace + 1] - noise->first[trace];
    int64_t period = noise->period[trace], free = noise->free[trace];
    int64_t at = (int64_t)t + noise->phase[rank], turn = at / period, place = at - turn * period;

    /* The noise-free time from the period's beginning to `place`: it stands still within a detour.
     */
    int64_t k = nb_noise_count(pair, count, 0, place, noise->hint ? noise->hint[rank] : 0);
    int64_t done = place;
    if (k > 0) {
        int64_t end = nb_noise_end(pair, count, k - 1, period, free);
        done = pair[2 * k - 1] + (place > end ? place - end : 0);
    }
    /* The first place that reaches the goal; the goal lies in 1..free, so that one at a period's
     * end comes before its last detour. */
    int64_t goal = done + (int64_t)work, turns = (goal - 1) / free;
    goal -= turns * free;
    k = nb_noise_count(pair, count, 1, goal - 1, turns ? 0 : k);
    int64_t lost = k > 0 ? nb_noise_end(pair, count, k - 1, period, free) - pair[2 * k - 1] : 0;
    if (noise->hint)
        noise->hint[rank] = (int32_t)k;
    return (uint64_t)((turn + turns) * period + goal + lost - noise->phase[rank]);
}

/* compat: what the reference adds to an operation of `length` that begins at t; see nb_noise_fits
 * for which lengths it holds. The rest of the last detour that had begun (unless the first is the
 * only one), then every later one that begins within. */
static inline uint64_t nb_noise_added(const struct nb_noise *noise, uint32_t rank, uint64_t t,
                                      uint64_t length)
{
    if (!noise || noise->rank_trace[rank] < 0)
        return 0;
    int32_t trace = noise->rank_trace[rank];
    const int64_t *pair = noise->detour + 2 * noise->first[trace];
    int64_t count = noise->first[trace + 1] - noise->first[trace];
    int64_t place = (int64_t)((t + (uint64_t)noise->phase[rank]) %
                              ((uint64_t)noise->period[trace] - length));
    int64_t added = 0, k = 0;
    if (place > pair[0]) {
        k = nb_noise_count(pair, count, 0, place, noise->hint ? noise->hint[rank] : 0) - 1;
        int64_t left = pair[2 * k] + pair[2 * k + 1] - place;
        added = left > 0 ? left : 0;
        if (noise->hint)
            noise->hint[rank] = (int32_t)k;
    }
    for (k++; k < count && pair[2 * k] < place + (int64_t)length; k++)
        added += pair[2 * k + 1];
    return (uint64_t)added;
}

/* Can the rule be applied at all? Of an operation longer than the trace compat only knows what it
 * meets up to the last detour. */
static inline int nb_noise_fits(const struct nb_network *network, const struct nb_noise *noise,
                                uint32_t rank, uint64_t t, uint64_t length)
{
    if (network->mode == NB_EXACT || !noise || noise->rank_trace[rank] < 0)
        return 1;
    int32_t trace = noise->rank_trace[rank];
    uint64_t period = (uint64_t)noise->period[trace],
             last = (uint64_t)noise->detour[2 * noise->first[trace + 1] - 2];
    return length < period || (length > period && t + (uint64_t)noise->phase[rank] <= last);
}
#endif
