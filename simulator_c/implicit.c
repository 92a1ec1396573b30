/* Regular collectives, evaluated without a schedule: by rounds.c where nothing is in the way, else
 * by windows.c; at first without a history of events, then with one if order.c needs it. */
#include "implicit.h"

#include <string.h>

#include "rounds.h"
#include "shapes.h"
#include "windows.h"

static int allocate(struct world *w)
{
    size_t ranks = w->job->ranks, blocks = (ranks + BLOCK - 1) / BLOCK,
           groups = (blocks + GROUP - 1) / GROUP;
    w->ranks = nb_room_for(w, ranks, sizeof *w->ranks);
    w->next = nb_room_for(w, ranks, sizeof *w->next);
    w->next_of_block = nb_room_for(w, blocks, sizeof *w->next_of_block);
    w->next_of_group = nb_room_for(w, groups, sizeof *w->next_of_group);
    w->capacity = 2 * (uint32_t)ranks + FIRST_NODES; /* untouched memory costs nothing */
    w->used = (uint32_t)ranks + 1;                   /* node 0 is none */
    w->nodes = nb_room_for(w, w->capacity, sizeof *w->nodes);
    int full = !w->ranks || !w->next || !w->next_of_block || !w->next_of_group || !w->nodes;
    if (w->noise)
        full |= !(w->quiet = nb_room_for(w, ranks, sizeof *w->quiet));
    if (w->job->repetitions > 1 || w->job->compute_ns || w->job->order == NB_BLOCKING)
        full |= !(w->posting = nb_room_for(w, ranks, sizeof *w->posting));
    for (size_t rank = 0; w->posting && rank < ranks; rank++)
        w->posting[rank] = NEVER;
    if (w->room_of_history)
        full |= !(w->history = nb_room_for(w, w->room_of_history, sizeof *w->history));
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
    w->travelled = nb_room_for(w, w->rounds, sizeof *w->travelled);
    for (uint32_t round = 1; w->travelled && round < w->rounds; round++)
        w->travelled[round] = nb_wrapped(job,
                                         (uint64_t)w->travelled[round - 1] + job->step[round - 1]);
    w->longer = w->noise ? nb_room_for(w, job->ranks, sizeof *w->longer) : NULL;
    return w->travelled && (w->longer || !w->noise) ? 0 : NB_IMPLICIT_MEMORY;
}

static int collect(struct world *w)
{
    if (w->failed || (w->job->ties && !w->history))
        return w->failed;
    for (uint32_t rank = 0; rank < w->job->ranks; rank++) {
        const struct rank *state = &w->ranks[rank];
        w->job->finish[rank] = state->cpu;
        if (state->at != w->total || state->inbox || state->waiting || state->aside)
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
    w.total = job->repetitions * (job->order == NB_FREELY ? 1 : w.rounds);
    job->messages = job->windows = job->ties = 0;
    int stop = room > HISTORY_ENTRIES ? NB_IMPLICIT_MEMORY : allocate(&w);
    if (!stop)
        stop = measure(&w);
    if (!stop) {
        if (noise)
            memset(job->noise, 0, job->ranks * sizeof *job->noise);
        nb_run_windows(&w);
        stop = collect(&w);
    }
    while (w.rooms)
        nb_give_back(&w.room[--w.rooms]);
    return stop;
}

/* A message has its state entry and perhaps one for a reception that found it there; so has a
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
    if (nb_by_rounds(job, network, noise))
        return NB_IMPLICIT_DONE;
    uint64_t room = noise && job->with_history ? history_room(job) : 0;
    room = room <= EARLY_HISTORY_ENTRIES ? room : 0;
    int stop = evaluate(job, network, noise, room);
    if (!stop && !room && job->ties) {
        room = history_room(job);
        stop = evaluate(job, network, noise, room);
    }
    job->ties = room > 0;
    return stop;
}
