/* The injector process: replays its lane's slice of the plan (Persson et al. 2025, section 4.3,
 * Listing 1).
 *
 * For each event: switch the scheduling policy if it differs, sleep until the planned start, occupy
 * the CPU. The workload loses the CPU when the timer fires, so waking up is already part of the
 * noise, and so is giving the CPU back: a real-time event stops so long before its planned end that
 * the workload goes on at that end. A thread's recorded noise is the CPU time from one switch to
 * the next, so an ordinary event ends when this process has used that much since the event before,
 * however long it takes.
 */
#define _GNU_SOURCE
#include "kinds_internal.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

enum {
    CHAIN_NS = 10000, /* between events that follow each other without a pause */
    SWITCH_NS = 2000, /* nobody else can have had the CPU in less */
    COLD_NS = 150000, /* the kernel's caches grow cold in an event that lasts longer */
    WARM_NS = 80000,  /* before its end they are warmed */
    BUDGET_BITS = 44, /* ns of a second that all CPUs together can take; above them the second */
};
static const uint64_t BUDGET_MASK = (1ULL << BUDGET_BITS) - 1, SECOND_MASK = (1 << 20) - 1;

/* Switches if it differs; what the kernel refuses is counted, and stays as it was. */
void nb_become(struct nb_actor *self, int policy, int priority)
{
    if (policy == self->requested_policy && priority == self->requested_priority)
        return;
    const bool realtime = nb_is_realtime(policy);
    const struct sched_param parameter = {.sched_priority = realtime ? priority : 0};
    self->requested_policy = policy;
    self->requested_priority = priority;
    bool done = true;
    if ((realtime || policy != self->policy) &&
        (done = sched_setscheduler(0, policy, &parameter) == 0))
        self->policy = policy;
    if (!realtime && priority != self->nice &&
        (done = setpriority(PRIO_PROCESS, 0, priority) == 0 && done))
        self->nice = priority;
    self->lane->refused += !done;
}

/* Sleeps until when_ns; false if everything ends first. */
static bool sleep_until(const struct nb_actor *self, int64_t when_ns)
{
    for (;;) {
        const int64_t now = nb_now_ns();
        if (!nb_goes_on(self, now))
            return false;
        if (now >= when_ns)
            return true;
        nb_sleep_in_state(self->run->control, NB_RELEASED,
                          when_ns < self->hard_end_ns ? when_ns : self->hard_end_ns);
    }
}

/* One turn of a loop that keeps the CPU busy; false if everything ends. */
static inline bool spin_once(const struct nb_actor *self, int64_t *now_ns, int64_t *gap_ns)
{
    const int64_t before = *now_ns;
    if (!nb_goes_on(self, before))
        return false;
    *now_ns = nb_now_ns();
    if (*now_ns - before > *gap_ns)
        *gap_ns = *now_ns - before;
    return true;
}

/* Keeps the CPU busy until end_ns; false if everything ends first. */
static bool spin_until(const struct nb_actor *self, int64_t end_ns, int64_t *gap_ns)
{
    int64_t now = nb_now_ns();
    while (now < end_ns)
        if (!spin_once(self, &now, gap_ns))
            return false;
    return true;
}

/* What an event costs on the kind of core that this thread runs on. */
static const struct nb_costs *costs_here(const struct nb_actor *self)
{
    const int cpu = sched_getcpu();
    const bool is_known = cpu >= 0 && cpu < NB_MAX_CPUS;
    return &self->run->rules.costs[is_known ? self->run->core_kind[cpu] : 0];
}

/* Waits for an event's start. In a pause that is too short to leave and come back, real-time noise
 * keeps the CPU: leaving would give the workload nothing. */
static bool wait_until(const struct nb_actor *self, int64_t start_ns, bool *slept)
{
    const struct nb_costs *costs = costs_here(self);
    const int64_t pause = start_ns - nb_now_ns();
    int64_t gap_ns = 0;
    *slept = pause > 0 &&
             !(nb_is_realtime(self->policy) && pause < costs->wake_ns + costs->exit_ns[0]);
    return *slept ? sleep_until(self, start_ns)
                  : nb_goes_on(self, nb_now_ns()) && spin_until(self, start_ns, &gap_ns);
}

/* How often somebody else has taken the CPU from this thread. */
static long count_preemptions(void)
{
    struct rusage use;
    return getrusage(RUSAGE_THREAD, &use) ? 0 : use.ru_nivcsw;
}

/* Goes the way out of an event as far as it goes without leaving: in a long event it grows cold in
 * the caches, and the workload would wait for what is fetched again. Twice, since the first time is
 * slow. A thread of the same priority that waits for this CPU has it from here on. */
static void warm_the_way_out(const struct nb_actor *self)
{
    for (int i = 0; i < 2; i++) {
        nb_sleep_in_state(self->run->control, NB_STOPPING, nb_now_ns());
        nb_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        sched_yield();
    }
}

/* So long had others this CPU, if the time without progress was theirs. */
static int64_t preempted_in(struct nb_actor *self, int64_t i, int64_t gap_ns)
{
    const long preemptions = gap_ns < SWITCH_NS ? self->preemptions : count_preemptions();
    if (preemptions == self->preemptions)
        return 0;
    self->preemptions = preemptions;
    self->run->log.preempted_ns[i] += gap_ns;
    return gap_ns;
}

/* Keeps the CPU busy until end_ns. What others have of it meanwhile (noise of a higher priority,
 * the kernel's fair server) is made up for; interrupts and the hypervisor stop the workload just as
 * well, and are not. */
static bool hold_until(struct nb_actor *self, int64_t i, int64_t end_ns)
{
    int64_t now = nb_now_ns();
    bool is_warm = end_ns - now < COLD_NS;
    if (now < end_ns) {
        self->preemptions = count_preemptions();
        now = nb_now_ns();
    }
    while (now < end_ns) {
        const int64_t before = now;
        if (!is_warm && end_ns - now < WARM_NS) {
            is_warm = true;
            warm_the_way_out(self);
            now = nb_now_ns();
        } else if (!spin_once(self, &now, &self->run->log.gap_ns[i])) {
            return false;
        }
        end_ns += preempted_in(self, i, now - before);
    }
    return true;
}

/* Keeps the CPU busy until this thread has used end_ns of CPU time. That clock is a system call,
 * but it is never faster than the wall clock: spinning for what is left on the wall clock cannot
 * overshoot, and few readings are enough. The reading that accounts for the event is a part of it.
 */
static bool consume_until(const struct nb_actor *self, int64_t end_ns, int64_t *gap_ns)
{
    int64_t left;
    while ((left = end_ns - self->reading_ns - nb_clock_ns(CLOCK_THREAD_CPUTIME_ID)) > 0)
        if (!spin_until(self, nb_now_ns() + left, gap_ns))
            return false;
    return true;
}

static bool occupy(struct nb_actor *self, int64_t i, int64_t cpu_ns)
{
    const struct nb_injection *run = self->run;
    if (!nb_is_realtime(self->policy))
        return consume_until(self, cpu_ns + self->due_ns, &run->log.gap_ns[i]);
    return hold_until(self, i,
                      run->control->t0_ns + run->log.taken_ns[i] + self->due_ns - self->exit_ns);
}

/* Does what event i asks for, from now on; false if everything ends first. The one place that knows
 * of kinds of noise. */
static bool execute(struct nb_actor *self, int64_t i, int64_t cpu_ns)
{
    const int8_t *kind = self->run->plan.kind;
    return kind && kind[i] != NB_OCCUPY ? nb_kind_run(self, i) : occupy(self, i, cpu_ns);
}

/* Since when the workload is without this CPU. A real-time event that was slept for took it when
 * the timer fired, one that follows another without a pause has it already; any other has it from
 * now on. */
static int64_t taken_from(const struct nb_actor *self, int64_t start_ns, int64_t wake_ns,
                          bool slept)
{
    const int64_t allowance = slept ? self->run->rules.wake_allowance_ns : CHAIN_NS;
    return nb_is_realtime(self->policy) && wake_ns - start_ns <= allowance ? start_ns : wake_ns;
}

/* What becomes of an event that woke so late: up to the allowance it was on time, waking up is a
 * part of it. */
static int judge(const struct nb_rules *rules, int64_t late_ns)
{
    if (late_ns <= rules->wake_allowance_ns)
        return NB_INJECTED;
    return late_ns > rules->give_up_ns ? NB_DROPPED : NB_LATE;
}

/* log2, straight between powers of two; for numbers from 1 on. */
static double logarithm(int64_t number)
{
    const int exponent = 63 - __builtin_clzll((unsigned long long)number);
    return exponent - 1 + (double)number / (double)(1LL << exponent);
}

static double exit_after(const struct nb_costs *costs, int64_t duration_ns)
{
    const int64_t *length = costs->length_ns, *exit_ns = costs->exit_ns;
    int64_t i = 0;
    while (i < costs->points && duration_ns > length[i])
        i++;
    if (i == 0 || i == costs->points)
        return (double)exit_ns[i ? i - 1 : 0];
    const double below = logarithm(length[i - 1]),
                 share = (logarithm(duration_ns) - below) / (logarithm(length[i]) - below);
    return (double)exit_ns[i - 1] + share * (double)(exit_ns[i] - exit_ns[i - 1]);
}

/* Leaving goes the same way through the kernel as waking up; when that was slow a moment ago (cold
 * caches, a busy host), so is this. */
static int64_t predict_exit(const struct nb_actor *self, int64_t late_ns, bool slept,
                            int64_t duration_ns)
{
    const struct nb_costs *costs = costs_here(self);
    const int64_t most = costs->wake_most_ns,
                  usual = slept && late_ns <= self->run->rules.wake_allowance_ns ? late_ns
                                                                                 : costs->wake_ns;
    const double cost = exit_after(costs, duration_ns) +
                        costs->exit_per_wake *
                            (double)((usual < most ? usual : most) - costs->wake_ns);
    return cost < 0 ? 0 : (int64_t)cost;
}

/* CPU time of this process at which the event began. An ordinary one begins where the one before it
 * ended: falling asleep and waking up in between is CPU time that the workload is without, and a
 * trace counts it too. */
static int64_t begin_counting(struct nb_actor *self)
{
    const int64_t now = nb_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return nb_is_realtime(self->policy) || self->counted_ns < 0 ? now : self->counted_ns;
}

static void end_counting(struct nb_actor *self, int64_t i, int64_t cpu_ns, int outcome)
{
    const int64_t now = nb_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (outcome != NB_DROPPED) {
        self->run->log.cpu_time_ns[i] = now - cpu_ns;
        self->counted_ns = nb_is_realtime(self->policy) ? -1 : now;
    }
}

/* Sets a timer that wakes nobody for the start of event i, unless that is before over_ns. */
static bool set_clock_for(const struct nb_actor *self, int64_t i, int64_t over_ns)
{
    const struct nb_injection *run = self->run;
    const int64_t when = run->control->t0_ns + run->plan.start_ns[i];
    if (when <= over_ns)
        return false;
    const struct itimerspec timer = {
        .it_value = {.tv_sec = when / NB_SECOND_NS, .tv_nsec = when % NB_SECOND_NS}
    };
    return timerfd_settime(self->early_timers[i % 2], TFD_TIMER_ABSTIME, &timer, NULL) == 0;
}

/* The timer that comes first sets the CPU's clock event: 5 us and more on a virtual machine. When
 * falling asleep does it, the workload loses that after the event's end. So a timer for the same
 * moment, which wakes nobody, is there before: set one event ahead, it is not even the first to
 * come, and the interrupt that begins the event sets the clock for it on its way. */
static void set_clock_early(struct nb_actor *self, int64_t i)
{
    const int64_t end = self->lane->first + self->lane->count;
    const int64_t over_ns = self->run->control->t0_ns + self->run->log.taken_ns[i] + self->due_ns;
    if (self->early_timers[1] < 0 || !nb_is_realtime(self->policy))
        return;
    int64_t next = self->clock_set_to > i ? self->clock_set_to + 1 : i + 1;
    for (; next <= i + 2 && next < end; next++)
        if (set_clock_for(self, next, over_ns))
            self->clock_set_to = next;
}

/* Adds to what real-time events take of a second from t0, unless that would exceed the most. */
static bool take_of_second(struct nb_control *control, uint64_t second, uint64_t ns, uint64_t most)
{
    uint64_t *const slot = &control->taken[second % NB_BUDGET_SLOTS];
    uint64_t had = __atomic_load_n(slot, __ATOMIC_RELAXED), taken;
    do {
        taken = (had >> BUDGET_BITS == second ? had & BUDGET_MASK : 0) + ns;
        if (taken > most)
            return false;
    } while (!__atomic_compare_exchange_n(slot, &had, second << BUDGET_BITS | taken, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return true;
}

/* Whether an event may begin now. The plan leaves others a share of each second; events that come
 * late, one behind the other, must not use it up. Of what is too much, nothing is injected. */
static bool is_within_budget(const struct nb_actor *self, int64_t wake, int64_t duration)
{
    const struct nb_rules *rules = &self->run->rules;
    if (!rules->cpus || !rules->full_stop_second_ns || !nb_is_realtime(self->policy))
        return true;
    const uint64_t most = (uint64_t)rules->cpus * NB_SECOND_NS -
                          (uint64_t)(NB_SECOND_NS - rules->full_stop_second_ns);
    int64_t from = wake - self->run->control->t0_ns;
    for (const int64_t end = from + duration; from < end;) {
        const int64_t second = from / NB_SECOND_NS, next = (second + 1) * NB_SECOND_NS;
        const int64_t until = next < end ? next : end;
        if (from >= 0 && !take_of_second(self->run->control, (uint64_t)second & SECOND_MASK,
                                         (uint64_t)(until - from), most))
            return false;
        from = until;
    }
    return true;
}

void nb_replay_event(struct nb_actor *self, int64_t i)
{
    const struct nb_injection *run = self->run;
    const struct nb_log *log = &run->log;
    const int64_t t0 = run->control->t0_ns, start = t0 + run->plan.start_ns[i],
                  duration = run->plan.duration_ns[i];
    bool slept;
    nb_become(self, run->plan.policy[i], run->plan.priority[i]);
    if (!wait_until(self, start, &slept))
        return;
    const int64_t wake = nb_now_ns(), cpu = begin_counting(self);
    int outcome = judge(&run->rules, wake - start);
    if (outcome != NB_DROPPED && !is_within_budget(self, wake, duration))
        outcome = NB_DROPPED;
    self->due_ns = duration;
    self->exit_ns = predict_exit(self, wake - start, slept, duration);
    log->start_ns[i] = wake - t0;
    log->taken_ns[i] = taken_from(self, start, wake, slept) - t0;
    log->ran_on[i] = (int16_t)sched_getcpu();
    log->policy[i] = (int8_t)self->policy;
    log->outcome[i] = NB_CUT;
    set_clock_early(self, i);
    const bool whole = outcome == NB_DROPPED || execute(self, i, cpu);
    log->end_ns[i] = nb_now_ns() - t0;
    end_counting(self, i, cpu, outcome);
    if (whole)
        log->outcome[i] = (int8_t)outcome;
}

static void replay_lane(struct nb_actor *self)
{
    const struct nb_lane *lane = self->lane;
    const int64_t end = lane->first + lane->count;
    int64_t i = lane->first;
    while (i < end && nb_goes_on(self, nb_now_ns()))
        nb_replay_event(self, i++);
    __atomic_store_n(&self->lane->done, i == end, __ATOMIC_RELEASE);
}

int nb_lane_main(struct nb_injection *run, struct nb_lane *lane, int ready_fd)
{
    const struct sched_param none = {0};
    sched_setscheduler(0, SCHED_OTHER, &none);
    struct nb_actor self = {
        .run = run,
        .lane = lane,
        .hard_end_ns = INT64_MAX,
        .requested_policy = -1,
        .policy = NB_OTHER,
        .counted_ns = -1,
        .early_timers = {-1, -1},
        .clock_set_to = -1
    };
    self.nice = getpriority(PRIO_PROCESS, 0);
    lane->error = nb_prepare(&self);
    if (lane->error || write(ready_fd, "r", 1) != 1)
        return 1;
    close(ready_fd);
    while (nb_state(run->control) == NB_ARMED)
        nb_sleep_in_state(run->control, NB_ARMED, INT64_MAX);
    self.hard_end_ns = run->control->t0_ns + run->rules.limit_ns;
    replay_lane(&self);
    nb_kinds_disarm();
    while (run->control->stay && nb_state(run->control) == NB_RELEASED)
        nb_sleep_in_state(run->control, NB_RELEASED, INT64_MAX);
    /* its memory is given back as an ordinary process */
    sched_setscheduler(0, SCHED_OTHER, &none);
    return 0;
}
