/* noisebook-priv's tracing: instances of tracefs for the user who asks.
 *
 *     trace NAME              makes the instance, whose name begins with noisebook-PID-
 *     look NAME               answers with its folder, in which the user may read
 *     knob NAME FILE VALUE    one of the knobs below
 *     untrace NAME            removes the instance
 *     watch FLAG              osnoise/options: OSNOISE_WORKLOAD or NO_OSNOISE_WORKLOAD; "show"
 *
 * The user may read what was recorded. What is recorded only this program decides
 * (nbpriv_events.c), and how much: so many instances for each user, and for all of them a share of
 * the machine's memory. The helper that made an instance holds a lock on it, and removes it when
 * its socket is closed. Was it killed, the kernel has released the lock, and the user's next
 * instance takes the place of what nobody holds.
 */
#include "nbpriv.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

enum {
    TRACEFS_MAGIC = 0x74726163,
    FSCONFIG_CREATE = 6,
    MEMORY_SHARE = 8, /* an eighth of the machine's memory for all of a user's */
    TRIES = 50,
    PAUSE_US = 20000,
    NAME_BYTES = 101
};

static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
static const char OSNOISE[] = "osnoise/options";
static char held[MOST_INSTANCES][NAME_BYTES]; /* locked by the descriptors from HELD_FROM on */
static const char *flag_before; /* how osnoise was before this helper set it; NULL: not set */

/* tracefs where it is mounted; else a mount of our own that is attached nowhere (Linux 5.2). */
int enter_tracefs(void)
{
    struct statfs where;
    if (with_rights(BIT(CAP_SYS_ADMIN) | BIT(CAP_CHOWN), true))
        return -EPERM;
    const int there = open("/sys/kernel/tracing", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (there >= 0 && !fstatfs(there, &where) && where.f_type == TRACEFS_MAGIC)
        return there;
    const int context = (int)syscall(SYS_fsopen, "tracefs", 1);
    if (context < 0 || syscall(SYS_fsconfig, context, FSCONFIG_CREATE, NULL, NULL, 0))
        return -errno;
    const int fd = (int)syscall(SYS_fsmount, context, 1, 0);
    return fd < 0 ? -errno : fd;
}

static const char *path_of(const char *name)
{
    static char path[NAME_BYTES + 16];
    snprintf(path, sizeof path, "instances/%.*s", NAME_BYTES - 1, name);
    return path;
}

/* The folder of an instance of this user's. */
static int open_instance(int tracefs, const char *name)
{
    struct stat owner;
    const int fd = openat(tracefs, path_of(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (!fstat(fd, &owner) && owner.st_uid == user)
        return fd;
    close(fd);
    return -EPERM;
}

static int remove_instance(int tracefs, const char *name)
{
    const int instance = open_instance(tracefs, name);
    if (instance < 0)
        return instance;
    write_text(instance, "tracing_on", "0");
    close(instance);
    return unlinkat(tracefs, path_of(name), AT_REMOVEDIR) ? -errno : 0;
}

/* ---- who may look ---------------------------------------------------------------------------- */

static int show(int folder, const char *name, mode_t mode)
{
    const int error = fchmodat(folder, name, mode, 0);
    return error || fchownat(folder, name, user, (gid_t)-1, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
}

/* A folder, and below it what a recording is read from. */
static void show_tree(int folder, const char *name)
{
    const int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    if (!entries) {
        if (is_among_words(name, "trace_pipe_raw stats format"))
            show(folder, name, 0400);
        return;
    }
    for (struct dirent *entry; (entry = readdir(entries));)
        if (*entry->d_name != '.')
            show_tree(fd, entry->d_name);
    closedir(entries);
    show(folder, name, 0555);
}

static void show_instance(int instance)
{
    static const char *const FOLDERS[] = {"per_cpu",    "events/irq",   "events/irq_vectors",
                                          "events/nmi", "events/sched", "events/osnoise"};
    show(instance, "trace", 0600); /* writing empties it */
    for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++)
        show_tree(instance, FOLDERS[i]);
    show(instance, "events/header_page", 0400);
    show(instance, "events", 0555);
}

/* ---- making and ending ----------------------------------------------------------------------- */

/* How many this user has, or -errno; those that no helper holds any more are removed. */
static int count_instances(int tracefs)
{
    int count = 0;
    const int fd = openat(tracefs, "instances", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    if (!entries)
        return -errno;
    for (struct dirent *entry; (entry = readdir(entries));) {
        const char *name = entry->d_name;
        const int instance = open_instance(tracefs, name);
        if (instance < 0)
            continue;
        const bool is_held = flock(instance, LOCK_SH | LOCK_NB);
        close(instance);
        if (is_held || remove_instance(tracefs, name))
            count++;
    }
    closedir(entries);
    return count;
}

/* It is the user's, and held, before all else: whatever happens next, it can be removed. */
static int make_instance(int tracefs, const char *name)
{
    struct stat there;
    int slot = 0;
    while (slot < MOST_INSTANCES - 1 && *held[slot] &&
           !fstatat(tracefs, path_of(held[slot]), &there, AT_SYMLINK_NOFOLLOW))
        slot++;
    if (mkdirat(tracefs, path_of(name), 0700))
        return -errno;
    const int error = show(tracefs, path_of(name), 0555);
    const int fd = error ? error : open_instance(tracefs, name);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) || dup3(fd, HELD_FROM + slot, O_CLOEXEC) < 0) {
        unlinkat(tracefs, path_of(name), AT_REMOVEDIR);
        return fd < 0 ? fd : -EMFILE;
    }
    snprintf(held[slot], NAME_BYTES, "%s", name);
    write_text(fd, "buffer_size_kb", "64");
    show_instance(fd);
    return 0;
}

/* One helper at a time counts and makes; who is stopped meanwhile does not stop the others. */
static int make_within_limits(struct request *request, int tracefs, const char *name)
{
    const int turn = openat(tracefs, "instances", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (turn < 0)
        return -errno;
    for (int i = 0; flock(turn, LOCK_EX | LOCK_NB); i++, usleep(PAUSE_US))
        if (i == TRIES)
            return -EAGAIN;
    const int count = count_instances(tracefs);
    if (count >= MOST_INSTANCES)
        return refused(request, -EDQUOT, "this user has four instances, the most");
    return count < 0 ? count : make_instance(tracefs, name);
}

/* A process that is killed closes its socket a moment before the rest. */
void end_tracing(void)
{
    const int tracefs = *held[0] || flag_before ? enter_tracefs() : -1;
    for (int i = 0; tracefs >= 0 && i < MOST_INSTANCES; i++)
        for (int j = 0; *held[i] && j < TRIES && remove_instance(tracefs, held[i]) == -EBUSY; j++)
            usleep(PAUSE_US);
    if (tracefs >= 0 && flag_before)
        write_text(tracefs, OSNOISE, flag_before);
}

/* ---- verbs ----------------------------------------------------------------------------------- */

/* For each CPU: of every instance the same, so that all together cannot take more. */
static int64_t most_buffer_kib(void)
{
    const int64_t all = (int64_t)sysconf(_SC_PHYS_PAGES) * (sysconf(_SC_PAGESIZE) / 1024);
    return all / MEMORY_SHARE / MOST_INSTANCES / sysconf(_SC_NPROCESSORS_CONF);
}

/* The value as the kernel wants it; NULL: no such knob, or no such value of it. */
static const char *knob_value(const char *file, char *value)
{
    static const char KNOBS[] =
        "tracing_on=0 tracing_on=1 options/overwrite=0 options/overwrite=1 trace_clock=mono "
        "current_tracer=nop current_tracer=osnoise";
    char both[TEXT_BYTES];
    int64_t number;
    snprintf(both, sizeof both, "%s=%s", file, value);
    if (is_among_words(both, KNOBS))
        return value;
    if (!strcmp(file, "buffer_size_kb"))
        return is_number(value, 1, most_buffer_kib(), &number) ? value : NULL;
    if (strcmp(file, "set_event"))
        return NULL;
    if (!strcmp(value, "none"))
        return "";
    if (!is_event_list(value))
        return NULL;
    for (char *at = value; (at = strchr(at, ','));)
        *at = '\n';
    return value;
}

int verb_instance(struct request *request)
{
    const char verb = *request->words[0], *name = request->words[1];
    const char *file = verb == 'k' ? request->words[2] : "";
    const char *value = verb == 'k' ? knob_value(file, request->words[3]) : "";
    char ours[32];
    const int length = snprintf(ours, sizeof ours, "noisebook-%d-", (int)asker);
    if (!has_only(name, LETTERS, NAME_BYTES - 1) ||
        (verb == 't' && strncmp(name, ours, (size_t)length)))
        return refused(request, -EACCES, "an instance is named after the process that asks");
    if (!value) {
        snprintf(request->said, sizeof request->said,
                 "no such knob or value; at most %" PRId64 " KiB a CPU", most_buffer_kib());
        return -EDOM;
    }
    const int tracefs = enter_tracefs();
    if (tracefs < 0 || verb == 't')
        return tracefs < 0 ? tracefs : make_within_limits(request, tracefs, name);
    const int fd = open_instance(tracefs, name);
    if (fd < 0 || verb == 'l')
        return fd;
    return verb == 'k' ? write_text(fd, file, value) : remove_instance(tracefs, name);
}

int verb_watch(struct request *request)
{
    static const char *const FLAGS[] = {"OSNOISE_WORKLOAD", "NO_OSNOISE_WORKLOAD"};
    const char *flag = request->words[1];
    const bool shown = !strcmp(flag, "show");
    char now[TEXT_BYTES - 16];
    if (!shown && strcmp(flag, FLAGS[0]) && strcmp(flag, FLAGS[1]))
        return refused(request, -EDOM, "no such flag");
    const int tracefs = enter_tracefs();
    const int error = tracefs < 0 ? tracefs : read_text(tracefs, OSNOISE, now, sizeof now);
    if (error || shown)
        return refused(request, error, now);
    if (!flag_before)
        flag_before = FLAGS[strstr(now, FLAGS[1]) != NULL];
    return write_text(tracefs, OSNOISE, flag);
}

/* ---- files of the kernel --------------------------------------------------------------------- */

int read_text(int folder, const char *path, char *text, size_t bytes)
{
    const int fd = openat(folder, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : read(fd, text, bytes - 1);
    const int error = got < 0 ? -errno : 0;
    close(fd);
    text[got > 0 ? got : 0] = 0;
    return error;
}

/* tracefs takes events one by one: each write says how far it came. */
int write_text(int folder, const char *path, const char *value)
{
    const int fd = openat(folder, path, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
    ssize_t took = fd < 0 ? -1 : 1;
    while (took > 0 && *value) {
        took = write(fd, value, strlen(value));
        value += took > 0 ? took : 0;
    }
    const int error = took < 0 ? -errno : took ? 0 : -EIO;
    close(fd);
    return error;
}
