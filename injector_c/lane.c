/* The injector process: replays its lane's slice of the plan (Persson et al. 2025, section 4.3, Listing 1).
 *
 * For each event: switch the scheduling policy if it differs, sleep until the planned start, occupy the CPU. The workload loses the CPU
 * when the timer fires, so waking up is already part of the noise: a real-time event ends at its planned end, not a duration after
 * waking. A thread's recorded noise is CPU time, so an ordinary event ends when it has consumed that much, however long it takes.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum { CHAIN_NS = 10000 }; /* between events that follow each other without a pause */

struct actor { /* what this process is at the moment */
    struct nb_injection *run;
    struct nb_lane *lane;
    int64_t hard_end_ns;
    int asked_policy, asked_priority; /* for the event before */
    int policy, nice;                 /* really had */
};

static bool goes_on(const struct actor *self, int64_t now_ns)
{
    return nb_state(self->run->control) == NB_RELEASED && now_ns < self->hard_end_ns;
}

/* Switches if it differs; what the kernel refuses is counted, and stays as it was. */
static void become(struct actor *self, int policy, int priority)
{
    if (policy == self->asked_policy && priority == self->asked_priority)
        return;
    const bool realtime = nb_is_realtime(policy);
    const struct sched_param parameter = {.sched_priority = realtime ? priority : 0};
    self->asked_policy = policy;
    self->asked_priority = priority;
    bool done = true;
    if ((realtime || policy != self->policy) && (done = sched_setscheduler(0, policy, &parameter) == 0))
        self->policy = policy;
    if (!realtime && priority != self->nice && (done = setpriority(PRIO_PROCESS, 0, priority) == 0 && done))
        self->nice = priority;
    self->lane->refused += !done;
}

static bool sleep_until(const struct actor *self, int64_t when_ns)
{
    for (;;) {
        const int64_t now = nb_now_ns();
        if (!goes_on(self, now))
            return false;
        if (now >= when_ns)
            return true;
        nb_sleep_in_state(self->run->control, NB_RELEASED, when_ns < self->hard_end_ns ? when_ns : self->hard_end_ns);
    }
}

/* Keeps the CPU busy until end_ns; false if everything ends first. */
static bool spin_until(const struct actor *self, int64_t end_ns, int64_t *gap_ns)
{
    int64_t now = nb_now_ns();
    while (now < end_ns) {
        const int64_t before = now;
        if (!goes_on(self, now))
            return false;
        now = nb_now_ns();
        if (now - before > *gap_ns)
            *gap_ns = now - before;
    }
    return true;
}

/* Keeps the CPU busy until this thread has used end_ns of CPU time. That clock is a system call, but it is never faster than the wall
 * clock: spinning for what is left on the wall clock cannot overshoot, and few readings are enough. */
static bool consume_until(const struct actor *self, int64_t end_ns, int64_t *gap_ns)
{
    int64_t left;
    while ((left = end_ns - nb_clock_ns(CLOCK_THREAD_CPUTIME_ID)) > 0)
        if (!spin_until(self, nb_now_ns() + left, gap_ns))
            return false;
    return true;
}

static bool occupy(const struct actor *self, int64_t i, int64_t cpu_ns)
{
    const struct nb_injection *run = self->run;
    const int64_t duration = run->plan.duration_ns[i];
    if (!nb_is_realtime(self->policy))
        return consume_until(self, cpu_ns + duration, &run->log.gap_ns[i]);
    const int64_t taken = run->control->t0_ns + run->log.taken_ns[i];
    return spin_until(self, taken + duration - run->rules.exit_cost_ns, &run->log.gap_ns[i]);
}

/* Since when the workload is without this CPU. A real-time event that was slept for took it when the timer fired, one that follows
 * another without a pause has it already; any other has it from now on. */
static int64_t taken_from(const struct actor *self, int64_t start_ns, int64_t wake_ns, bool slept)
{
    const int64_t allowance = slept ? self->run->rules.wake_allowance_ns : CHAIN_NS;
    return nb_is_realtime(self->policy) && wake_ns - start_ns <= allowance ? start_ns : wake_ns;
}

/* Lateness: up to the allowance it is the wake-up, a part of the event. Beyond, the event keeps its duration, so that as much is injected as
 * was planned; beyond give_up_ns it is dropped, so that lateness cannot build up. */
static void replay_event(struct actor *self, int64_t i)
{
    const struct nb_injection *run = self->run;
    const struct nb_rules *rules = &run->rules;
    const struct nb_log *log = &run->log;
    const int64_t t0 = run->control->t0_ns, start = t0 + run->plan.start_ns[i];
    become(self, run->plan.policy[i], run->plan.priority[i]);
    const bool sleeps = nb_now_ns() < start;
    if (!sleep_until(self, start))
        return;
    const int64_t wake = nb_now_ns(), cpu = nb_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const bool hopeless = wake - start > rules->give_up_ns, late = wake - start > rules->wake_allowance_ns;
    log->start_ns[i] = wake - t0;
    log->taken_ns[i] = taken_from(self, start, wake, sleeps) - t0;
    log->ran_on[i] = (int16_t)sched_getcpu();
    log->policy[i] = (int8_t)self->policy;
    log->outcome[i] = NB_CUT;
    const bool whole = hopeless || occupy(self, i, cpu);
    log->cpu_time_ns[i] = nb_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
    log->end_ns[i] = nb_now_ns() - t0;
    if (whole)
        log->outcome[i] = (int8_t)(hopeless ? NB_DROPPED : late ? NB_LATE : NB_INJECTED);
}

static int take_place(int cpu)
{
    unsigned long mask[NB_MAX_CPUS / (8 * sizeof(unsigned long))];
    const size_t bits = 8 * sizeof mask[0];
    memset(mask, cpu == NB_ROAM ? 0xff : 0, sizeof mask);
    if (cpu >= 0)
        mask[(size_t)cpu / bits] |= 1UL << ((size_t)cpu % bits);
    return sched_setaffinity(0, sizeof mask, (const cpu_set_t *)mask) ? errno : 0;
}

static void limit(int resource, rlim_t value)
{
    const struct rlimit both = {.rlim_cur = value, .rlim_max = value};
    setrlimit(resource, &both);
}

/* Locks (else at least touches) the shared columns and a stretch of stack: no page fault once the replay has begun. The memory that was
 * inherited from the owner stays as it is: locking that would copy all of it. */
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

/* Replays one event of each policy of its own, so that the code of the replay is mapped and both changes of policy have been tried; ends
 * as an ordinary process. */
static void rehearse(struct actor *self, int priority)
{
    int64_t start[2] = {0}, duration[2] = {20000, 20000}, begin[2], taken[2], end[2], cpu[2], gap[2] = {0};
    int8_t policy[2] = {NB_FIFO, NB_OTHER}, priorities[2] = {(int8_t)priority, 0}, had[2], outcome[2];
    int16_t ran_on[2];
    struct nb_control control = {.state = NB_RELEASED, .t0_ns = nb_now_ns()};
    struct nb_lane lane = {0};
    struct nb_injection run = {.control = &control, .rules = self->run->rules};
    run.plan = (struct nb_plan){start, duration, policy, priorities};
    run.log = (struct nb_log){begin, taken, end, cpu, gap, ran_on, had, outcome};
    struct actor rehearsing = *self;
    rehearsing.run = &run;
    rehearsing.lane = &lane;
    for (int i = priority ? 0 : 1; i < 2; i++)
        replay_event(&rehearsing, i);
    rehearsing.run = self->run;
    rehearsing.lane = self->lane;
    *self = rehearsing;
}

static int first_realtime_priority(const struct nb_injection *run, const struct nb_lane *lane)
{
    for (int64_t i = lane->first; i < lane->first + lane->count; i++)
        if (nb_is_realtime(run->plan.policy[i]))
            return run->plan.priority[i];
    return 0;
}

/* Everything that may fail or take long, before the owner hears that this lane is ready. */
static int prepare(struct actor *self)
{
    const struct nb_injection *run = self->run;
    const struct nb_lane *lane = self->lane;
    const int error = take_place(lane->cpu);
    if (error)
        return error;
    prctl(PR_SET_TIMERSLACK, 1UL);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_RTTIME, (rlim_t)run->rules.realtime_limit_us);
    limit(RLIMIT_CPU, (rlim_t)(run->rules.limit_ns / NB_SECOND_NS + 2));
    settle_memory(run);
    rehearse(self, first_realtime_priority(run, lane));
    if (lane->count > 0)
        become(self, run->plan.policy[lane->first], run->plan.priority[lane->first]);
    return 0;
}

static void replay_lane(struct actor *self)
{
    const struct nb_lane *lane = self->lane;
    const int64_t end = lane->first + lane->count;
    int64_t i = lane->first;
    while (i < end && goes_on(self, nb_now_ns()))
        replay_event(self, i++);
    __atomic_store_n(&self->lane->done, i == end, __ATOMIC_RELEASE);
}

int nb_lane_main(struct nb_injection *run, struct nb_lane *lane, int ready_fd)
{
    const struct sched_param none = {0};
    sched_setscheduler(0, SCHED_OTHER, &none);
    struct actor self = {.run = run, .lane = lane, .hard_end_ns = INT64_MAX, .asked_policy = -1, .policy = NB_OTHER};
    self.nice = getpriority(PRIO_PROCESS, 0);
    lane->error = prepare(&self);
    if (lane->error || write(ready_fd, "r", 1) != 1)
        return 1;
    close(ready_fd);
    while (nb_state(run->control) == NB_ARMED)
        nb_sleep_in_state(run->control, NB_ARMED, INT64_MAX);
    self.hard_end_ns = run->control->t0_ns + run->rules.limit_ns;
    replay_lane(&self);
    while (run->control->stay && nb_state(run->control) == NB_RELEASED)
        nb_sleep_in_state(run->control, NB_RELEASED, INT64_MAX);
    sched_setscheduler(0, SCHED_OTHER, &none); /* the copy of the owner's memory is given back as an ordinary process */
    return 0;
}
