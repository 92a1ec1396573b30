/* For benchmarks/injector.py: what a program on a CPU feels, and the BASELINE method to compare with.
 *
 *     injector_rival feel CPU T0_NS LENGTH_NS            gaps of a SCHED_FIFO 10 loop, "before_ns after_ns" a line, from t0
 *     injector_rival baseline CPU T0_NS [START_NS DURATION_NS ...]
 *
 * The baseline is the published method as described in words (Persson et al. 2025; our own code): sleep for the relative time to the
 * event's start, then spin on the wall clock for the whole duration after waking. SCHED_FIFO 50.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MOST_GAPS = 100000, SMALLEST_GAP_NS = 1000 };

static int64_t gaps[MOST_GAPS][2];

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void sleep_for(int64_t length_ns)
{
    const struct timespec length = {.tv_sec = length_ns / 1000000000, .tv_nsec = length_ns % 1000000000};
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
    return sched_setaffinity(0, sizeof cpus, &cpus) || sched_setscheduler(0, SCHED_FIFO, &parameter);
}

static int feel(int64_t t0, int64_t length_ns)
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
    return 0;
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

int main(int count, char **words)
{
    if (count < 4 || take_place(atoi(words[2]), strcmp(words[1], "feel") ? 50 : 10))
        return 1;
    return strcmp(words[1], "feel") ? baseline(atoll(words[3]), words + 4) : feel(atoll(words[3]), count > 4 ? atoll(words[4]) : 0);
}
