/* For benchmarks/account.py: a neighbour that slows a program down without taking its CPU.
 *
 *     neighbour core|bandwidth CPU START_NS
 *         core: what a physical core shares between its threads: independent chains of
 *         multiplications and additions, in turn with a walk through its caches
 *         bandwidth: copies between arrays that no cache holds
 *
 * Works on that CPU from START_NS after t0 until it is killed. It is told t0 as our workloads are
 * (NOISEBOOK_READY_FD, NOISEBOOK_GO_FD), and all its memory is there before it says that it is
 * ready.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CHAINS = 8, STEPS = 2000, CACHE = 1 << 20, LINE = 64, ARRAY = 64 << 20 };

static volatile double result;

static void sleep_until(int64_t time_ns)
{
    const struct timespec time = {.tv_sec = time_ns / 1000000000, .tv_nsec = time_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL))
        ;
}

static void multiply(void)
{
    double chains[CHAINS];
    for (int chain = 0; chain < CHAINS; chain++)
        chains[chain] = result;
    for (int step = 0; step < STEPS; step++)
        for (int chain = 0; chain < CHAINS; chain++)
            chains[chain] = chains[chain] * 0.999 + 0.001;
    for (int chain = 0; chain < CHAINS; chain++)
        result = chains[chain];
}

static void walk(char *memory)
{
    for (int at = 0; at < CACHE; at += LINE)
        *(volatile char *)(memory + at) += 1;
}

static void disturb(int bandwidth, char *memory)
{
    for (;;)
        if (bandwidth) {
            memcpy(memory, memory + ARRAY, ARRAY);
            memcpy(memory + ARRAY, memory, ARRAY);
        } else {
            for (int repeat = 0; repeat < 64; repeat++)
                multiply();
            walk(memory);
        }
}

static int inherited(const char *name)
{
    const char *text = getenv(name);
    return text ? atoi(text) : -1;
}

int main(int count, char **words)
{
    int64_t t0;
    cpu_set_t cpus;
    char *memory = malloc((size_t)2 * ARRAY);
    if (count != 4 || !memory) {
        fprintf(stderr, "usage: neighbour core|bandwidth CPU START_NS\n");
        return 2;
    }
    memset(memory, 1, (size_t)2 * ARRAY);
    CPU_ZERO(&cpus);
    CPU_SET((size_t)atoi(words[2]), &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus) ||
        write(inherited("NOISEBOOK_READY_FD"), "r", 1) != 1 ||
        read(inherited("NOISEBOOK_GO_FD"), &t0, sizeof t0) != sizeof t0)
        return 1;
    sleep_until(t0 + atoll(words[3]));
    disturb(!strcmp(words[1], "bandwidth"), memory);
}
