/* Messages and receives of a rank that wait for each other, each side in the order it came in.
 *
 * Both sides are plain lists as long as they are short. When a search has gone past LONG_SEARCH
 * entries, the list is turned into an index: chains by (source, tag), each in order. A receive with
 * a wildcard stands in the chain of its wildcard, so a message looks into four chains and takes the
 * oldest; a receive with a wildcard walks the arrived messages in order. An index that runs empty
 * is a list again. */
#ifndef NB_MATCH_H
#define NB_MATCH_H

#include "state.h"

enum { LONG_SEARCH = 32, INDEXED = 0xFFFFFFFEu, ANY = 0xFFFFFFFFu };

struct index {
    uint32_t free_link; /* of the pool */
    uint32_t count, mask, order, wild;
    uint32_t first, last; /* oldest and newest entry (arrived messages) */
    uint32_t *chain;      /* first and last entry of each of mask + 1 chains */
};

static inline struct entry *entry_of(const struct sim *sim, uint32_t i)
{
    return (struct entry *)sim->entries.item + i;
}

static inline struct index *index_of(const struct sim *sim, uint32_t i)
{
    return (struct index *)sim->indexes.item + i;
}

static inline uint32_t chain_of(const struct index *index, uint32_t from, uint32_t tag)
{
    uint32_t hash = from * 0x9E3779B1u ^ tag * 0x85EBCA6Bu;
    return ((hash ^ hash >> 15) * 0x2C1B3C6Du >> 7) & index->mask;
}

static inline int wild(uint32_t from, uint32_t tag)
{
    return from == ANY || tag == ANY;
}

static void chain_append(struct sim *sim, struct index *index, uint32_t i)
{
    struct entry *entry = entry_of(sim, i);
    uint32_t *chain = index->chain +
                      2 * chain_of(index, entry->from, (uint32_t)tag_of(sim, entry->op));
    entry->next = NONE;
    if (chain[0] == NONE)
        chain[0] = i;
    else
        entry_of(sim, chain[1])->next = i;
    chain[1] = i;
}

static int index_resize(struct sim *sim, struct index *index, uint32_t chains)
{
    uint32_t *old = index->chain, old_chains = old ? index->mask + 1 : 0;
    index->chain = malloc(sizeof *index->chain * 2 * chains);
    if (!index->chain) {
        index->chain = old;
        sim->stop = NB_STOP_MEMORY;
        return 0;
    }
    memset(index->chain, 0xFF, sizeof *index->chain * 2 * chains);
    index->mask = chains - 1;
    for (uint32_t c = 0; c < old_chains; c++)
        for (uint32_t i = old[2 * c], next; i != NONE; i = next) {
            next = entry_of(sim, i)->next;
            chain_append(sim, index, i);
        }
    free(old);
    return 1;
}

/* A new index; its number, or NONE. chains: a power of two. */
static uint32_t index_new(struct sim *sim, uint32_t chains)
{
    uint32_t i = pool_take(sim, &sim->indexes, sizeof(struct index));
    if (i == NONE)
        return NONE;
    *index_of(sim, i) = (struct index){.first = NONE, .last = NONE};
    return index_resize(sim, index_of(sim, i), chains) ? i : NONE;
}

static void index_add(struct sim *sim, uint32_t number, uint32_t i)
{
    struct index *index = index_of(sim, number);
    if (index->count > index->mask && index->mask < 1u << 29 &&
        !index_resize(sim, index, 2 * (index->mask + 1)))
        return;
    struct entry *entry = entry_of(sim, i);
    chain_append(sim, index, i);
    index->count++;
    index->wild += (uint32_t)wild(entry->from, (uint32_t)tag_of(sim, entry->op));
}

/* The oldest entry of a chain with this key, and in *before the one before it in the chain. */
static inline uint32_t index_find(const struct sim *sim, const struct index *index, uint32_t from,
                                  uint32_t tag, uint32_t *before)
{
    *before = NONE;
    for (uint32_t i = index->chain[2 * chain_of(index, from, tag)]; i != NONE;
         *before = i, i = entry_of(sim, i)->next)
        if (entry_of(sim, i)->from == from && (uint32_t)tag_of(sim, entry_of(sim, i)->op) == tag)
            return i;
    return NONE;
}

static void index_drop(struct sim *sim, uint32_t number)
{
    free(index_of(sim, number)->chain);
    index_of(sim, number)->chain = NULL;
    pool_give(&sim->indexes, sizeof(struct index), number);
}

/* Take an entry out of its chain; frees nothing. */
static void index_remove(struct sim *sim, struct index *index, uint32_t i, uint32_t before)
{
    struct entry *entry = entry_of(sim, i);
    uint32_t *chain = index->chain +
                      2 * chain_of(index, entry->from, (uint32_t)tag_of(sim, entry->op));
    if (before == NONE)
        chain[0] = entry->next;
    else
        entry_of(sim, before)->next = entry->next;
    if (chain[1] == i)
        chain[1] = before;
    index->count--;
    index->wild -= (uint32_t)wild(entry->from, (uint32_t)tag_of(sim, entry->op));
}

/* --- posted receives -------------------------------------------------------------------------- */

static void index_add_receive(struct sim *sim, uint32_t number, uint32_t op)
{
    uint32_t i = pool_take(sim, &sim->entries, sizeof(struct entry));
    if (i == NONE)
        return;
    *entry_of(sim, i) = (struct entry){
        op, (uint32_t)sim->s->peer[op], NONE, index_of(sim, number)->order++, NONE
    };
    index_add(sim, number, i);
}

static void index_posted(struct sim *sim, struct host *host)
{
    uint32_t number = index_new(sim, 64);
    if (number == NONE)
        return;
    for (uint32_t op = host->posted; op != NONE; op = sim->link[op])
        index_add_receive(sim, number, op);
    host->posted = number;
    host->posted_last = INDEXED;
}

static inline void post_receive(struct sim *sim, struct host *host, uint32_t op)
{
    if (host->posted == NONE) {
        host->posted = op;
    } else if (host->posted_last == INDEXED) {
        index_add_receive(sim, host->posted, op);
        return;
    } else {
        sim->link[host->posted_last] = op;
    }
    sim->link[op] = NONE;
    host->posted_last = op;
}

static uint32_t match_posted_index(struct sim *sim, struct host *host, uint32_t from, uint32_t tag,
                                   int take)
{
    uint32_t number = host->posted, best = NONE, best_before = NONE;
    struct index *index = index_of(sim, number);
    const uint32_t keys[4][2] = {{from, tag}, {ANY, tag}, {from, ANY}, {ANY, ANY}};
    for (int k = 0; k < (index->wild ? 4 : 1); k++) {
        uint32_t before, i = index_find(sim, index, keys[k][0], keys[k][1], &before);
        if (i != NONE && (best == NONE || entry_of(sim, i)->older < entry_of(sim, best)->older)) {
            best = i;
            best_before = before;
        }
    }
    if (best == NONE || !take)
        return best == NONE ? NONE : entry_of(sim, best)->op;
    index_remove(sim, index, best, best_before);
    uint32_t op = entry_of(sim, best)->op;
    pool_give(&sim->entries, sizeof(struct entry), best);
    if (index->count == 0) {
        index_drop(sim, number);
        host->posted = host->posted_last = NONE;
    }
    return op;
}

/* The first posted receive that takes a message from this rank with this tag, or NONE. */
static inline uint32_t match_posted(struct sim *sim, struct host *host, uint32_t from, uint32_t tag,
                                    int take)
{
    if (host->posted == NONE)
        return NONE;
    if (host->posted_last == INDEXED)
        return match_posted_index(sim, host, from, tag, take);
    uint32_t before = NONE, op = host->posted, steps = 0;
    for (; op != NONE; before = op, op = sim->link[op], steps++) {
        uint32_t peer = (uint32_t)sim->s->peer[op], wanted = (uint32_t)tag_of(sim, op);
        if ((peer == from || peer == ANY) && (wanted == tag || wanted == ANY))
            break;
    }
    if (op != NONE && take) {
        if (before == NONE)
            host->posted = sim->link[op];
        else
            sim->link[before] = sim->link[op];
        if (host->posted_last == op)
            host->posted_last = before;
    }
    if (steps > LONG_SEARCH && host->posted != NONE)
        index_posted(sim, host);
    return op;
}

/* --- arrived messages ------------------------------------------------------------------------- */

static void index_add_arrived(struct sim *sim, uint32_t number, uint32_t i)
{
    struct index *index = index_of(sim, number);
    struct entry *entry = entry_of(sim, i);
    entry->older = index->last;
    entry->newer = NONE;
    if (index->last == NONE)
        index->first = i;
    else
        entry_of(sim, index->last)->newer = i;
    index->last = i;
    index_add(sim, number, i);
}

static void index_arrived(struct sim *sim, struct host *host)
{
    uint32_t number = index_new(sim, 64);
    if (number == NONE)
        return;
    for (uint32_t i = host->arrived, next; i != NONE; i = next) {
        next = entry_of(sim, i)->next;
        index_add_arrived(sim, number, i);
    }
    host->arrived = number;
    host->arrived_last = INDEXED;
}

/* Keep a message that nobody waits for; returns its entry. */
static inline uint32_t store_message(struct sim *sim, struct host *host, uint32_t op, uint32_t from)
{
    uint32_t i = pool_take(sim, &sim->entries, sizeof(struct entry));
    if (i == NONE)
        return NONE;
    *entry_of(sim, i) = (struct entry){op, from, NONE, NONE, NONE};
    if (host->arrived == NONE) {
        host->arrived = i;
    } else if (host->arrived_last == INDEXED) {
        index_add_arrived(sim, host->arrived, i);
        return i;
    } else {
        entry_of(sim, host->arrived_last)->next = i;
    }
    host->arrived_last = i;
    return i;
}

static uint32_t match_arrived_index(struct sim *sim, struct host *host, uint32_t from, uint32_t tag)
{
    struct index *index = index_of(sim, host->arrived);
    uint32_t before = NONE, i = NONE;
    if (!wild(from, tag)) {
        i = index_find(sim, index, from, tag, &before);
    } else {
        for (i = index->first; i != NONE; i = entry_of(sim, i)->newer)
            if ((from == ANY || entry_of(sim, i)->from == from) &&
                (tag == ANY || (uint32_t)tag_of(sim, entry_of(sim, i)->op) == tag))
                break;
        if (i != NONE) /* the oldest of all that match is the oldest of its key */
            i = index_find(sim, index, entry_of(sim, i)->from,
                           (uint32_t)tag_of(sim, entry_of(sim, i)->op), &before);
    }
    if (i == NONE)
        return NONE;
    index_remove(sim, index, i, before);
    struct entry *entry = entry_of(sim, i);
    if (entry->older == NONE)
        index->first = entry->newer;
    else
        entry_of(sim, entry->older)->newer = entry->newer;
    if (entry->newer == NONE)
        index->last = entry->older;
    else
        entry_of(sim, entry->newer)->older = entry->older;
    if (index->count == 0) {
        index_drop(sim, host->arrived);
        host->arrived = host->arrived_last = NONE;
    }
    return i;
}

/* The first arrived message that a receive takes, out of its list: its entry (for the caller to
 * give back), or NONE. */
static inline uint32_t match_arrived(struct sim *sim, struct host *host, uint32_t from,
                                     uint32_t tag)
{
    if (host->arrived == NONE)
        return NONE;
    if (host->arrived_last == INDEXED)
        return match_arrived_index(sim, host, from, tag);
    uint32_t before = NONE, i = host->arrived, steps = 0;
    for (; i != NONE; before = i, i = entry_of(sim, i)->next, steps++) {
        const struct entry *entry = entry_of(sim, i);
        if ((from == ANY || entry->from == from) &&
            (tag == ANY || (uint32_t)tag_of(sim, entry->op) == tag))
            break;
    }
    if (i != NONE) {
        if (before == NONE)
            host->arrived = entry_of(sim, i)->next;
        else
            entry_of(sim, before)->next = entry_of(sim, i)->next;
        if (host->arrived_last == i)
            host->arrived_last = before;
    }
    if (steps > LONG_SEARCH && host->arrived != NONE)
        index_arrived(sim, host);
    return i;
}
#endif
