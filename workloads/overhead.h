/* overhead.h: what schedbench and syncbench share: the method of the EPCC OpenMP microbenchmarks
 * (Bull 1999) with a delay of fixed count.
 *
 * The time of a construct around a delay, less the time of the delay alone (the reference, by one
 * thread). The work of a delay is a number of steps that is given, so every run does the same work;
 * --calibrate US says how many steps take that long here.
 */
#ifndef NOISEBOOK_OVERHEAD_H
#define NOISEBOOK_OVERHEAD_H

#include <omp.h>

#include "noisebook.h"

#include "compiler.h"
#include "options.h"
#include "series.h"

/* How many delays this thread did, and the last one's result: no construct left one out, and no
 * delay was cut short. */
static struct {
    uint64_t count, result;
} nb_delays;
#pragma omp threadprivate(nb_delays)

/* Where each thread counts, so that others see how far it is. */
static const uint64_t **nb_counters;
static int nb_counted_threads;

/* A chain of dependent multiplications that a compiler can neither shorten nor widen. */
__attribute__((noinline, aligned(64))) static void nb_delay(long steps)
{
    uint64_t state = 1;
    for (long i = 0; i < steps; i++) {
        state = state * UINT64_C(0x5851f42d4c957f2d) + (uint64_t)i;
        __asm__ volatile("" : "+r"(state));
    }
    nb_delays.result = state;
    nb_delays.count++;
}

/* 0, or 1 after a message. */
static inline int nb_find_counters(const char *program)
{
    nb_counted_threads = omp_get_max_threads();
    nb_counters = calloc((size_t)nb_counted_threads, sizeof *nb_counters);
    if (!nb_counters) {
        fprintf(stderr, "%s: no memory for %d counters\n", program, nb_counted_threads);
        return 1;
    }
#pragma omp parallel
    nb_counters[omp_get_thread_num()] = &nb_delays.count;
    return 0;
}

/* Read while the thread may be counting. */
static inline uint64_t nb_delays_of(int thread)
{
    return __atomic_load_n(nb_counters[thread], __ATOMIC_RELAXED);
}

static inline uint64_t nb_all_delays(void)
{
    uint64_t total = 0;
    for (int thread = 0; thread < nb_counted_threads; thread++)
        total += nb_delays_of(thread);
    return total;
}

/* How many threads' last delay, if any since this was asked last, was not of so many steps: by the
 * recursion from its end, constants and factors summed up. */
static inline long nb_short_delays(long steps)
{
    long wrong = 0;
    uint64_t factor = 1, expected = 0;
    for (long i = steps - 1; i >= 0; i--) {
        expected += factor * (uint64_t)i;
        factor *= UINT64_C(0x5851f42d4c957f2d);
    }
    expected += factor;
#pragma omp parallel reduction(+ : wrong)
    {
        wrong += nb_delays.result && nb_delays.result != expected;
        nb_delays.result = 0;
    }
    return wrong;
}

/* Prints how many steps take so long: from the fastest of some tries, as a slow one was disturbed.
 */
static inline int nb_calibrate(double microseconds)
{
    const long steps = 200000;
    int64_t best_ns = INT64_MAX;
    for (int attempt = 0; attempt < 100; attempt++) {
        int64_t before_ns = nb_now_ns();
        nb_delay(steps);
        int64_t spent_ns = nb_now_ns() - before_ns;
        best_ns = spent_ns < best_ns ? spent_ns : best_ns;
    }
    double count = microseconds * 1e3 * (double)steps / (double)best_ns;
    printf("noisebook-delay: steps=%ld step_ns=%.6f compiler=%s\n", count < 1 ? 1 : lround(count),
           (double)best_ns / (double)steps, NB_COMPILER);
    return 0;
}

/* Of repetitions, in us. */
struct nb_times {
    double *values, mean, median, min, max, sd;
    long count;
};

static inline int nb_ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static inline void nb_summarise(struct nb_times *times)
{
    struct nb_spread spread = nb_spread_of(times->values, times->count);
    double squares = 0, *sorted = malloc((size_t)times->count * sizeof *sorted);
    times->mean = spread.mean, times->min = spread.min, times->max = spread.max;
    for (long i = 0; i < times->count; i++)
        squares += (times->values[i] - spread.mean) * (times->values[i] - spread.mean);
    times->sd = times->count > 1 ? sqrt(squares / (double)(times->count - 1)) : 0;
    if (!sorted) {
        times->median = spread.mean;
        return;
    }
    memcpy(sorted, times->values, (size_t)times->count * sizeof *sorted);
    qsort(sorted, (size_t)times->count, sizeof *sorted, nb_ascending);
    times->median = (sorted[(times->count - 1) / 2] + sorted[times->count / 2]) / 2;
    free(sorted);
}

/* What both print: the series of the repetitions and of the reference, and the last line. `what`
 * are the program's own words. */
static inline int nb_report_overhead(const char *program, const char *series,
                                     const struct nb_region *region, struct nb_times *times,
                                     struct nb_times *reference, const char *what, long wrong)
{
    nb_summarise(times);
    nb_summarise(reference);
    nb_series_print(series, "us", times->values, times->count);
    nb_series_print("reference", "us", reference->values, reference->count);
    if (wrong)
        fprintf(stderr, "%s: not verified: %ld differences from what %s has to do\n", program,
                wrong, series);
    nb_region_print(
        region, program,
        "threads=%d %s outer=%ld mean_us=%.9g median_us=%.9g min_us=%.9g max_us=%.9g sd_us=%.9g "
        "reference_us=%.9g "
        "overhead_us=%.9g median_overhead_us=%.9g compiler=%s series_values=%ld verified=%s",
        omp_get_max_threads(), what, times->count, times->mean, times->median, times->min,
        times->max, times->sd, reference->median, times->mean - reference->median,
        times->median - reference->median, NB_COMPILER, nb_series_total(), wrong ? "no" : "yes");
    return wrong ? 1 : 0;
}

/* Memory for the times; 0 or 1 after a message. */
static inline int nb_allocate_times(const char *program, struct nb_times *times,
                                    struct nb_times *reference)
{
    times->values = calloc((size_t)times->count, sizeof(double));
    reference->values = calloc((size_t)reference->count, sizeof(double));
    if (times->values && reference->values)
        return 0;
    fprintf(stderr, "%s: no memory for %ld times\n", program, times->count);
    return 1;
}

#endif
