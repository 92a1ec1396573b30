/* The owner's side: what Python calls. Checks the plan, executes the supervisor, signals when to
 * release and to stop, waits for its end.
 *
 * The supervisor is a program of its own, and not a fork of the owner: a fork copies the page
 * tables of the whole owner, and each lane would copy them again.
 */
#define _GNU_SOURCE
#include "kinds_internal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#ifndef MFD_NOEXEC_SEAL /* Linux 6.3 */
#define MFD_NOEXEC_SEAL 8U
#endif

/* A machine may refuse files in memory that could be executed; older kernels know no others. */
static int memory_file(void)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    const int fd = memfd_create("noisebook", flags | MFD_NOEXEC_SEAL);
    return fd < 0 && errno == EINVAL ? memfd_create("noisebook", flags) : fd;
}

int32_t nb_map_memory(uint64_t bytes, void **memory)
{
    const int fd = memory_file();
    if (fd < 0)
        return -errno;
    *memory = MAP_FAILED;
    /* nobody can shorten it later, under the feet of those who have mapped it */
    if (ftruncate(fd, (off_t)bytes) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
        *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const int error = errno;
    if (*memory != MAP_FAILED)
        return fd;
    close(fd);
    return -error;
}

void nb_unmap_memory(void *memory, uint64_t bytes)
{
    munmap(memory, bytes);
}

static int pidfd_open(pid_t pid)
{
    const long fd = syscall(SYS_pidfd_open, pid, 0);
    return fd < 0 ? -errno : (int)fd;
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

/* Ctrl-C is for the owner: a process group of its own. Not a session of its own: autogroups would
 * change who gets which share of a CPU. Signals are as usual again, whatever the owner does with
 * them. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    const int error = posix_spawnattr_init(attributes);
    if (error)
        return error;
    posix_spawnattr_setpgroup(attributes, 0);
    posix_spawnattr_setsigdefault(attributes, &all);
    posix_spawnattr_setsigmask(attributes, &none);
    return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
                                                    POSIX_SPAWN_SETSIGMASK);
}

/* The descriptors close by themselves in every other program that the owner executes meanwhile;
 * duplicated onto themselves they stay open in this one. */
static int hand_over(posix_spawn_file_actions_t *actions, const int *fds)
{
    int error = posix_spawn_file_actions_init(actions);
    for (int i = 0; i < NB_HANDED_OVER && !error; i++)
        if (fds[i] >= 0)
            error = posix_spawn_file_actions_adddup2(actions, fds[i], fds[i]);
    return error;
}

/* NAME LAYOUT, then the descriptors: see nb_program. */
static int execute(const char *program, const int *fds, pid_t *pid)
{
    char layout[NB_LAYOUT_BYTES], numbers[NB_HANDED_OVER][12];
    char *words[NB_PROGRAM_WORDS + 1] = {"nbinject", layout};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    nb_layout(layout);
    for (int i = 0; i < NB_HANDED_OVER; i++) {
        snprintf(numbers[i], sizeof numbers[i], "%d", fds[i]);
        words[2 + i] = numbers[i];
    }
    int error = hand_over(&actions, fds);
    if (error)
        return -error;
    error = set_attributes(&attributes);
    if (!error) {
        error = posix_spawn(pid, program, &actions, &attributes, words, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return -error;
}

static int start_supervisor(struct nb_injection *run, const struct nb_watch *watch,
                            const char *program)
{
    const int fds[NB_HANDED_OVER] = {
        watch->control, watch->workload, watch->owner, watch->ready, run->memory_fd
    };
    pid_t pid = 0;
    const int error = execute(program, fds, &pid);
    if (error)
        return error;
    run->supervisor_pid = pid;
    /* if it has ended already, nb_wait_ready says so */
    return send(run->control_fd, run, sizeof *run, MSG_NOSIGNAL) == sizeof *run || errno == EPIPE ||
                   errno == ECONNRESET
               ? 0
               : -errno;
}

int nb_start(struct nb_injection *run, int32_t workload_pid, const char *program)
{
    int64_t event;
    struct nb_excess excess;
    struct nb_watch watch;
    run->control_fd = run->ready_fd = -1;
    run->lanes_ready = 0;
    run->supervisor_pid = 0;
    int error = nb_check(run, &event);
    if (!error)
        error = nb_check_limits(run, &excess);
    if (error)
        return error;
    *run->control = (struct nb_control){.state = NB_ARMED, .stay = workload_pid > 0};
    error = open_watch(run, workload_pid, &watch);
    if (!error)
        error = start_supervisor(run, &watch, program);
    close_watch(&watch);
    if (error && run->supervisor_pid)
        nb_kill(run);
    else if (error)
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
    if (run->supervisor_pid <= 0)
        return 0;
    int error = wait_gone(run->supervisor_pid, &run->supervisor_status, limit_ns);
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
