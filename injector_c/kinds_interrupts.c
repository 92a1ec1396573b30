/* Noise of interrupts, as far as user space can make them: timers that expire with nobody waiting,
 * and calls that make the kernel interrupt another CPU. A lane that belongs to a CPU sends from the
 * others to it; a roaming one, to every CPU in turn. */
#define _GNU_SOURCE
#include "kinds_internal.h"

#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
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

static int arm_timers(const struct nb_injection *run, int kind, int cpu)
{
    (void)run, (void)kind, (void)cpu;
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

static int go_to(pthread_t thread, int cpu)
{
    unsigned long mask[sizeof online / sizeof online[0]] = {0};
    mask[cpu / WORD] = 1UL << (cpu % WORD);
    return -pthread_setaffinity_np(thread, sizeof mask, (const cpu_set_t *)mask);
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

/* A helper on the target CPU that keeps our memory in use there, for what interrupts only CPUs that
 * use it. It occupies that CPU meanwhile: it runs only while there is something to do, and sleeps
 * in between. In real time, lane and helper yield: each may share its CPU with one of another lane,
 * of the same priority, that would wait for it until the event's end. A helper that nobody needs
 * for a while sleeps by itself: its lane may not get a CPU to tell it so. */

enum { ASLEEP, AWAKE, ENDING, MISSED_NS = 100000, FORGOTTEN_NS = 10000000 };

static struct {
    pthread_t thread;
    bool exists;
    bool yields;       /* while the event is a real-time one */
    uint32_t request;  /* a futex */
    uint32_t beats;    /* counts while it runs */
    int64_t needed_ns; /* when it was last asked to run */
    unsigned char *page;
} helper;

static void yield_in_realtime(void)
{
    if (__atomic_load_n(&helper.yields, __ATOMIC_RELAXED))
        sched_yield();
}

static bool is_forgotten(void)
{
    return nb_now_ns() - __atomic_load_n(&helper.needed_ns, __ATOMIC_RELAXED) > FORGOTTEN_NS;
}

static void *help(void *unused)
{
    for (;;) {
        uint32_t request = __atomic_load_n(&helper.request, __ATOMIC_ACQUIRE);
        if (request == ENDING)
            return unused;
        if (request == AWAKE && is_forgotten())
            __atomic_compare_exchange_n(&helper.request, &request, ASLEEP, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE);
        if (__atomic_load_n(&helper.request, __ATOMIC_ACQUIRE) == ASLEEP)
            syscall(SYS_futex, &helper.request, FUTEX_WAIT_PRIVATE, ASLEEP, NULL, NULL, 0);
        (void)__atomic_load_n(helper.page, __ATOMIC_RELAXED);
        __atomic_add_fetch(&helper.beats, 1, __ATOMIC_RELEASE);
        yield_in_realtime();
    }
}

static void ask_helper(uint32_t what)
{
    if (__atomic_exchange_n(&helper.request, what, __ATOMIC_ACQ_REL) != what)
        syscall(SYS_futex, &helper.request, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static int start_helper(void)
{
    if (target_cpu == NB_ROAM)
        target_cpu = next_cpu(sched_getcpu());
    const int stuck = keep_off(target_cpu);
    if (stuck)
        return stuck;
    void *page = mmap(NULL, NB_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                      0);
    if (page == MAP_FAILED)
        return -errno;
    helper.page = page;
    helper.request = ASLEEP;
    *(volatile unsigned char *)page = 1;
    const int error = pthread_create(&helper.thread, NULL, help, NULL);
    helper.exists = error == 0;
    return error ? -error : go_to(helper.thread, target_cpu);
}

/* The helper has the policy of the event that it helps. */
static void match_policy(void)
{
    struct sched_param priority;
    const int policy = sched_getscheduler(0);
    if (helper.exists && policy >= 0 && sched_getparam(0, &priority) == 0)
        /* refused: it stays an ordinary one */
        pthread_setschedparam(helper.thread, policy & ~SCHED_RESET_ON_FORK, &priority);
    const bool yields = policy >= 0 && nb_is_realtime(policy & ~SCHED_RESET_ON_FORK);
    __atomic_store_n(&helper.yields, yields, __ATOMIC_RELAXED);
}

/* Whether it has the target CPU at this very moment, or gets it soon: only then is there anybody to
 * interrupt. */
static bool helper_runs(void)
{
    const uint32_t before = __atomic_load_n(&helper.beats, __ATOMIC_ACQUIRE);
    const int64_t now_ns = nb_now_ns();
    __atomic_store_n(&helper.needed_ns, now_ns, __ATOMIC_RELAXED);
    ask_helper(AWAKE);
    while (__atomic_load_n(&helper.beats, __ATOMIC_ACQUIRE) - before < 3) {
        if (nb_now_ns() > now_ns + MISSED_NS)
            return false;
        yield_in_realtime();
    }
    return true;
}

static void rest_helper(void)
{
    if (helper.exists)
        ask_helper(ASLEEP);
}

static void end_helper(void)
{
    if (!helper.exists)
        return;
    ask_helper(ENDING);
    pthread_join(helper.thread, NULL);
    munmap(helper.page, NB_PAGE_BYTES);
    helper.exists = false;
}

/* Function calls: reading another CPU's perf counter makes the kernel ask that CPU, whatever it
 * runs. Where perf isn't permitted, a memory barrier on the CPU of the helper. */

static int counters[NB_MAX_CPUS]; /* descriptor + 1 */
static int last_target;

static void close_counters(void)
{
    for (int cpu = 0; cpu < NB_MAX_CPUS; cpu++) {
        if (counters[cpu] > 0)
            close(counters[cpu] - 1);
        counters[cpu] = 0;
    }
    end_helper();
}

static bool open_counter(int cpu)
{
    struct perf_event_attr nothing = {
        .type = PERF_TYPE_SOFTWARE, .size = sizeof nothing, .config = PERF_COUNT_SW_DUMMY
    };
    const long fd = syscall(SYS_perf_event_open, &nothing, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    counters[cpu] = (int)fd + 1;
    return fd >= 0;
}

static int arm_calls(const struct nb_injection *run, int kind, int cpu)
{
    (void)kind;
    const int error = leave_target(run, cpu);
    if (error)
        return error;
    bool opened = true;
    for (int other = 0; other < NB_MAX_CPUS && opened; other++)
        opened = !has(other) || (cpu != NB_ROAM && other != cpu) || open_counter(other);
    if (opened)
        return 0;
    close_counters();
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0))
        return -errno;
    return start_helper();
}

static int64_t call_cpu(int64_t wanted)
{
    (void)wanted;
    uint64_t value;
    if (helper.exists)
        return !helper_runs()                                                    ? 0
               : syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) ? -errno
                                                                                 : 1;
    last_target = target_cpu == NB_ROAM ? next_cpu(last_target) : target_cpu;
    if (last_target == sched_getcpu())
        last_target = next_cpu(last_target);
    return read(counters[last_target] - 1, &value, sizeof value) == (ssize_t)sizeof value ? 1
                                                                                          : -errno;
}

/* TLB shootdowns: taking the right to write from a page that the helper uses too, and giving it
 * back: each makes the kernel tell the helper's CPU. (By an interrupt; a processor that broadcasts
 * it itself, as those of Arm do, needs none.) */

static int arm_shootdown(const struct nb_injection *run, int kind, int cpu)
{
    (void)kind;
    const int error = leave_target(run, cpu);
    return error ? error : start_helper();
}

static int64_t shoot_down(int64_t wanted)
{
    (void)wanted;
    if (!helper_runs())
        return 0;
    __atomic_store_n(helper.page, 1, __ATOMIC_RELAXED);
    if (mprotect(helper.page, NB_PAGE_BYTES, PROT_READ) ||
        mprotect(helper.page, NB_PAGE_BYTES, PROT_READ | PROT_WRITE))
        return -errno;
    return 2;
}

/* Migrations: there and back again; the stopper thread takes the CPU that is left, an interrupt
 * tells the other. */

static int home_cpu;

static int arm_migration(const struct nb_injection *run, int kind, int cpu)
{
    (void)kind;
    const int error = leave_target(run, cpu);
    home_cpu = next_cpu(cpu == NB_ROAM ? 0 : cpu);
    return error ? error : go_to(pthread_self(), home_cpu);
}

static int64_t migrate(int64_t wanted)
{
    (void)wanted;
    int error = go_to(pthread_self(), target_cpu == NB_ROAM ? next_cpu(home_cpu) : target_cpu);
    if (!error)
        error = go_to(pthread_self(), home_cpu);
    return error ? error : 2;
}

/* So many interrupts a step; where a helper makes them possible, it has the event's policy. */
#define CALLS(arms, steps, disarms, interrupts) \
    {.arm = arms,                               \
     .begin = match_policy,                     \
     .step = steps,                             \
     .rest = rest_helper,                       \
     .disarm = disarms,                         \
     NB_PACED(interrupts, interrupts)}

const struct nb_stressor nb_timer = {.arm = arm_timers, .run = run_timers, .disarm = disarm_timers};
const struct nb_stressor nb_ipi = CALLS(arm_calls, call_cpu, close_counters, 1);
const struct nb_stressor nb_tlb = CALLS(arm_shootdown, shoot_down, end_helper, 2);
const struct nb_stressor nb_migrate = {.arm = arm_migration, .step = migrate, NB_PACED(2, 2)};
