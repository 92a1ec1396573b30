/* exact, several CPUs or NICs: the messages of a rank that found them taken.
 *
 * Which CPU and NIC (which class, see wait.h) take a message may change as receives are posted and
 * matched, so by the rule each message tries again by itself: when what it last waited for is free,
 * and whenever a receive is posted that takes it. Here those that would fail together form a crowd:
 * messages of one class that try again at the same time, in the order of their numbers. One wake-up
 * stands in the queue for all; when its first has been taken, or fails, the others are moved to the
 * next time at once. A message leaves its crowd, and tries again by itself, as soon as its class
 * changes. What it then has to do is exactly what it would have done alone: `passed` and `moved`
 * tell whether its turn at the present time is still to come.
 *
 * The plain way, MOST_CROWDS 0, ends at the same times. Of 20,000 messages to a rank with two CPUs
 * (benchmarks/simulator.py --fan-in) it takes 3.7 s for 0.014 s, and 44 times as long as of 2,000.
 */
#ifndef NB_CROWD_H
#define NB_CROWD_H

#include "match.h"
#include "record.h"
#include "wait.h"

/* Where a send's message is: nowhere yet; waiting by itself; taken; else IN_CROWD + its crowd. */
enum { UNSEEN = 0, ALONE = 1, IN_CROWD = 2, MOST_CROWDS = 8, TAKEN = 0xFFFFFFFFu };
/* What all receives of a rank have in common: CPU and NIC; source and tag. */
enum { SAME_CLASS = 1, SAME_KEY = 2 };

struct crowd {
    uint32_t next, rank, class; /* the rank's next; the first word also links free items */
    uint64_t time, moved;       /* when all try again; when they were last told to */
    uint32_t root, wake;        /* heap of waiters; seq of the wake-up that counts */
    struct mover cause, before; /* recording: why not before `time`, and not before `moved` */
};

static inline struct crowd *crowd_at(const struct sim *sim, uint32_t i)
{
    return (struct crowd *)sim->crowds.item + i;
}

static inline struct waiter *waiter_of(const struct sim *sim, uint32_t i)
{
    return (struct waiter *)sim->waiters.item + i;
}

/* When is what a class waits for free? */
static uint64_t class_free(const struct sim *sim, struct host *host, uint32_t class)
{
    uint32_t cpus = (uint32_t)sim->s->cpus, nics = (uint32_t)sim->s->nics;
    if (class < cpus)
        return *cpu_clock(sim, host, class);
    uint32_t pair = (class - cpus) % (cpus * nics);
    uint64_t gap = class < cpus + cpus * nics ? *send_clock(sim, host, pair % nics)
                                              : *receive_clock(sim, host, pair % nics);
    return nb_later(*cpu_clock(sim, host, pair / nics), gap);
}

/* The class of a message that this receive takes, or none. */
static inline uint32_t class_by(const struct sim *sim, uint32_t receive)
{
    return receive == NONE ? class_of(sim, NB_RECV, 0, 0)
                           : class_of(sim, NB_RECV, cpu_of(sim, receive), nic_of(sim, receive));
}

static inline void crowd_wakes(struct sim *sim, uint32_t i)
{
    struct crowd *crowd = crowd_at(sim, i);
    crowd->wake = waiter_of(sim, crowd->root)->seq;
    queue_push_old(
        &sim->queue,
        &(struct event){crowd->time, crowd->wake, sim->message_class + i, crowd->rank, WAKE});
}

static void crowd_tries_at(struct sim *sim, struct crowd *crowd, uint64_t time)
{
    crowd->time = time;
    if (!sim->record)
        return;
    struct host *host = host_of(sim, crowd->rank);
    uint32_t pair = crowd->class - sim->message_class, nics = (uint32_t)sim->s->nics;
    uint64_t *cpu = cpu_clock(sim, host, pair / nics);
    crowd->before = crowd->cause;
    crowd->cause = *mover_of(sim, crowd->rank,
                             *cpu == time ? cpu : receive_clock(sim, host, pair % nics));
}

/* The rank's crowd of this class and time, if need be a new one; NONE: it has too many. */
static uint32_t crowd_for(struct sim *sim, uint32_t rank, uint32_t class, uint64_t time)
{
    int count = 0;
    for (uint32_t i = sim->crowd[rank]; i != NONE; i = crowd_at(sim, i)->next, count++)
        if (crowd_at(sim, i)->class == class && crowd_at(sim, i)->time == time)
            return i;
    uint32_t i = count < MOST_CROWDS ? pool_take(sim, &sim->crowds, sizeof(struct crowd)) : NONE;
    if (i == NONE)
        return NONE;
    const struct mover none = {NONE, NB_VIA_START};
    *crowd_at(sim, i) = (struct crowd){
        .next = sim->crowd[rank],
        .rank = rank,
        .class = class,
        .moved = UINT64_MAX,
        .root = NONE,
        .wake = NONE,
        .cause = none,
        .before = none
    };
    sim->crowd[rank] = i;
    crowd_tries_at(sim, crowd_at(sim, i), time);
    return i;
}

static void crowd_end(struct sim *sim, uint32_t i)
{
    uint32_t *link = &sim->crowd[crowd_at(sim, i)->rank];
    while (*link != i)
        link = &crowd_at(sim, *link)->next;
    *link = crowd_at(sim, i)->next;
    crowd_at(sim, i)->wake = NONE;
    pool_give(&sim->crowds, sizeof(struct crowd), i);
}

/* A message that has failed and may try again at `time`: with the others of its class that try
 * then, too, or by itself. */
static void message_joins(struct sim *sim, const struct event *event, uint32_t class, uint64_t time)
{
    uint32_t number = crowd_for(sim, event->host, class, time),
             i = number == NONE ? NONE : pool_take(sim, &sim->waiters, sizeof(struct waiter));
    if (i == NONE) {
        struct event again = *event;
        again.time = time;
        queue_push_old(&sim->queue, &again);
        return;
    }
    struct crowd *crowd = crowd_at(sim, number);
    *waiter_of(sim, i) = (struct waiter){NONE, event->seq, event->op, event->aux, NONE};
    sim->where[event->op] = IN_CROWD + number;
    crowd->root = heap_meld(sim->waiters.item, crowd->root, i);
    if (crowd->root == i)
        crowd_wakes(sim, number);
}

/* When does this one of a crowd try next? */
static inline uint64_t tries_at(const struct sim *sim, const struct crowd *crowd, uint32_t seq)
{
    return crowd->moved == sim->now && seq >= sim->passed ? sim->now : crowd->time;
}

/* Recording: what one of a crowd has waited for until `time`. */
static void record_crowd(const struct sim *sim, const struct crowd *crowd, uint32_t op,
                         uint64_t time)
{
    const struct mover *cause = time == crowd->time ? &crowd->cause : &crowd->before;
    uint32_t node = message_node(sim, op);
    if (!sim->record)
        return;
    sim->record->begin[node] = time;
    if (cause->node == NONE)
        return;
    sim->record->cause[node] = cause->node;
    sim->record->via[node] = (uint8_t)cause->via;
}

/* Out of its crowd: it tries by itself from now on. (What stands in the heap is dropped later.) */
static void message_leaves(struct sim *sim, const struct crowd *crowd, const struct event *event)
{
    struct event again = *event;
    again.time = tries_at(sim, crowd, event->seq);
    sim->where[event->op] = ALONE;
    record_crowd(sim, crowd, event->op, again.time);
    queue_push_old(&sim->queue, &again);
}

/* A message that waits for the first time. */
static void message_is_seen(struct sim *sim, const struct event *event)
{
    uint32_t rank = event->host, from, tag,
             number = sim->pending[rank] != NONE ? sim->pending[rank] : index_new(sim, 8),
             i = number == NONE ? NONE : pool_take(sim, &sim->entries, sizeof(struct entry));
    if (i == NONE)
        return;
    sim->pending[rank] = number;
    *entry_of(sim, i) = (struct entry){event->op, event->aux, NONE, event->seq, NONE};
    index_add(sim, number, i);
    sim->where[event->op] = ALONE;
    if (sim->first_receive[rank] == NONE)
        return;
    from = (uint32_t)sim->s->peer[sim->first_receive[rank]];
    tag = (uint32_t)tag_of(sim, sim->first_receive[rank]);
    if ((from != ANY && from != event->aux) ||
        (tag != ANY && tag != (uint32_t)tag_of(sim, event->op)))
        sim->alike[rank] &= SAME_CLASS; /* no receive of the rank ever takes it */
}

/* Has one that failed at (now, seq), with `free` as the next time, to do anything about it? */
static void message_pends(struct sim *sim, const struct event *event, uint32_t class, uint64_t free)
{
    uint32_t *where = &sim->where[event->op];
    if (*where == UNSEEN)
        message_is_seen(sim, event);
    if (*where >= IN_CROWD) {
        const struct crowd *crowd = crowd_at(sim, *where - IN_CROWD);
        if (crowd->class == class) {
            struct event again = *event;
            again.time = free;
            if (crowd->time != free)
                queue_push_old(&sim->queue, &again);
            return;
        }
        if (tries_at(sim, crowd, event->seq) != sim->now)
            message_leaves(sim, crowd, event);
        *where = ALONE;
    }
    message_joins(sim, event, class, free);
}

static void message_settled(struct sim *sim, uint32_t rank, uint32_t op, uint32_t from)
{
    uint32_t where = sim->where[op], before = NONE;
    sim->where[op] = TAKEN;
    if (where == UNSEEN)
        return;
    struct index *index = index_of(sim, sim->pending[rank]);
    uint32_t i = index->chain[2 * chain_of(index, from, (uint32_t)tag_of(sim, op))];
    for (; entry_of(sim, i)->op != op; i = entry_of(sim, i)->next)
        before = i;
    index_remove(sim, index, i, before);
    pool_give(&sim->entries, sizeof(struct entry), i);
    if (index->count == 0) {
        index_drop(sim, sim->pending[rank]);
        sim->pending[rank] = NONE;
    }
}

/* Of the messages that wait: a chain's first that a receive like this takes, from entry i on. */
static uint32_t pending_next(const struct sim *sim, uint32_t i, uint32_t from, uint32_t tag)
{
    for (; i != NONE; i = entry_of(sim, i)->next) {
        const struct entry *entry = entry_of(sim, i);
        if ((from == ANY || from == entry->from) &&
            (tag == ANY || tag == (uint32_t)tag_of(sim, entry->op)))
            return i;
    }
    return NONE;
}

/* The chains that have such messages: all, or one. */
static void pending_chains(const struct sim *sim, uint32_t rank, uint32_t from, uint32_t tag,
                           uint32_t *low, uint32_t *high)
{
    const struct index *index = index_of(sim, sim->pending[rank]);
    *low = wild(from, tag) ? 0 : chain_of(index, from, tag);
    *high = wild(from, tag) ? index->mask : *low;
}

/* A receive has been posted: the messages that it takes try again at once. */
static void call_pending(struct sim *sim, uint32_t rank, uint32_t receive, uint64_t t)
{
    uint32_t from = (uint32_t)sim->s->peer[receive], tag = (uint32_t)tag_of(sim, receive), low,
             high;
    if (sim->pending[rank] == NONE)
        return;
    pending_chains(sim, rank, from, tag, &low, &high);
    for (uint32_t c = low; c <= high; c++)
        for (uint32_t i = index_of(sim, sim->pending[rank])->chain[2 * c];
             (i = pending_next(sim, i, from, tag)) != NONE; i = entry_of(sim, i)->next) {
            const struct entry *entry = entry_of(sim, i);
            queue_push_old(&sim->queue,
                           &(struct event){t, entry->older, entry->op, rank, entry->from});
        }
}

/* The heap's first that still belongs to the crowd; NONE: there is none. */
static uint32_t crowd_first(struct sim *sim, uint32_t number)
{
    struct crowd *crowd = crowd_at(sim, number);
    while (crowd->root != NONE &&
           sim->where[waiter_of(sim, crowd->root)->op] != IN_CROWD + number) {
        uint32_t gone = crowd->root;
        crowd->root = heap_rest(sim->waiters.item, gone);
        pool_give(&sim->waiters, sizeof(struct waiter), gone);
    }
    return crowd->root;
}

/* A crowd was told at the present time when to try again, and what for has changed: those whose
 * turn is still to come try now. */
static void crowd_turns_back(struct sim *sim, uint32_t number)
{
    struct crowd *crowd = crowd_at(sim, number);
    uint32_t stay = NONE, i = crowd_first(sim, number);
    if (i != NONE && waiter_of(sim, i)->seq >= sim->passed) {
        crowd->time = sim->now;
        crowd->moved = UINT64_MAX;
        crowd->cause = crowd->before;
        crowd_wakes(sim, number);
        return;
    }
    for (; i != NONE; i = crowd_first(sim, number)) {
        struct waiter *waiter = waiter_of(sim, i);
        crowd->root = heap_rest(sim->waiters.item, i);
        if (waiter->seq >= sim->passed) {
            message_leaves(sim, crowd,
                           &(struct event){0, waiter->seq, waiter->op, crowd->rank, waiter->from});
            pool_give(&sim->waiters, sizeof *waiter, i);
        } else {
            waiter->child = waiter->sibling = NONE;
            stay = heap_meld(sim->waiters.item, stay, i);
        }
    }
    crowd->root = stay;
}

/* A clock of the rank has been moved. */
static inline void clocks_moved(struct sim *sim, uint32_t rank)
{
    if (!sim->pending)
        return;
    for (uint32_t i = sim->crowd[rank]; i != NONE; i = crowd_at(sim, i)->next)
        if (crowd_at(sim, i)->moved == sim->now &&
            crowd_at(sim, i)->time < class_free(sim, host_of(sim, rank), crowd_at(sim, i)->class))
            crowd_turns_back(sim, i);
}

/* All that wait would be taken by the same receive, and that has another class now. */
static void crowds_change(struct sim *sim, uint32_t rank, uint32_t class)
{
    for (uint32_t i = sim->crowd[rank]; i != NONE; i = crowd_at(sim, i)->next) {
        if (crowd_at(sim, i)->class == class)
            continue;
        if (crowd_at(sim, i)->moved == sim->now)
            crowd_turns_back(sim, i);
        crowd_at(sim, i)->class = class;
    }
}

/* Is there another posted receive that takes all that this one took, with the same class? */
static int posted_like(const struct sim *sim, const struct host *host, uint32_t rank, uint32_t op)
{
    uint32_t from = (uint32_t)sim->s->peer[op], tag = (uint32_t)tag_of(sim, op), before;
    if (!(sim->alike[rank] & SAME_CLASS) || host->posted == NONE)
        return 0;
    if (host->posted_last == INDEXED)
        return index_find(sim, index_of(sim, host->posted), from, tag, &before) != NONE;
    return (uint32_t)sim->s->peer[host->posted] == from &&
           (uint32_t)tag_of(sim, host->posted) == tag;
}

/* The class of a message of the rank as of now. */
static uint32_t class_now(struct sim *sim, struct host *host, uint32_t from, uint32_t tag)
{
    return class_by(sim, match_posted(sim, host, from, tag, 0));
}

/* A posted receive has been taken by a message: what it would have taken else may have another
 * class now. */
static void receive_gone(struct sim *sim, struct host *host, const struct event *by,
                         uint32_t receive)
{
    uint32_t rank = by->host, from = (uint32_t)sim->s->peer[receive],
             tag = (uint32_t)tag_of(sim, receive), low, high;
    if (sim->crowd[rank] == NONE || sim->pending[rank] == NONE ||
        posted_like(sim, host, rank, receive))
        return;
    if (sim->alike[rank] & SAME_KEY) {
        crowds_change(sim, rank, class_now(sim, host, by->aux, (uint32_t)tag_of(sim, by->op)));
        return;
    }
    pending_chains(sim, rank, from, tag, &low, &high);
    for (uint32_t c = low; c <= high; c++)
        for (uint32_t i = index_of(sim, sim->pending[rank])->chain[2 * c];
             (i = pending_next(sim, i, from, tag)) != NONE; i = entry_of(sim, i)->next) {
            const struct entry entry = *entry_of(sim, i);
            if (sim->where[entry.op] < IN_CROWD)
                continue;
            const struct crowd *crowd = crowd_at(sim, sim->where[entry.op] - IN_CROWD);
            if (crowd->class != class_now(sim, host, entry.from, (uint32_t)tag_of(sim, entry.op)))
                message_leaves(sim, crowd,
                               &(struct event){0, entry.older, entry.op, rank, entry.from});
        }
}

/* The turn of a crowd's first; the message, if it is to try now. */
static int crowd_turn(struct sim *sim, const struct event *wake, struct event *first)
{
    uint32_t number = wake->op - sim->message_class;
    struct crowd *crowd = crowd_at(sim, number);
    if (crowd->rank != wake->host || crowd->wake != wake->seq || crowd->time != wake->time)
        return 0;
    if (crowd_first(sim, number) == NONE) {
        crowd_end(sim, number);
        return 0;
    }
    const struct waiter *waiter = waiter_of(sim, crowd->root);
    *first = (struct event){sim->now, waiter->seq, waiter->op, wake->host, waiter->from};
    if (waiter->seq == wake->seq)
        return 1;
    crowd_wakes(sim, number);
    return 0;
}

/* A crowd's first leaves it, to be taken or to fail by itself. */
static void crowd_drop(struct sim *sim, uint32_t number)
{
    struct crowd *crowd = crowd_at(sim, number);
    uint32_t first = crowd->root;
    sim->where[waiter_of(sim, first)->op] = ALONE;
    record_crowd(sim, crowd, waiter_of(sim, first)->op, sim->now);
    crowd->root = heap_rest(sim->waiters.item, first);
    pool_give(&sim->waiters, sizeof(struct waiter), first);
}

/* After a crowd's turn: the next one's, now or when what it waits for is free. */
static void crowd_again(struct sim *sim, uint32_t number)
{
    struct crowd *crowd = crowd_at(sim, number);
    if (crowd_first(sim, number) == NONE) {
        crowd_end(sim, number);
        return;
    }
    uint64_t free = class_free(sim, host_of(sim, crowd->rank), crowd->class);
    if (free > sim->now) {
        crowd_tries_at(sim, crowd, free);
        crowd->moved = sim->now;
    }
    crowd_wakes(sim, number);
}
#endif
