/* The owner's side: what Python calls. Checks the plan, forks the supervisor, signals when to
 * release and to stop, waits for its end. */
#define _GNU_SOURCE
#include "kinds_internal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

static int pidfd_open(pid_t pid)
{
    const long fd = syscall(SYS_pidfd_open, pid, 0);
    return fd < 0 ? -errno : (int)fd;
}

static bool in_order(const struct nb_injection *run, int64_t i, int64_t before_ns)
{
    const struct nb_plan *plan = &run->plan;
    const int policy = plan->policy[i], priority = plan->priority[i];
    const bool realtime = nb_is_realtime(policy) && priority >= 1 &&
                          priority <= NB_HIGHEST_PRIORITY;
    const bool known = policy == NB_OTHER || policy == NB_BATCH || policy == NB_IDLE;
    const int64_t start = plan->start_ns[i], duration = plan->duration_ns[i];
    const int kind = plan->kind ? plan->kind[i] : NB_OCCUPY;
    const int64_t longest = kind == NB_OCCUPY ? run->rules.longest_event_ns : run->rules.limit_ns;
    return (realtime || (known && priority >= -20 && priority <= 19)) && start >= before_ns &&
           start < INT64_MAX / 4 && duration >= 0 && duration <= longest &&
           nb_kind_is_valid(kind, plan->intensity ? plan->intensity[i] : 0);
}

static bool is_among(int64_t value, int64_t least, int64_t most)
{
    return value >= least && value <= most;
}

static bool costs_hold(const struct nb_costs *costs)
{
    if (!is_among(costs->points, 0, NB_EXIT_POINTS) || !is_among(costs->wake_ns, 0, NB_SECOND_NS) ||
        !is_among(costs->wake_most_ns, 0, NB_SECOND_NS))
        return false;
    for (int64_t i = 0; i < costs->points; i++)
        if (costs->length_ns[i] <= (i ? costs->length_ns[i - 1] : 0) ||
            !is_among(costs->exit_ns[i], 0, NB_SECOND_NS))
            return false;
    return costs->exit_per_wake >= 0 && costs->exit_per_wake <= 10;
}

static bool core_kinds_hold(const struct nb_injection *run)
{
    for (int kind = 0; kind < NB_CORE_KINDS; kind++)
        if (!costs_hold(&run->rules.costs[kind]))
            return false;
    for (int cpu = 0; cpu < NB_MAX_CPUS; cpu++)
        if (run->core_kind[cpu] >= NB_CORE_KINDS || !run->rules.costs[run->core_kind[cpu]].points)
            return false;
    return true;
}

static bool rules_hold(const struct nb_rules *rules)
{
    const int64_t most = INT64_MAX / 4;
    const int64_t positive[] = {rules->limit_ns, rules->armed_limit_ns, rules->realtime_limit_us};
    const int64_t times[] = {rules->wake_allowance_ns, rules->give_up_ns, rules->longest_event_ns};
    for (int i = 0; i < 3; i++)
        if (!is_among(positive[i], 1, most) || !is_among(times[i], 0, most))
            return false;
    return is_among(rules->lateness, NB_CATCH_UP, NB_TRUNCATE);
}

int nb_check(const struct nb_injection *run, int64_t *event)
{
    *event = -1;
    if (run->lane_count < 1 || run->lane_count > NB_MAX_LANES || run->event_count < 0 ||
        !rules_hold(&run->rules) || !core_kinds_hold(run))
        return -EINVAL;
    for (int lane = 0; lane < run->lane_count; lane++) {
        const struct nb_lane *slice = &run->lanes[lane];
        if (slice->cpu < NB_ROAM || slice->cpu >= NB_MAX_CPUS || slice->first < 0 ||
            slice->first > run->event_count || slice->count < 0 ||
            slice->count > run->event_count - slice->first)
            return -EINVAL;
        int64_t before_ns = 0;
        for (int64_t i = slice->first; i < slice->first + slice->count; i++) {
            if (!in_order(run, i, before_ns)) {
                *event = i;
                return -EINVAL;
            }
            before_ns = run->plan.start_ns[i];
        }
    }
    return 0;
}

static void close_watch(const struct nb_watch *watch)
{
    const int fds[] = {watch->control, watch->workload, watch->owner, watch->ready};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static int open_watch(struct nb_injection *run, int32_t workload_pid, struct nb_watch *watch)
{
    int control[2], ready[2];
    *watch = (struct nb_watch){-1, -1, -1, -1};
    if (workload_pid > 0 && (watch->workload = pidfd_open(workload_pid)) < 0)
        return watch->workload;
    if ((watch->owner = pidfd_open(getpid())) < 0)
        return watch->owner;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control))
        return -errno;
    watch->control = control[0];
    run->control_fd = control[1];
    if (pipe2(ready, O_CLOEXEC))
        return -errno;
    watch->ready = ready[1];
    run->ready_fd = ready[0];
    return 0;
}

static void close_owner(struct nb_injection *run)
{
    int32_t *const fds[] = {&run->control_fd, &run->ready_fd};
    for (int i = 0; i < 2; i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}

/* With every signal blocked, so that none meets Python's handlers in the child. */
static int fork_supervisor(struct nb_injection *run, const struct nb_watch *watch)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t pid = nb_fork();
    const int error = pid < 0 ? -errno : 0;
    if (pid == 0)
        nb_supervise(run, watch);
    run->supervisor_pid = pid > 0 ? pid : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

int nb_start(struct nb_injection *run, int32_t workload_pid)
{
    int64_t event;
    struct nb_watch watch;
    run->control_fd = run->ready_fd = -1;
    run->lanes_ready = 0;
    run->supervisor_pid = 0;
    int error = nb_check(run, &event);
    if (error)
        return error;
    *run->control = (struct nb_control){.state = NB_ARMED, .stay = workload_pid > 0};
    error = open_watch(run, workload_pid, &watch);
    if (!error)
        error = fork_supervisor(run, &watch);
    close_watch(&watch);
    if (error)
        close_owner(run);
    return error;
}

static int wait_readable(int fd, int64_t limit_ns)
{
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    const int got = poll(&readable, 1, nb_until_ms(limit_ns));
    return got < 0 ? -errno : got == 0 ? -ETIMEDOUT : 0;
}

int nb_wait_ready(struct nb_injection *run, int32_t timeout_ms)
{
    const int64_t limit_ns = nb_now_ns() + timeout_ms * 1000000LL;
    char bytes[NB_MAX_LANES];
    while (run->lanes_ready < run->lane_count) {
        const int error = wait_readable(run->ready_fd, limit_ns);
        if (error)
            return error;
        const ssize_t got = read(run->ready_fd, bytes,
                                 (size_t)(run->lane_count - run->lanes_ready));
        if (got <= 0)
            return got < 0 ? -errno : -ECHILD;
        run->lanes_ready += (int32_t)got;
    }
    return 0;
}

static int tell_supervisor(const struct nb_injection *run, char word)
{
    if (run->control_fd < 0)
        return -ESRCH;
    const int error = send(run->control_fd, &word, 1, MSG_NOSIGNAL) == 1 ? 0 : errno;
    return error == EPIPE || error == ECONNRESET ? -ESRCH : -error;
}

int nb_release(struct nb_injection *run, int64_t t0_ns)
{
    uint32_t armed = NB_ARMED;
    if (run->control_fd < 0 || nb_state(run->control) != NB_ARMED)
        return -ESRCH;
    run->control->t0_ns = t0_ns;
    if (!__atomic_compare_exchange_n(&run->control->state, &armed, NB_RELEASED, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return -ESRCH;
    syscall(SYS_futex, &run->control->state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    const int error = tell_supervisor(run, 'g');
    /* a short plan may be over by now: nb_join says how it ended */
    return error == -ESRCH ? 0 : error;
}

int nb_stop(struct nb_injection *run)
{
    const int error = tell_supervisor(run, 's');
    return error == -ESRCH ? 0 : error;
}

/* Waits for a process, and reaps it if it is a child of ours. */
static int wait_gone(pid_t pid, int32_t *status, int64_t limit_ns)
{
    const int fd = pidfd_open(pid);
    if (fd >= 0) {
        const int error = wait_readable(fd, limit_ns);
        close(fd);
        if (error)
            return error;
    }
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        ;
    return 0;
}

/* After the death of the supervisor itself the lanes are dying too; a child subreaper inherits
 * them. */
static int wait_orphans(struct nb_injection *run, int64_t limit_ns)
{
    for (int i = 0; i < run->lane_count; i++) {
        struct nb_lane *lane = &run->lanes[i];
        const int error = lane->pid > 0 ? wait_gone(lane->pid, &lane->status, limit_ns) : 0;
        if (error)
            return error;
    }
    return 0;
}

int nb_join(struct nb_injection *run, int32_t timeout_ms)
{
    const int64_t limit_ns = nb_now_ns() + timeout_ms * 1000000LL;
    int32_t status;
    if (run->supervisor_pid <= 0)
        return 0;
    int error = wait_gone(run->supervisor_pid, &status, limit_ns);
    if (!error && __atomic_load_n(&run->control->ended_by, __ATOMIC_ACQUIRE) == NB_RUNNING)
        error = wait_orphans(run, limit_ns);
    if (error)
        return error;
    nb_kinds_clean(run); /* as the supervisor does, if it lived */
    run->supervisor_pid = 0;
    close_owner(run);
    return 0;
}

int nb_kill(struct nb_injection *run)
{
    if (run->supervisor_pid > 0)
        kill(run->supervisor_pid, SIGKILL);
    return nb_join(run, 10000);
}
