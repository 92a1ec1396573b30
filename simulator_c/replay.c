/* A training job's operations carried out again: each begins when all that it needs is over, and
 * lasts as long as the scenario says. That is the longest path through a graph without circles,
 * found for a block of lanes at once. A block is some steps of all replicas, few enough that its
 * times stay in the cache. */
#include <stdlib.h>
#include <string.h>

#include "replay.h"

/* Loops over lanes are compiled twice: the processor takes the wider one if it can. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

enum { CACHED_BYTES = 1 << 18 };

/* Some lanes of the job, in one scenario. */
struct block {
    const struct nb_replay *job;
    const uint8_t *operation, *lane; /* what is chosen, from the block's first lane on */
    int others;
    size_t first, lanes, all; /* first lane, how many; lanes of the job */
    double *end, *begin;      /* [operations][lanes], [lanes] */
};

WIDE static void wait_for_needs(const struct block *block, int32_t group)
{
    const struct nb_replay *job = block->job;
    const int32_t *need = job->needs + job->needs_start[group];
    const int32_t *last = job->needs + job->needs_start[group + 1];
    double *restrict begin = block->begin;

    if (need == last)
        memset(begin, 0, block->lanes * sizeof(*begin));
    else
        memcpy(begin, block->end + (size_t)*need++ * block->lanes, block->lanes * sizeof(*begin));
    for (; need < last; need++) {
        const double *restrict end = block->end + (size_t)*need * block->lanes;

        for (size_t i = 0; i < block->lanes; i++)
            begin[i] = end[i] > begin[i] ? end[i] : begin[i];
    }
}

static void wait_for_replicas(const struct block *block)
{
    size_t replicas = (size_t)block->job->replicas;

    for (double *step = block->begin; step < block->begin + block->lanes; step += replicas) {
        double latest = step[0];

        for (size_t i = 1; i < replicas; i++)
            latest = step[i] > latest ? step[i] : latest;
        for (size_t i = 0; i < replicas; i++)
            step[i] = latest;
    }
}

WIDE static void carry_out(const struct block *block, int32_t operation)
{
    const double *restrict measured = block->job->measured + (size_t)operation * block->all +
                                      block->first;
    const double *restrict begin = block->begin;
    const uint8_t *restrict lane = block->lane;
    double *restrict end = block->end + (size_t)operation * block->lanes;
    double ideal = block->job->ideal[operation];
    int chosen = block->operation[operation], others = block->others;

    if (!chosen && others)
        for (size_t i = 0; i < block->lanes; i++)
            end[i] = begin[i] + measured[i];
    else if (!chosen)
        for (size_t i = 0; i < block->lanes; i++)
            end[i] = begin[i] + ideal;
    else
        for (size_t i = 0; i < block->lanes; i++)
            end[i] = begin[i] + ((lane[i] != 0) != others ? measured[i] : ideal);
}

WIDE static void longest(const struct block *block, double *step_s)
{
    size_t replicas = (size_t)block->job->replicas;
    double *restrict latest = block->begin;

    memset(latest, 0, block->lanes * sizeof(*latest));
    for (int32_t last = 0; last < block->job->lasts; last++) {
        const double *restrict end = block->end + (size_t)block->job->last[last] * block->lanes;

        for (size_t i = 0; i < block->lanes; i++)
            latest[i] = end[i] > latest[i] ? end[i] : latest[i];
    }
    wait_for_replicas(block);
    for (size_t step = 0; step < block->lanes / replicas; step++)
        step_s[step] = latest[step * replicas];
}

static void replay_block(const struct block *block, double *step_s)
{
    const struct nb_replay *job = block->job;

    for (int32_t group = 0; group < job->groups; group++) {
        wait_for_needs(block, group);
        if (job->joint[group])
            wait_for_replicas(block);
        for (int32_t i = job->member_start[group]; i < job->member_start[group + 1]; i++)
            carry_out(block, job->members[i]);
    }
    longest(block, step_s);
}

static void keep_ends(const struct block *block, double *ends)
{
    for (size_t i = 0; i < (size_t)block->job->operations; i++)
        memcpy(ends + i * block->all + block->first, block->end + i * block->lanes,
               block->lanes * sizeof(*ends));
}

static size_t steps_together(const struct nb_replay *job)
{
    size_t step = ((size_t)job->operations + 1) * (size_t)job->replicas * sizeof(double);
    size_t fit = CACHED_BYTES / (step ? step : 1);

    return fit < 1 ? 1 : fit < (size_t)job->steps ? fit : (size_t)job->steps;
}

int nb_replay(const struct nb_replay *job, const struct nb_scenarios *scenarios, double *step_s,
              double *ends)
{
    size_t operations = (size_t)job->operations, steps = (size_t)job->steps;
    size_t replicas = (size_t)job->replicas, all = steps * replicas;
    size_t together = steps_together(job);
    double *memory = malloc((operations + 1) * together * replicas * sizeof(*memory));

    if (!memory)
        return -1;
    for (size_t i = 0; i < (size_t)scenarios->count; i++)
        for (size_t step = 0; step < steps; step += together) {
            size_t now = steps - step < together ? steps - step : together;
            struct block block = {
                job,
                scenarios->chosen_operations + i * operations,
                scenarios->chosen_lanes + i * all + step * replicas,
                scenarios->others[i] != 0,
                step * replicas,
                now * replicas,
                all,
                memory,
                memory + operations * now * replicas,
            };

            replay_block(&block, step_s + i * steps + step);
            if (ends)
                keep_ends(&block, ends + i * operations * all);
        }
    free(memory);
    return 0;
}
