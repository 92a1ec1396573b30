/* What an injector process does before it is ready: its CPUs, its limits, its memory, and a
 * rehearsal. Nothing of it may happen later, when it would delay the workload.
 */
#define _GNU_SOURCE
#include "kinds_internal.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

/* A lane that roams may run wherever run->roam says; no bit there means anywhere. */
static int take_place(const struct nb_injection *run, int cpu)
{
    uint64_t mask[NB_MAX_CPUS / 64] = {0}, any = 0;
    for (size_t i = 0; i < NB_MAX_CPUS / 64; i++)
        any |= run->roam[i];
    for (size_t i = 0; i < NB_MAX_CPUS / 64 && cpu == NB_ROAM; i++)
        mask[i] = any ? run->roam[i] : UINT64_MAX;
    if (cpu >= 0)
        mask[cpu / 64] |= 1ULL << (cpu % 64);
    return sched_setaffinity(0, sizeof mask, (const cpu_set_t *)mask) ? errno : 0;
}

static void limit(int resource, rlim_t value)
{
    const struct rlimit both = {.rlim_cur = value, .rlim_max = value};
    setrlimit(resource, &both);
}

/* Locks (else at least touches) the shared columns and a stretch of stack: no page fault once the
 * replay has begun. */
static void settle_memory(const struct nb_injection *run)
{
    volatile unsigned char stack[65536];
    for (size_t i = 0; i < sizeof stack; i += 1024)
        stack[i] = 0;
    mlock((const void *)stack, sizeof stack);
    if (mlock(run->memory, run->memory_bytes) == 0)
        return;
    volatile unsigned char *byte = run->memory;
    for (uint64_t i = 0; i < run->memory_bytes; i += 1024)
        (void)byte[i];
}

/* Replays one event of each policy of its own, so that the code of the replay is mapped and both
 * changes of policy have been tried; ends as an ordinary process. */
static void rehearse(struct nb_actor *self, int priority)
{
    int64_t start[2] = {0, 60000}, duration[2] = {20000, 20000}, begin[2], taken[2], end[2], cpu[2],
            gap[2] = {0}, preempted[2] = {0};
    int8_t policy[2] = {NB_FIFO, NB_OTHER}, priorities[2] = {(int8_t)priority, 0}, had[2],
           outcome[2];
    int16_t ran_on[2];
    struct nb_control control = {.state = NB_RELEASED, .t0_ns = nb_now_ns()};
    struct nb_lane lane = {.count = 2};
    struct nb_injection run = {.control = &control, .rules = self->run->rules};
    run.plan = (struct nb_plan){
        .start_ns = start, .duration_ns = duration, .policy = policy, .priority = priorities
    };
    run.log = (struct nb_log){
        .start_ns = begin,
        .taken_ns = taken,
        .end_ns = end,
        .cpu_time_ns = cpu,
        .gap_ns = gap,
        .preempted_ns = preempted,
        .ran_on = ran_on,
        .policy = had,
        .outcome = outcome
    };
    struct nb_actor rehearsing = *self;
    rehearsing.run = &run;
    rehearsing.lane = &lane;
    for (int i = priority ? 0 : 1; i < 2; i++)
        nb_replay_event(&rehearsing, i);
    rehearsing.run = self->run;
    rehearsing.lane = self->lane;
    rehearsing.counted_ns = -1;
    rehearsing.clock_set_to = -1;
    *self = rehearsing;
}

/* The least of several: one may be interrupted. */
static int64_t time_reading(void)
{
    int64_t least = NB_SECOND_NS;
    for (int i = 0; i < 16; i++) {
        const int64_t before = nb_clock_ns(CLOCK_THREAD_CPUTIME_ID),
                      took = nb_clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
        least = took < least ? took : least;
    }
    return least;
}

static int first_realtime_priority(const struct nb_injection *run, const struct nb_lane *lane)
{
    for (int64_t i = lane->first; i < lane->first + lane->count; i++)
        if (nb_is_realtime(run->plan.policy[i]))
            return run->plan.priority[i];
    return 0;
}

/* Everything that may fail or take long, before the owner hears that this lane is ready. */
int nb_prepare(struct nb_actor *self)
{
    const struct nb_injection *run = self->run;
    const struct nb_lane *lane = self->lane;
    const int error = take_place(run, lane->cpu);
    if (error)
        return error;
    prctl(PR_SET_TIMERSLACK, 1UL);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_RTTIME, (rlim_t)run->rules.realtime_limit_us);
    limit(RLIMIT_CPU, (rlim_t)(run->rules.limit_ns / NB_SECOND_NS + 2));
    settle_memory(run);
    for (int i = 0; i < 2; i++)
        self->early_timers[i] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    self->reading_ns = time_reading();
    const int unready = nb_kinds_arm(run, lane);
    if (unready)
        return unready;
    rehearse(self, first_realtime_priority(run, lane));
    if (lane->count > 0)
        nb_become(self, run->plan.policy[lane->first], run->plan.priority[lane->first]);
    return 0;
}
