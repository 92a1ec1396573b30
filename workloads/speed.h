/* speed.h: how fast a CPU is right now, from a few hundred nanoseconds of known work.
 *
 * Three kinds of work, since a program may be slowed down in any of them alone: a chain of
 * dependent multiplications and additions (bound by latency: the clock), eight independent ones
 * (bound by throughput: a neighbour on the same physical core), and a read of lines that were taken
 * out of the caches (memory). The samples of a run stand in one file, which Noisebook makes
 * and every process of the run maps: what is in it outlives any kind of death.
 */
#ifndef NB_SPEED_H
#define NB_SPEED_H

#include "noisebook.h"

#if defined(__x86_64__)
#include <cpuid.h>
#define NB_CAN_FLUSH 1
#elif defined(__aarch64__)
#define NB_CAN_FLUSH 1
#else
#define NB_CAN_FLUSH 0
#endif

#define NB_SPEED_MAGIC "noisebook speed 3"
enum {
    NB_SPEED_HEADER = 4096, /* bytes; then the samples, the pool, the marks */
    NB_SPEED_LINE = 64,
    NB_SPEED_BLOCK = 512,  /* lines: 32 KiB */
    NB_SPEED_CHAIN = 384,  /* steps of the chain bound by latency */
    NB_SPEED_ROUNDS = 450, /* steps of the eight chains bound by throughput */
};

/* Read by nbhelpers/speed. */
struct nb_speed_sample {
    int64_t wall_ns; /* CLOCK_MONOTONIC */
    int64_t cpu_ns;  /* of the thread: CLOCK_THREAD_CPUTIME_ID */
    int32_t thread, cpu;
    int32_t latency_ns, throughput_ns, memory_ns; /* of the three kinds of work */
    int32_t place;                                /* what the sample interrupted: enum nb_place */
};

/* NB_ENDED: no work was done; a sampled thread ends here. */
enum nb_place { NB_IN_PROGRAM, NB_IN_OPENMP, NB_IN_MPI, NB_BESIDE, NB_ENDED };

struct nb_speed_header {
    char magic[24];
    int64_t capacity, pool_lines; /* of samples; of lines of the pool */
    int64_t interval_ns;          /* of a thread's CPU time */
    int64_t count;                /* of all samples, also of those that found no room */
    int64_t marks_capacity;       /* marks.h; 0: nobody asked for marks */
    int64_t marks_count;          /* of all marks, also of those that found no room */
    int64_t unmarked;             /* threads and kinds of work that found no room */
    int64_t unsampled;            /* threads without samples, or not to their end */
};

/* The value stays near 1: neither denormal numbers nor overflow change the speed. */
static inline __attribute__((always_inline)) double nb_step(double value)
{
    return value * 0.999 + 0.001;
}

static inline double nb_latency_work(double value)
{
    for (int step = 0; step < NB_SPEED_CHAIN; step += 8) {
        value = nb_step(nb_step(nb_step(nb_step(value))));
        value = nb_step(nb_step(nb_step(nb_step(value))));
    }
    return value;
}

typedef double nb_pair __attribute__((vector_size(16)));

static inline double nb_throughput_work(double value)
{
    nb_pair chains[8], factor = {0.999, 0.999}, term = {0.001, 0.001};
    for (int chain = 0; chain < 8; chain++)
        chains[chain] = (nb_pair){value, value};
    for (int step = 0; step < NB_SPEED_ROUNDS; step++)
#pragma GCC unroll 8
        for (int chain = 0; chain < 8; chain++)
            chains[chain] = chains[chain] * factor + term;
    nb_pair sum = {0, 0};
    for (int chain = 0; chain < 8; chain++)
        sum += chains[chain];
    return (sum[0] + sum[1]) / 16;
}

/* clflushopt, where there is none clflush: does not wait for the lines before. */
#if defined(__x86_64__)
static inline int nb_flushes_at_once(void)
{
    unsigned a, b = 0, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & 1U << 23;
}
static inline void nb_flush(const char *line, int at_once)
{
    if (at_once)
        __asm__ volatile("clflushopt %0" : "+m"(*(volatile char *)line));
    else
        __asm__ volatile("clflush %0" : "+m"(*(volatile char *)line));
}
#else
static inline int nb_flushes_at_once(void)
{
    return 0;
}
static inline void nb_flush(const char *line, int at_once)
{
#if defined(__aarch64__)
    __asm__ volatile("dc civac, %0" : : "r"(line) : "memory");
#endif
    (void)line;
    (void)at_once;
}
#endif

/* A block of the pool. */
static inline const char *nb_block(const char *pool, int64_t lines, uint64_t *state)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return pool +
           (*state >> 33) % (uint64_t)(lines / NB_SPEED_BLOCK) * NB_SPEED_BLOCK * NB_SPEED_LINE;
}

/* Reads a block that the caches do not hold: as fast as the memory delivers. */
static inline uint64_t nb_memory_work(const char *block)
{
    uint64_t sum = 0;
    for (int line = 0; line < NB_SPEED_BLOCK; line++)
        sum += *(const volatile uint64_t *)(block + line * NB_SPEED_LINE);
    return sum;
}

/* No cache holds the block when its turn comes again, and the program gets its place. */
static inline void nb_memory_flush(const char *block, int at_once)
{
    for (int line = 0; line < NB_SPEED_BLOCK; line++)
        nb_flush(block + line * NB_SPEED_LINE, at_once);
}

#endif
