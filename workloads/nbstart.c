/* nbstart: starts a program for Noisebook, then is that program.
 *
 *     nbstart [--parent PID] [--group FOLDER] [--cpus LIST] [--fifo PRIORITY]
 *         [--preload LIBRARY]... [--folder FOLDER] [--wait] -- command [argument ...]
 *
 * It enters its run's control group (nbhelpers/machine/run_groups.py). A process group of its own;
 * killed when its parent dies; the CPUs and the policy it was given.
 * --wait waits at the barrier before the command is executed, for programs that can do it neither
 * themselves nor by the preload library.
 * Exit status as a shell's: 127 not found, 126 not executable; 125 for what nbstart itself could
 * not do.
 */
#include <signal.h>
#include <sys/prctl.h>

#include "cpus.h"
#include "open_file.h"

enum { BAD_START = 125, NOT_EXECUTABLE = 126, NOT_FOUND = 127, MOST_PRELOADS = 4 };

struct request {
    const char *cpus, *folder, *group, *preloads[MOST_PRELOADS];
    int preload_count;
    long parent, fifo;
    int wait;
    char **command;
};

static int fail(const char *what, const char *subject, int error)
{
    fprintf(stderr, "nbstart: %s '%s': %s\n", what, subject, strerror(error));
    return BAD_START;
}

static int parse_number(const char *text, long low, long high, long *number)
{
    char *end = NULL;
    errno = 0;
    *number = strtol(text, &end, 10);
    return errno || end == text || *end || *number < low || *number > high ? -EINVAL : 0;
}

/* Reads the options; 0 or -EINVAL. */
static int parse_request(char **words, struct request *request)
{
    for (; *words && strcmp(*words, "--"); words++) {
        const char *option = *words, *value = words[1] ? words[1] : "";
        int error = 0;
        if (!strcmp(option, "--wait")) {
            request->wait = 1;
            continue;
        }
        if (!strcmp(option, "--cpus"))
            request->cpus = value;
        else if (!strcmp(option, "--folder"))
            request->folder = value;
        else if (!strcmp(option, "--group"))
            request->group = value;
        else if (!strcmp(option, "--preload") && request->preload_count < MOST_PRELOADS)
            request->preloads[request->preload_count++] = value;
        else if (!strcmp(option, "--parent"))
            error = parse_number(value, 1, INT_MAX, &request->parent);
        else if (!strcmp(option, "--fifo"))
            error = parse_number(value, 1, 99, &request->fifo);
        else
            error = -EINVAL;
        if (error || !words[1])
            return -EINVAL;
        words++;
    }
    request->command = *words ? words + 1 : words;
    return *request->command ? 0 : -EINVAL;
}

static int set_cpus(const char *list)
{
    cpu_set_t cpus, got;
    int error = nb_parse_cpus(list, NULL, &cpus);
    if (!error && sched_setaffinity(0, sizeof cpus, &cpus) < 0)
        error = -errno;
    if (!error && (sched_getaffinity(0, sizeof got, &got) < 0 || !CPU_EQUAL(&cpus, &got)))
        error = -ENODEV; /* the kernel passes over CPUs that it does not have */
    return error ? fail("cannot use the CPUs", list, -error) : 0;
}

static int set_fifo(long priority)
{
    struct sched_param parameters = {.sched_priority = (int)priority};
    return sched_setscheduler(0, SCHED_FIFO, &parameters) < 0
               ? fail("cannot get the policy", "SCHED_FIFO", errno)
               : 0;
}

/* LD_PRELOAD is a list separated by colons and blanks: a library whose path holds one is named by
 * an open file, which the library closes. */
static const char *one_word(const char *library, char *name, size_t size)
{
    if (!strpbrk(library, ": "))
        return library;
    int file = open(library, O_RDONLY);
    if (file < 0)
        return NULL;
    snprintf(name, size, OPEN_FILE "%d", file);
    return name;
}

/* The library goes first; what the user preloads stays. */
static int set_preload(const char *path)
{
    char list[8192], name[32];
    const char *library = one_word(path, name, sizeof name);
    if (!library)
        return fail("cannot open", path, errno);
    const char *others = getenv("LD_PRELOAD");
    int length = snprintf(list, sizeof list, "%s%s%s", library, others && *others ? ":" : "",
                          others ? others : "");
    if (length < 0 || (size_t)length >= sizeof list)
        return fail("LD_PRELOAD is too long for", library, E2BIG);
    return setenv("LD_PRELOAD", list, 1) < 0 ? fail("cannot preload", library, errno) : 0;
}

/* Own group, and no life without the parent. The parent may have died before the kernel was asked
 * to tell us. */
static int leave_home(long parent)
{
    if (setpgid(0, 0) < 0 && getpgid(0) != getpid())
        return fail("cannot make", "a process group", errno);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return fail("cannot ask for", "the parent's death signal", errno);
    if (parent && getppid() != (pid_t)parent)
        raise(SIGKILL);
    return 0;
}

static int enter_group(const char *folder)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/cgroup.procs", folder) >= sizeof path)
        return fail("cannot enter the control group", folder, ENAMETOOLONG);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    int error = file < 0 || write(file, "0", 1) < 0 ? errno : 0;
    if (file >= 0)
        close(file);
    return error ? fail("cannot enter the control group", folder, error) : 0;
}

static int prepare(const struct request *request)
{
    int failed = leave_home(request->parent);
    if (!failed && request->group)
        failed = enter_group(request->group);
    if (!failed && request->cpus)
        failed = set_cpus(request->cpus);
    for (int i = 0; !failed && i < request->preload_count; i++)
        failed = set_preload(request->preloads[i]);
    if (!failed && request->fifo)
        failed = set_fifo(request->fifo);
    if (!failed && request->folder && chdir(request->folder) < 0)
        failed = fail("cannot work in", request->folder, errno);
    return failed;
}

int main(int count, char **words)
{
    struct request request = {0};
    if (count < 2 || parse_request(words + 1, &request)) {
        fprintf(stderr, "usage: nbstart [--parent PID] [--group FOLDER] [--cpus LIST] "
                        "[--fifo 1..99] [--preload LIBRARY] [--folder FOLDER] [--wait] "
                        "-- command ...\n");
        return BAD_START;
    }
    int failed = prepare(&request);
    if (failed)
        return failed;
    if (request.wait) {
        int64_t t0_ns = nb_barrier();
        if (t0_ns > 0)
            nb_sleep_until(t0_ns);
    }
    execvp(request.command[0], request.command);
    int error = errno;
    fail("cannot execute", request.command[0], error);
    return error == ENOENT || error == ENOTDIR ? NOT_FOUND : NOT_EXECUTABLE;
}
