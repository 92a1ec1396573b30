/* What happens: calculations, sends, messages, receives, and the turn of those that waited. */
#ifndef NB_EVENTS_H
#define NB_EVENTS_H

#include "crowd.h"
#include "release.h"

enum { LATEST = 62 }; /* bits of a time */

static inline void add_noise(struct sim *sim, uint32_t rank, uint64_t noise)
{
    if (sim->out->noise)
        sim->out->noise[rank] += noise;
}

static inline int too_long(struct sim *sim, uint32_t rank, uint32_t op, uint64_t t, uint64_t length)
{
    if (nb_noise_fits(sim->network, sim->noise, rank, t, length))
        return 0;
    sim->stop = NB_STOP_LONG;
    sim->out->stopped_at = op;
    return 1;
}

/* exact: an end beyond what times are counted up to. (compat counts modulo 2^64, as the reference
 * does; its events' times are watched.) */
static inline int too_late(struct sim *sim, uint32_t op, uint64_t end)
{
    if (!(end >> LATEST) || sim->compat)
        return 0;
    sim->stop = NB_STOP_TIME;
    sim->out->stopped_at = op;
    return 1;
}

static inline void do_calc(struct sim *sim, struct host *host, const struct event *event)
{
    uint32_t op = event->op, rank = event->host, cpu = cpu_of(sim, op);
    uint64_t *clock = cpu_clock(sim, host, cpu), t = event->time,
             work = column_entry(&sim->s->size, op);
    if (*clock > t) {
        wait_add(sim, rank, class_of(sim, NB_CALC, cpu, 0), event, *clock);
        return;
    }
    if (too_long(sim, rank, op, t, work))
        return;
    struct nb_times times = nb_calc(sim->network, sim->noise, rank, t, work);
    if (too_late(sim, op, times.cpu))
        return;
    add_noise(sim, rank, times.noise);
    if (sim->record) {
        record_begin(sim, rank, op, t, clock, NULL);
        record_move(sim, rank, clock, op, NB_VIA_CPU);
        sim->record->end[op] = times.cpu;
    }
    *clock = times.cpu;
    clocks_moved(sim, rank);
    has_begun(sim, host, op, t);
    is_done(sim, host, op, times.cpu);
    release_all(sim, rank, rank, 0);
}

static inline void do_send(struct sim *sim, struct host *host, const struct event *event)
{
    uint32_t op = event->op, rank = event->host, cpu = cpu_of(sim, op), nic = nic_of(sim, op);
    uint64_t *clock = cpu_clock(sim, host, cpu), *gap = send_clock(sim, host, nic), t = event->time,
             free = nb_later(*clock, *gap);
    if (free > t) {
        wait_add(sim, rank, class_of(sim, NB_SEND, cpu, nic), event, free);
        return;
    }
    if (too_long(sim, rank, op, t, (uint64_t)sim->network->piece->o))
        return;
    uint64_t bytes = column_entry(&sim->s->size, op);
    struct nb_times times = nb_send(sim->network, sim->noise, rank, t, bytes);
    if (too_late(sim, op, times.cpu))
        return;
    add_noise(sim, rank, times.noise);
    if (sim->record)
        record_send(sim, rank, op, t, clock, gap, &times);
    *clock = times.cpu;
    *gap = times.gap;
    clocks_moved(sim, rank);
    uint32_t peer = (uint32_t)sim->s->peer[op];
    queue_push(&sim->queue, &(struct event){times.arrival, sim->seq++, op, peer, rank});
    has_begun(sim, host, op, t);
    if (bytes <= sim->network->S)
        is_done(sim, host, op, times.cpu);
    release_all(sim, rank, rank, 0);
}

/* A rendezvous: the sender of a large message may go on, now that it has been matched. */
static void send_matched(struct sim *sim, uint32_t sender, uint32_t op, uint32_t like, uint64_t t,
                         uint32_t node)
{
    struct host *host = host_of(sim, sender);
    uint64_t *clocks[2] = {
        cpu_clock(sim, host, cpu_of(sim, like)), send_clock(sim, host, nic_of(sim, like))
    };
    for (int i = 0; i < 2; i++) {
        if (sim->record && *clocks[i] < t)
            record_move(sim, sender, clocks[i], node, NB_VIA_RENDEZVOUS);
        *clocks[i] = nb_later(*clocks[i], t);
    }
    is_done_by(sim, host, op, t, (struct mover){node, NB_VIA_RENDEZVOUS});
}

/* Which operation's CPU and NIC take a message: compat: the send's; exact: the receive's that it
 * would match now; NONE: CPU 0, NIC 0. */
static inline uint32_t taker(struct sim *sim, struct host *host, const struct event *event)
{
    if (!sim->several || sim->compat)
        return event->op;
    return match_posted(sim, host, event->aux, (uint32_t)tag_of(sim, event->op), 0);
}

static inline void message_waits(struct sim *sim, const struct event *event, uint32_t cpu,
                                 uint32_t nic, uint64_t free)
{
    struct host *host = host_of(sim, event->host);
    if (!sim->pending) {
        wait_add(sim, event->host, class_of(sim, NB_RECV, cpu, nic), event, free);
        return;
    }
    if (sim->record)
        record_begin(sim, event->host, message_node(sim, event->op), free,
                     cpu_clock(sim, host, cpu), receive_clock(sim, host, nic));
    message_pends(sim, event, class_of(sim, NB_RECV, cpu, nic), free);
}

static inline void message_taken(struct sim *sim, struct host *host, const struct event *event,
                                 uint32_t receive, uint64_t end, uint64_t bytes)
{
    uint32_t op = event->op, rank = event->host, sender = event->aux, middle = 0;
    if (bytes > sim->network->S) {
        send_matched(sim, sender, op, op, event->time, message_node(sim, op));
        middle = sim->released_count;
    }
    if (sim->record)
        sim->record->end[receive] = end;
    sim->out->unmatched--;
    is_done_by(sim, host, receive, end, (struct mover){message_node(sim, op), NB_VIA_CPU});
    release_all(sim, rank, sender, middle);
}

static inline void message_stored(struct sim *sim, struct host *host, const struct event *event,
                                  uint64_t end)
{
    uint32_t i = store_message(sim, host, event->op, event->aux);
    sim->out->unreceived++;
    if (!sim->ready || i == NONE)
        return;
    if (i >= sim->handled_room) {
        uint64_t *handled = realloc(sim->handled, sim->entries.room * sizeof *handled);
        if (!handled) {
            sim->stop = NB_STOP_MEMORY;
            return;
        }
        sim->handled = handled;
        sim->handled_room = sim->entries.room;
    }
    sim->handled[i] = end;
}

static inline void do_message(struct sim *sim, struct host *host, const struct event *event)
{
    if (sim->pending && sim->where[event->op] == TAKEN)
        return;
    uint32_t op = event->op, rank = event->host, like = taker(sim, host, event);
    uint32_t cpu = like == NONE ? 0 : cpu_of(sim, like), nic = like == NONE ? 0 : nic_of(sim, like);
    uint64_t *clock = cpu_clock(sim, host, cpu), *gap = receive_clock(sim, host, nic),
             t = event->time, free = nb_later(*clock, *gap);
    if (free > t) {
        message_waits(sim, event, cpu, nic, free);
        return;
    }
    if (too_long(sim, rank, op, t, (uint64_t)sim->network->piece->o))
        return;
    uint64_t bytes = column_entry(&sim->s->size, op);
    struct nb_times times = nb_receive(sim->network, sim->noise, rank, t, bytes);
    if (too_late(sim, op, times.cpu))
        return;
    add_noise(sim, rank, times.noise);
    if (sim->record)
        record_message(sim, rank, op, t, clock, gap, &times, sim->pending ? like : NONE);
    *clock = times.cpu;
    *gap = times.gap;
    clocks_moved(sim, rank);
    if (sim->pending)
        message_settled(sim, rank, op, event->aux);
    uint32_t receive = match_posted(sim, host, event->aux, (uint32_t)tag_of(sim, op), 1);
    if (sim->pending && receive != NONE)
        receive_gone(sim, host, event, receive);
    if (receive != NONE)
        message_taken(sim, host, event, receive, times.cpu, bytes);
    else
        message_stored(sim, host, event, times.cpu);
}

static inline void receive_posted(struct sim *sim, struct host *host, uint32_t rank, uint32_t op,
                                  uint64_t t)
{
    post_receive(sim, host, op);
    if (sim->pending)
        call_pending(sim, rank, op, t);
    sim->out->unmatched++;
    has_begun(sim, host, op, t);
    release_all(sim, rank, rank, 0);
}

/* The reference looks at the receive's size to see whether the send waits; `exact` at the
 * message's. */
static inline int is_rendezvous(const struct sim *sim, uint32_t send, uint32_t receive)
{
    uint64_t S = sim->network->S;
    return column_entry(&sim->s->size, send) > S &&
           (!sim->compat || column_entry(&sim->s->size, receive) > S);
}

static inline void do_receive(struct sim *sim, struct host *host, const struct event *event)
{
    uint32_t op = event->op, rank = event->host, middle = 0;
    uint64_t t = event->time;
    uint32_t i = match_arrived(sim, host, (uint32_t)sim->s->peer[op], (uint32_t)tag_of(sim, op));
    if (i == NONE) {
        receive_posted(sim, host, rank, op, t);
        return;
    }
    uint32_t send = entry_of(sim, i)->op, sender = entry_of(sim, i)->from;
    uint64_t end = sim->ready ? nb_later(t, sim->handled[i]) : t;
    pool_give(&sim->entries, sizeof(struct entry), i);
    sim->out->unreceived--;
    if (sim->record)
        sim->record->end[op] = end;
    if (sender == rank)
        has_begun(sim, host, op, t);
    if (is_rendezvous(sim, send, op))
        send_matched(sim, sender, send, sim->compat ? op : send, t, op);
    if (sender != rank) {
        middle = sim->released_count;
        has_begun(sim, host, op, t);
    }
    is_done_by(sim, host, op, end,
               end > t ? (struct mover){message_node(sim, send), NB_VIA_CPU}
                       : (struct mover){op, NB_VIA_BEGUN});
    release_all(sim, rank, sender, middle);
}

static inline void do_operation(struct sim *sim, struct host *host, const struct event *event)
{
    switch (sim->s->kind[event->op]) {
    case NB_SEND: do_send(sim, host, event); break;
    case NB_RECV: do_receive(sim, host, event); break;
    default: do_calc(sim, host, event);
    }
}

/* The first of a crowd tries; then the next one's turn comes. */
static void do_crowd_wake(struct sim *sim, struct host *host, const struct event *event)
{
    struct event first;
    if (!crowd_turn(sim, event, &first))
        return;
    const uint32_t number = event->op - sim->message_class, class = crowd_at(sim, number)->class;
    if (class_by(sim, taker(sim, host, &first)) != class ||
        class_free(sim, host, class) <= event->time) {
        crowd_drop(sim, number);
        do_message(sim, host, &first);
    }
    if (!sim->stop)
        crowd_again(sim, number);
}

static void do_wake(struct sim *sim, struct host *host, const struct event *event)
{
    uint32_t rank = event->host, class = event->op;
    if (sim->pending && class >= sim->message_class) {
        do_crowd_wake(sim, host, event);
        return;
    }
    if (host->waiting == NONE || wait_class(sim, host->waiting, class)->seq != event->seq)
        return;
    uint64_t free = class_free(sim, host, class);
    if (free <= event->time) {
        struct event first = wait_take(sim, rank, class);
        if (first.aux == OPERATION)
            do_operation(sim, host, &first);
        else
            do_message(sim, host, &first);
        free = class_free(sim, host, class);
    }
    wait_again(sim, rank, class, free);
}

static inline void do_event(struct sim *sim, const struct event *event)
{
    struct host *host = host_of(sim, event->host);
    if (sim->pending) {
        uint32_t passed = sim->passed > sim->turn ? sim->passed : sim->turn + 1;
        sim->passed = event->time == sim->now && passed > event->seq ? passed : event->seq;
        sim->turn = event->seq;
    }
    sim->now = event->time;
    if (event->time >> LATEST) {
        sim->stop = NB_STOP_TIME;
        sim->out->stopped_at = event->aux == WAKE ? -1 : (int64_t)event->op;
    } else if (event->aux == OPERATION) {
        do_operation(sim, host, event);
    } else if (event->aux == WAKE) {
        do_wake(sim, host, event);
    } else {
        do_message(sim, host, event);
    }
}
#endif
