/* What the engine records for the critical path, where that is wanted: when each node began and
 * ended, and what it had to wait for last. */
#ifndef NB_RECORD_H
#define NB_RECORD_H

#include "state.h"

static inline struct mover *mover_of(const struct sim *sim, uint32_t rank, const uint64_t *clock)
{
    size_t clocks = (size_t)(sim->s->cpus + 2 * sim->s->nics);
    return sim->last + clocks * rank + (size_t)(clock - host_of(sim, rank)->clock);
}

static inline void record_move(struct sim *sim, uint32_t rank, const uint64_t *clock, uint32_t node,
                               int via)
{
    *mover_of(sim, rank, clock) = (struct mover){node, (uint32_t)via};
}

/* What did a node that begins at t have to wait for? One of its two clocks, or (several CPUs)
 * something that it needs. */
static void record_begin(struct sim *sim, uint32_t rank, uint32_t node, uint64_t t,
                         const uint64_t *cpu, const uint64_t *gap)
{
    const struct nb_record *record = sim->record;
    struct mover mover = {NONE, NB_VIA_START};
    if (*cpu == t)
        mover = *mover_of(sim, rank, cpu);
    else if (gap && *gap == t)
        mover = *mover_of(sim, rank, gap);
    else if (sim->ready_cause && node < (uint64_t)sim->s->operations && sim->ready[node] == t)
        mover = sim->ready_cause[node];
    record->begin[node] = t;
    /* a message: what it last waited for stands there already */
    if (mover.node == NONE && node >= (uint64_t)sim->s->operations)
        return;
    record->cause[node] = mover.node;
    record->via[node] = mover.node == NONE ? NB_VIA_START : (uint8_t)mover.via;
}

static inline uint32_t message_node(const struct sim *sim, uint32_t op)
{
    return (uint32_t)sim->s->operations + op;
}

static void record_send(struct sim *sim, uint32_t rank, uint32_t op, uint64_t t, uint64_t *cpu,
                        uint64_t *gap, const struct nb_times *times)
{
    record_begin(sim, rank, op, t, cpu, gap);
    record_move(sim, rank, cpu, op, NB_VIA_CPU);
    record_move(sim, rank, gap, op, NB_VIA_SEND_GAP);
    sim->record->end[op] = times->cpu;
    sim->record->arrival[op] = times->arrival;
}

static void record_message(struct sim *sim, uint32_t rank, uint32_t op, uint64_t t, uint64_t *cpu,
                           uint64_t *gap, const struct nb_times *times, uint32_t called_by)
{
    const struct nb_record *record = sim->record;
    uint32_t node = message_node(sim, op);
    record_begin(sim, rank, node, t, cpu, gap);
    if (record->arrival[op] == t) {
        record->cause[node] = op;
        record->via[node] = NB_VIA_NETWORK;
    } else if (called_by != NONE && *cpu != t && *gap != t && record->begin[called_by] == t) {
        record->cause[node] = called_by;
        record->via[node] = NB_VIA_BEGUN;
    }
    record->end[node] = times->cpu;
    record_move(sim, rank, cpu, node, NB_VIA_CPU);
    record_move(sim, rank, gap, node, NB_VIA_RECEIVE_GAP);
}
#endif
