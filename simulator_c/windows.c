/* Regular collectives, evaluated without a schedule window by window.
 *
 * What a rank does depends on the others through messages only, and a message takes at least o + L
 * to arrive. So all that happens within a window of that length is known, rank by rank, once all
 * windows before it are done: ranks are walked through in order of their numbers, contiguous in
 * memory, and only the events of one rank need to be put in order, exactly as the engine does it:
 * by the time at which CPU and NIC let them happen, then by the time of their creation. A window
 * that nothing happens in is skipped, and so are blocks of ranks, and groups of blocks, that have
 * nothing to do in it.
 */
#include "windows.h"

#include "inbox.h"
#include "order.h"
#include "parts.h"
#include "quiet.h"
#include "shapes.h"

/* --- a rank's rounds -------------------------------------------------------------------------- */

static inline void blame(struct world *w, struct rank *state, struct cause cause)
{
    state->released = cause.time;
    state->chain = cause.chain;
    state->origin = cause.origin;
    if (w->longer)
        w->longer[state - w->ranks] = cause.longer;
}

static inline struct cause cause_of(const struct world *w, const struct rank *state)
{
    return (struct cause){
        state->released, state->chain, state->origin, w->longer ? w->longer[state - w->ranks] : 0
    };
}

/* Lets a send go once those before it have gone. */
static void make_ready(struct world *w, struct rank *state, uint32_t round, struct cause cause)
{
    if (state->front == NO_SEND) {
        state->front = round;
        blame(w, state, cause);
        return;
    }
    const struct node content = {
        .time = cause.time,
        .chain = cause.chain,
        .origin = cause.origin,
        .longer = cause.longer,
        .from = FROM_ITSELF,
        .at = round
    };
    uint32_t node = new_node(w, (uint32_t)(state - w->ranks), content), *end = &state->aside;
    if (!node)
        return;
    while (*end)
        end = &w->nodes[*end].sibling;
    *end = node;
}

static void next_ready(struct world *w, struct rank *state)
{
    state->front = NO_SEND;
    for (uint32_t *link = &state->aside; *link; link = &w->nodes[*link].sibling) {
        uint32_t node = *link;
        if (w->nodes[node].from != FROM_ITSELF)
            continue;
        state->front = w->nodes[node].at;
        blame(w, state,
              (struct cause){
                  w->nodes[node].time, w->nodes[node].chain, w->nodes[node].origin,
                  w->nodes[node].longer
              });
        *link = w->nodes[node].sibling;
        free_node(w, node);
        return;
    }
}

/* Takes one message that was there before its round, or free-running its repetition, of several the
 * first round's; false if there is none. */
static int take_early(struct world *w, struct rank *state, int order, uint32_t *at)
{
    uint32_t *found = NULL;
    for (uint32_t *link = &state->aside; *link; link = &w->nodes[*link].sibling) {
        const struct node *node = &w->nodes[*link];
        if (node->from != FROM_ITSELF &&
            (order == NB_FREELY ? node->at / w->rounds : node->at) == state->at &&
            (!found || node->at < w->nodes[*found].at))
            found = link;
    }
    if (!found)
        return 0;
    uint32_t gone = *found;
    *at = w->nodes[gone].at;
    *found = w->nodes[gone].sibling;
    free_node(w, gone);
    return 1;
}

static inline void put_aside(struct world *w, struct rank *state, uint32_t message)
{
    if (w->lone) {
        state->aside |= UINT32_C(1) << w->nodes[message].at;
        free_node(w, message);
        return;
    }
    w->nodes[message].sibling = state->aside;
    state->aside = message;
}

static void go_on(struct world *w, uint32_t rank, struct cause cause, int order);

/* A part of the rank's round, or free-running of its repetition, is done. */
static inline void count_down(struct world *w, uint32_t rank, struct cause cause, int order)
{
    struct rank *state = &w->ranks[rank];
    if (--state->remaining == 0) {
        state->at++;
        go_on(w, rank, cause, order);
    }
}

/* At time t the receptions are posted: what has come before is received now. */
static void post(struct world *w, uint32_t rank, uint64_t t, int order)
{
    struct rank *state = &w->ranks[rank];
    const struct cause began = cause_of(w, state);
    const uint32_t current = state->at;
    w->posting[rank] = NEVER;
    for (uint32_t at = 0;
         state->at == current && state->aside && take_early(w, state, order, &at);) {
        struct cause cause = {
            t, noted(w, &began, 0, INDEX_RECEPTION + at % w->rounds, LOCAL), state->origin, 0
        };
        if (order == NB_FREELY && (at + 1) % w->rounds)
            make_ready(w, state, at % w->rounds + 1, cause);
        count_down(w, rank, cause, order);
    }
}

/* Begins a round, or free-running a repetition; true if it is over at once. Its receptions are
 * posted when the CPU is free, unless they were with the repetition's first round. */
static int begin(struct world *w, uint32_t rank, struct cause cause, int order)
{
    struct rank *state = &w->ranks[rank];
    const uint32_t number = order == NB_FREELY ? 0 : state->at % w->rounds;
    struct nb_round round = nb_round_of(w->job, rank,
                                        order == NB_FREELY ? 0 : state->at / w->rounds, number);
    state->remaining = (round.sends + round.receptions) * (order == NB_FREELY ? w->rounds : 1);
    state->front = round.sends ? 0 : NO_SEND;
    blame(w, state, cause);
    if (order == NB_ORDERED ? number == 0 : round.receptions > 0) {
        if (w->posting)
            w->posting[rank] = state->cpu;
    } else if (order == NB_ORDERED && w->lone) {
        const uint32_t early = state->aside & UINT32_C(1) << state->at;
        state->remaining -= early != 0;
        state->aside -= early;
    } else if (order == NB_ORDERED && state->aside && (!w->posting || w->posting[rank] == NEVER)) {
        for (uint32_t at = 0; take_early(w, state, order, &at);)
            state->remaining--;
    }
    return state->remaining == 0;
}

/* Between repetitions there is always a computation, if only of 0 ns, that waits for all and that
 * all waits for. */
static int computes(const struct world *w, uint32_t at, int order)
{
    return (order == NB_FREELY || at % w->rounds == 0) && (at || w->job->compute_ns);
}

/* The rank goes on to its next rounds, as far as it can without anything happening. */
static void go_on(struct world *w, uint32_t rank, struct cause cause, int order)
{
    struct rank *state = &w->ranks[rank];
    state->front = NO_SEND;
    while (state->at < w->total) {
        if (computes(w, state->at, order)) {
            state->front = COMPUTATION;
            blame(w, state, cause);
            return;
        }
        if (!begin(w, rank, cause, order))
            return;
        state->at++;
    }
}

/* --- events ----------------------------------------------------------------------------------- */

static void compute(struct world *w, uint32_t rank, uint64_t t, int order)
{
    struct rank *state = &w->ranks[rank];
    const struct nb_implicit *job = w->job;
    uint32_t repetition = order == NB_FREELY ? state->at : state->at / w->rounds;
    uint64_t ns = !job->compute_ns
                      ? 0
                      : (uint64_t)job->compute_ns[repetition * job->compute_repetitions +
                                                  rank * job->compute_ranks];
    struct nb_times times = nb_calc(w->network, noise_within(w, rank, t, ns * 1000), rank, t, ns);
    struct cause cause = cause_of(w, state);
    cause = (struct cause){t, noted(w, &cause, 0, 1, LOCAL), state->origin, 0};
    if (times.noise)
        job->noise[rank] += times.noise;
    state->cpu = times.cpu;
    if (begin(w, rank, cause, order)) {
        state->at++;
        go_on(w, rank, cause, order);
    }
}

static inline void deliver(struct world *w, uint32_t to, struct node message)
{
    if (to - w->first >= w->last - w->first) {
        nb_send_parcel(w, to, &message);
        return;
    }
    uint32_t node = new_node(w, to, message);
    if (!node)
        return;
    w->ranks[to].inbox = meld(w, w->ranks[to].inbox, node, 0);
    if (message.time < w->next[to])
        w->next[to] = message.time;
    if (message.time < w->next_of_block[to / BLOCK])
        w->next_of_block[to / BLOCK] = message.time;
    if (message.time < w->next_of_group[to / BLOCK / GROUP])
        w->next_of_group[to / BLOCK / GROUP] = message.time;
    if (message.time < w->soonest)
        w->soonest = message.time;
}

/* What the delivery of a message will touch. Always inlined, as in prefetch.h. */
static inline __attribute__((always_inline)) void fetch_receiver(const struct world *w, uint32_t to)
{
    if (to - w->first >= w->last - w->first)
        return;
    __builtin_prefetch(&w->ranks[to], 1);
    __builtin_prefetch(&w->nodes[own_node(w, to)], 1);
    __builtin_prefetch(&w->next[to], 1);
}

static inline void send(struct world *w, uint32_t rank, uint64_t t, int order)
{
    struct rank *state = &w->ranks[rank];
    uint32_t repetition = order == NB_FREELY ? state->at : state->at / w->rounds,
             round = order == NB_FREELY ? state->front : state->at % w->rounds;
    struct nb_way way = order == NB_FREELY
                            ? nb_shift_way(w->job, rank, round)
                            : nb_way_of(w->job, rank, repetition, round, state->front);
    fetch_receiver(w, way.to);
    int64_t bytes = nb_bytes_of(w->job, rank, round, way.way);
    struct nb_times times = nb_send(w->network, noise_within(w, rank, t, occupied(w, bytes)), rank,
                                    t, (uint64_t)bytes);
    if (times.noise)
        w->job->noise[rank] += times.noise;
    state->cpu = times.cpu;
    state->send_gap = times.gap;
    w->messages++;
    const uint64_t waited = t - state->released;
    struct cause cause = cause_of(w, state);
    cause.chain = noted(w, &cause, t, 1 + (order == NB_FREELY ? 0 : state->front), SENT);
    cause.time = t;
    stepped(w, &cause, waited, w->shortest_wait);
    const struct node message = {
        .time = times.arrival,
        .created = t,
        .chain = cause.chain,
        .origin = cause.origin,
        .from = rank,
        .at = repetition * w->rounds + way.round,
        .way = way.way,
        .waited = at_most(waited),
        .longer = cause.longer
    };
    deliver(w, way.to, message);
    if (order == NB_FREELY)
        next_ready(w, state);
    else if (++state->front == nb_round_of(w->job, rank, repetition, round).sends)
        state->front = NO_SEND;
    count_down(w, rank, cause, order);
}

static inline void receive(struct world *w, uint32_t rank, uint64_t t, uint32_t message, int order)
{
    struct rank *state = &w->ranks[rank];
    const struct node *node = &w->nodes[message];
    const uint32_t repetition = node->at / w->rounds, round = node->at - repetition * w->rounds;
    int64_t bytes = nb_bytes_of(w->job, node->from, round, node->way);
    struct nb_times times = nb_receive(w->network, noise_within(w, rank, t, occupied(w, bytes)),
                                       rank, t, (uint64_t)bytes);
    if (times.noise)
        w->job->noise[rank] += times.noise;
    state->cpu = times.cpu;
    state->receive_gap = times.gap;
    if (state->front == COMPUTATION || (w->posting && w->posting[rank] != NEVER) ||
        (order == NB_FREELY ? repetition : node->at) != state->at) {
        put_aside(w, state, message); /* it is not posted yet, or not wanted yet */
        return;
    }
    struct cause cause = {t, received(w, node->chain, t), node->origin, node->longer};
    stepped(w, &cause, t - node->created, w->shortest_flight);
    free_node(w, message);
    if (order == NB_FREELY && round + 1 < w->rounds)
        make_ready(w, state, round + 1, cause);
    count_down(w, rank, cause, order);
}

static inline int64_t size_of(const struct world *w, const struct node *message)
{
    return nb_bytes_of(w->job, message->from, message->at % w->rounds, message->way);
}

/* Were these two messages created in the same moment, one does not know which first, and would the
 * other order make a difference? */
static inline int matters(const struct world *w, const struct node *a, const struct node *b)
{
    return !w->history && a->created == b->created && a->waited == b->waited &&
           a->chain != b->chain && a->from != b->from &&
           (!w->even || (a->origin == b->origin && a->longer == b->longer)) &&
           (a->at != b->at || size_of(w, a) != size_of(w, b));
}

/* The message that comes next is taken out of its heap. */
static inline uint32_t take(struct world *w, struct rank *state)
{
    int arrived = state->waiting != 0;
    uint32_t *heap = arrived ? &state->waiting : &state->inbox, message = *heap;
    *heap = w->nodes[message].child ? without_root(w, message, arrived) : 0;
    if (*heap && (arrived || w->nodes[*heap].time == w->nodes[message].time) &&
        matters(w, &w->nodes[message], &w->nodes[*heap]))
        w->ties++;
    return message;
}

/* Was a message created before the rank's next operation was let go? */
static int was_created_first(struct world *w, const struct rank *state, const struct node *message)
{
    if (message->created != state->released)
        return message->created < state->released;
    if (w->history)
        return nb_was_first(w->history, message->chain, state->chain);
    /* Let go by a reception, whose message had been on its way for longer than the other's send had
     * waited. */
    w->ties += !w->even || message->waited >= w->shortest_flight;
    return 0;
}

/* All that happens to a rank before `end`; returns when it goes on. */
static inline __attribute__((always_inline)) uint64_t advance(struct world *w, uint32_t rank,
                                                              uint64_t end, int order)
{
    struct rank *state = &w->ranks[rank];
    for (;;) {
        uint64_t open = state->cpu > state->receive_gap ? state->cpu : state->receive_gap,
                 message = NEVER, operation = NEVER, posting = NEVER;
        while (state->inbox && w->nodes[state->inbox].time <= open) {
            uint32_t node = state->inbox;
            state->inbox = w->nodes[node].child ? without_root(w, node, 0) : 0;
            w->nodes[node].child = 0;
            state->waiting = meld(w, state->waiting, node, 1);
        }
        if (state->waiting || state->inbox)
            message = state->waiting ? open : w->nodes[state->inbox].time;
        if (w->posting && w->posting[rank] != NEVER)
            posting = w->posting[rank];
        if (state->front != NO_SEND)
            operation = state->front != COMPUTATION && state->send_gap > state->cpu
                            ? state->send_gap
                            : state->cpu;
        const int post_first = posting < operation;
        operation = post_first ? posting : operation;
        int first = message < operation;
        if (message == operation && message < end) {
            first = was_created_first(w, state,
                                      &w->nodes[state->waiting ? state->waiting : state->inbox]);
        }
        if ((first ? message : operation) >= end)
            return first ? message : operation;
        if (first)
            receive(w, rank, message, take(w, state), order);
        else if (post_first)
            post(w, rank, posting, order);
        else if (state->front == COMPUTATION)
            compute(w, rank, operation, order);
        else
            send(w, rank, operation, order);
    }
}

/* What will be needed of a rank: itself, its message, until when it is quiet. Always inlined, as in
 * prefetch.h. */
static inline __attribute__((always_inline)) void fetch(const struct world *w, uint32_t rank)
{
    __builtin_prefetch(&w->ranks[rank], 1);
    __builtin_prefetch(&w->nodes[own_node(w, rank)], 1);
    if (w->quiet)
        __builtin_prefetch(&w->quiet[rank], 1);
}

/* The ranks of a block that have something to do before `end`, the last first; of the others, when
 * the first has. */
static inline uint32_t busy_ranks(const struct world *w, uint32_t first, uint32_t last,
                                  uint64_t end, uint32_t busy[BLOCK], uint64_t *soonest)
{
    uint32_t count = 0;
    for (uint32_t rank = last; rank-- > first;) {
        const uint64_t next = w->next[rank];
        busy[count] = rank;
        count += next < end;
        *soonest = next >= end && next < *soonest ? next : *soonest;
    }
    return count;
}

/* Most patterns send upwards first, so downwards the receiver has already taken its last message,
 * and its state node is free for the next. */
static inline __attribute__((always_inline)) void block_window(struct world *w, uint32_t block,
                                                               uint64_t end, int order)
{
    const uint32_t ranks = w->job->ranks, first = block * BLOCK,
                   last = ranks - first > BLOCK ? first + BLOCK : ranks;
    uint32_t busy[BLOCK];
    uint64_t soonest = NEVER;
    const uint32_t count = busy_ranks(w, first, last, end, busy, &soonest);
    w->next_of_block[block] = NEVER; /* lowered by messages that arrive meanwhile */
    for (uint32_t i = 0; i < count && i < RANKS_AHEAD; i++)
        fetch(w, busy[i]);
    for (uint32_t i = 0; i < count; i++) {
        if (i + RANKS_AHEAD < count)
            fetch(w, busy[i + RANKS_AHEAD]);
        w->next[busy[i]] = advance(w, busy[i], end, order);
        if (w->next[busy[i]] < soonest)
            soonest = w->next[busy[i]];
    }
    if (soonest < w->next_of_block[block])
        w->next_of_block[block] = soonest;
}

static inline __attribute__((always_inline)) void group_window(struct world *w, uint32_t group,
                                                               uint64_t end, int order)
{
    const uint32_t blocks = (w->job->ranks + BLOCK - 1) / BLOCK, first = group * GROUP,
                   last = blocks - first > GROUP ? first + GROUP : blocks;
    uint64_t soonest = NEVER;
    for (uint32_t block = last; block-- > first;)
        if (w->next_of_block[block] < end)
            block_window(w, block, end, order);
    for (uint32_t block = first; block < last; block++)
        if (w->next_of_block[block] < soonest)
            soonest = w->next_of_block[block];
    w->next_of_group[group] = soonest;
}

static inline __attribute__((always_inline)) void window(struct world *w, uint64_t end, int order)
{
    const uint32_t first = w->first / PART;
    for (uint32_t group = (w->last + PART - 1) / PART; group-- > first;) {
        if (w->next_of_group[group] < end)
            group_window(w, group, end, order);
        if (w->next_of_group[group] < w->soonest)
            w->soonest = w->next_of_group[group];
    }
}

void nb_begin_ranks(struct world *w)
{
    for (uint32_t rank = w->first; rank < w->last; rank++) {
        const uint32_t event = w->history ? 4 * rank + AT_START : 0;
        go_on(w, rank, (struct cause){0, event, w->even ? 0 : rank, 0}, w->job->order);
    }
}

void nb_run_window(struct world *w, uint64_t begin)
{
    const uint64_t end = begin + (uint64_t)(w->network->o + w->network->L);
    w->soonest = NEVER;
    if (w->job->order == NB_FREELY)
        window(w, end, NB_FREELY);
    else if (w->job->order == NB_ORDERED)
        window(w, end, NB_ORDERED);
    else
        window(w, end, NB_BLOCKING);
}

void nb_open_parcels(struct world *w, const struct world *from)
{
    for (uint32_t i = 0; i < from->parcel_count; i++)
        if (from->parcels[i].to - w->first < w->last - w->first)
            deliver(w, from->parcels[i].to, from->parcels[i].message);
}
