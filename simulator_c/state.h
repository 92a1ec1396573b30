/* What the engine knows of every rank and operation while it runs; internal. */
#ifndef NB_STATE_H
#define NB_STATE_H

#include "engine.h"
#include "model.h"
#include "queue.h"

enum { NONE = 0xFFFFFFFFu };

/* A rank: its lists, then its clocks: cpus times "CPU is free", nics times "NIC can send", nics
 * times "NIC can receive". */
struct host {
    /* receives that wait for a message: first and last, linked by `link`; or an index, see match.h
     */
    uint32_t posted, posted_last;
    /* messages that wait for a receive: first and last entry; or an index */
    uint32_t arrived, arrived_last;
    uint32_t waiting; /* who waits for a CPU or NIC, see wait.h */
    uint32_t base;    /* its first operation */
    uint64_t clock[];
};

/* A message that waits for its receive; also an entry of an index. */
struct entry {
    uint32_t op, from;
    uint32_t next; /* in the list, or in the index's chain */
    /* in order of arrival, in an index; receives: `older` counts */
    uint32_t older, newer;
};

/* One that found the CPU or NIC taken: a node of a pairing heap by seq. */
struct waiter {
    uint32_t child; /* the first word also links free items */
    uint32_t seq, op, from;
    uint32_t sibling;
};

struct pool {
    void *item;
    /* free: first of the free list, linked by the item's first word */
    uint32_t count, room, free;
};

/* What last moved a clock: a node (see struct nb_record), and how. */
struct mover {
    uint32_t node, via;
};

struct sim {
    const struct nb_schedule *s;
    const struct nb_network *network;
    const struct nb_noise *noise;
    const struct nb_record *record;
    struct nb_outcome *out;
    struct queue queue;
    char *hosts;
    size_t host_size, wait_size;
    uint32_t message_class; /* the first class of messages, see wait.h */
    /* of each operation: how many others it still waits for; 1 or 4 bytes */
    void *needs;
    int needs_width;
    int compat, several; /* several CPUs or NICs */
    uint32_t *link;      /* next posted receive of the rank */
    /* exact, several CPUs: when all that an operation waits for is done */
    uint64_t *ready;
    struct mover *ready_cause; /* the same, when recording: what was done last */
    /* exact, several CPUs or NICs (crowd.h): an index of each rank's messages that found them
     * taken; its crowds; its first receive, and what all its receives have in common; where each
     * send's message is */
    uint32_t *pending, *crowd, *first_receive, *where;
    uint8_t *alike;
    /* whoever has a lower number has had its turn at the present time; who has it now */
    uint32_t passed, turn;
    uint64_t *handled; /* exact, several CPUs: when an entry's message was taken */
    uint32_t handled_room;
    struct pool entries, waiters, waits, indexes, crowds;
    uint32_t *released; /* operations that have just become free to start */
    uint32_t released_count, released_room;
    uint32_t seq;
    struct mover *last; /* recording: what last moved each clock */
    uint64_t now;
    int64_t started;
    int stop;
};

static inline struct host *host_of(const struct sim *sim, uint32_t rank)
{
    return (struct host *)(sim->hosts + sim->host_size * rank);
}

static inline uint64_t column_entry(const struct nb_column *column, uint32_t op)
{
    size_t i = column->stride ? op : 0;
    switch (column->width) {
    case 1: return ((const uint8_t *)column->data)[i];
    case 4: return ((const uint32_t *)column->data)[i];
    default: return ((const uint64_t *)column->data)[i];
    }
}

static inline int32_t tag_of(const struct sim *sim, uint32_t op)
{
    return ((const int32_t *)sim->s->tag.data)[sim->s->tag.stride ? op : 0];
}

static inline uint32_t cpu_of(const struct sim *sim, uint32_t op)
{
    return sim->several ? (uint32_t)column_entry(&sim->s->cpu, op) : 0;
}

static inline uint32_t nic_of(const struct sim *sim, uint32_t op)
{
    return sim->several ? (uint32_t)column_entry(&sim->s->nic, op) : 0;
}

static inline uint64_t *cpu_clock(const struct sim *sim, struct host *host, uint32_t cpu)
{
    (void)sim;
    return &host->clock[cpu];
}

static inline uint64_t *send_clock(const struct sim *sim, struct host *host, uint32_t nic)
{
    return &host->clock[(uint32_t)sim->s->cpus + nic];
}

static inline uint64_t *receive_clock(const struct sim *sim, struct host *host, uint32_t nic)
{
    return &host->clock[(uint32_t)sim->s->cpus + (uint32_t)sim->s->nics + nic];
}

/* A free item of a pool of items of `size` bytes; NONE and sim->stop when there is no memory. */
static inline uint32_t pool_take(struct sim *sim, struct pool *pool, size_t size)
{
    if (pool->free != NONE) {
        uint32_t i = pool->free;
        memcpy(&pool->free, (char *)pool->item + size * i, sizeof pool->free);
        return i;
    }
    if (pool->count == pool->room) {
        uint64_t room = pool->room ? (uint64_t)pool->room + pool->room / 2 : 256;
        void *item = room < NONE ? realloc(pool->item, size * room) : NULL;
        if (!item) {
            sim->stop = NB_STOP_MEMORY;
            return NONE;
        }
        pool->item = item;
        pool->room = (uint32_t)room;
    }
    return pool->count++;
}

static inline void pool_give(struct pool *pool, size_t size, uint32_t i)
{
    memcpy((char *)pool->item + size * i, &pool->free, sizeof pool->free);
    pool->free = i;
}

#endif
