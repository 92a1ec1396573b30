/* noisebook-priv: the only part of Noisebook that needs more rights than its user has.
 *
 * It is started by the library with a socket as its standard input, and does a fixed list of things
 * for the user who made that socket (SO_PEERCRED): nobody else can be named. It takes no path, no
 * command and no environment from data. When the socket is closed it puts back what it changed,
 * and ends.
 *
 *     write PATH VALUE          a setting of allowed_settings.h, within its range
 *     perf TYPE CONFIG PID -1 FLAGS   a counter that only counts, on a thread of this user's;
 *                               answers with it (a group's leader comes with the request)
 *     realtime PID              a process of this user's may ask for real-time priority
 *     latency US                the request for short wake-ups; answers with its open file
 *     event SYSTEM/NAME         the number of a tracepoint that may be counted: nbpriv_events.c
 *     trace, look, knob, watch, untrace   a tracefs instance of the user: nbpriv_trace.c
 *
 * An answer is "ok ..." or "no ERRNO reason". Rights come from file capabilities or from sudo; both
 * end in the same state: the user's own ids, a few permitted capabilities, none of them in effect,
 * and no system calls but those that it makes (nbpriv_filter.c). Each verb takes what it needs, and
 * all is put down again before the answer.
 */
#include "nbpriv.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum {
    /* of struct perf_event_attr: disabled, inherit, exclude_kernel, exclude_hv */
    COUNTERS_FLAGS = 1 << 0 | 1 << 1 | 1 << 5 | 1 << 6,
    MOST_CHANGES = 1024, /* a machine has so many interrupts */
    PATH_BYTES = 128
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

uid_t user;
pid_t asker;

/* ---- rights ---------------------------------------------------------------------------------- */

static struct __user_cap_header_struct version = {.version = _LINUX_CAPABILITY_VERSION_3};
static uint64_t permitted;

/* Of the permitted rights these come into effect; 0 or -errno. */
static int take_rights(uint64_t capabilities)
{
    struct __user_cap_data_struct data[2];
    for (int i = 0; i < 2; i++)
        data[i] = (struct __user_cap_data_struct){
            .permitted = (uint32_t)(permitted >> (32 * i)),
            .effective = (uint32_t)((capabilities & permitted) >> (32 * i))
        };
    return syscall(SYS_capset, &version, data) ? -errno : 0;
}

int with_rights(uint64_t capabilities, bool as_root)
{
    if (take_rights(capabilities | BIT(CAP_SETUID)) ||
        (as_root && setresuid((uid_t)-1, 0, (uid_t)-1)))
        return -EPERM;
    return take_rights(capabilities);
}

void without_rights(void)
{
    if (take_rights(BIT(CAP_SETUID)) || setresuid((uid_t)-1, user, (uid_t)-1) || take_rights(0) ||
        geteuid() != user)
        _exit(3);
}

/* From root (sudo) or from file capabilities to the same: the user's ids and a few rights unused.
 */
static int settle(const struct ucred *peer)
{
    struct __user_cap_data_struct data[2];
    user = peer->uid;
    asker = peer->pid;
    if (syscall(SYS_capget, &version, data) || prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -errno;
    permitted = (data[0].permitted | (uint64_t)data[1].permitted << 32) & OUR_RIGHTS;
    if (getuid() == 0 && user != 0 &&
        (setresgid(peer->gid, peer->gid, peer->gid) || syscall(SYS_setgroups, 0, NULL)))
        return -errno;
    if (getuid() != user && setresuid(user, user, user))
        return -errno;
    return take_rights(0);
}

/* ---- what a request says --------------------------------------------------------------------- */

/* As the number is printed: no blank, plus sign or leading zero. */
bool is_number(const char *text, int64_t least, int64_t most, int64_t *number)
{
    char printed[24];
    *number = strtoll(text, NULL, 10);
    snprintf(printed, sizeof printed, "%" PRId64, *number);
    return !strcmp(text, printed) && *number >= least && *number <= most;
}

bool is_among_words(const char *word, const char *words)
{
    char sought[TEXT_BYTES + 3], list[TEXT_BYTES];
    snprintf(sought, sizeof sought, " %s ", word);
    snprintf(list, sizeof list, " %s ", words);
    return *word && !strchr(word, ' ') && strstr(list, sought);
}

bool has_only(const char *text, const char *letters, size_t most)
{
    const size_t length = strlen(text);
    return length && length <= most && strspn(text, letters) == length;
}

/* Which CPUs there are the kernel knows: it takes no list and no mask with others, or with none. */
static bool is_value_of(const struct setting *setting, const char *text)
{
    int64_t least, most, number;
    switch (setting->kind) {
    case NUMBER:
        return sscanf(setting->range, "%" SCNd64 " %" SCNd64, &least, &most) == 2 &&
               is_number(text, least, most, &number);
    case WORD: return is_among_words(text, setting->range);
    case CPUS: return has_only(text, "0123456789,-", TEXT_BYTES);
    default: return has_only(text, "0123456789abcdef,", TEXT_BYTES);
    }
}

/* A star of the pattern stands for one to nine digits. */
static bool is_named(const char *pattern, const char *path)
{
    for (; *pattern; pattern++)
        if (*pattern == '*') {
            const size_t digits = strspn(path, "0123456789");
            if (digits < 1 || digits > 9)
                return false;
            path += digits;
        } else if (*path++ != *pattern)
            return false;
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

/* What this helper has changed: how it was before, and how it reads since. */
static struct change {
    char path[PATH_BYTES], old[TEXT_BYTES], ours[TEXT_BYTES];
} changes[MOST_CHANGES];

/* The chosen word of "always [madvise] never", or the first line; false: it cannot be read. */
static bool read_chosen(const char *path, char *chosen)
{
    char now[TEXT_BYTES];
    *chosen = 0;
    if (read_text(AT_FDCWD, path, now, sizeof now))
        return false;
    const char *open = strchr(now, '[');
    sscanf(open ? open + 1 : now, "%4095[^]\n]", chosen);
    return true;
}

/* What is there now must be within the range, too. What cannot be read is done at once and leaves
 * nothing. */
static int verb_write(struct request *request)
{
    char now[TEXT_BYTES];
    const char *path = request->words[1], *value = request->words[2];
    const struct setting *setting = setting_of(path);
    if (!setting)
        return refused(request, -EACCES, "it is not on the list of settings");
    if (!is_value_of(setting, value))
        return refused(request, -EDOM, "the value is out of its range");
    const bool balancing = !strcmp(setting->path, "/proc/sys/kernel/numa_balancing");
    if (with_rights(balancing ? BIT(CAP_SYS_ADMIN) : 0, true))
        return -EPERM;
    if (!read_chosen(path, now))
        return write_text(AT_FDCWD, path, value);
    struct change *change = changes, *const end = changes + MOST_CHANGES;
    while (change < end && *change->path && strcmp(change->path, path))
        change++;
    if (change == end || !is_value_of(setting, now))
        return refused(request, -ERANGE, "what it is now could not be put back");
    if (!*change->path) {
        snprintf(change->path, sizeof change->path, "%s", path);
        snprintf(change->old, sizeof change->old, "%s", now);
    }
    const int error = write_text(AT_FDCWD, path, value);
    read_chosen(path, change->ours);
    return error;
}

/* The socket is closed: what is still as this helper wrote it becomes what it was, the last first.
 */
static void put_back(void)
{
    char now[TEXT_BYTES];
    if (!*changes->path || with_rights(BIT(CAP_SYS_ADMIN), true))
        return;
    for (struct change *one = changes + MOST_CHANGES; one-- > changes;)
        if (*one->path && read_chosen(one->path, now) && !strcmp(now, one->ours))
            write_text(AT_FDCWD, one->path, one->old);
}

/* ---- processes and counters ------------------------------------------------------------------ */

/* As the kernel sees it: what has more rights than its user belongs to root. */
static bool is_users(int64_t thread)
{
    struct stat owner;
    char path[64];
    snprintf(path, sizeof path, "/proc/%" PRId64, thread);
    return !fstatat(AT_FDCWD, path, &owner, 0) && owner.st_uid == user;
}

static int verb_perf(struct request *request)
{
    int64_t type, config, pid, cpu, flags;
    char **words = request->words;
    if (!is_number(words[1], 0, PERF_TYPE_RAW, &type) ||
        !is_number(words[2], INT64_MIN, INT64_MAX, &config) ||
        !is_number(words[3], 0, INT32_MAX, &pid) || !is_number(words[4], -1, -1, &cpu) ||
        !is_number(words[5], 0, COUNTERS_FLAGS, &flags) || (flags & ~COUNTERS_FLAGS))
        return refused(request, -EINVAL, "no such counter");
    if (!is_users(pid))
        return refused(request, -EPERM, "the thread is not this user's");
    if (type == PERF_TYPE_TRACEPOINT && !is_counted(config))
        return refused(request, -EACCES, "it is not on the list of tracepoints");
    struct perf_event_attr attributes = {
        .type = (uint32_t)type,
        .size = sizeof attributes,
        .config = (uint64_t)config,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        .disabled = flags & 1,
        .inherit = flags >> 1 & 1,
        .exclude_kernel = flags >> 5 & 1,
        .exclude_hv = flags >> 6 & 1
    };
    if (with_rights(BIT(CAP_PERFMON), false))
        return -EPERM;
    const long fd = syscall(SYS_perf_event_open, &attributes, (pid_t)pid, -1, request->fd,
                            PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : (int)fd;
}

static int verb_realtime(struct request *request)
{
    const struct rlimit priority = {99, 99}, nice = {40, 40};
    const struct rlimit memory = {RLIM_INFINITY, RLIM_INFINITY};
    int64_t pid;
    if (!is_number(request->words[1], 1, INT32_MAX, &pid) || !is_users(pid))
        return refused(request, -EPERM, "the process is not this user's");
    if (with_rights(BIT(CAP_SYS_RESOURCE), false) ||
        prlimit((pid_t)pid, RLIMIT_RTPRIO, &priority, NULL) ||
        prlimit((pid_t)pid, RLIMIT_NICE, &nice, NULL) ||
        prlimit((pid_t)pid, RLIMIT_MEMLOCK, &memory, NULL))
        return -errno;
    return 0;
}

static int verb_latency(struct request *request)
{
    int64_t us;
    if (!is_number(request->words[1], 0, INT32_MAX, &us))
        return refused(request, -EDOM, "the value is out of its range");
    const int32_t wanted = (int32_t)us;
    if (with_rights(0, true))
        return -EPERM;
    const int fd = open("/dev/cpu_dma_latency", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 || write(fd, &wanted, sizeof wanted) < 0 ? -errno : fd;
}

/* ---- requests -------------------------------------------------------------------------------- */

int refused(struct request *request, int error, const char *why)
{
    snprintf(request->said, sizeof request->said, "%s", why);
    return error;
}

/* Its words, with a descriptor (0: none); or the number of an error. False: nobody is there. */
static bool answer(const struct request *to, int fd)
{
    char line[TEXT_BYTES];
    if (fd < 0)
        snprintf(line, sizeof line, "no %d %s", -fd, *to->said ? to->said : strerror(-fd));
    else
        snprintf(line, sizeof line, "ok %s", to->said);
    char room[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {line, strlen(line)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd > 0) {
        message.msg_control = room;
        message.msg_controllen = sizeof room;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        *head = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS
        };
        memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    return sendmsg(0, &message, MSG_NOSIGNAL) >= 0;
}

/* One message; false at the end. With more than one descriptor it has no words. */
static bool receive(struct request *request)
{
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))];
    struct iovec part = {request->text, sizeof request->text - 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room};
    message.msg_controllen = CMSG_LEN(sizeof(int)); /* the kernel drops a second one */
    const ssize_t got = recvmsg(0, &message, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    request->fd = -1;
    request->count = 0;
    if (got <= 0)
        return false;
    if (head && head->cmsg_type == SCM_RIGHTS)
        memcpy(&request->fd, CMSG_DATA(head), sizeof request->fd);
    request->text[got] = 0;
    if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || strlen(request->text) != (size_t)got)
        return true; /* no words: refused */
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
    int (*act)(struct request *);
} VERBS[] = {
    {"write", 3, verb_write},      {"perf", 6, verb_perf},     {"realtime", 2, verb_realtime},
    {"latency", 2, verb_latency},  {"event", 2, verb_event},   {"watch", 2, verb_watch},
    {"trace", 2, verb_instance},   {"look", 2, verb_instance}, {"knob", 4, verb_instance},
    {"untrace", 2, verb_instance},
};

static int carry_out(struct request *request)
{
    *request->said = 0;
    for (size_t i = 0; i < sizeof VERBS / sizeof *VERBS; i++)
        if (request->count == VERBS[i].words && !strcmp(request->words[0], VERBS[i].name))
            return VERBS[i].act(request);
    return refused(request, -EBADMSG, "no such request");
}

int main(void)
{
    static struct request request;
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(0, SOL_SOCKET, SO_PEERCRED, &peer, &size) || peer.pid <= 0) {
        dprintf(2, "noisebook-priv is started by Noisebook, with a socket; see SECURITY.md\n");
        return 2;
    }
    if (chdir("/") || settle(&peer) || syscall(SYS_close_range, 3, UINT_MAX, 0) || confine())
        return 3;
    while (receive(&request)) {
        const int fd = carry_out(&request);
        without_rights();
        if (!answer(&request, fd))
            break;
        syscall(SYS_close_range, 3, HELD_FROM - 1, 0); /* all that the request has opened */
    }
    put_back();
    end_tracing();
    return 0;
}
