/* The implicit evaluation on one thread or two, each with a half of the ranks.
 *
 * Within a window no rank depends on another, so the two threads meet between windows only. What
 * one half has sent to the other is delivered there. Which thread delivers what first doesn't
 * matter: a rank takes its messages in an order of their own (inbox.h). So the results are those
 * of one thread, bit by bit.
 */
#define _GNU_SOURCE /* barriers */
#include "parts.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "shapes.h"
#include "windows.h"

enum { FIRST_PARCELS = 1024 };

/* What a part has to say after a window. */
struct word {
    uint64_t soonest, ties;
    int failed;
};

/* said: by turns, so that a part may speak again before the other has listened. */
struct team {
    struct world *member[2];
    pthread_barrier_t barrier;
    struct word said[2][2];
};

uint64_t nb_history_room(const struct nb_implicit *job, uint32_t first, uint32_t last)
{
    uint64_t messages = 0;
    for (uint32_t rank = first; rank < last; rank++)
        for (uint32_t round = 0; round < job->rounds; round++)
            messages += nb_round_of(job, rank, 0, round).sends;
    return job->repetitions * (2 * messages + last - first) + 1;
}

void nb_send_parcel(struct world *w, uint32_t to, const struct node *message)
{
    if (w->parcel_count == w->parcel_room) {
        const uint32_t room = w->parcel_room ? 2 * w->parcel_room : FIRST_PARCELS;
        struct parcel *parcels = realloc(w->parcels, room * sizeof *parcels);
        if (!parcels) {
            w->failed = NB_IMPLICIT_MEMORY;
            return;
        }
        w->parcels = parcels;
        w->parcel_room = room;
    }
    w->parcels[w->parcel_count++] = (struct parcel){*message, to};
}

/* Between two barriers a thread writes what the other reads only after the next. */
static struct word said_by_both(struct world *w, struct team *team, int turn)
{
    const int me = w == team->member[1];
    pthread_barrier_wait(&team->barrier);
    nb_open_parcels(w, team->member[!me]);
    team->said[turn][me] = (struct word){w->soonest, w->ties, w->failed};
    pthread_barrier_wait(&team->barrier);
    w->parcel_count = 0;
    const struct word *one = &team->said[turn][0], *two = &team->said[turn][1];
    return (struct word){
        one->soonest < two->soonest ? one->soonest : two->soonest, one->ties + two->ties,
        one->failed ? one->failed : two->failed
    };
}

static void collect(struct world *w)
{
    for (uint32_t rank = w->first; rank < w->last; rank++) {
        const struct rank *state = &w->ranks[rank];
        w->job->finish[rank] = state->cpu;
        if (state->at != w->total || state->inbox || state->waiting || state->aside)
            w->failed = NB_IMPLICIT_UNFINISHED;
    }
}

/* All windows of a part; team: NULL if it is the only one. */
static void work(struct world *w, struct team *team)
{
    struct word now = {0, 0, 0};
    if (w->noise)
        memset(w->job->noise + w->first, 0, (w->last - w->first) * sizeof *w->job->noise);
    nb_begin_ranks(w);
    for (int turn = 0; now.soonest != NEVER && !now.failed && (w->history || !now.ties);
         turn = !turn) {
        nb_run_window(w, now.soonest);
        w->windows++;
        now = team ? said_by_both(w, team, turn) : (struct word){w->soonest, w->ties, w->failed};
        if (now.soonest > LONGEST && now.soonest != NEVER)
            now.failed = NB_IMPLICIT_TIME;
    }
    w->failed = now.failed;
    if (!now.failed && (w->history || !now.ties))
        collect(w);
}

static int take_part(struct world *w, uint32_t first, uint32_t last)
{
    w->first = first;
    w->last = last;
    w->capacity = (OWN_NODES + 1) * (last - first) + FIRST_NODES; /* untouched, it costs nothing */
    w->used = OWN_NODES * (last - first) + 1;                     /* node 0 is none */
    w->nodes = nb_room_for(w, w->capacity, sizeof *w->nodes);
    return w->nodes != NULL;
}

static void *upper_ranks(void *team)
{
    work(((struct team *)team)->member[1], team);
    return NULL;
}

/* The second thread, on which no signal is handled: those are Python's. */
static int start_second(pthread_t *thread, struct team *team)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(thread, NULL, upper_ranks, team);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* True if two threads have done it. */
static int run_both(struct world *lower, struct world *upper)
{
    struct team team = {.member = {lower, upper}};
    pthread_t thread;
    if (pthread_barrier_init(&team.barrier, NULL, 2))
        return 0;
    const int started = !start_second(&thread, &team);
    if (started) {
        work(lower, &team);
        pthread_join(thread, NULL);
        lower->failed = lower->failed ? lower->failed : upper->failed;
        lower->messages += upper->messages;
        lower->ties += upper->ties;
    }
    pthread_barrier_destroy(&team.barrier);
    return started;
}

/* The lower half's piece of the history comes first. */
static int run_halves(struct world *w, uint32_t half)
{
    struct world lower = *w, upper = *w;
    lower.rooms = upper.rooms = 0;
    if (w->history)
        lower.room_of_history = upper.entries = nb_history_room(w->job, 0, half);
    const int done = take_part(&lower, 0, half) && take_part(&upper, half, w->job->ranks) &&
                     run_both(&lower, &upper);
    nb_give_all_back(&lower);
    nb_give_all_back(&upper);
    free(lower.parcels);
    free(upper.parcels);
    if (done) {
        w->failed = lower.failed;
        w->messages = lower.messages;
        w->windows = lower.windows;
        w->ties = lower.ties;
    }
    return done;
}

int nb_run_parts(struct world *w)
{
    const uint32_t ranks = w->job->ranks, half = ranks / 2 / PART * PART;
    if (w->job->threads > 1 && half && run_halves(w, half))
        return w->failed;
    if (!take_part(w, 0, ranks))
        return NB_IMPLICIT_MEMORY;
    work(w, NULL);
    return w->failed;
}
