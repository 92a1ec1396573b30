/* Exchanges round by round, every rank the same way round the ring, where nothing is in the way.
 *
 * Undisturbed, a message of a round mostly arrives after its receiver's own send of that round has
 * begun. If that is so at every rank and in every round, each rank meets send, reception, send,
 * reception ... in this order whatever its rounds wait for: the message of the next round arrives
 * after that round's send, which begins no sooner than this round's reception. So a round is two
 * passes over arrays of clocks, with no events to put in order. Where it is not so, or times leave
 * 64 bits, nothing is decided yet: the windows of windows.c begin anew.
 */
#include "rounds.h"

#include <string.h>

#include "quiet.h"

/* What an operation that meets no noise adds to the time at which it begins, ps. */
struct pace {
    uint64_t send, receive, gap, arrival, bytes;
};

/* Of each rank, ps. begun: its last send, where there is noise. */
struct clocks {
    uint64_t *restrict cpu;
    uint64_t *restrict send_gap;
    uint64_t *restrict receive_gap;
    uint64_t *restrict arrival;
    uint64_t *restrict begun;
};

static struct pace pace_of(const struct nb_network *network, uint64_t bytes)
{
    const struct nb_times sent = nb_send(network, NULL, 0, 0, bytes),
                          received = nb_receive(network, NULL, 0, 0, bytes);
    return (struct pace){sent.cpu, received.cpu, sent.gap, sent.arrival, bytes};
}

/* Ranks first .. last - 1 send; `there`: when the message arrives at the receiver of the first, of
 * the next, ... */
static void send_quietly(const struct clocks *clocks, size_t first, size_t last,
                         uint64_t *restrict there, struct pace pace)
{
    uint64_t *restrict cpu = clocks->cpu + first, *restrict send_gap = clocks->send_gap + first;
    for (size_t i = 0; i < last - first; i++) {
        const uint64_t t = nb_later(cpu[i], send_gap[i]);
        cpu[i] = t + pace.send;
        send_gap[i] = t + pace.gap;
        there[i] = t + pace.arrival;
    }
}

/* All ranks receive; false if a message has come before its receiver's send. */
static int receive_quietly(const struct clocks *clocks, size_t ranks, struct pace pace)
{
    uint64_t *restrict cpu = clocks->cpu, *restrict receive_gap = clocks->receive_gap;
    const uint64_t *restrict arrival = clocks->arrival;
    int odd = 0;
    for (size_t rank = 0; rank < ranks; rank++) {
        const uint64_t sent = cpu[rank] - pace.send, there = arrival[rank],
                       t = nb_later(nb_later(there, cpu[rank]), receive_gap[rank]);
        odd |= (there <= sent) | (t > LONGEST);
        cpu[rank] = t + pace.receive;
        receive_gap[rank] = t + pace.gap;
    }
    return !odd;
}

static void send_in_noise(struct world *w, const struct clocks *clocks, size_t first, size_t last,
                          uint64_t *restrict there, struct pace pace)
{
    for (size_t rank = first; rank < last; rank++) {
        const uint64_t t = nb_later(clocks->cpu[rank], clocks->send_gap[rank]);
        const struct nb_noise *noise = noise_within(w, (uint32_t)rank, t, pace.send);
        const struct nb_times times = nb_send(w->network, noise, (uint32_t)rank, t, pace.bytes);
        clocks->begun[rank] = t;
        clocks->cpu[rank] = times.cpu;
        clocks->send_gap[rank] = times.gap;
        there[rank - first] = times.arrival;
        w->job->noise[rank] += times.noise;
    }
}

static int receive_in_noise(struct world *w, const struct clocks *clocks, struct pace pace)
{
    int odd = 0;
    for (size_t rank = 0; rank < w->job->ranks; rank++) {
        const uint64_t there = clocks->arrival[rank],
                       t = nb_later(nb_later(there, clocks->cpu[rank]), clocks->receive_gap[rank]);
        const struct nb_noise *noise = noise_within(w, (uint32_t)rank, t, pace.send);
        const struct nb_times times = nb_receive(w->network, noise, (uint32_t)rank, t, pace.bytes);
        odd |= (there <= clocks->begun[rank]) | (t > LONGEST);
        clocks->cpu[rank] = times.cpu;
        clocks->receive_gap[rank] = times.gap;
        w->job->noise[rank] += times.noise;
    }
    return !odd;
}

static int exchange(struct world *w, const struct clocks *clocks, size_t step, struct pace pace)
{
    const size_t ranks = w->job->ranks;
    if (w->noise) {
        send_in_noise(w, clocks, 0, ranks - step, clocks->arrival + step, pace);
        send_in_noise(w, clocks, ranks - step, ranks, clocks->arrival, pace);
        return receive_in_noise(w, clocks, pace);
    }
    send_quietly(clocks, 0, ranks - step, clocks->arrival + step, pace);
    send_quietly(clocks, ranks - step, ranks, clocks->arrival, pace);
    return receive_quietly(clocks, ranks, pace);
}

static void compute_all(struct world *w, uint64_t *restrict cpu, uint32_t repetition)
{
    const struct nb_implicit *job = w->job;
    for (size_t rank = 0; rank < job->ranks; rank++) {
        const uint64_t ns = (uint64_t)job->compute_ns[repetition * job->compute_repetitions +
                                                      rank * job->compute_ranks];
        const struct nb_times times = nb_calc(w->network,
                                              noise_within(w, (uint32_t)rank, cpu[rank], 1000 * ns),
                                              (uint32_t)rank, cpu[rank], ns);
        cpu[rank] = times.cpu;
        if (times.noise)
            job->noise[rank] += times.noise;
    }
}

static int all_rounds(struct world *w, const struct clocks *clocks)
{
    const struct nb_implicit *job = w->job;
    for (uint32_t repetition = 0; repetition < job->repetitions; repetition++) {
        if (job->compute_ns)
            compute_all(w, clocks->cpu, repetition);
        for (uint32_t round = 0; round < job->rounds; round++)
            if (!exchange(w, clocks, job->step[round],
                          pace_of(w->network, (uint64_t)job->bytes[round])))
                return 0;
    }
    return 1;
}

int nb_by_rounds(struct nb_implicit *job, const struct nb_network *network,
                 const struct nb_noise *noise)
{
    struct world w = {.job = job, .network = network, .noise = noise};
    const size_t ranks = job->ranks, size = sizeof(uint64_t);
    if (job->pattern != NB_SHIFT || job->parts || ranks < 2 || (noise && !job->by_rounds))
        return 0;
    memset(job->finish, 0, ranks * size);
    if (noise)
        memset(job->noise, 0, ranks * size);
    const struct clocks clocks = {
        job->finish, nb_room_for(&w, ranks, size), nb_room_for(&w, ranks, size),
        nb_room_for(&w, ranks, size), noise ? nb_room_for(&w, ranks, size) : NULL
    };
    w.quiet = noise ? nb_room_for(&w, ranks, size) : NULL;
    const int done = clocks.send_gap && clocks.receive_gap && clocks.arrival &&
                     (!noise || (clocks.begun && w.quiet)) && all_rounds(&w, &clocks);
    nb_give_all_back(&w);
    job->messages = (uint64_t)ranks * job->rounds * job->repetitions;
    job->windows = job->ties = 0;
    return done;
}
