/* The program `nbinject`: takes over from its owner what is to be injected, and becomes the
 * supervisor.
 *
 * The owner's pointers mean nothing here: the memory is mapped anew, and they are moved with it.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#ifndef F_GET_SEALS
#define F_GET_SEALS 1034
#define F_SEAL_SHRINK 2
#endif

static bool receive(int socket, void *to, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        const ssize_t got = read(socket, (char *)to + done, bytes - done);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* `count` pointers into the memory, the first at `at`; NULL stays NULL. */
static void move_pointers(void *at, size_t count, const char *from, char *to)
{
    for (size_t i = 0; i < count; i++) {
        char *pointer;
        memcpy(&pointer, (char *)at + i * sizeof pointer, sizeof pointer);
        if (pointer)
            pointer = to + (pointer - from);
        memcpy((char *)at + i * sizeof pointer, &pointer, sizeof pointer);
    }
}

/* Whether `bytes` at an address of the owner's lie in the memory, which nobody can shorten. */
static bool is_inside(const struct nb_injection *run, const void *at, int64_t count, size_t size)
{
    const uint64_t offset = (uint64_t)((uintptr_t)at - (uintptr_t)run->memory);
    return (uintptr_t)at >= (uintptr_t)run->memory && offset % 8 == 0 && count >= 0 &&
           offset <= run->memory_bytes && (uint64_t)count <= (run->memory_bytes - offset) / size;
}

static bool columns_hold(const struct nb_injection *run)
{
    const struct nb_plan *plan = &run->plan;
    const struct nb_log *log = &run->log;
    const void *const longs[] = {plan->start_ns, plan->duration_ns, log->start_ns,
                                 log->taken_ns,  log->end_ns,       log->cpu_time_ns,
                                 log->gap_ns,    log->preempted_ns};
    const void *const bytes[] = {plan->policy, plan->priority, log->policy, log->outcome};
    const int64_t count = run->event_count;
    bool hold = is_inside(run, log->ran_on, count, sizeof(int16_t));
    for (size_t i = 0; i < sizeof longs / sizeof *longs; i++)
        hold = hold && is_inside(run, longs[i], count, sizeof(int64_t));
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        hold = hold && is_inside(run, bytes[i], count, 1);
    return hold && (!plan->kind || is_inside(run, plan->kind, count, 1)) &&
           (!plan->intensity || is_inside(run, plan->intensity, count, sizeof(double))) &&
           (!log->achieved || is_inside(run, log->achieved, count, sizeof(double)));
}

static bool memory_holds(const struct nb_injection *run, int fd)
{
    struct stat file;
    const int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) && !fstat(fd, &file) &&
           (uint64_t)file.st_size >= run->memory_bytes && run->memory_bytes > 0 &&
           run->lane_count >= 1 && run->lane_count <= NB_MAX_LANES &&
           is_inside(run, run->control, 1, sizeof *run->control) &&
           is_inside(run, run->lanes, run->lane_count, sizeof *run->lanes) && columns_hold(run);
}

/* The owner has checked the plan; so does its program: a mistake there must not become noise here.
 */
static bool plan_holds(const struct nb_injection *run)
{
    int64_t event;
    struct nb_excess excess;
    return !nb_check(run, &event) && !nb_check_limits(run, &excess);
}

static bool map_memory(struct nb_injection *run, int fd)
{
    const char *const from = run->memory;
    char *const to = mmap(NULL, run->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (to == MAP_FAILED)
        return false;
    close(fd);
    move_pointers(&run->memory, 1, from, to);
    move_pointers(&run->control, 1, from, to);
    move_pointers(&run->lanes, 1, from, to);
    move_pointers(&run->plan, sizeof run->plan / sizeof(void *), from, to);
    move_pointers(&run->log, sizeof run->log / sizeof(void *), from, to);
    return true;
}

int nb_program(int count, char **words)
{
    static struct nb_injection run;
    char layout[NB_LAYOUT_BYTES];
    nb_layout(layout);
    if (count != NB_PROGRAM_WORDS || strcmp(words[1], layout) != 0)
        return NB_OTHER_BUILD;
    const struct nb_watch watch = {
        .control = atoi(words[2]),
        .workload = atoi(words[3]),
        .owner = atoi(words[4]),
        .ready = atoi(words[5])
    };
    const int memory = atoi(words[6]);
    if (!receive(watch.control, &run, sizeof run))
        return EXIT_FAILURE;
    if (!memory_holds(&run, memory))
        return NB_BAD_PLAN;
    if (!map_memory(&run, memory))
        return EXIT_FAILURE;
    if (!plan_holds(&run))
        return NB_BAD_PLAN;
    nb_supervise(&run, &watch);
}
