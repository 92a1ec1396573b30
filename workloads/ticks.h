/* ticks.h: the cheapest clock that the kernel itself trusts, and pinned threads; for the programs
 * that watch noise.
 *
 * Where the kernel's clock source is the TSC its ticks are read directly, which takes a third of a
 * clock_gettime(); anywhere else a tick is a nanosecond of CLOCK_MONOTONIC. Two anchors (the same
 * instant on both clocks) around a loop turn its ticks into nanoseconds afterwards, each thread by
 * its own, so that neither the tick's frequency nor the CPUs' agreement is assumed.
 */
#ifndef NB_TICKS_H
#define NB_TICKS_H

#include "noisebook.h"

#include <sched.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum {
    NB_CALIBRATION_BLOCKS = 64,
    NB_BLOCK_READINGS = 4096,
    NB_ANCHOR_TRIES = 8,
    NB_RATE_NS = 20000000
};

struct nb_anchor {
    int64_t ns, ticks;
};

/* Whether the kernel keeps time by the TSC: then it is constant, never stops, and agrees between
 * CPUs. */
static inline int nb_tsc_trusted(void)
{
#if defined(__x86_64__)
    char name[32] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    if (!file)
        return 0;
    int trusted = fgets(name, sizeof name, file) && !strcmp(name, "tsc\n");
    fclose(file);
    return trusted;
#else
    return 0;
#endif
}

static inline __attribute__((always_inline)) int64_t nb_ticks(int tsc)
{
#if defined(__x86_64__)
    if (tsc)
        return (int64_t)__rdtsc();
#endif
    (void)tsc;
    return nb_now_ns();
}

/* The same instant on both clocks: of some tries the one between whose readings least time passed.
 */
static inline struct nb_anchor nb_anchor_now(int tsc)
{
    struct nb_anchor best = {0, 0};
    int64_t closest = INT64_MAX;
    for (int i = 0; i < NB_ANCHOR_TRIES; i++) {
        int64_t before = nb_now_ns(), ticks = nb_ticks(tsc), after = nb_now_ns();
        if (after - before < closest) {
            closest = after - before;
            best = (struct nb_anchor){before + (after - before) / 2, ticks};
        }
    }
    return best;
}

static inline double nb_ns_per_tick(struct nb_anchor first, struct nb_anchor last)
{
    return last.ticks > first.ticks
               ? (double)(last.ns - first.ns) / (double)(last.ticks - first.ticks)
               : 1.0;
}

/* Nanoseconds a tick, measured over 20 ms; exactly 1 where a tick is one. */
static inline double nb_tick_length_ns(int tsc)
{
    struct nb_anchor first = nb_anchor_now(tsc), last = first;
    while (tsc && last.ns - first.ns < NB_RATE_NS)
        last = nb_anchor_now(tsc);
    return nb_ns_per_tick(first, last);
}

/* Orders a few thousand numbers; qsort() would do, but for its calls. */
static inline void nb_sort(int64_t *values, int count)
{
    for (int gap = count / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11)
        for (int i = gap; i < count; i++) {
            int64_t value = values[i];
            int j = i;
            for (; j >= gap && values[j - gap] > value; j -= gap)
                values[j] = values[j - gap];
            values[j] = value;
        }
}

/* Ticks between two readings: in each block of readings the median of the steps that the clock
 * made, and of the blocks the least. A median is not moved by the odd impossible step of a virtual
 * machine, the least block not by a disturbed one; steps of 0 are left out, so that a coarse clock
 * tells its own step. */
static inline int64_t nb_resolution_ticks(int tsc)
{
    static _Thread_local int64_t steps[NB_BLOCK_READINGS];
    int64_t least = INT64_MAX;
    for (int block = 0; block < NB_CALIBRATION_BLOCKS; block++) {
        int count = 0;
        for (int64_t i = 0, last = nb_ticks(tsc); i < NB_BLOCK_READINGS; i++) {
            int64_t now = nb_ticks(tsc);
            steps[count] = now - last;
            count += now > last;
            last = now;
        }
        nb_sort(steps, count);
        if (count && steps[count / 2] < least)
            least = steps[count / 2];
    }
    return least < INT64_MAX ? least : 1;
}

static inline int nb_pin(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one) ? -errno : 0;
}

#endif
