/* Dependencies: who may start now that an operation has begun or is done, and in what order they
 * enter the queue. */
#ifndef NB_RELEASE_H
#define NB_RELEASE_H

#include "record.h"

static inline int64_t edge_start(const void *start, int width, int64_t op)
{
    return width == 4 ? ((const int32_t *)start)[op] : ((const int64_t *)start)[op];
}

static int released_grow(struct sim *sim)
{
    uint32_t room = sim->released_room ? 2 * sim->released_room : 1024;
    uint32_t *released = realloc(sim->released, room * sizeof *released);
    if (!released) {
        sim->stop = NB_STOP_MEMORY;
        return 0;
    }
    sim->released = released;
    sim->released_room = room;
    return 1;
}

static inline void one_less(struct sim *sim, uint32_t op)
{
    uint32_t left = sim->needs_width == 1 ? --((uint8_t *)sim->needs)[op]
                                          : --((uint32_t *)sim->needs)[op];
    if (left == 0 && (sim->released_count < sim->released_room || released_grow(sim)))
        sim->released[sim->released_count++] = op;
}

static inline void count_down(struct sim *sim, const struct host *host, uint32_t op,
                              const void *start, int width, const int32_t *local, uint64_t when,
                              struct mover by)
{
    if (!start)
        return;
    int64_t end = edge_start(start, width, (int64_t)op + 1);
    for (int64_t k = edge_start(start, width, op); k < end; k++) {
        uint32_t next = host->base + (uint32_t)local[k];
        if (sim->ready && when >= sim->ready[next]) {
            sim->ready[next] = when;
            if (sim->ready_cause)
                sim->ready_cause[next] = by;
        }
        one_less(sim, next);
    }
}

static inline void has_begun(struct sim *sim, const struct host *host, uint32_t op, uint64_t when)
{
    struct mover by = {op, NB_VIA_BEGUN};
    sim->started++;
    count_down(sim, host, op, sim->s->begun_start, sim->s->begun_width, sim->s->begun_op, when, by);
}

static inline void is_done_by(struct sim *sim, const struct host *host, uint32_t op, uint64_t when,
                              struct mover by)
{
    count_down(sim, host, op, sim->s->done_start, sim->s->done_width, sim->s->done_op, when, by);
}

static inline void is_done(struct sim *sim, const struct host *host, uint32_t op, uint64_t when)
{
    is_done_by(sim, host, op, when, (struct mover){op, NB_VIA_DONE});
}

static inline void release_one(struct sim *sim, uint32_t rank, struct host *host, uint32_t op,
                               int kind)
{
    uint64_t *cpu = cpu_clock(sim, host, cpu_of(sim, op)), time = *cpu;
    if (kind == NB_SEND)
        time = nb_later(time, *send_clock(sim, host, nic_of(sim, op)));
    if (sim->ready)
        time = nb_later(time, sim->ready[op]);
    if (sim->record && kind == NB_RECV)
        record_begin(sim, rank, op, time, cpu, NULL);
    queue_push(&sim->queue, &(struct event){time, sim->seq++, op, rank, OPERATION});
}

/* Released operations low..high of one rank: sends, then receives, then calculations, each in the
 * order of their release. */
static inline void release(struct sim *sim, uint32_t rank, uint32_t low, uint32_t high)
{
    struct host *host = host_of(sim, rank);
    if (high - low == 1) {
        release_one(sim, rank, host, sim->released[low], sim->s->kind[sim->released[low]]);
        return;
    }
    for (int kind = NB_SEND; kind <= NB_CALC; kind++)
        for (uint32_t i = low; i < high; i++)
            if (sim->s->kind[sim->released[i]] == kind)
                release_one(sim, rank, host, sim->released[i], kind);
}

/* After an event of `rank` that released, first, operations of `other` (up to `middle`): by rank.
 */
static inline void release_all(struct sim *sim, uint32_t rank, uint32_t other, uint32_t middle)
{
    uint32_t count = sim->released_count;
    if (rank == other)
        middle = 0;
    if (middle && other < rank)
        release(sim, other, 0, middle);
    if (count > middle)
        release(sim, rank, middle, count);
    if (middle && other > rank)
        release(sim, other, 0, middle);
    sim->released_count = 0;
}
#endif
