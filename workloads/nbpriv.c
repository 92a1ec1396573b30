/* noisebook-priv: the only part of Noisebook that needs more rights than its user has.
 *
 * It is started by the library with a socket as its standard input, and does a fixed list of things
 * for the user who made that socket (SO_PEERCRED): nobody else can be named. It takes no path, no
 * command and no environment from data. It ends when the socket is closed.
 *
 *     write PATH VALUE          a setting of allowed_settings.h, within its range
 *     perf TYPE CONFIG PID -1 FLAGS   a counter that only counts, on a thread of the run; answers
 *                               with it (a group's leader comes with the request)
 *     realtime PID              a process of this user's may ask for real-time priority
 *     latency US                the request for short wake-ups; answers with its open file
 *     event SYSTEM NAME         the number of a tracepoint that may be counted: nbpriv_events.c
 *     trace, look, knob, watch, untrace   a tracefs instance that is ours: nbpriv_trace.c
 *
 * An answer is "ok ..." or "no ERRNO reason". Rights come from file capabilities or from sudo; both
 * end in the same state: the user's own ids, a few permitted capabilities, none of them in effect,
 * and no system calls but those that it makes (nbpriv_filter.c). Each verb takes what it needs and
 * puts it down again.
 */
#include "nbpriv.h"

#include <linux/capability.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

enum {
    PROC_MAGIC = 0x9fa0,
    SYSFS_MAGIC = 0x62656572,
    DEBUGFS_MAGIC = 0x64626720,
    MOST_CPUS = 8192,
    MOST_LATENCY_US = 2000000000
};

enum kind { NUMBER, WORD, CPUS, MASK };

struct setting {
    const char *path;
    enum kind kind;
    const char *range;
};

static const struct setting SETTINGS[] = {
#define ALLOWED(path, kind, range, risk) {path, kind, range},
#include "allowed_settings.h"
#undef ALLOWED
};

static uid_t user;
static pid_t asker;
static unsigned long long asker_start;

/* ---- rights ---------------------------------------------------------------------------------- */

static int set_capabilities(uint64_t permitted, uint64_t effective)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    for (int i = 0; i < 2; i++)
        data[i] = (struct __user_cap_data_struct){
            .permitted = (uint32_t)(permitted >> (32 * i)),
            .effective = (uint32_t)(effective >> (32 * i))
        };
    return syscall(SYS_capset, &head, data) ? -errno : 0;
}

static uint64_t permitted_now(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    if (syscall(SYS_capget, &head, data))
        return 0;
    return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

static uint64_t permitted;

int with_rights(uint64_t capabilities, bool as_root)
{
    if (set_capabilities(permitted, (capabilities | BIT(CAP_SETUID)) & permitted))
        return -EPERM;
    if (as_root && setresuid((uid_t)-1, 0, (uid_t)-1))
        return -EPERM;
    return set_capabilities(permitted, capabilities & permitted);
}

void without_rights(void)
{
    if (set_capabilities(permitted, BIT(CAP_SETUID) & permitted) ||
        setresuid((uid_t)-1, user, (uid_t)-1) || set_capabilities(permitted, 0) ||
        geteuid() != user)
        _exit(3);
}

/* From root (sudo) or from file capabilities to the same: the user's ids and a few rights unused.
 */
static int settle(const struct ucred *peer)
{
    user = peer->uid;
    asker = peer->pid;
    permitted = permitted_now() & OUR_RIGHTS;
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -errno;
    if (getuid() == 0 && user != 0 &&
        (setresgid(peer->gid, peer->gid, peer->gid) || syscall(SYS_setgroups, 0, NULL)))
        return -errno;
    if (getuid() != user && setresuid(user, user, user))
        return -errno;
    return set_capabilities(permitted, 0);
}

/* ---- what a request says --------------------------------------------------------------------- */

bool is_number(const char *text, int64_t least, int64_t most, int64_t *number)
{
    char *end = NULL;
    const char *digits = text + (*text == '-');
    if (!*digits || strlen(text) > 19 || digits[strspn(digits, "0123456789")] ||
        (*digits == '0' && digits[1]))
        return false;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    *number = value;
    return !errno && !*end && end != text && value >= least && value <= most;
}

bool is_among_words(const char *word, const char *words)
{
    const size_t length = strlen(word);
    if (!length || strchr(word, ' '))
        return false;
    for (const char *at = words; (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

/* A list like 0-2,5 of CPUs that the machine has; never empty. */
static bool is_cpu_list(const char *text)
{
    const long most = sysconf(_SC_NPROCESSORS_CONF);
    const char *at = text;
    do {
        char *end;
        if (*at < '0' || *at > '9')
            return false;
        const long first = strtol(at, &end, 10);
        long last = first;
        if (*end == '-') {
            at = end + 1;
            if (*at < '0' || *at > '9')
                return false;
            last = strtol(at, &end, 10);
        }
        if (first > last || last >= most || last >= MOST_CPUS)
            return false;
        at = end;
    } while (*at++ == ',');
    return !at[-1];
}

/* A mask like ff,00000003 of CPUs that the machine has, with at least one of them. */
static bool is_mask(const char *text)
{
    static const char DIGITS[] = "0123456789abcdef";
    const long most = sysconf(_SC_NPROCESSORS_CONF);
    const size_t length = strlen(text);
    size_t digit = 0, in_group = 0; /* counted from the right */
    bool any = false;
    if (!length || length > MOST_CPUS / 3)
        return false;
    for (const char *at = text + length; at-- > text;) {
        if (*at == ',' && in_group == 8 && at > text) {
            in_group = 0;
            continue;
        }
        const char *value = strchr(DIGITS, *at);
        if (!value || !*value || in_group == 8)
            return false;
        const int bits = (int)(value - DIGITS);
        for (int bit = 0; bit < 4; bit++)
            if (bits >> bit & 1 && (long)(digit * 4) + bit >= most)
                return false;
        any = any || bits;
        digit++, in_group++;
    }
    return any;
}

static bool is_value_of(const struct setting *setting, const char *text)
{
    int64_t least, most, number;
    switch (setting->kind) {
    case NUMBER:
        return sscanf(setting->range, "%" SCNd64 " %" SCNd64, &least, &most) == 2 &&
               is_number(text, least, most, &number);
    case WORD: return is_among_words(text, setting->range);
    case CPUS: return is_cpu_list(text);
    default: return is_mask(text);
    }
}

/* A star of the pattern stands for one to nine digits. */
static bool is_named(const char *pattern, const char *path)
{
    for (; *pattern; pattern++) {
        if (*pattern != '*') {
            if (*path++ != *pattern)
                return false;
            continue;
        }
        const size_t digits = strspn(path, "0123456789");
        if (digits < 1 || digits > 9)
            return false;
        path += digits;
    }
    return !*path;
}

static const struct setting *setting_of(const char *path)
{
    for (size_t i = 0; i < sizeof SETTINGS / sizeof *SETTINGS; i++)
        if (is_named(SETTINGS[i].path, path))
            return &SETTINGS[i];
    return NULL;
}

/* ---- settings -------------------------------------------------------------------------------- */

/* No link is followed, so that the name is the thing; only files of the kernel are opened. */
static int open_setting(const char *path, uint64_t flags)
{
    const struct open_how how = {
        .flags = flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS
    };
    const int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    struct statfs where;
    if (fd < 0)
        return -errno;
    if (!fstatfs(fd, &where) && (where.f_type == PROC_MAGIC || where.f_type == SYSFS_MAGIC ||
                                 where.f_type == DEBUGFS_MAGIC))
        return fd;
    close(fd);
    return -EXDEV;
}

/* The chosen word of "always [madvise] never", else the whole text. */
static void choose(char *text)
{
    text[strcspn(text, "\n")] = 0;
    char *open = strchr(text, '['), *shut = open ? strchr(open, ']') : NULL;
    if (shut) {
        *shut = 0;
        memmove(text, open + 1, strlen(open));
    }
}

/* What is there now must be within the range, too: else it could not be put back. */
static bool can_be_put_back(const struct setting *setting, const char *path)
{
    char now[TEXT_BYTES];
    const int fd = open_setting(path, O_RDONLY);
    if (fd < 0)
        return true; /* it cannot be read: it is done at once and leaves nothing */
    const ssize_t got = read(fd, now, sizeof now - 1);
    close(fd);
    if (got < 0)
        return true;
    now[got] = 0;
    choose(now);
    return is_value_of(setting, now);
}

static int write_setting(const struct setting *setting, const char *path, const char *value)
{
    if (!can_be_put_back(setting, path))
        return -ERANGE;
    const int fd = open_setting(path, O_WRONLY);
    if (fd < 0)
        return fd;
    char line[TEXT_BYTES];
    const int length = snprintf(line, sizeof line, "%s\n", value);
    const int error = write(fd, line, (size_t)length) == length ? 0 : -errno;
    close(fd);
    return error;
}

static void verb_write(struct request *request)
{
    const struct setting *setting = setting_of(request->words[1]);
    if (!setting)
        return answer(-EACCES, "it is not on the list of settings", -1);
    if (!is_value_of(setting, request->words[2]))
        return answer(-EDOM, "the value is out of its range", -1);
    const bool balancing = !strcmp(setting->path, "/proc/sys/kernel/numa_balancing");
    int error = with_rights(balancing ? BIT(CAP_SYS_ADMIN) : 0, true);
    if (!error)
        error = write_setting(setting, request->words[1], request->words[2]);
    without_rights();
    answer(error, error == -ERANGE ? "what it is now could not be put back" : "", -1);
}

/* ---- processes and counters ------------------------------------------------------------------ */

/* State, parent and start time (clock ticks since boot) of a process; false: there is none. */
static bool read_stat(pid_t pid, char *state, int *parent, unsigned long long *start)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = 0;
    const char *end = strrchr(text, ')');
    return end && sscanf(end + 1,
                         " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d"
                         " %*d %llu",
                         state, parent, start) == 3;
}

static pid_t parent_of(pid_t pid)
{
    char state;
    int parent;
    unsigned long long start;
    return read_stat(pid, &state, &parent, &start) ? parent : 0;
}

static bool is_dead(pid_t pid, unsigned long long started)
{
    char state;
    int parent;
    unsigned long long start;
    return !read_stat(pid, &state, &parent, &start) || state == 'Z' || state == 'X' ||
           start != started;
}

/* The process that asks, or a process of the same user's that descends from it. */
static bool is_of_our_run(pid_t pid)
{
    struct stat owner;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    if (stat(path, &owner) || owner.st_uid != user)
        return false;
    for (int steps = 0; pid > 1 && steps < 64; steps++, pid = parent_of(pid))
        if (pid == asker)
            return true;
    return false;
}

bool is_asked_by_its_maker(const char *instance)
{
    int pid;
    return sscanf(instance, "noisebook-%d-", &pid) == 1 && is_of_our_run(pid);
}

/* One of another pid namespace cannot be seen from here, and counts as living. */
bool has_a_dead_maker(const char *instance)
{
    int pid;
    unsigned long long start, space;
    struct stat here;
    return sscanf(instance, "noisebook-%d-%llu-%llu", &pid, &start, &space) == 3 &&
           !stat("/proc/self/ns/pid", &here) && here.st_ino == space && is_dead(pid, start);
}

bool asker_is_dead(void)
{
    return is_dead(asker, asker_start);
}

/* A thread of such a process. */
static bool is_our_thread(pid_t thread)
{
    char path[64], line[128];
    int group = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)thread);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Tgid: %d", &group) == 1)
            break;
    if (file)
        fclose(file);
    return group > 0 && is_of_our_run(group);
}

static void verb_perf(struct request *request)
{
    int64_t type, config, pid, cpu, flags;
    char **words = request->words;
    const int64_t wanted = FLAG_DISABLED | FLAG_INHERIT | FLAG_NO_KERNEL | FLAG_NO_HYPERVISOR;
    if (!is_number(words[1], 0, PERF_TYPE_RAW, &type) ||
        !is_number(words[2], INT64_MIN, INT64_MAX, &config) ||
        !is_number(words[3], 0, INT32_MAX, &pid) || !is_number(words[4], -1, -1, &cpu) ||
        !is_number(words[5], 0, wanted, &flags) || (flags & ~wanted))
        return answer(-EINVAL, "no such counter", -1);
    if (pid == 0 || !is_our_thread((pid_t)pid))
        return answer(-EPERM, "the thread is not of this run", -1);
    if (type == PERF_TYPE_TRACEPOINT && !is_counted(config))
        return answer(-EACCES, "it is not on the list of tracepoints", -1);
    struct perf_event_attr attributes = {
        .type = (uint32_t)type,
        .size = sizeof attributes,
        .config = (uint64_t)config,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        .disabled = !!(flags & FLAG_DISABLED),
        .inherit = !!(flags & FLAG_INHERIT),
        .exclude_kernel = !!(flags & FLAG_NO_KERNEL),
        .exclude_hv = !!(flags & FLAG_NO_HYPERVISOR)
    };
    int fd = with_rights(BIT(CAP_PERFMON), false);
    if (!fd) {
        fd = (int)syscall(SYS_perf_event_open, &attributes, (pid_t)pid, -1, request->fd,
                          PERF_FLAG_FD_CLOEXEC);
        fd = fd < 0 ? -errno : fd;
    }
    without_rights();
    answer(fd < 0 ? fd : 0, "", fd);
}

static void verb_realtime(struct request *request)
{
    const struct rlimit priority = {99, 99}, nice = {40, 40};
    const struct rlimit memory = {RLIM_INFINITY, RLIM_INFINITY};
    int64_t pid;
    if (!is_number(request->words[1], 1, INT32_MAX, &pid) || !is_of_our_run((pid_t)pid))
        return answer(-EPERM, "the process is not of this run", -1);
    int error = with_rights(BIT(CAP_SYS_RESOURCE), false);
    if (!error && (prlimit((pid_t)pid, RLIMIT_RTPRIO, &priority, NULL) ||
                   prlimit((pid_t)pid, RLIMIT_NICE, &nice, NULL) ||
                   prlimit((pid_t)pid, RLIMIT_MEMLOCK, &memory, NULL)))
        error = -errno;
    without_rights();
    answer(error, "", -1);
}

static void verb_latency(struct request *request)
{
    int64_t us;
    if (!is_number(request->words[1], 0, MOST_LATENCY_US, &us))
        return answer(-EDOM, "the value is out of its range", -1);
    const int32_t wanted = (int32_t)us;
    int fd = with_rights(0, true);
    if (!fd)
        fd = open("/dev/cpu_dma_latency", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    int error = fd < 0 ? -errno : 0;
    if (fd >= 0 && write(fd, &wanted, sizeof wanted) != (ssize_t)sizeof wanted)
        error = -errno;
    without_rights();
    answer(error, "", fd);
}

/* ---- requests -------------------------------------------------------------------------------- */

void answer(int error, const char *text, int fd)
{
    char line[TEXT_BYTES];
    if (error)
        snprintf(line, sizeof line, "no %d %s", -error, *text ? text : strerror(-error));
    else
        snprintf(line, sizeof line, "ok %s", text);
    char room[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {line, strlen(line)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (!error && fd >= 0) {
        message.msg_control = room;
        message.msg_controllen = sizeof room;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        *head = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS
        };
        memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    if (sendmsg(0, &message, MSG_NOSIGNAL) < 0)
        _exit(0);
    if (fd >= 0)
        close(fd);
}

/* All but the standard ones: the helper keeps none between two requests. */
static void close_others(void)
{
    if (syscall(SYS_close_range, 3, UINT_MAX, 0)) /* Linux 5.9 */
        for (int fd = 3; fd < 1024; fd++)
            close(fd);
}

/* One message; false at the end. With more than one descriptor it has no words. */
static bool receive(struct request *request)
{
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))];
    struct iovec part = {request->text, sizeof request->text - 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room
    };
    ssize_t got;
    do
        got = recvmsg(0, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    request->fd = -1;
    request->count = 0;
    const struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    const bool comes = head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS;
    const bool one = comes && head->cmsg_len == CMSG_LEN(sizeof request->fd);
    if (one)
        memcpy(&request->fd, CMSG_DATA(head), sizeof request->fd);
    if (got <= 0)
        return false;
    request->text[got] = 0;
    if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || comes != one ||
        strlen(request->text) != (size_t)got)
        return true; /* no words: refused */
    for (const char *at = request->text; *at; at++)
        if (*at < ' ' || *at > '~')
            return true;
    for (char *rest = request->text, *word; (word = strsep(&rest, " "));)
        if (request->count < MOST_WORDS)
            request->words[request->count++] = word;
        else
            return request->count = 0, true;
    return true;
}

static const struct verb {
    const char *name;
    int words;
    void (*act)(struct request *);
} VERBS[] = {
    {"write", 3, verb_write},     {"perf", 6, verb_perf},   {"realtime", 2, verb_realtime},
    {"latency", 2, verb_latency}, {"event", 3, verb_event}, {"trace", 2, verb_trace},
    {"look", 2, verb_look},       {"knob", 4, verb_knob},   {"watch", 2, verb_watch},
    {"untrace", 2, verb_untrace},
};

static void carry_out(struct request *request)
{
    for (size_t i = 0; i < sizeof VERBS / sizeof *VERBS; i++)
        if (request->count && !strcmp(request->words[0], VERBS[i].name) &&
            request->count == VERBS[i].words) {
            VERBS[i].act(request);
            return;
        }
    answer(-EBADMSG, "no such request", -1);
}

uid_t the_user(void)
{
    return user;
}

int main(void)
{
    static struct request request;
    struct ucred peer;
    socklen_t size = sizeof peer;
    int type = 0;
    socklen_t type_size = sizeof type;
    if (getsockopt(0, SOL_SOCKET, SO_TYPE, &type, &type_size) || type != SOCK_SEQPACKET ||
        getsockopt(0, SOL_SOCKET, SO_PEERCRED, &peer, &size) || peer.pid <= 0) {
        dprintf(2, "noisebook-priv is started by Noisebook, with a socket; see SECURITY.md\n");
        return 2;
    }
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    umask(077);
    clearenv();
    if (chdir("/") || settle(&peer))
        return 3;
    read_stat(asker, &(char){0}, &(int){0}, &asker_start);
    close_others();
    if (confine())
        return 3;
    while (receive(&request)) {
        carry_out(&request);
        close_others();
    }
    end_tracing();
    return 0;
}
