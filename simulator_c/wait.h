/* Those that found the CPU or NIC taken. The reference puts each of them back into the queue until
 * its time comes, again and again; here all of a rank that wait for the same thing (a class) form a
 * heap by seq, and one wake-up stands in the queue for all. */
#ifndef NB_WAIT_H
#define NB_WAIT_H

#include "state.h"

/* Classes: calculations by CPU, then sends by CPU and NIC, then messages by CPU and NIC. */
struct wait_class {
    uint32_t root; /* heap of waiters */
    uint32_t seq;  /* of the wake-up that counts; others are stale */
};

static inline uint32_t class_count(const struct sim *sim)
{
    return (uint32_t)(sim->s->cpus + 2 * sim->s->cpus * sim->s->nics);
}

static inline uint32_t class_of(const struct sim *sim, int kind, uint32_t cpu, uint32_t nic)
{
    uint32_t cpus = (uint32_t)sim->s->cpus, nics = (uint32_t)sim->s->nics;
    return kind == NB_CALC ? cpu : cpus + (kind == NB_SEND ? 0 : cpus * nics) + cpu * nics + nic;
}

/* An item of the pool `waits`: how many wait, then the classes. (The first word also links free
 * items.) */
static inline size_t wait_size(const struct sim *sim)
{
    return sizeof(uint64_t) + class_count(sim) * sizeof(struct wait_class);
}

static inline uint32_t *wait_total(const struct sim *sim, uint32_t wait)
{
    return (uint32_t *)((char *)sim->waits.item + sim->wait_size * wait);
}

static inline struct wait_class *wait_class(const struct sim *sim, uint32_t wait, uint32_t class)
{
    return (struct wait_class *)(wait_total(sim, wait) + 2) + class;
}

static inline uint32_t heap_meld(struct waiter *waiter, uint32_t a, uint32_t b)
{
    if (a == NONE || b == NONE)
        return a == NONE ? b : a;
    if (waiter[b].seq < waiter[a].seq) {
        uint32_t other = a;
        a = b;
        b = other;
    }
    waiter[b].sibling = waiter[a].child;
    waiter[a].child = b;
    return a;
}

/* The heap without its root: melded in pairs, then from the last pair to the first. */
static inline uint32_t heap_rest(struct waiter *waiter, uint32_t root)
{
    uint32_t pairs = NONE, rest = NONE;
    for (uint32_t a = waiter[root].child; a != NONE;) {
        uint32_t b = waiter[a].sibling, next = b == NONE ? NONE : waiter[b].sibling;
        uint32_t pair = heap_meld(waiter, a, b);
        waiter[pair].sibling = pairs;
        pairs = pair;
        a = next;
    }
    while (pairs != NONE) {
        uint32_t next = waiter[pairs].sibling;
        rest = heap_meld(waiter, rest, pairs);
        pairs = next;
    }
    return rest;
}

/* Let an event wait until `until`, when what it needs is free at the earliest. */
static inline void wait_add(struct sim *sim, uint32_t rank, uint32_t class,
                            const struct event *event, uint64_t until)
{
    struct host *host = host_of(sim, rank);
    if (host->waiting == NONE) {
        uint32_t wait = pool_take(sim, &sim->waits, sim->wait_size);
        if (wait == NONE)
            return;
        *wait_total(sim, wait) = 0;
        for (uint32_t i = 0; i < class_count(sim); i++)
            *wait_class(sim, wait, i) = (struct wait_class){NONE, NONE};
        host->waiting = wait;
    }
    uint32_t i = pool_take(sim, &sim->waiters, sizeof(struct waiter));
    if (i == NONE)
        return;
    struct waiter *waiter = sim->waiters.item;
    waiter[i] = (struct waiter){NONE, event->seq, event->op, event->aux, NONE};
    struct wait_class *waits = wait_class(sim, host->waiting, class);
    ++*wait_total(sim, host->waiting);
    waits->root = heap_meld(waiter, waits->root, i);
    if (waits->root == i) {
        waits->seq = event->seq;
        queue_push_old(&sim->queue, &(struct event){until, event->seq, class, rank, WAKE});
    }
}

/* The first of a class, taken out; the event as it was. */
static inline struct event wait_take(struct sim *sim, uint32_t rank, uint32_t class)
{
    struct host *host = host_of(sim, rank);
    struct wait_class *waits = wait_class(sim, host->waiting, class);
    struct waiter *waiter = sim->waiters.item, *first = &waiter[waits->root];
    struct event event = {sim->now, first->seq, first->op, rank, first->from};
    uint32_t root = waits->root;
    waits->root = heap_rest(waiter, root);
    waits->seq = NONE;
    pool_give(&sim->waiters, sizeof *waiter, root);
    if (--*wait_total(sim, host->waiting) == 0) {
        pool_give(&sim->waits, sim->wait_size, host->waiting);
        host->waiting = NONE;
    }
    return event;
}

/* The wake-up of those that are left. */
static inline void wait_again(struct sim *sim, uint32_t rank, uint32_t class, uint64_t until)
{
    struct host *host = host_of(sim, rank);
    if (host->waiting == NONE)
        return;
    struct wait_class *waits = wait_class(sim, host->waiting, class);
    if (waits->root == NONE)
        return;
    waits->seq = ((struct waiter *)sim->waiters.item)[waits->root].seq;
    uint64_t time = nb_later(until, sim->now);
    queue_push_old(&sim->queue, &(struct event){time, waits->seq, class, rank, WAKE});
}

#endif
