/* The discrete-event engine: events in the order of (time, seq), as the reference simulator takes
 * them, on leaner structures.
 *
 * An operation is released when all that it needs is done (or has begun) and then stands in the
 * queue at the time its CPU and NIC are free; a message stands there at its arrival. What finds the
 * CPU or NIC taken waits (wait.h); messages and receives find each other in match.h; what an
 * operation costs stands in model.h. At the beginning all free operations are of time 0 and in
 * order, so they are taken from the schedule one by one and never stand in the queue. state.h: all
 * there is to know; events.h: what happens; release.h: who may start; record.h: the critical path;
 * prefetch.h: what comes next.
 */
#define _DEFAULT_SOURCE
#include <sys/mman.h>

#include "engine.h"

#include "events.h"
#include "prefetch.h"
#include "roots.h"

enum { LINE = 64, HUGE = 2 << 20 }; /* bytes of a cache line, of a huge page */

/* Zeroed memory for a table that is read all over: in huge pages where the kernel has them, or
 * every access would miss the TLB, too. */
static void *table_new(size_t bytes)
{
    size_t unit = bytes < 2 * HUGE ? LINE : HUGE;
    bytes = (bytes + unit - 1) / unit * unit;
    void *table = aligned_alloc(unit, bytes ? bytes : unit);
    if (!table)
        return NULL;
    if (unit == HUGE)
        madvise(table, bytes, MADV_HUGEPAGE);
    return memset(table, 0, bytes);
}

/* Add up what each operation waits for; 0 if a count does not fit. */
static int count_needs(struct sim *sim, const void *start, int width, const int32_t *local)
{
    const struct nb_schedule *s = sim->s;
    for (int64_t rank = 0; start && rank < s->ranks; rank++) {
        int64_t base = s->rank_start[rank], end = edge_start(start, width, s->rank_start[rank + 1]);
        for (int64_t k = edge_start(start, width, base); k < end; k++) {
            size_t op = (size_t)(base + local[k]);
            if (sim->needs_width == 4)
                ((uint32_t *)sim->needs)[op]++;
            else if (++((uint8_t *)sim->needs)[op] == 0)
                return 0;
        }
    }
    return 1;
}

static int prepare_needs(struct sim *sim)
{
    const struct nb_schedule *s = sim->s;
    for (sim->needs_width = 1; sim->needs_width <= 4; sim->needs_width += 3) {
        free(sim->needs);
        sim->needs = table_new(((size_t)s->operations + 1) * (size_t)sim->needs_width);
        if (!sim->needs)
            return 0;
        if (count_needs(sim, s->done_start, s->done_width, s->done_op) &&
            count_needs(sim, s->begun_start, s->begun_width, s->begun_op))
            return 1;
    }
    return 0;
}

/* exact, several CPUs or NICs: what all receives of a rank have in common. */
static void find_alike(struct sim *sim, uint32_t rank)
{
    const struct nb_schedule *s = sim->s;
    uint32_t first = NONE;
    sim->alike[rank] = SAME_CLASS | SAME_KEY;
    for (int64_t i = s->rank_start[rank]; i < s->rank_start[rank + 1]; i++) {
        uint32_t op = (uint32_t)i;
        if (s->kind[op] != NB_RECV)
            continue;
        first = first == NONE ? op : first;
        if (class_by(sim, op) != class_by(sim, first))
            sim->alike[rank] &= (uint8_t)~SAME_CLASS;
        if (s->peer[op] != s->peer[first] || tag_of(sim, op) != tag_of(sim, first))
            sim->alike[rank] &= (uint8_t)~SAME_KEY;
    }
    sim->first_receive[rank] = first;
}

static int prepare(struct sim *sim)
{
    const struct nb_schedule *s = sim->s;
    size_t ranks = (size_t)s->ranks, operations = (size_t)s->operations,
           clocks = (size_t)(s->cpus + 2 * s->nics);
    sim->compat = sim->network->mode == NB_COMPAT;
    sim->several = s->cpus > 1 || s->nics > 1;
    sim->message_class = (uint32_t)(s->cpus + s->cpus * s->nics);
    sim->wait_size = wait_size(sim);
    sim->host_size = (sizeof(struct host) + clocks * sizeof(uint64_t) + LINE - 1) / LINE * LINE;
    sim->hosts = table_new(ranks * sim->host_size);
    sim->link = table_new((operations + 1) * sizeof *sim->link);
    if (!sim->hosts || !sim->link || !prepare_needs(sim))
        return 0;
    if (sim->several && !sim->compat) {
        sim->where = calloc(operations + 1, sizeof *sim->where);
        sim->pending = malloc(ranks * sizeof *sim->pending);
        sim->crowd = malloc(ranks * sizeof *sim->crowd);
        sim->first_receive = malloc(ranks * sizeof *sim->first_receive);
        sim->alike = malloc(ranks);
        if (sim->pending)
            memset(sim->pending, 0xFF, ranks * sizeof *sim->pending);
        if (!sim->where || !sim->pending || !sim->crowd || !sim->first_receive || !sim->alike)
            return 0;
        memset(sim->crowd, 0xFF, ranks * sizeof *sim->crowd);
        for (size_t rank = 0; rank < ranks; rank++)
            find_alike(sim, (uint32_t)rank);
    }
    if (s->cpus > 1 && !sim->compat && !(sim->ready = calloc(operations + 1, sizeof *sim->ready)))
        return 0;
    if (sim->record) {
        sim->last = malloc(ranks * clocks * sizeof(struct mover));
        sim->ready_cause = sim->ready ? malloc((operations + 1) * sizeof *sim->ready_cause) : NULL;
        if (!sim->last || (sim->ready && !sim->ready_cause))
            return 0;
        memset(sim->last, 0xFF, ranks * clocks * sizeof(struct mover));
    }
    sim->entries.free = sim->waiters.free = sim->waits.free = sim->indexes.free = sim->crowds
                                                                                      .free = NONE;
    for (size_t rank = 0; rank < ranks; rank++)
        *host_of(sim, (uint32_t)rank) = (struct host){NONE, NONE, NONE,
                                                      NONE, NONE, (uint32_t)s->rank_start[rank]};
    sim->queue.present = sim->now = UINT64_MAX;
    return 1;
}

/* All that can start at once, in order: it would stand in the queue with time 0 and the first
 * numbers. */
static void begin(struct sim *sim)
{
    uint32_t *root = NULL, room = 0, seq = 0;
    sim->seq = count_roots(sim, 0, sim->s->ranks);
    for (int64_t rank = 0; rank < sim->s->ranks && !sim->stop; rank++) {
        uint32_t count = roots_of(sim, rank, &root, &room);
        for (uint32_t i = 0; i < count && !sim->stop; i++)
            do_event(sim, &(struct event){0, seq++, root[i], (uint32_t)rank, OPERATION});
    }
    free(root);
}

static void finish(struct sim *sim)
{
    for (int64_t rank = 0; rank < sim->s->ranks; rank++) {
        struct host *host = host_of(sim, (uint32_t)rank);
        uint64_t *latest = &host->clock[0];
        for (int32_t cpu = 1; cpu < sim->s->cpus; cpu++)
            if (host->clock[cpu] > *latest)
                latest = &host->clock[cpu];
        sim->out->finish[rank] = *latest;
        if (sim->record) {
            struct mover *mover = mover_of(sim, (uint32_t)rank, latest);
            sim->record->last[rank] = mover->node;
            sim->record->last_via[rank] = mover->node == NONE ? NB_VIA_START : (uint8_t)mover->via;
        }
    }
}

/* --- what is left over when nothing can happen any more --------------------------------------- */

static void stuck(struct sim *sim, uint32_t op, int why)
{
    int64_t same = 0, room = sizeof sim->out->stuck / sizeof *sim->out->stuck;
    if (sim->out->stuck_count == room)
        return;
    for (int64_t i = 0; i < sim->out->stuck_count; i++)
        same += sim->out->stuck_why[i] == why;
    if (same < 16) {
        sim->out->stuck[sim->out->stuck_count] = op;
        sim->out->stuck_why[sim->out->stuck_count++] = why;
    }
}

static void stuck_lists(struct sim *sim, const struct host *host)
{
    int posted_index = host->posted_last == INDEXED, arrived_index = host->arrived_last == INDEXED;
    for (uint32_t op = posted_index ? NONE : host->posted; op != NONE; op = sim->link[op])
        stuck(sim, op, NB_WAITS_FOR_MESSAGE);
    for (uint32_t i = arrived_index ? NONE : host->arrived; i != NONE; i = entry_of(sim, i)->next)
        stuck(sim, entry_of(sim, i)->op, NB_NEVER_RECEIVED);
    for (int side = 0; side < 2; side++) {
        if (!(side ? arrived_index : posted_index))
            continue;
        const struct index *index = index_of(sim, side ? host->arrived : host->posted);
        for (uint32_t c = 0; c <= index->mask; c++)
            for (uint32_t i = index->chain[2 * c]; i != NONE; i = entry_of(sim, i)->next)
                stuck(sim, entry_of(sim, i)->op, side ? NB_NEVER_RECEIVED : NB_WAITS_FOR_MESSAGE);
    }
}

static int check_all_done(struct sim *sim)
{
    struct nb_outcome *out = sim->out;
    out->unstarted = sim->s->operations - sim->started;
    if (!out->unstarted && !out->unmatched && !out->unreceived)
        return NB_DONE;
    for (int64_t rank = 0; rank < sim->s->ranks; rank++)
        stuck_lists(sim, host_of(sim, (uint32_t)rank));
    for (int64_t op = 0; op < sim->s->operations; op++)
        if (needs_of(sim, (uint32_t)op))
            stuck(sim, (uint32_t)op, NB_NEVER_STARTED);
    return NB_STOP_STUCK;
}

static void clear(struct sim *sim)
{
    for (uint32_t i = 0; sim->hosts && i < (uint32_t)sim->s->ranks; i++) {
        const struct host *host = host_of(sim, i);
        if (host->posted_last == INDEXED && host->posted != NONE)
            free(index_of(sim, host->posted)->chain);
        if (host->arrived_last == INDEXED && host->arrived != NONE)
            free(index_of(sim, host->arrived)->chain);
        if (sim->pending && sim->pending[i] != NONE)
            free(index_of(sim, sim->pending[i])->chain);
    }
    void *owned[] = {sim->hosts,        sim->needs,        sim->link,          sim->ready,
                     sim->ready_cause,  sim->last,         sim->where,         sim->pending,
                     sim->crowd,        sim->alike,        sim->first_receive, sim->handled,
                     sim->entries.item, sim->waiters.item, sim->waits.item,    sim->indexes.item,
                     sim->crowds.item,  sim->released};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    queue_free(&sim->queue);
    free(sim);
}

static void carry_out(struct sim *sim)
{
    struct event event;
    begin(sim);
    while (!sim->stop && queue_pop(&sim->queue, &event)) {
        prefetch(sim);
        do_event(sim, &event);
    }
    if (sim->queue.failed)
        sim->stop = NB_STOP_MEMORY;
}

static int run(struct sim *sim)
{
    carry_out(sim);
    if (sim->stop)
        return sim->stop;
    finish(sim);
    return check_all_done(sim);
}

int nb_simulate(const struct nb_schedule *schedule, const struct nb_network *network,
                const struct nb_noise *noise, const struct nb_record *record,
                struct nb_outcome *outcome)
{
    struct sim *sim = malloc(sizeof *sim);
    if (!sim)
        return NB_STOP_MEMORY;
    *sim = (struct sim){
        .s = schedule, .network = network, .noise = noise, .record = record, .out = outcome
    };
    int stop = prepare(sim) ? run(sim) : NB_STOP_MEMORY;
    clear(sim);
    return stop;
}
