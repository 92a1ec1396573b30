/* Ranks take turns at random once there is noise, so nearly all that an event touches would have to
 * come from memory. The queue's front says what will happen next: it is fetched while others are
 * dealt with. */
#ifndef NB_PREFETCH_H
#define NB_PREFETCH_H

#include "match.h"
#include "release.h"

enum { FAR_AHEAD = 24, MIDDLE_AHEAD = 14, NEAR_AHEAD = 6 }; /* events */

/* Always inlined: gcc takes a function that only prefetches for one without effect, and drops its
 * calls. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

static ALWAYS_INLINE void prefetch_column(const struct nb_column *column, uint32_t op)
{
    if (column->stride)
        __builtin_prefetch((const char *)column->data + (size_t)column->width * op);
}

/* What is read of an operation when it is matched, and when it is done: its columns, its place
 * among the dependencies, its neighbours' needs. */
static ALWAYS_INLINE void prefetch_operation(const struct sim *sim, uint32_t op)
{
    const struct nb_schedule *s = sim->s;
    __builtin_prefetch(&s->peer[op]);
    prefetch_column(&s->size, op);
    prefetch_column(&s->tag, op);
    if (s->done_start)
        __builtin_prefetch((const char *)s->done_start + (size_t)s->done_width * op);
    __builtin_prefetch((const char *)sim->needs + (size_t)sim->needs_width * op, 1);
}

/* The operation that an event to come will most likely be about: of a message, the first receive
 * that waits for one. */
static ALWAYS_INLINE uint32_t likely_operation(const struct sim *sim, const struct event *event)
{
    if (event->aux == OPERATION)
        return event->op;
    const struct host *host = host_of(sim, event->host);
    if (event->aux == WAKE && event->op < sim->message_class)
        return NONE;
    return host->posted_last == INDEXED ? NONE : host->posted;
}

/* Bring what the events to come will touch into the cache, step by step: the rank; then the
 * operation; then what depends on it. */
static ALWAYS_INLINE void prefetch(const struct sim *sim)
{
    const struct nb_schedule *s = sim->s;
    const struct event *front = sim->queue.front;
    int64_t ahead = sim->queue.front_end - front;
    if (ahead > FAR_AHEAD) {
        const struct event *event = &front[FAR_AHEAD];
        __builtin_prefetch(host_of(sim, event->host), 1);
        if (sim->noise)
            __builtin_prefetch(&sim->noise->place[event->host], 1);
        if (event->aux == OPERATION)
            __builtin_prefetch(&s->kind[event->op]);
    }
    uint32_t op;
    if (ahead > MIDDLE_AHEAD) {
        const struct event *event = &front[MIDDLE_AHEAD];
        if (event->aux == WAKE && host_of(sim, event->host)->waiting != NONE)
            __builtin_prefetch(
                (char *)sim->waits.item + sim->wait_size * host_of(sim, event->host)->waiting, 1);
        if ((op = likely_operation(sim, event)) != NONE) {
            prefetch_operation(sim, op);
            if (event->aux != OPERATION)
                __builtin_prefetch(&sim->link[op], 1);
        }
    }
    if (ahead > NEAR_AHEAD && s->done_start &&
        (op = likely_operation(sim, &front[NEAR_AHEAD])) != NONE)
        __builtin_prefetch(&s->done_op[edge_start(s->done_start, s->done_width, op)]);
}
#endif
