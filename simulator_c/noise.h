/* What noise does to an occupied interval.
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

/* What would end beyond 64 bits. Sums of it and single costs, all below 2^62, stay below 2^64. */
#define NB_NEVER_ENDS (UINT64_C(1) << 63)

/* exact: where in its trace a rank is at time t. Times mostly go on a little, so that no division
 * is needed. */
static inline int64_t nb_noise_place(const struct nb_noise *noise, uint32_t rank, uint64_t t)
{
    struct nb_place *at = &noise->place[rank];
    int64_t period = noise->period[at->trace], place = (int64_t)(t - (uint64_t)at->begins);
    if (place >= 0 && place < period)
        return place;
    if (place >= period && place < 2 * period) {
        at->begins += period;
        at->hint = 0;
    } else {
        int64_t phase = noise->phase[rank];
        at->begins = (int64_t)(t + (uint64_t)phase) / period * period - phase;
    }
    return (int64_t)(t - (uint64_t)at->begins);
}

/* exact: k stretches of lost time have begun in this turn, and the last is over: how long is the
 * rank left alone? */
static inline void nb_noise_rests(const struct nb_noise *noise, struct nb_place *at,
                                  const int64_t *pair, int64_t count, int64_t k)
{
    int64_t period = noise->period[at->trace], free = noise->free[at->trace],
            from = at->begins + (k > 0 ? nb_noise_end(pair, count, k - 1, period, free) : 0),
            until = k < count ? pair[2 * k] : period + (count ? pair[0] : 0);
    at->from = from > 0 ? (uint64_t)from : 0;
    at->until = (uint64_t)at->begins + (uint64_t)until;
    at->hint = (int32_t)k;
}

static uint64_t nb_noise_finish_within(const struct nb_noise *noise, uint32_t rank, uint64_t t,
                                       uint64_t work)
{
    struct nb_place *at = &noise->place[rank];
    const int64_t *pair = noise->detour + 2 * noise->first[at->trace];
    int64_t count = noise->first[at->trace + 1] - noise->first[at->trace];
    int64_t period = noise->period[at->trace], free = noise->free[at->trace],
            place = nb_noise_place(noise, rank, t);

    /* The noise-free time from the turn's beginning to `place`: it stands still within a detour. */
    int64_t k = nb_noise_count(pair, count, 0, place, at->hint), done = place;
    if (k > 0) {
        int64_t end = nb_noise_end(pair, count, k - 1, period, free);
        done = pair[2 * k - 1] + (place > end ? place - end : 0);
    }
    /* The first place that reaches the goal; the goal lies in 1..free, so that one at a turn's end
     * comes before its last detour. */
    uint64_t goal = (uint64_t)done + work;
    if (goal > (uint64_t)free) {
        uint64_t turns = (goal - 1) / (uint64_t)free;
        int64_t turned;
        goal -= turns * (uint64_t)free;
        if (__builtin_mul_overflow((int64_t)turns, period, &turned) ||
            __builtin_add_overflow(at->begins, turned, &at->begins)) {
            at->begins = -noise->phase[rank];
            return NB_NEVER_ENDS;
        }
        k = 0;
    }
    k = nb_noise_count(pair, count, 1, (int64_t)goal - 1, k);
    uint64_t lost = k > 0 ? (uint64_t)(nb_noise_end(pair, count, k - 1, period, free) -
                                       pair[2 * k - 1])
                          : 0;
    nb_noise_rests(noise, at, pair, count, k);
    return (uint64_t)at->begins + goal + lost;
}

/* exact: when does work that begins at t end? No work at all is done at once, even within a detour.
 */
static inline uint64_t nb_noise_finish(const struct nb_noise *noise, uint32_t rank, uint64_t t,
                                       uint64_t work)
{
    if (!noise || work == 0 ||
        (t >= noise->place[rank].from && t + work <= noise->place[rank].until))
        return t + work;
    return nb_noise_finish_within(noise, rank, t, work);
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
        k = nb_noise_count(pair, count, 0, place, noise->place[rank].hint) - 1;
        int64_t left = pair[2 * k] + pair[2 * k + 1] - place;
        added = left > 0 ? left : 0;
        noise->place[rank].hint = (int32_t)k;
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
