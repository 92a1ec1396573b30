/* Which of two events of the implicit evaluation came first, when both happened in the same moment;
 * for implicit.c only.
 *
 * Events that were created in the same moment go in the order of the events that created them, and
 * so on back to the start, where ranks go in the order of their numbers. At first each event
 * carries only a hash of the times of all its ancestors, and the rank where its line began: equal
 * hashes, and the rank decides. Where all steps take the same time unless something is in the way
 * (`even`), it carries when the last one was that took longer: of two lines with different last
 * such steps that with the later one comes first, for before that step it was the earlier one. As
 * soon as that leaves an order open that may matter (a tie), all is done again with a history of
 * events. The hash has 32 bits and is asked for ties only: a mistake takes a tie of two lines with
 * different pasts and equal hashes.
 */
#ifndef NB_ORDER_H
#define NB_ORDER_H

#include "world.h"

static inline uint32_t link_of(uint32_t chain, uint64_t what)
{
    uint64_t mixed = (what ^ chain) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(mixed >> 32) ^ (uint32_t)mixed * 0x85EBCA6Bu;
}

/* When an event was put into the queue, by which other event, and as which of that one's. */
static struct past creation(const struct past *history, uint32_t event)
{
    const struct past *entry = &history[event / 4];
    switch (event % 4) {
    case AT_START: return (struct past){0, 0, UINT32_MAX, event / 4};
    case RECEIVED: return (struct past){entry->created, 0, event / 4 * 4 + SENT, 0};
    default: return *entry;
    }
}

/* Was event a of two that happened in the same moment the first? */
static int was_first(const struct past *history, uint32_t a, uint32_t b)
{
    for (;;) {
        struct past one = creation(history, a), two = creation(history, b);
        if (one.released != two.released)
            return one.released < two.released;
        if (one.parent == two.parent)
            return one.index < two.index;
        if (one.parent == UINT32_MAX || two.parent == UINT32_MAX)
            return one.parent == UINT32_MAX;
        a = one.parent;
        b = two.parent;
    }
}

/* A new entry of the history; the event that it is. Without a history, the next link of the chain.
 */
static inline uint32_t noted(struct world *w, const struct cause *parent, uint64_t created,
                             uint32_t index, int kind)
{
    if (!w->history)
        return link_of(link_of(parent->chain, created), index);
    if (w->entries == w->room_of_history) {
        w->failed = NB_IMPLICIT_MEMORY;
        return 0;
    }
    w->history[w->entries] = (struct past){parent->time, created, parent->chain, index};
    return (uint32_t)(4 * w->entries++ + (uint32_t)kind);
}

/* The rank where a message's line began, where all steps are even. */
static inline uint32_t origin_of(const struct world *w, const struct node *message)
{
    uint32_t back = w->travelled[message->at];
    return message->from >= back ? message->from - back : message->from + (w->job->ranks - back);
}

static inline uint32_t at_most(uint64_t value)
{
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

/* Where all steps are even: when the line last took longer than it must, and how long. */
static inline void stepped(const struct world *w, struct cause *line, uint64_t taken,
                           uint64_t shortest)
{
    if (!w->even || taken == shortest)
        return;
    line->origin = at_most(line->time >> ODD_BITS);
    line->longer = at_most(taken >> LONGER_BITS);
}

/* The event of a message's reception. */
static inline uint32_t received(const struct world *w, uint32_t chain, uint64_t t)
{
    return w->history ? chain / 4 * 4 + RECEIVED : link_of(chain, t);
}

#endif
