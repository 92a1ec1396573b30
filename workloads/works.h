/* works.h: the three works of speed.h, timed; for the probe within a program and the one beside. */
#ifndef NB_WORKS_H
#define NB_WORKS_H

#include "speed.h"

struct nb_works {
    const char *pool;
    int64_t pool_lines;
    double (*throughput)(double);
    volatile double value; /* so that no work is left out */
    int flushes_at_once;
};

#if defined(__x86_64__)
__attribute__((target("avx2,fma"), noinline)) static double nb_wide_throughput_work(double value)
{
    typedef double four __attribute__((vector_size(32)));
    four chains[10], factor = {0.999, 0.999, 0.999, 0.999}, term = {0.001, 0.001, 0.001, 0.001};
    for (int chain = 0; chain < 10; chain++)
        chains[chain] = (four){value, value, value, value};
    for (int step = 0; step < NB_SPEED_ROUNDS; step++)
#pragma GCC unroll 10
        for (int chain = 0; chain < 10; chain++)
            chains[chain] = chains[chain] * factor + term;
    four sum = {0, 0, 0, 0};
    for (int chain = 0; chain < 10; chain++)
        sum += chains[chain];
    return (sum[0] + sum[1] + sum[2] + sum[3]) / 40;
}
#endif

static __attribute__((noinline)) double nb_narrow_throughput_work(double value)
{
    return nb_throughput_work(value);
}

static inline int64_t nb_least(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

/* Twice, and the shorter time counts: the first pass may be cold, and an interrupt hits one. */
static inline int32_t nb_time_of(struct nb_works *works, double (*work)(double))
{
    int64_t begin_ns = nb_now_ns();
    works->value = work(works->value);
    int64_t middle_ns = nb_now_ns();
    works->value = work(works->value);
    return (int32_t)nb_least(middle_ns - begin_ns, nb_now_ns() - middle_ns);
}

/* 0: what the caches hold cannot be chosen here. */
static inline int32_t nb_time_of_memory(const struct nb_works *works, uint64_t *state)
{
    const char *block = nb_block(works->pool, works->pool_lines, state);
    int64_t begin_ns = nb_now_ns();
    uint64_t sum = nb_memory_work(block);
    int64_t end_ns = nb_now_ns();
    nb_memory_flush(block, works->flushes_at_once);
    *state += sum;
    return NB_CAN_FLUSH ? (int32_t)(end_ns - begin_ns) : 0;
}

static inline void nb_work(struct nb_works *works, uint64_t *state, struct nb_speed_sample *sample)
{
    sample->memory_ns = nb_time_of_memory(works, state);
    sample->throughput_ns = nb_time_of(works, works->throughput);
    sample->latency_ns = nb_time_of(works, nb_latency_work);
}

/* Each page of the pool is mapped, and no line of it is in a cache. */
static inline void nb_works_begin(struct nb_works *works, const struct nb_speed_header *header)
{
    works->pool = (const char *)header + NB_SPEED_HEADER +
                  header->capacity * sizeof(struct nb_speed_sample);
    works->pool_lines = header->pool_lines;
    works->value = 1;
    works->flushes_at_once = nb_flushes_at_once();
    works->throughput = nb_narrow_throughput_work;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        works->throughput = nb_wide_throughput_work;
#endif
    for (int64_t at = 0; at < works->pool_lines * NB_SPEED_LINE; at += NB_SPEED_LINE) {
        works->value += *(const volatile char *)(works->pool + at);
        nb_flush(works->pool + at, works->flushes_at_once);
    }
}

/* When the CPUs of a turn sample next, and all of them at the same time: two CPUs may share a core,
 * and each samples while the other is in the program. */
static inline int64_t nb_next_turn_ns(int64_t now_ns, int64_t interval_ns, int cpu)
{
    int64_t turn_ns = cpu % 2 * interval_ns / 2;
    return ((now_ns - turn_ns + interval_ns / 4) / interval_ns + 1) * interval_ns + turn_ns;
}

#endif
