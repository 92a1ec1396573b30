/* How events enter the queue. With two threads (NB_SHARED, see team.c) what lies beyond the present
 * window of time is held back until all of the window is done, for only then its number is known.
 */
#ifndef NB_EMIT_H
#define NB_EMIT_H

#include "state.h"

/* With two threads: a number that holds only within its window and its thread, above all others. */
enum { FRESH = 0x80000000u };

#ifdef NB_SHARED
/* Room for one item more in a list of items of `size` bytes; NULL and sim->stop: no memory. */
static inline void *list_more(struct sim *sim, struct list *list, size_t size)
{
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 1024;
        void *item = realloc(list->item, size * room);
        if (!item) {
            sim->stop = NB_STOP_MEMORY;
            return NULL;
        }
        list->item = item;
        list->room = room;
    }
    return (char *)list->item + size * list->count++;
}

static inline void hold(struct sim *sim, const struct event *event)
{
    struct event *room = list_more(sim, &sim->share.held[event->host >= sim->share.split],
                                   sizeof *event);
    if (room)
        *room = *event;
}
#endif

/* Whether an event is held back. */
static inline int held_back(struct sim *sim, const struct event *event)
{
#ifdef NB_SHARED
    if (event->time >= sim->share.end) {
        hold(sim, event);
        return 1;
    }
#else
    (void)sim, (void)event;
#endif
    return 0;
}

static inline void emit(struct sim *sim, const struct event *event)
{
    if (!held_back(sim, event))
        queue_push(&sim->queue, event);
}

/* The same for an event that may be older than others of the present time. */
static inline void emit_old(struct sim *sim, const struct event *event)
{
    if (!held_back(sim, event))
        queue_push_old(&sim->queue, event);
}

/* One begins to wait, perhaps under a number that does not outlive the window. */
static inline void wait_noted(struct sim *sim, const struct event *event, uint32_t waiter,
                              uint32_t rank, uint32_t class)
{
#ifdef NB_SHARED
    struct fresh *fresh = event->seq & FRESH
                              ? list_more(sim, &sim->share.fresh, sizeof(struct fresh))
                              : NULL;
    if (fresh)
        *fresh = (struct fresh){waiter, rank, class};
#else
    (void)sim, (void)event, (void)waiter, (void)rank, (void)class;
#endif
}
#endif
