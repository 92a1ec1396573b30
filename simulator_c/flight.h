/* exact, with links: a message is a flow from the moment its first byte leaves until its last one
 * has; L later it arrives, all of it. What shares nothing (no route, no bytes) is not slowed. */
#ifndef NB_FLIGHT_H
#define NB_FLIGHT_H

#include "contention.h"
#include "spread.h"
#include "state.h"

enum { FLIGHTS = 0xFFFFFFFEu }; /* the class of the wake-ups for flows */

/* Prepare for links; 0: no memory. */
static inline int flights_prepare(struct sim *sim)
{
    sim->receiving = sim->network;
    if (!sim->network->links)
        return 1;
    sim->without_bytes = *sim->network;
    sim->without_bytes.G = 0; /* the bytes are there when the message is */
    sim->without_bytes.spread = NULL;
    sim->receiving = &sim->without_bytes;
    sim->flights = nb_contention_new(sim->network->links);
    return sim->flights != NULL;
}

/* One wake-up stands in the queue: the one for the next that happens. */
static void flights_wake(struct sim *sim)
{
    uint64_t next = nb_contention_next(sim->flights);
    if (next == sim->flights_next)
        return;
    sim->flights_next = next;
    if (next == UINT64_MAX)
        return;
    sim->flights_seq = sim->seq++;
    queue_push(&sim->queue, &(struct event){next, sim->flights_seq, FLIGHTS, 0, WAKE});
}

static void flight_lands(struct sim *sim, const struct flight *flight, uint64_t now, uint64_t work)
{
    struct nb_network drawn;
    uint64_t L = (uint64_t)nb_drawn(sim->network, flight->op, &drawn)->L;
    if (sim->record) {
        sim->record->arrival[flight->op] = now + L;
        sim->record->slowed[flight->op] = work;
    }
    queue_push_old(&sim->queue,
                   &(struct event){now + L, flight->seq, flight->op, flight->to, flight->from});
}

/* A message leaves; `work`: what its bytes take at the NIC's rate. How much earlier than after them
 * the NIC can send again. */
static __attribute__((noinline, cold)) uint64_t flight_begins(struct sim *sim, uint32_t op,
                                                              uint32_t rank, uint64_t leaves,
                                                              uint64_t work)
{
    struct flight flight = {
        .begins = leaves,
        .since = leaves,
        .left = (double)work,
        .op = op,
        .from = rank,
        .to = (uint32_t)sim->s->peer[op],
        .seq = sim->seq++,
        .route = sim->network->links->route[op]
    };
    if (flight.route < 0 || work == 0) {
        flight_lands(sim, &flight, leaves + work, work);
        return 0;
    }
    if (nb_contention_add(sim->flights, &flight))
        flights_wake(sim);
    else
        sim->stop = NB_STOP_MEMORY;
    return sim->network->links->together ? work : 0;
}

/* A wake-up for flows: those that have ended arrive. */
static __attribute__((noinline, cold)) void flights_land(struct sim *sim, const struct event *event)
{
    const struct flight *ended;
    if (event->seq != sim->flights_seq)
        return;
    sim->flights_next = UINT64_MAX;
    int64_t count = nb_contention_advance(sim->flights, event->time, &ended);
    for (int64_t i = 0; i < count; i++)
        flight_lands(sim, &ended[i], event->time, event->time - ended[i].since);
    flights_wake(sim);
}
#endif
