/* Regular collectives, evaluated without a schedule: by rounds.c where nothing is in the way, else
 * by windows.c; at first without a history of events, then with one if order.c needs it. */
#include "implicit.h"

#include "parts.h"
#include "rounds.h"
#include "shapes.h"

static int allocate(struct world *w)
{
    size_t ranks = w->job->ranks, blocks = (ranks + BLOCK - 1) / BLOCK,
           groups = (blocks + GROUP - 1) / GROUP;
    w->ranks = nb_room_for(w, ranks, sizeof *w->ranks);
    w->next = nb_room_for(w, ranks, sizeof *w->next);
    w->next_of_block = nb_room_for(w, blocks, sizeof *w->next_of_block);
    w->next_of_group = nb_room_for(w, groups, sizeof *w->next_of_group);
    int full = !w->ranks || !w->next || !w->next_of_block || !w->next_of_group;
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
    w.lone = job->order == NB_ORDERED && job->repetitions == 1 && !job->compute_ns &&
             w.rounds <= 32 && (job->pattern == NB_SHIFT || job->pattern == NB_XOR);
    int stop = room > HISTORY_ENTRIES ? NB_IMPLICIT_MEMORY : allocate(&w);
    if (!stop)
        stop = measure(&w);
    if (!stop)
        stop = nb_run_parts(&w);
    nb_give_all_back(&w);
    job->messages = w.messages;
    job->windows = w.windows;
    job->ties = w.ties;
    return stop;
}

/* Has a rank ended later than times are counted up to? */
static int is_too_late(const struct nb_implicit *job)
{
    for (uint32_t rank = 0; rank < job->ranks; rank++)
        if (job->finish[rank] > LONGEST)
            return 1;
    return 0;
}

int nb_implicit_evaluate(struct nb_implicit *job, const struct nb_network *network,
                         const struct nb_noise *noise)
{
    if (nb_by_rounds(job, network, noise))
        return is_too_late(job) ? NB_IMPLICIT_TIME : NB_IMPLICIT_DONE;
    uint64_t room = noise && job->with_history ? nb_history_room(job, 0, job->ranks) : 0;
    room = room <= EARLY_HISTORY_ENTRIES ? room : 0;
    int stop = evaluate(job, network, noise, room);
    if (!stop && !room && job->ties) {
        room = nb_history_room(job, 0, job->ranks);
        stop = evaluate(job, network, noise, room);
    }
    job->ties = room > 0;
    return !stop && is_too_late(job) ? NB_IMPLICIT_TIME : stop;
}
