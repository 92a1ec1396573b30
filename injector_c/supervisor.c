/* The supervisor: forks the injectors of an injection, and ends all of them when there is a reason
 * to.
 *
 * Every inherited descriptor is closed but the ones that are watched. Injectors die with the
 * supervisor (PR_SET_PDEATHSIG); the supervisor watches the owner by pidfd and by a socket, and not
 * by PR_SET_PDEATHSIG, because that one fires when the *thread* that started it ends.
 */
#define _GNU_SOURCE
#include "kinds_internal.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { GRACE_MS = 100 };

static void close_all_but(const int *open_fds, int count)
{
    for (unsigned next = 0;;) {
        unsigned lowest = UINT_MAX;
        for (int i = 0; i < count; i++)
            if (open_fds[i] >= 0 && (unsigned)open_fds[i] >= next && (unsigned)open_fds[i] < lowest)
                lowest = (unsigned)open_fds[i];
        if (lowest > next)
            syscall(SYS_close_range, next, lowest == UINT_MAX ? lowest : lowest - 1, 0);
        if (lowest == UINT_MAX)
            return;
        next = lowest + 1;
    }
}

static void name_process(const char *name)
{
    prctl(PR_SET_NAME, name);
}

/* Above every lane, so that it can always end them. */
static void rise_above(const struct nb_injection *run)
{
    bool realtime = false;
    for (int lane = 0; lane < run->lane_count && !realtime; lane++)
        for (int64_t i = 0; i < run->lanes[lane].count && !realtime; i++)
            realtime = nb_is_realtime(run->plan.policy[run->lanes[lane].first + i]);
    const struct sched_param highest = {.sched_priority = NB_HIGHEST_PRIORITY + 1};
    if (realtime)
        sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &highest);
}

static void become_lane(struct nb_injection *run, struct nb_lane *lane, pid_t supervisor,
                        const struct nb_watch *watch)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor)
        _exit(1);
    name_process("nb-injector");
    /* as the supervisor notes too, but perhaps only after this lane is ready */
    lane->pid = getpid();
    close(watch->control);
    close(watch->owner);
    if (watch->workload >= 0)
        close(watch->workload);
    _exit(nb_lane_main(run, lane, watch->ready));
}

/* *done becomes readable (end of file) when the last lane is gone. */
static int fork_lanes(struct nb_injection *run, const struct nb_watch *watch, int *done)
{
    int ends[2];
    const pid_t supervisor = getpid();
    if (pipe2(ends, O_CLOEXEC))
        return errno;
    for (int i = 0; i < run->lane_count; i++) {
        const pid_t pid = fork();
        if (pid < 0) {
            run->lanes[i].error = errno;
            break;
        }
        if (pid == 0) {
            close(ends[0]);
            become_lane(run, &run->lanes[i], supervisor, watch);
        }
        run->lanes[i].pid = pid;
    }
    close(ends[1]);
    close(watch->ready);
    *done = ends[0];
    return run->lanes[run->lane_count - 1].pid ? 0 : EAGAIN;
}

/* The owner writes 'g' when it has released the lanes (the limit counts from t0), 's' to stop; it
 * closes the socket, or dies, to stop. */
static bool owner_goes_on(int control, int *ended_by)
{
    char word;
    const ssize_t got = read(control, &word, 1);
    *ended_by = got == 1 ? NB_STOP_REQUESTED : NB_OWNER_ENDED;
    return got == 1 && word == 'g';
}

/* A workload may outlast the plan: lanes that only sleep need no limit. */
static bool only_stay(const struct nb_injection *run)
{
    int done = 0;
    while (done < run->lane_count && __atomic_load_n(&run->lanes[done].done, __ATOMIC_ACQUIRE))
        done++;
    return run->control->stay && done == run->lane_count;
}

/* Sleeps until there is a reason to end; returns it. */
static int wait_for_end(const struct nb_injection *run, const struct nb_watch *watch, int done)
{
    int64_t limit_ns = nb_now_ns() + run->rules.armed_limit_ns;
    struct pollfd fds[] = {
        {.fd = watch->workload, .events = POLLIN},
        {.fd = watch->owner, .events = POLLIN},
        {.fd = done, .events = POLLIN},
        {.fd = watch->control, .events = POLLIN}
    };
    for (;;) {
        int ended_by;
        if (poll(fds, 4, nb_until_ms(limit_ns)) < 0)
            continue;
        if (fds[0].revents)
            return NB_WORKLOAD_ENDED;
        if (fds[1].revents)
            return NB_OWNER_ENDED;
        if (fds[2].revents)
            return NB_PLAN_DONE;
        if (fds[3].revents && !owner_goes_on(watch->control, &ended_by))
            return ended_by;
        if (fds[3].revents)
            limit_ns = run->control->t0_ns + run->rules.limit_ns;
        if (nb_now_ns() >= limit_ns && !only_stay(run))
            return NB_TIME_LIMIT;
        if (nb_now_ns() >= limit_ns)
            limit_ns = INT64_MAX;
    }
}

static void end_lanes(struct nb_injection *run, int done)
{
    struct pollfd all_gone = {.fd = done, .events = POLLIN};
    nb_set_state(run->control, NB_STOPPING);
    /* or on its way: a lane's descriptors close shortly before it can be waited for */
    const bool gone = poll(&all_gone, 1, GRACE_MS) > 0;
    for (int i = 0; i < run->lane_count; i++) {
        struct nb_lane *lane = &run->lanes[i];
        const pid_t ended = lane->pid > 0
                                ? waitpid(lane->pid, &lane->status, gone ? 0 : WNOHANG | WUNTRACED)
                                : -1;
        lane->stopped = ended > 0 && WIFSTOPPED(lane->status);
        lane->killed = ended == 0 || lane->stopped;
        if (lane->killed)
            kill(lane->pid, SIGKILL);
    }
    for (int i = 0; i < run->lane_count; i++)
        while (run->lanes[i].killed && waitpid(run->lanes[i].pid, &run->lanes[i].status, 0) < 0 &&
               errno == EINTR)
            ;
}

void nb_supervise(struct nb_injection *run, const struct nb_watch *watch)
{
    const int open_fds[] = {watch->control, watch->workload, watch->owner, watch->ready};
    int done = -1;
    name_process("nb-supervisor");
    close_all_but(open_fds, 4);
    rise_above(run);
    const int error = fork_lanes(run, watch, &done);
    const int ended_by = error ? NB_FAILED : wait_for_end(run, watch, done);
    run->control->ended_ns = nb_now_ns();
    end_lanes(run, done);
    nb_kinds_clean(run);
    __atomic_store_n(&run->control->ended_by, ended_by, __ATOMIC_RELEASE);
    _exit(0);
}
