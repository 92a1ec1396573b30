/* One simulation on two threads: the lower ranks on one, the upper on the other.
 *
 * A message takes at least o + L to arrive, so within a window of that length no thread can do
 * anything to the other's ranks: each takes its own events in the order of (time, seq), as the
 * engine does. What it creates has a number of its own meanwhile (FRESH): above all earlier ones,
 * in the order of creation. At the window's end the events of both that have created others
 * (creators) are merged by (time, seq): that is the order in which one thread would have met them,
 * so what they have created gets the numbers that one thread would have given. Then each thread
 * puts what was held back for its ranks into its queue. So every event has the same time and number
 * as on one thread, whatever the threads' speed.
 *
 * A rendezvous would reach back to its sender at once, so all messages have to be eager.
 */
#define _POSIX_C_SOURCE 200809L
#define NB_SHARED
#include "team.h"

#include <pthread.h>
#include <signal.h>

#include "events.h"
#include "prefetch.h"
#include "roots.h"

enum { FEW = 4096 }; /* events that a window creates: below, a barrier takes longer */

/* An event that has created others, from number `first` (without FRESH) on. Its own number is
 * `seq`, unless it is a wake-up that came about after a younger event of the same time: then it
 * follows at once on that one, and has its `seq`. */
struct creator {
    uint64_t time;
    uint32_t seq, first;
};

struct team {
    struct sim *member[2];
    struct nb_outcome outcome; /* the second one's */
    pthread_barrier_t barrier;
    uint32_t lower_roots; /* with what number the upper ranks begin */
    uint32_t numbered;    /* how many numbers have been given to events */
    uint64_t ahead;       /* length of a window */
    int few;              /* the last window was too small to be shared */
    int over;             /* one thread on its own has met an error */
};

static uint64_t least_latency(const struct nb_network *network)
{
    const struct nb_spread *spread = network->spread;
    int64_t least = network->L;
    for (uint32_t i = 0; spread && i < spread->latencies; i++)
        least = i == 0 || spread->latency[i] < least ? spread->latency[i] : least;
    return (uint64_t)(network->o + least);
}

int nb_team_can(const struct sim *sim)
{
    const struct nb_schedule *s = sim->s;
    if (sim->compat || sim->several || sim->record || sim->flights || s->ranks < 2 ||
        s->operations >= FRESH / 2 || !least_latency(sim->network))
        return 0;
    for (int64_t op = 0; op < s->operations; op++)
        if (s->kind[op] == NB_SEND && column_entry(&s->size, (uint32_t)op) > sim->network->S)
            return 0;
    return 1;
}

/* --- a window --------------------------------------------------------------------------------- */

static inline void happens(struct sim *sim, const struct event *event)
{
    const int same_time = event->time == sim->now;
    uint32_t first = sim->seq, *turn = &sim->share.turn;
    *turn = same_time && *turn > event->seq ? *turn : event->seq;
    do_event(sim, event);
    if (sim->seq == first)
        return;
    struct creator *creator = list_more(sim, &sim->share.creators, sizeof *creator);
    if (creator)
        *creator = (struct creator){event->time, *turn, first & ~FRESH};
}

static void begin(struct sim *sim, int64_t low, int64_t high, uint32_t seq)
{
    uint32_t *root = NULL, room = 0;
    for (int64_t rank = low; rank < high && !sim->stop; rank++) {
        uint32_t count = roots_of(sim, rank, &root, &room);
        for (uint32_t i = 0; i < count && !sim->stop; i++)
            happens(sim, &(struct event){0, seq++, root[i], (uint32_t)rank, OPERATION});
    }
    free(root);
}

/* All that happens before its end, then the mark behind the last creator and room for numbers. */
static void window(struct sim *sim)
{
    struct event event;
    while (!sim->stop && queue_pop_before(&sim->queue, sim->share.end, &event)) {
        prefetch(sim);
        happens(sim, &event);
    }
    struct creator *mark = list_more(sim, &sim->share.creators, sizeof *mark);
    if (mark)
        *mark = (struct creator){UINT64_MAX, FRESH - 1, sim->seq & ~FRESH};
    struct list *numbers = &sim->share.numbers;
    if (numbers->room < (sim->seq & ~FRESH)) {
        free(numbers->item);
        numbers->room = (size_t)(sim->seq & ~FRESH) * 3 / 2;
        numbers->item = malloc(numbers->room * sizeof(uint32_t));
    }
    if ((!numbers->item && numbers->room) || sim->queue.failed)
        sim->stop = NB_STOP_MEMORY;
    sim->share.created = sim->seq & ~FRESH;
    sim->share.stop = sim->stop;
}

/* --- its end ---------------------------------------------------------------------------------- */

static inline uint32_t numbered(const uint32_t *number, uint32_t seq)
{
    return seq & FRESH ? number[seq & ~FRESH] : seq;
}

/* One creator's events get their numbers. */
static inline const struct creator *number_next(const struct creator *creator, uint32_t *number,
                                                uint32_t *next)
{
    for (uint32_t i = creator[0].first; i < creator[1].first; i++)
        number[i] = (*next)++;
    return creator + 1;
}

/* A creator that was itself created in this window has had its number by the time it is compared:
 * its own creator came before it. */
static void give_numbers(struct team *team)
{
    const struct share *one = &team->member[0]->share, *two = &team->member[1]->share;
    const struct creator *a = one->creators.item, *b = two->creators.item,
                         *last_a = a + one->creators.count - 1,
                         *last_b = b + two->creators.count - 1;
    uint32_t *number[2] = {one->numbers.item, two->numbers.item}, next = team->numbered;
    while (a < last_a || b < last_b) {
        int first = a->time != b->time ? a->time < b->time
                                       : numbered(number[0], a->seq) < numbered(number[1], b->seq);
        if (first)
            a = number_next(a, number[0], &next);
        else
            b = number_next(b, number[1], &next);
    }
    team->numbered = next;
}

/* Those that still wait get the numbers that last, and so do the wake-ups that count. */
static void renumber_waiters(struct sim *sim)
{
    const uint32_t *number = sim->share.numbers.item;
    const struct fresh *fresh = sim->share.fresh.item;
    struct waiter *waiter = sim->waiters.item;
    for (size_t i = 0; i < sim->share.fresh.count; i++) {
        waiter[fresh[i].waiter].seq = numbered(number, waiter[fresh[i].waiter].seq);
        uint32_t waiting = host_of(sim, fresh[i].rank)->waiting;
        if (waiting == NONE)
            continue;
        struct wait_class *waits = wait_class(sim, waiting, fresh[i].class);
        if (waits->seq != NONE)
            waits->seq = numbered(number, waits->seq);
    }
}

/* What both have held back for this one's ranks, in the order of creation. */
static void take_over(struct sim *sim, const struct team *team)
{
    const int side = sim == team->member[1];
    const struct event *from[2], *end[2];
    const uint32_t *number[2];
    for (int i = 0; i < 2; i++) {
        const struct share *share = &team->member[i]->share;
        from[i] = share->held[side].item;
        end[i] = from[i] ? from[i] + share->held[side].count : from[i];
        number[i] = share->numbers.item;
    }
    uint32_t seq[2];
    for (int i = 0; i < 2; i++)
        seq[i] = from[i] < end[i] ? numbered(number[i], from[i]->seq) : NONE;
    while (from[0] < end[0] || from[1] < end[1]) {
        const int i = seq[1] < seq[0];
        struct event event = *from[i]++;
        event.seq = seq[i];
        queue_push(&sim->queue, &event);
        seq[i] = from[i] < end[i] ? numbered(number[i], from[i]->seq) : NONE;
    }
}

/* After a window: what has lasted has its numbers, and the next event is known. */
static void settle(struct sim *sim, const struct team *team)
{
    renumber_waiters(sim);
    take_over(sim, team);
    sim->share.soonest = queue_least(&sim->queue);
}

static uint64_t soonest_of(const struct team *team)
{
    const uint64_t one = team->member[0]->share.soonest, two = team->member[1]->share.soonest;
    return one < two ? one : two;
}

static int few_created(const struct team *team)
{
    return team->member[0]->share.created + team->member[1]->share.created < FEW;
}

static int stopped(const struct team *team)
{
    return team->member[0]->share.stop || team->member[1]->share.stop;
}

static void open_next(struct sim *sim, const struct team *team)
{
    struct share *share = &sim->share;
    share->end = soonest_of(team) + team->ahead;
    sim->seq = FRESH;
    share->held[0].count = share->held[1].count = 0;
    share->creators.count = share->fresh.count = 0;
}

/* One thread takes both parts as long as windows are too small to be worth a barrier. */
static void alone(struct team *team)
{
    while (few_created(team) && soonest_of(team) != UINT64_MAX && !team->over) {
        for (int i = 0; i < 2; i++)
            open_next(team->member[i], team);
        for (int i = 0; i < 2; i++)
            window(team->member[i]);
        team->over = stopped(team);
        if (team->over)
            return;
        give_numbers(team);
        for (int i = 0; i < 2; i++)
            settle(team->member[i], team);
    }
}

/* Between two barriers a thread writes what the other reads only after the next. */
static void work(struct sim *sim, struct team *team)
{
    const int first = sim == team->member[0];
    for (;;) {
        window(sim);
        pthread_barrier_wait(&team->barrier);
        if (stopped(team))
            return;
        if (first) {
            give_numbers(team);
            team->few = few_created(team);
        }
        pthread_barrier_wait(&team->barrier);
        settle(sim, team);
        pthread_barrier_wait(&team->barrier);
        if (team->few) {
            if (first)
                alone(team);
            pthread_barrier_wait(&team->barrier);
        }
        if (team->over || soonest_of(team) == UINT64_MAX)
            return;
        open_next(sim, team);
    }
}

/* --- both threads ----------------------------------------------------------------------------- */

static void lower_ranks(struct team *team)
{
    struct sim *sim = team->member[0];
    begin(sim, 0, sim->share.split, 0);
    work(sim, team);
}

static void *upper_ranks(void *with)
{
    struct team *team = with;
    struct sim *sim = team->member[1];
    begin(sim, sim->share.split, sim->s->ranks, team->lower_roots);
    work(sim, team);
    return NULL;
}

/* The first rank of the upper half of all operations; at least 1. */
static uint32_t half(const struct nb_schedule *s)
{
    int64_t rank = 1;
    while (rank < s->ranks - 1 && s->rank_start[rank] < s->operations / 2)
        rank++;
    return (uint32_t)rank;
}

static void share_out(struct sim *sim, struct sim *other, struct team *team)
{
    team->ahead = least_latency(sim->network);
    sim->share.split = half(sim->s);
    team->lower_roots = count_roots(sim, 0, sim->share.split);
    team->numbered = count_roots(sim, 0, sim->s->ranks);
    sim->share.end = team->ahead;
    sim->seq = FRESH;
    *other = *sim;
    other->out = &team->outcome;
    team->outcome.noise = sim->out->noise;
    team->member[0] = sim;
    team->member[1] = other;
}

/* The second thread, on which no signal is handled: those are Python's. */
static int start_second(pthread_t *thread, struct team *team)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, upper_ranks, team);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static void put_together(struct sim *sim, const struct team *team)
{
    sim->out->unmatched += team->outcome.unmatched;
    sim->out->unreceived += team->outcome.unreceived;
    sim->started += sim->other->started;
    sim->stop = sim->stop ? sim->stop : sim->other->stop;
}

int nb_team_run(struct sim *sim)
{
    struct sim *other = malloc(sizeof *other);
    struct team *team = calloc(1, sizeof *team);
    pthread_t thread;
    int possible = other && team && !pthread_barrier_init(&team->barrier, NULL, 2);
    if (possible) {
        share_out(sim, other, team);
        possible = !start_second(&thread, team);
        if (possible) {
            sim->other = other;
            lower_ranks(team);
            pthread_join(thread, NULL);
            put_together(sim, team);
            other->out = sim->out;
        }
        pthread_barrier_destroy(&team->barrier);
    }
    if (!possible) {
        sim->seq = 0;
        free(other);
    }
    free(team);
    return possible;
}
