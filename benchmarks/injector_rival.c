/* For benchmarks/injector.py and planted.py: what a program on a CPU loses, and the BASELINE method
 * to compare with.
 *
 *     injector_rival observe CPU T0_NS LENGTH_NS
 *         gaps of a SCHED_FIFO 10 loop, "before_ns after_ns" a line, from t0
 *     injector_rival baseline CPU T0_NS [START_NS DURATION_NS ...]
 *     injector_rival replay FILE
 *         a config in the published format, a process a CPU of it, none of them pinned
 *     injector_rival drive FILE PROGRAM
 *         the same by the published injector itself (noiseinjector/cpuoccupy of its checkout)
 *
 * The baseline is the published method as described in words (Persson et al. 2025; our own code):
 * sleep for the relative time to the event's start, then spin on the wall clock for the whole
 * duration after waking. `baseline` is SCHED_FIFO 50 on one CPU; `replay` changes the policy when
 * an event's differs from the one before (priority 0: SCHED_OTHER, -p: SCHED_FIFO p) and is told t0
 * as our workloads are (NOISEBOOK_READY_FD, NOISEBOOK_GO_FD). An event that is late keeps its whole
 * duration. Memory is as small as the config, nothing is locked, and who is done sleeps until it is
 * killed: neither the start nor the end of a process falls into the run.
 *
 * `drive` releases the published injector's barrier (two named semaphores) at t0, in the place of
 * the program that it expects there.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { MOST_GAPS = 100000, SMALLEST_GAP_NS = 1000, MOST_LANES = 256, NAME_BYTES = 8 };
enum { READY_POLLS = 5000, POLL_NS = 1000000 };

struct event {
    int64_t start_ns, duration_ns, priority;
};

static int64_t gaps[MOST_GAPS][2];
static struct event *events;
static int first[MOST_LANES + 1], lanes; /* events of lane i: first[i] .. first[i + 1] - 1 */
static char names[MOST_LANES][NAME_BYTES];

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void sleep_for(int64_t length_ns)
{
    const struct timespec length = {
        .tv_sec = length_ns / 1000000000, .tv_nsec = length_ns % 1000000000
    };
    if (length_ns > 0)
        nanosleep(&length, NULL);
}

static int take_place(int cpu, int priority)
{
    const struct sched_param parameter = {.sched_priority = priority};
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET((size_t)cpu, &cpus);
    mlockall(MCL_CURRENT);
    return sched_setaffinity(0, sizeof cpus, &cpus) ||
           sched_setscheduler(0, SCHED_FIFO, &parameter);
}

static int observe(int64_t t0, int64_t length_ns)
{
    int count = 0;
    memset(gaps, 1, sizeof gaps);
    sleep_for(t0 - now_ns());
    int64_t before = now_ns();
    while (before < t0 + length_ns && count < MOST_GAPS) {
        const int64_t now = now_ns();
        if (now - before > SMALLEST_GAP_NS) {
            gaps[count][0] = before - t0;
            gaps[count++][1] = now - t0;
        }
        before = now;
    }
    for (int i = 0; i < count; i++)
        printf("%lld %lld\n", (long long)gaps[i][0], (long long)gaps[i][1]);
    return count == MOST_GAPS;
}

static int baseline(int64_t t0, char **numbers)
{
    for (; numbers[0] && numbers[1]; numbers += 2) {
        sleep_for(t0 + atoll(numbers[0]) - now_ns());
        const int64_t end = now_ns() + atoll(numbers[1]);
        while (now_ns() < end)
            ;
    }
    return 0;
}

static bool read_name(FILE *file, char name[NAME_BYTES])
{
    int length = 0, c;
    while ((c = getc(file)) != EOF && c != '"') {
        if (length == NAME_BYTES - 1)
            return false;
        name[length++] = (char)c;
    }
    return c == '"';
}

static bool add_event(int count, const int64_t values[3])
{
    static int room;
    if (count == room) {
        room = room ? 2 * room : 256;
        struct event *more = realloc(events, (size_t)room * sizeof *events);
        if (!more)
            return false;
        events = more;
    }
    events[count] = (struct event){values[0], values[1], values[2]};
    return true;
}

/* {"0": [[start, duration, priority], ...], ...}: a name begins a lane, three numbers are an event.
 */
static bool read_config(const char *path)
{
    FILE *file = fopen(path, "r");
    int64_t values[3];
    int count = 0, filled = 0, c;
    while (file && (c = getc(file)) != EOF) {
        if (c == '"') {
            if (lanes == MOST_LANES || !read_name(file, names[lanes]))
                return false;
            first[lanes++] = count;
        } else if (isdigit(c) || c == '-') {
            long long value;
            ungetc(c, file);
            if (fscanf(file, "%lld", &value) != 1)
                return false;
            values[filled++] = value;
            if (filled == 3) {
                if (!add_event(count++, values))
                    return false;
                filled = 0;
            }
        }
    }
    first[lanes] = count;
    return file && !ferror(file) && !fclose(file) && lanes > 0;
}

static void replay_lane(int lane, int64_t t0)
{
    int64_t had = 0;
    for (const struct event *event = events + first[lane]; event < events + first[lane + 1];
         event++) {
        if (event->duration_ns <= 0)
            continue;
        if (event->priority != had) {
            const struct sched_param parameter = {.sched_priority = (int)-event->priority};
            sched_setscheduler(0, event->priority ? SCHED_FIFO : SCHED_OTHER, &parameter);
            had = event->priority;
        }
        sleep_for(t0 + event->start_ns - now_ns());
        const int64_t end = now_ns() + event->duration_ns;
        while (now_ns() < end)
            ;
    }
}

static int inherited(const char *name)
{
    const char *text = getenv(name);
    return text ? atoi(text) : -1;
}

/* Says that all are ready, and waits until t0 is known. */
static bool barrier(int64_t *t0)
{
    return write(inherited("NOISEBOOK_READY_FD"), "r", 1) == 1 &&
           read(inherited("NOISEBOOK_GO_FD"), t0, sizeof *t0) == sizeof *t0;
}

static void wait_in_lane(int lane, int ready, int go)
{
    int64_t t0;
    if (write(ready, "r", 1) != 1 || read(go, &t0, sizeof t0) != sizeof t0)
        return;
    replay_lane(lane, t0);
    for (;;)
        pause();
}

/* Every lane waits at the read end of a pipe until t0 is known. No lane ends before it is killed:
 * who is the first to end has failed.
 */
static int replay(void)
{
    int64_t t0;
    int go[2], ready[2];
    char byte;
    if (pipe(go) || pipe(ready))
        return 1;
    for (int lane = 0; lane < lanes; lane++)
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            wait_in_lane(lane, ready[1], go[0]);
            _exit(1);
        }
    for (int lane = 0; lane < lanes; lane++)
        if (read(ready[0], &byte, 1) != 1)
            return 1;
    if (!barrier(&t0))
        return 1;
    for (int lane = 0; lane < lanes; lane++)
        if (write(go[1], &t0, sizeof t0) != sizeof t0)
            return 1;
    wait(NULL);
    return 1;
}

static bool all_arrived(sem_t *ready)
{
    int count = 0;
    for (int poll = 0; poll < READY_POLLS && count < lanes; poll++) {
        sleep_for(POLL_NS);
        sem_getvalue(ready, &count);
    }
    return count >= lanes;
}

static void start_published(const char *program, const char *path)
{
    const int quiet = open("/dev/null", O_WRONLY);
    char processes[16];
    snprintf(processes, sizeof processes, "%d", lanes + 1); /* one of them is the program */
    for (int lane = 0; lane < lanes; lane++)
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            dup2(quiet, STDOUT_FILENO);
            execl(program, program, path, names[lane], processes, (char *)NULL);
            _exit(1);
        }
}

/* The names are removed as soon as everybody has opened them: whoever is killed leaves nothing. */
static int drive(const char *program, const char *path)
{
    int64_t t0;
    sem_unlink("/sem_ready");
    sem_unlink("/sem_start");
    sem_t *ready = sem_open("/sem_ready", O_CREAT, 0600, 0);
    sem_t *start = sem_open("/sem_start", O_CREAT, 0600, 0);
    if (ready == SEM_FAILED || start == SEM_FAILED)
        return 1;
    start_published(program, path);
    const bool complete = all_arrived(ready);
    sem_unlink("/sem_ready");
    sem_unlink("/sem_start");
    if (!complete || !barrier(&t0))
        return 1;
    sleep_for(t0 - now_ns());
    for (int lane = 0; lane <= lanes; lane++)
        sem_post(start);
    sem_post(ready);
    wait(NULL);
    return 1;
}

int main(int count, char **words)
{
    if (count == 3 && !strcmp(words[1], "replay"))
        return !read_config(words[2]) || replay();
    if (count == 4 && !strcmp(words[1], "drive"))
        return !read_config(words[2]) || drive(words[3], words[2]);
    if (count < 4 || take_place(atoi(words[2]), strcmp(words[1], "observe") ? 50 : 10))
        return 1;
    return strcmp(words[1], "observe") ? baseline(atoll(words[3]), words + 4)
                                       : observe(atoll(words[3]), count > 4 ? atoll(words[4]) : 0);
}
