/* noisebook-priv's tracing: instances of tracefs for the user who asks.
 *
 *     trace NAME              makes the instance
 *     look NAME               answers with its folder, in which the user may read
 *     knob NAME FILE VALUE    one of the knobs below
 *     untrace NAME            removes the instance
 *     watch FLAG              osnoise/options: OSNOISE_WORKLOAD or NO_OSNOISE_WORKLOAD; "show"
 *
 * The name says whose the instance is: noisebook-PID-START-NAMESPACE-WORD. The user may read what
 * was recorded. What is recorded only this program decides (nbpriv_events.c), and how much: so many
 * instances for each user, and for all of them a share of the machine's memory. What a dead process
 * has left goes when its helper ends, or when its user makes the next one.
 */
#include "nbpriv.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>

enum {
    TRACEFS_MAGIC = 0x74726163,
    FSCONFIG_CREATE = 6,
    LEAST_FILES = 16,
    MOST_INSTANCES = 4, /* of a user */
    MEMORY_SHARE = 8,   /* an eighth of the machine's memory for all of a user's */
    TRIES = 50,
    PAUSE_US = 20000
};

static const char SYSTEMS[] = "irq irq_vectors nmi sched osnoise";

/* tracefs where it is mounted; else a mount of our own that is attached nowhere (Linux 5.2). */
static int open_tracefs(void)
{
    struct statfs where;
    const int there = open("/sys/kernel/tracing", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (there >= 0 && !fstatfs(there, &where) && where.f_type == TRACEFS_MAGIC)
        return there;
    if (there >= 0)
        close(there);
    const int context = (int)syscall(SYS_fsopen, "tracefs", 1);
    if (context < 0)
        return -errno;
    int fd = -1;
    if (!syscall(SYS_fsconfig, context, FSCONFIG_CREATE, NULL, NULL, 0))
        fd = (int)syscall(SYS_fsmount, context, 1, 0);
    const int error = fd < 0 ? -errno : 0;
    close(context);
    return error ? error : fd;
}

bool has_only(const char *text, const char *letters, size_t most)
{
    const size_t length = strlen(text);
    return length && length <= most && strspn(text, letters) == length;
}

static bool is_instance(const char *name)
{
    int pid, end = 0;
    return has_only(name, "abcdefghijklmnopqrstuvwxyz0123456789-", 100) &&
           sscanf(name, "noisebook-%d-%*[0-9]-%*[0-9]%n", &pid, &end) == 1 && end && pid > 0;
}

/* Opens instances/NAME if it is this user's. */
static int open_instance(int tracefs, const char *name)
{
    char path[160];
    struct stat owner;
    snprintf(path, sizeof path, "instances/%s", name);
    const int fd = openat(tracefs, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (!fstat(fd, &owner) && owner.st_uid == the_user())
        return fd;
    close(fd);
    return -EPERM;
}

/* The kernel takes events one by one: each write says how far it came. */
static int write_knob(int folder, const char *file, const char *value)
{
    const int fd = openat(folder, file, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
    int error = fd < 0 ? -errno : 0;
    for (size_t left = strlen(value); left && !error;) {
        const ssize_t took = write(fd, value, left);
        if (took <= 0)
            error = took ? -errno : -EIO;
        else
            value += took, left -= (size_t)took;
    }
    if (fd >= 0)
        close(fd);
    return error;
}

/* ---- who may look ---------------------------------------------------------------------------- */

static int show(int folder, const char *name, mode_t mode)
{
    if (fchmodat(folder, name, mode, 0) ||
        fchownat(folder, name, the_user(), (gid_t)-1, AT_SYMLINK_NOFOLLOW))
        return -errno;
    return 0;
}

/* Calls `each` for the entries of a folder that begin with a word, and with the folder itself. */
static void for_each(int folder, const char *name, const char *prefix,
                     void (*each)(int folder, const char *entry))
{
    const int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    if (!entries) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(entries));)
        if (entry->d_name[0] != '.' && !strncmp(entry->d_name, prefix, strlen(prefix)))
            each(dirfd(entries), entry->d_name);
    closedir(entries);
    show(folder, name, 0555);
}

static void show_buffer(int folder, const char *cpu)
{
    char path[300];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", cpu, i ? "stats" : "trace_pipe_raw");
        show(folder, path, 0400);
    }
    show(folder, cpu, 0555);
}

static void show_event(int folder, const char *event)
{
    char path[300];
    struct stat found;
    if (fstatat(folder, event, &found, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(found.st_mode))
        return;
    snprintf(path, sizeof path, "%s/format", event);
    show(folder, path, 0400);
    show(folder, event, 0555);
}

static void show_system(int folder, const char *system)
{
    if (is_among_words(system, SYSTEMS))
        for_each(folder, system, "", show_event);
}

static void show_instance(int instance)
{
    show(instance, "trace", 0600); /* writing empties it */
    for_each(instance, "per_cpu", "cpu", show_buffer);
    for_each(instance, "events", "", show_system);
}

/* ---- verbs ----------------------------------------------------------------------------------- */

/* It is the user's before all else, so that whoever asked can remove it whatever happens next. */
static int make_instance(int tracefs, const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "instances/%s", name);
    if (mkdirat(tracefs, path, 0700))
        return -errno;
    int error = show(tracefs, path, 0555);
    const int fd = error ? error
                         : openat(tracefs, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        error = error ? error : -errno;
        unlinkat(tracefs, path, AT_REMOVEDIR);
        return error;
    }
    write_knob(fd, "buffer_size_kb", "64");
    show_instance(fd);
    close(fd);
    return 0;
}

static int remove_instance(int tracefs, const char *name)
{
    char path[160];
    const int instance = open_instance(tracefs, name);
    if (instance < 0)
        return instance;
    write_knob(instance, "tracing_on", "0");
    close(instance);
    snprintf(path, sizeof path, "instances/%s", name);
    return unlinkat(tracefs, path, AT_REMOVEDIR) ? -errno : 0;
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* The folder of all instances, ours alone as long as it is open: nobody counts while another makes.
 */
static int open_instances(int tracefs)
{
    const int fd = openat(tracefs, "instances", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < TRIES; i++, usleep(PAUSE_US))
        if (!flock(fd, LOCK_EX | LOCK_NB))
            return fd;
    if (fd >= 0)
        close(fd);
    return fd < 0 ? -errno : -EAGAIN;
}

/* How many this user has; those of dead makers are removed first. */
static int count_instances(int tracefs, int instances)
{
    int count = 0;
    const int fd = openat(instances, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    if (!entries)
        return MOST_INSTANCES;
    for (struct dirent *entry; (entry = readdir(entries));) {
        const char *name = entry->d_name;
        struct stat owner;
        if (is_instance(name) && !fstatat(instances, name, &owner, AT_SYMLINK_NOFOLLOW) &&
            owner.st_uid == the_user() &&
            (!has_a_dead_maker(name) || remove_instance(tracefs, name)))
            count++;
    }
    closedir(entries);
    return count;
}

static int make_within_limits(int tracefs, const char *name)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur < LEAST_FILES)
        return -EMFILE;
    const int instances = open_instances(tracefs);
    if (instances < 0)
        return instances;
    const bool room = count_instances(tracefs, instances) < MOST_INSTANCES;
    const int error = room ? make_instance(tracefs, name) : -EDQUOT;
    close(instances);
    return error;
}

/* For each CPU: of every instance the same, so that all together cannot take more. */
static int64_t most_buffer_kib(void)
{
    struct sysinfo machine;
    if (sysinfo(&machine))
        return 64;
    const int64_t all = (int64_t)machine.totalram * machine.mem_unit / 1024;
    return all / MEMORY_SHARE / MOST_INSTANCES / sysconf(_SC_NPROCESSORS_CONF);
}

static bool has_made;

/* A process that is killed closes its socket a moment before it is dead. */
void end_tracing(void)
{
    for (int i = 0; has_made && !asker_is_dead(); i++, usleep(PAUSE_US))
        if (i == TRIES)
            return;
    if (!has_made)
        return;
    const int tracefs = enter_tracefs();
    const int instances = tracefs < 0 ? tracefs : open_instances(tracefs);
    if (instances >= 0)
        count_instances(tracefs, instances);
    leave_tracefs(tracefs);
}

/* With tracefs open and root's id, until `leave_tracefs`. */
int enter_tracefs(void)
{
    const int error = with_rights(BIT(CAP_SYS_ADMIN) | BIT(CAP_CHOWN), true);
    return error ? error : open_tracefs();
}

void leave_tracefs(int tracefs)
{
    if (tracefs >= 0)
        close(tracefs);
    without_rights();
}

void verb_trace(struct request *request)
{
    if (!is_instance(request->words[1]) || !is_asked_by_its_maker(request->words[1]))
        return answer(-EACCES, "an instance is named after the process that asks", -1);
    const int tracefs = enter_tracefs();
    const int error = tracefs < 0 ? tracefs : make_within_limits(tracefs, request->words[1]);
    leave_tracefs(tracefs);
    has_made = has_made || !error;
    answer(error, error == -EDQUOT ? "this user has four instances, the most" : "", -1);
}

void verb_look(struct request *request)
{
    if (!is_instance(request->words[1]))
        return answer(-EACCES, "it is no instance of ours", -1);
    const int tracefs = enter_tracefs();
    const int fd = tracefs < 0 ? tracefs : open_instance(tracefs, request->words[1]);
    leave_tracefs(tracefs);
    answer(fd < 0 ? fd : 0, "", fd);
}

/* The value as the kernel wants it; NULL: no such knob, or no such value of it. */
static const char *knob_value(const char *file, char *value)
{
    int64_t number;
    if (is_among_words(file, "tracing_on options/overwrite"))
        return is_among_words(value, "0 1") ? value : NULL;
    if (!strcmp(file, "trace_clock"))
        return strcmp(value, "mono") ? NULL : value;
    if (!strcmp(file, "current_tracer"))
        return is_among_words(value, "nop osnoise") ? value : NULL;
    if (!strcmp(file, "buffer_size_kb"))
        return is_number(value, 1, most_buffer_kib(), &number) ? value : NULL;
    if (strcmp(file, "set_event"))
        return NULL;
    if (!strcmp(value, "none"))
        return "";
    if (!is_event_list(value))
        return NULL;
    for (char *at = value; *at; at++)
        if (*at == ',')
            *at = '\n';
    return value;
}

void verb_knob(struct request *request)
{
    const char *file = request->words[2], *value = knob_value(file, request->words[3]);
    char why[128] = "no such knob, or no such value of it";
    if (!strcmp(file, "buffer_size_kb"))
        snprintf(why, sizeof why, "at most %" PRId64 " KiB a CPU here", most_buffer_kib());
    if (!is_instance(request->words[1]) || !value)
        return answer(-EDOM, why, -1);
    const int tracefs = enter_tracefs();
    const int instance = tracefs < 0 ? tracefs : open_instance(tracefs, request->words[1]);
    int error = instance < 0 ? instance : write_knob(instance, file, value);
    if (instance >= 0)
        close(instance);
    leave_tracefs(tracefs);
    answer(error, "", -1);
}

void verb_untrace(struct request *request)
{
    if (!is_instance(request->words[1]))
        return answer(-EACCES, "it is no instance of ours", -1);
    const int tracefs = enter_tracefs();
    const int error = tracefs < 0 ? tracefs : remove_instance(tracefs, request->words[1]);
    leave_tracefs(tracefs);
    answer(error, "", -1);
}

int read_text(int folder, const char *path, char *text, size_t bytes)
{
    const int fd = openat(folder, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : read(fd, text, bytes - 1);
    const int error = got < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = 0;
    return error;
}

void verb_watch(struct request *request)
{
    static const char FILE_NAME[] = "osnoise/options";
    const char *flag = request->words[1];
    char text[TEXT_BYTES - 8] = "";
    const bool shown = !strcmp(flag, "show");
    if (!shown && !is_among_words(flag, "OSNOISE_WORKLOAD NO_OSNOISE_WORKLOAD"))
        return answer(-EDOM, "no such flag", -1);
    const int tracefs = enter_tracefs();
    int error = tracefs;
    if (tracefs >= 0)
        error = shown ? read_text(tracefs, FILE_NAME, text, sizeof text)
                      : write_knob(tracefs, FILE_NAME, flag);
    leave_tracefs(tracefs);
    answer(error, text, -1);
}
