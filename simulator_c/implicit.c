/* Regular collectives, evaluated without a schedule; those that go round the ring undisturbed by
 * rounds.h.
 *
 * What a rank does depends on the others through messages only, and a message takes at least o + L
 * to arrive. So all that happens within a window of that length is known, rank by rank, once all
 * windows before it are done: ranks are walked through in order of their numbers, contiguous in
 * memory, and only the events of one rank need to be put in order, exactly as the engine does it:
 * by the time at which CPU and NIC let them happen, then by the time of their creation. A window
 * that nothing happens in is skipped, and so are blocks of ranks, and groups of blocks, that have
 * nothing to do in it.
 */
#define _DEFAULT_SOURCE /* madvise */
#include "implicit.h"

#include "inbox.h"
#include "rounds.h"

/* --- a rank's rounds -------------------------------------------------------------------------- */

static inline void blame(struct world *w, struct rank *own, struct cause cause)
{
    own->released = cause.time;
    own->chain = cause.chain;
    own->origin = cause.origin;
    if (w->longer)
        w->longer[own - w->ranks] = cause.longer;
}

static inline struct cause cause_of(const struct world *w, const struct rank *own)
{
    return (struct cause){
        own->released, own->chain, own->origin, w->longer ? w->longer[own - w->ranks] : 0
    };
}

/* Lets a send go once those before it have gone. */
static void make_ready(struct world *w, struct rank *own, uint32_t round, struct cause cause)
{
    if (own->front == NONE) {
        own->front = round;
        blame(w, own, cause);
        return;
    }
    const struct node content = {
        .time = cause.time,
        .chain = cause.chain,
        .origin = cause.origin,
        .longer = cause.longer,
        .from = READY,
        .at = round
    };
    uint32_t node = new_node(w, (uint32_t)(own - w->ranks), content), *end = &own->aside;
    if (!node)
        return;
    while (*end)
        end = &w->nodes[*end].sibling;
    *end = node;
}

static void next_ready(struct world *w, struct rank *own)
{
    own->front = NONE;
    for (uint32_t *link = &own->aside; *link; link = &w->nodes[*link].sibling) {
        uint32_t node = *link;
        if (w->nodes[node].from != READY)
            continue;
        own->front = w->nodes[node].at;
        blame(w, own,
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
static int take_early(struct world *w, struct rank *own, int order, uint32_t *at)
{
    uint32_t *found = NULL;
    for (uint32_t *link = &own->aside; *link; link = &w->nodes[*link].sibling) {
        const struct node *node = &w->nodes[*link];
        if (node->from != READY &&
            (order == NB_FREELY ? node->at / w->rounds : node->at) == own->at &&
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

static void go_on(struct world *w, uint32_t rank, struct cause cause, int order);

/* A part of the rank's round, or free-running of its repetition, is done. */
static inline void count_down(struct world *w, uint32_t rank, struct cause cause, int order)
{
    struct rank *own = &w->ranks[rank];
    if (--own->remaining == 0) {
        own->at++;
        go_on(w, rank, cause, order);
    }
}

/* At time t the receptions are posted: what has come before is received now. */
static void post(struct world *w, uint32_t rank, uint64_t t, int order)
{
    struct rank *own = &w->ranks[rank];
    const struct cause began = cause_of(w, own);
    const uint32_t current = own->at;
    w->posting[rank] = NEVER;
    for (uint32_t at = 0; own->at == current && own->aside && take_early(w, own, order, &at);) {
        struct cause cause = {
            t, noted(w, &began, 0, INDEX_RECEPTION + at % w->rounds, LOCAL), own->origin, 0
        };
        if (order == NB_FREELY && (at + 1) % w->rounds)
            make_ready(w, own, at % w->rounds + 1, cause);
        count_down(w, rank, cause, order);
    }
}

/* Begins a round, or free-running a repetition; true if it is over at once. Its receptions are
 * posted when the CPU is free, unless they were with the repetition's first round. */
static int begin(struct world *w, uint32_t rank, struct cause cause, int order)
{
    struct rank *own = &w->ranks[rank];
    const uint32_t number = order == NB_FREELY ? 0 : own->at % w->rounds;
    struct nb_round round = nb_round_of(w->job, rank, order == NB_FREELY ? 0 : own->at / w->rounds,
                                        number);
    own->remaining = (round.sends + round.receptions) * (order == NB_FREELY ? w->rounds : 1);
    own->front = round.sends ? 0 : NONE;
    blame(w, own, cause);
    if (order == NB_ORDERED ? number == 0 : round.receptions > 0) {
        if (w->posting)
            w->posting[rank] = own->cpu;
    } else if (order == NB_ORDERED && own->aside && (!w->posting || w->posting[rank] == NEVER)) {
        for (uint32_t at = 0; take_early(w, own, order, &at);)
            own->remaining--;
    }
    return own->remaining == 0;
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
    struct rank *own = &w->ranks[rank];
    own->front = NONE;
    while (own->at < w->total) {
        if (computes(w, own->at, order)) {
            own->front = COMPUTE;
            blame(w, own, cause);
            return;
        }
        if (!begin(w, rank, cause, order))
            return;
        own->at++;
    }
}

/* --- events ----------------------------------------------------------------------------------- */

static void compute(struct world *w, uint32_t rank, uint64_t t, int order)
{
    struct rank *own = &w->ranks[rank];
    const struct nb_implicit *job = w->job;
    uint32_t repetition = order == NB_FREELY ? own->at : own->at / w->rounds;
    uint64_t ns = !job->compute_ns
                      ? 0
                      : (uint64_t)job->compute_ns[repetition * job->compute_repetitions +
                                                  rank * job->compute_ranks];
    struct nb_times times = nb_calc(w->network, noise_within(w, rank, t, ns * 1000), rank, t, ns);
    struct cause cause = cause_of(w, own);
    cause = (struct cause){t, noted(w, &cause, 0, 1, LOCAL), own->origin, 0};
    if (times.noise)
        job->noise[rank] += times.noise;
    own->cpu = times.cpu;
    if (begin(w, rank, cause, order)) {
        own->at++;
        go_on(w, rank, cause, order);
    }
}

static inline void deliver(struct world *w, uint32_t to, struct node message)
{
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

static inline void send(struct world *w, uint32_t rank, uint64_t t, int order)
{
    struct rank *own = &w->ranks[rank];
    uint32_t repetition = order == NB_FREELY ? own->at : own->at / w->rounds,
             round = order == NB_FREELY ? own->front : own->at % w->rounds;
    struct nb_way way = order == NB_FREELY ? nb_shift_way(w->job, rank, round)
                                           : nb_way_of(w->job, rank, repetition, round, own->front);
    uint32_t at = repetition * w->rounds + way.round;
    __builtin_prefetch(&w->ranks[way.to], 1);
    __builtin_prefetch(&w->nodes[way.to + 1], 1);
    __builtin_prefetch(&w->next[way.to], 1);
    int64_t bytes = nb_bytes_of(w->job, rank, round, way.way);
    struct nb_times times = nb_send(w->network, noise_within(w, rank, t, occupied(w, bytes)), rank,
                                    t, (uint64_t)bytes);
    if (times.noise)
        w->job->noise[rank] += times.noise;
    own->cpu = times.cpu;
    own->send_gap = times.gap;
    w->job->messages++;
    const uint64_t waited = t - own->released;
    struct cause cause = cause_of(w, own);
    cause.chain = noted(w, &cause, t, 1 + (order == NB_FREELY ? 0 : own->front), SENT);
    cause.time = t;
    stepped(w, &cause, waited, w->shortest_wait);
    deliver(w, way.to,
            (struct node){
                .time = times.arrival,
                .created = t,
                .chain = cause.chain,
                .origin = cause.origin,
                .from = rank,
                .at = at,
                .way = way.way,
                .waited = at_most(waited),
                .longer = cause.longer
            });
    if (order == NB_FREELY)
        next_ready(w, own);
    else if (++own->front == nb_round_of(w->job, rank, repetition, round).sends)
        own->front = NONE;
    count_down(w, rank, cause, order);
}

static inline void receive(struct world *w, uint32_t rank, uint64_t t, uint32_t message, int order)
{
    struct rank *own = &w->ranks[rank];
    const struct node *node = &w->nodes[message];
    const uint32_t repetition = node->at / w->rounds, round = node->at - repetition * w->rounds;
    int64_t bytes = nb_bytes_of(w->job, node->from, round, node->way);
    struct nb_times times = nb_receive(w->network, noise_within(w, rank, t, occupied(w, bytes)),
                                       rank, t, (uint64_t)bytes);
    if (times.noise)
        w->job->noise[rank] += times.noise;
    own->cpu = times.cpu;
    own->receive_gap = times.gap;
    if (own->front == COMPUTE || (w->posting && w->posting[rank] != NEVER) ||
        (order == NB_FREELY ? repetition : node->at) != own->at) {
        w->nodes[message].sibling = own->aside; /* it is not posted yet, or not wanted yet */
        own->aside = message;
        return;
    }
    struct cause cause = {t, received(w, node->chain, t), node->origin, node->longer};
    stepped(w, &cause, t - node->created, w->shortest_flight);
    free_node(w, message);
    if (order == NB_FREELY && round + 1 < w->rounds)
        make_ready(w, own, round + 1, cause);
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
static inline uint32_t take(struct world *w, struct rank *own)
{
    int arrived = own->waiting != 0;
    uint32_t *heap = arrived ? &own->waiting : &own->inbox, message = *heap;
    *heap = w->nodes[message].child ? without_root(w, message, arrived) : 0;
    if (*heap && (arrived || w->nodes[*heap].time == w->nodes[message].time) &&
        matters(w, &w->nodes[message], &w->nodes[*heap]))
        w->job->ties++;
    return message;
}

/* Was a message created before the rank's next operation was let go? */
static int was_created_first(struct world *w, const struct rank *own, const struct node *message)
{
    if (message->created != own->released)
        return message->created < own->released;
    if (w->history)
        return was_first(w->history, message->chain, own->chain);
    /* Let go by a reception, whose message had been on its way for longer than the other's send had
     * waited. */
    w->job->ties += !w->even || message->waited >= w->shortest_flight;
    return 0;
}

/* All that happens to a rank before `end`; returns when it goes on. */
static inline __attribute__((always_inline)) uint64_t advance(struct world *w, uint32_t rank,
                                                              uint64_t end, int order)
{
    struct rank *own = &w->ranks[rank];
    for (;;) {
        uint64_t open = own->cpu > own->receive_gap ? own->cpu : own->receive_gap, message = NEVER,
                 operation = NEVER, posting = NEVER;
        while (own->inbox && w->nodes[own->inbox].time <= open) {
            uint32_t node = own->inbox;
            own->inbox = w->nodes[node].child ? without_root(w, node, 0) : 0;
            w->nodes[node].child = 0;
            own->waiting = meld(w, own->waiting, node, 1);
        }
        if (own->waiting || own->inbox)
            message = own->waiting ? open : w->nodes[own->inbox].time;
        if (w->posting && w->posting[rank] != NEVER)
            posting = w->posting[rank];
        if (own->front != NONE)
            operation = own->front != COMPUTE && own->send_gap > own->cpu ? own->send_gap
                                                                          : own->cpu;
        const int post_first = posting < operation;
        operation = post_first ? posting : operation;
        int first = message < operation;
        if (message == operation && message < end) {
            first = was_created_first(w, own, &w->nodes[own->waiting ? own->waiting : own->inbox]);
        }
        if ((first ? message : operation) >= end)
            return first ? message : operation;
        if (first)
            receive(w, rank, message, take(w, own), order);
        else if (post_first)
            post(w, rank, posting, order);
        else if (own->front == COMPUTE)
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
    __builtin_prefetch(&w->nodes[rank + 1], 1);
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
 * and its own node is free for the next. */
static inline __attribute__((always_inline)) void block_window(struct world *w, uint32_t block,
                                                               uint64_t end, int order)
{
    const uint32_t ranks = w->job->ranks, first = block * BLOCK,
                   last = ranks - first > BLOCK ? first + BLOCK : ranks;
    uint32_t busy[BLOCK];
    uint64_t soonest = NEVER;
    const uint32_t count = busy_ranks(w, first, last, end, busy, &soonest);
    w->next_of_block[block] = NEVER; /* lowered by messages that arrive meanwhile */
    for (uint32_t i = 0; i < count && i < AHEAD; i++)
        fetch(w, busy[i]);
    for (uint32_t i = 0; i < count; i++) {
        if (i + AHEAD < count)
            fetch(w, busy[i + AHEAD]);
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
    for (uint32_t group = (w->job->ranks + BLOCK * GROUP - 1) / (BLOCK * GROUP); group-- > 0;) {
        if (w->next_of_group[group] < end)
            group_window(w, group, end, order);
        if (w->next_of_group[group] < w->soonest)
            w->soonest = w->next_of_group[group];
    }
}

static void run(struct world *w)
{
    const uint64_t length = (uint64_t)(w->network->o + w->network->L);
    const int order = w->job->order;
    uint64_t begin = 0;
    while (begin != NEVER && !w->failed && (w->history || !w->job->ties)) {
        w->soonest = NEVER;
        w->job->windows++;
        if (order == NB_FREELY)
            window(w, begin + length, NB_FREELY);
        else if (order == NB_ORDERED)
            window(w, begin + length, NB_ORDERED);
        else
            window(w, begin + length, NB_BLOCKING);
        begin = w->soonest;
        if (begin > LONGEST && begin != NEVER)
            w->failed = NB_IMPLICIT_TIME;
    }
}

/* --- from beginning to end -------------------------------------------------------------------- */

static int allocate(struct world *w)
{
    size_t ranks = w->job->ranks, blocks = (ranks + BLOCK - 1) / BLOCK,
           groups = (blocks + GROUP - 1) / GROUP;
    w->ranks = room_for(w, ranks, sizeof *w->ranks);
    w->next = room_for(w, ranks, sizeof *w->next);
    w->next_of_block = room_for(w, blocks, sizeof *w->next_of_block);
    w->next_of_group = room_for(w, groups, sizeof *w->next_of_group);
    w->capacity = 2 * (uint32_t)ranks + FIRST_NODES; /* untouched memory costs nothing */
    w->used = (uint32_t)ranks + 1;                   /* node 0 is none */
    w->nodes = room_for(w, w->capacity, sizeof *w->nodes);
    int full = !w->ranks || !w->next || !w->next_of_block || !w->next_of_group || !w->nodes;
    if (w->noise)
        full |= !(w->quiet = room_for(w, ranks, sizeof *w->quiet));
    if (w->job->repetitions > 1 || w->job->compute_ns || w->job->order == NB_BLOCKING)
        full |= !(w->posting = room_for(w, ranks, sizeof *w->posting));
    for (size_t rank = 0; w->posting && rank < ranks; rank++)
        w->posting[rank] = NEVER;
    if (w->room_of_history)
        full |= !(w->history = room_for(w, w->room_of_history, sizeof *w->history));
    if (full)
        return NB_IMPLICIT_MEMORY;
    return 0;
}

/* Are all steps of all lines even, and how long? A line goes from a send to a reception to a send,
 * always by the same ways. Steps must not be shorter than what the time of the last longer one is
 * rounded to, or two such times would seem to be one. */
static int measure(struct world *w)
{
    const struct nb_implicit *job = w->job;
    w->even = job->order == NB_FREELY && job->repetitions == 1 && !job->compute_ns && !job->parts;
    for (uint32_t round = 1; round < w->rounds; round++)
        w->even &= job->bytes[round] == job->bytes[0];
    if (!w->even)
        return 0;
    w->shortest_flight = (uint64_t)(w->network->o + w->network->L);
    w->shortest_wait = nb_receive(w->network, NULL, 0, 0, (uint64_t)job->bytes[0]).cpu;
    w->even = w->shortest_wait >> ODD_BITS && w->shortest_flight >> ODD_BITS;
    if (!w->even)
        return 0;
    w->travelled = room_for(w, w->rounds, sizeof *w->travelled);
    for (uint32_t round = 1; w->travelled && round < w->rounds; round++)
        w->travelled[round] = nb_wrapped(job,
                                         (uint64_t)w->travelled[round - 1] + job->step[round - 1]);
    w->longer = w->noise ? room_for(w, job->ranks, sizeof *w->longer) : NULL;
    return w->travelled && (w->longer || !w->noise) ? 0 : NB_IMPLICIT_MEMORY;
}

static int collect(struct world *w)
{
    if (w->failed || (w->job->ties && !w->history))
        return w->failed;
    for (uint32_t rank = 0; rank < w->job->ranks; rank++) {
        const struct rank *own = &w->ranks[rank];
        w->job->finish[rank] = own->cpu;
        if (own->at != w->total || own->inbox || own->waiting || own->aside)
            return NB_IMPLICIT_UNFINISHED;
    }
    return NB_IMPLICIT_DONE;
}

/* Once, from the start to the end; with a history of up to `room` entries if that is not 0. */
static int evaluate(struct nb_implicit *job, const struct nb_network *network,
                    const struct nb_noise *noise, uint64_t room)
{
    struct world w = {
        .job = job,
        .network = network,
        .noise = noise,
        .room_of_history = room,
        .rounds = job->rounds ? job->rounds : 1
    };
    const int order = job->order;
    w.total = job->repetitions * (order == NB_FREELY ? 1 : w.rounds);
    job->messages = job->windows = job->ties = 0;
    int stop = room > HISTORY_ENTRIES ? NB_IMPLICIT_MEMORY : allocate(&w);
    if (!stop)
        stop = measure(&w);
    if (!stop) {
        if (noise)
            memset(job->noise, 0, job->ranks * sizeof *job->noise);
        for (uint32_t rank = 0; rank < job->ranks; rank++)
            go_on(&w, rank,
                  (struct cause){0, w.history ? 4 * rank + AT_START : 0, w.even ? 0 : rank, 0},
                  order);
        run(&w);
        stop = collect(&w);
    }
    while (w.rooms)
        give_back(&w.room[--w.rooms]);
    return stop;
}

/* A message has its own entry and perhaps one for a reception that found it there; so has a
 * computation. */
static uint64_t history_room(const struct nb_implicit *job)
{
    uint64_t messages = 0;
    for (uint32_t rank = 0; rank < job->ranks; rank++)
        for (uint32_t round = 0; round < job->rounds; round++)
            messages += nb_round_of(job, rank, 0, round).sends;
    return job->repetitions * (2 * messages + job->ranks) + 1;
}

int nb_implicit_evaluate(struct nb_implicit *job, const struct nb_network *network,
                         const struct nb_noise *noise)
{
    if (by_rounds(job, network, noise))
        return NB_IMPLICIT_DONE;
    uint64_t room = noise && job->keep ? history_room(job) : 0;
    room = room <= KEPT_ENTRIES ? room : 0;
    int stop = evaluate(job, network, noise, room);
    if (!stop && !room && job->ties) {
        room = history_room(job);
        stop = evaluate(job, network, noise, room);
    }
    job->ties = room > 0;
    return stop;
}
