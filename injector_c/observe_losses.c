/* The observed loss: a shielded loop that notes whenever it was without its CPU. For calibration,
 * during a real injection. */
#define _GNU_SOURCE
#include "internal.h"

#include <sched.h>

static int become_shielded(int cpu, int priority)
{
    uint64_t mask[NB_MAX_CPUS / 64] = {0};
    const struct sched_param parameter = {.sched_priority = priority};
    if (cpu < 0 || cpu >= NB_MAX_CPUS)
        return -EINVAL;
    mask[cpu / 64] = 1ULL << (cpu % 64);
    return sched_setaffinity(0, sizeof mask, (const cpu_set_t *)mask) ||
                   sched_setscheduler(0, SCHED_FIFO, &parameter)
               ? -errno
               : 0;
}

int64_t nb_observe_losses(int32_t cpu, int32_t priority, int64_t t0_ns, int64_t length_ns,
                          int64_t threshold_ns, int64_t *gaps, int64_t capacity)
{
    const int error = become_shielded(cpu, priority);
    const struct timespec start = {.tv_sec = t0_ns / NB_SECOND_NS, .tv_nsec = t0_ns % NB_SECOND_NS};
    int64_t count = 0;
    if (error)
        return error;
    for (int64_t i = 0; i < 2 * capacity; i++)
        gaps[i] = 0;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &start, NULL) == EINTR)
        ;
    for (int64_t before = nb_now_ns(); before < t0_ns + length_ns && count < capacity;) {
        const int64_t now = nb_now_ns();
        if (now - before > threshold_ns) {
            gaps[2 * count] = before - t0_ns;
            gaps[2 * count++ + 1] = now - t0_ns;
        }
        before = now;
    }
    return count;
}
