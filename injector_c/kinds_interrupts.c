/* Noise of interrupts, as far as user space can make them: timers that expire with nobody waiting,
 * and calls that make the kernel interrupt another CPU. A lane that belongs to a CPU sends from the
 * others to it; a roaming one, to every CPU in turn. */
#define _GNU_SOURCE
#include "kinds_internal.h"

#include <linux/perf_event.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

/* Timers: two banks in turn; while one expires, the other is read and set for the window after. */

/* closer timers share an interrupt */
enum { BANK = 128, LONGEST_WINDOW_NS = 10000000, LEAST_PERIOD_NS = 20000 };

static int timers[2][BANK];
static int timer_count;

static void disarm_timers(void)
{
    while (timer_count > 0) {
        timer_count--;
        close(timers[timer_count / BANK][timer_count % BANK]);
    }
}

static int arm_timers(const struct nb_injection *run, int cpu)
{
    (void)run, (void)cpu;
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    for (timer_count = 0; timer_count < 2 * BANK; timer_count++) {
        const int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
        if (fd < 0)
            return -errno;
        timers[timer_count / BANK][timer_count % BANK] = fd;
    }
    return 0;
}

static void set_timer(int fd, int64_t when_ns)
{
    const struct itimerspec when = {
        .it_value = {.tv_sec = when_ns / NB_SECOND_NS, .tv_nsec = when_ns % NB_SECOND_NS}
    };
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/* What has expired since the bank was set; stops the rest. */
static int64_t read_bank(const int *bank, int count)
{
    int64_t sum = 0;
    for (int i = 0; i < count; i++) {
        uint64_t expired = 0;
        const bool did = read(bank[i], &expired, sizeof expired) == (ssize_t)sizeof expired;
        sum += did ? 1 : 0;
        if (!did)
            timerfd_settime(bank[i], 0, &(struct itimerspec){{0, 0}, {0, 0}}, NULL);
    }
    return sum;
}

/* Evenly over the window; what is already past, or after the end, is left out: timers that expire
 * together are one interrupt. */
static void set_bank(const int *bank, int count, double window_start_ns, double period_ns,
                     int64_t end_ns)
{
    for (int i = 0; i < count; i++) {
        const int64_t when = (int64_t)(window_start_ns + (i + 0.5) * period_ns);
        if (when > nb_now_ns() && when < end_ns)
            set_timer(bank[i], when);
    }
}

/* Sets the bank for a window; sleeps until the window before it is over. A window that is past
 * already is left out. */
static int64_t storm(struct nb_actor *self, int count, double period_ns, const struct nb_span *span)
{
    const double window_ns = period_ns * count;
    const int64_t start_ns = span->start_ns, end_ns = span->end_ns;
    int64_t sum = 0, window = 0, over;
    for (unsigned turn = 0;; turn++) {
        set_bank(timers[turn % 2], count, (double)start_ns + (double)window * window_ns, period_ns,
                 end_ns);
        over = nb_least(end_ns, start_ns + (int64_t)((double)window * window_ns));
        while (nb_goes_on(self, nb_now_ns()) && nb_now_ns() < over)
            nb_sleep_in_state(self->run->control, NB_RELEASED, nb_least(over, self->hard_end_ns));
        sum += read_bank(timers[(turn + 1) % 2], count);
        if (over == end_ns || !nb_goes_on(self, nb_now_ns()))
            return sum + read_bank(timers[turn % 2], count);
        const int64_t reached = (int64_t)((double)(nb_now_ns() - start_ns) / window_ns);
        window = window < reached ? reached + 1 : window + 1;
    }
}

static bool run_timers(struct nb_actor *self, double intensity, const struct nb_span *span,
                       double *units)
{
    const double asked_ns = NB_SECOND_NS / intensity,
                 period_ns = asked_ns > LEAST_PERIOD_NS ? asked_ns : LEAST_PERIOD_NS;
    const double most = LONGEST_WINDOW_NS / period_ns;
    const int count = most < 1 ? 1 : most > BANK ? BANK : (int)most;
    *units = (double)storm(self, count, period_ns, span);
    return nb_goes_on(self, nb_now_ns());
}

/* Where interrupts come from, and where they go. */

static unsigned long online[NB_MAX_CPUS / (8 * sizeof(unsigned long))];
static int target_cpu; /* or NB_ROAM */
enum { WORD = 8 * sizeof online[0] };

static bool has(int cpu)
{
    return online[cpu / WORD] >> (cpu % WORD) & 1;
}

static int next_cpu(int cpu)
{
    for (int step = 1; step <= NB_MAX_CPUS; step++)
        if (has((cpu + step) % NB_MAX_CPUS))
            return (cpu + step) % NB_MAX_CPUS;
    return cpu;
}

/* online: the CPUs that roaming lanes may use; if these are not two, every CPU that there is. */
static int find_online(const struct nb_injection *run)
{
    for (int everywhere = 0; everywhere < 2; everywhere++) {
        uint64_t any = 0;
        for (int i = 0; i < NB_MAX_CPUS / 64; i++)
            any |= run->roam[i];
        memset(online, 0xff, sizeof online);
        if (any && !everywhere)
            memcpy(online, run->roam, sizeof online);
        if (sched_setaffinity(0, sizeof online, (const cpu_set_t *)online))
            return -errno;
        memset(online, 0, sizeof online);
        if (sched_getaffinity(0, sizeof online, (cpu_set_t *)online))
            return -errno;
        if (next_cpu(0) != next_cpu(next_cpu(0)))
            return 0;
    }
    return -ENODEV; /* one CPU: nobody to interrupt */
}

/* Onto every other CPU. */
static int keep_off(int cpu)
{
    unsigned long mask[sizeof online / sizeof online[0]];
    memcpy(mask, online, sizeof mask);
    mask[cpu / WORD] &= ~(1UL << (cpu % WORD));
    return sched_setaffinity(0, sizeof mask, (const cpu_set_t *)mask) ? -errno : 0;
}

static int leave_target(const struct nb_injection *run, int cpu)
{
    const int error = find_online(run);
    target_cpu = cpu;
    return error || cpu == NB_ROAM ? error : keep_off(cpu);
}

/* Function calls: reading another CPU's perf counter makes the kernel ask that CPU, whatever it
 * runs. */

static int counters[NB_MAX_CPUS]; /* descriptor + 1 */
static int last_target;

static void close_counters(void)
{
    for (int cpu = 0; cpu < NB_MAX_CPUS; cpu++) {
        if (counters[cpu] > 0)
            close(counters[cpu] - 1);
        counters[cpu] = 0;
    }
}

static int open_counter(int cpu)
{
    struct perf_event_attr nothing = {
        .type = PERF_TYPE_SOFTWARE, .size = sizeof nothing, .config = PERF_COUNT_SW_DUMMY
    };
    const long fd = syscall(SYS_perf_event_open, &nothing, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return -errno;
    counters[cpu] = (int)fd + 1;
    return 0;
}

static int arm_calls(const struct nb_injection *run, int cpu)
{
    int error = leave_target(run, cpu);
    for (int other = 0; other < NB_MAX_CPUS && !error; other++)
        if (has(other) && (cpu == NB_ROAM || other == cpu))
            error = open_counter(other);
    return error;
}

static int64_t call_cpu(int64_t wanted)
{
    (void)wanted;
    uint64_t value;
    last_target = target_cpu == NB_ROAM ? next_cpu(last_target) : target_cpu;
    if (last_target == sched_getcpu())
        last_target = next_cpu(last_target);
    return read(counters[last_target] - 1, &value, sizeof value) == (ssize_t)sizeof value ? 1
                                                                                          : -errno;
}

const struct nb_stressor nb_timer = {.arm = arm_timers, .run = run_timers, .disarm = disarm_timers};
const struct nb_stressor nb_ipi = {
    .arm = arm_calls, .step = call_cpu, .disarm = close_counters, NB_PACED(1, 1)
};
