/* The order of events that happened in the same moment; see order.c. */
#ifndef NB_ORDER_H
#define NB_ORDER_H

#include "world.h"

static inline uint32_t link_of(uint32_t chain, uint64_t what)
{
    uint64_t mixed = (what ^ chain) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(mixed >> 32) ^ (uint32_t)mixed * 0x85EBCA6Bu;
}

/* Was event a of two that happened in the same moment the first? */
int nb_was_first(const struct past *history, uint32_t a, uint32_t b);

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
