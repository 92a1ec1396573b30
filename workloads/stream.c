/* stream: the five kernels by which BabelStream (Deakin et al. 2018) measures memory bandwidth,
 * OpenMP; the time of each repetition is printed.
 *
 *     stream [--elements N] [--repeats N]
 *     threads: OMP_NUM_THREADS; three arrays of N doubles
 *
 * copy c = a, mul b = s c, add c = a + b, triad a = b + s c, dot sum a b, in this order in each
 * repetition. The arrays are touched by the threads that work on them, a pass warms up and the
 * start values are set again. Verified: each array and the last dot against the recursion in
 * scalars.
 * Exit status: 0 verified, 1 not verified or no memory, 2 usage.
 */
#include <omp.h>

#include "noisebook.h"

#include "compiler.h"
#include "options.h"
#include "series.h"

#define START_A 0.1
#define START_B 0.2
#define START_C 0.0
/* a shrinks by 0.96 a repetition, so that one left out is seen; 10000 of them stay far above the
 * least double */
#define SCALAR 0.4
#define ERROR_BOUND 1e-8 /* relative */

enum { COPY, MUL, ADD, TRIAD, DOT, KERNELS };

static const char *const names[] = {"copy", "mul", "add", "triad", "dot"};

struct arrays {
    long count;
    double *a, *b, *c;
};

static void fill(const struct arrays *s)
{
#pragma omp parallel for schedule(static)
    for (long i = 0; i < s->count; i++) {
        s->a[i] = START_A;
        s->b[i] = START_B;
        s->c[i] = START_C;
    }
}

static void copy(const struct arrays *s)
{
    const double *restrict a = s->a;
    double *restrict c = s->c;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < s->count; i++)
        c[i] = a[i];
}

static void mul(const struct arrays *s)
{
    const double *restrict c = s->c;
    double *restrict b = s->b;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < s->count; i++)
        b[i] = SCALAR * c[i];
}

static void add(const struct arrays *s)
{
    const double *restrict a = s->a, *restrict b = s->b;
    double *restrict c = s->c;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < s->count; i++)
        c[i] = a[i] + b[i];
}

static void triad(const struct arrays *s)
{
    const double *restrict b = s->b, *restrict c = s->c;
    double *restrict a = s->a;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < s->count; i++)
        a[i] = b[i] + SCALAR * c[i];
}

static double dot(const struct arrays *s)
{
    const double *restrict a = s->a, *restrict b = s->b;
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (long i = 0; i < s->count; i++)
        sum += a[i] * b[i];
    return sum;
}

static double kernel(const struct arrays *s, int which)
{
    if (which == COPY)
        copy(s);
    else if (which == MUL)
        mul(s);
    else if (which == ADD)
        add(s);
    else if (which == TRIAD)
        triad(s);
    return which == DOT ? dot(s) : 0;
}

/* One repetition; the times go to times[kernel * repeats]. Returns the dot product. */
static double repeat(const struct arrays *s, double *times, long repeats)
{
    double sum = 0;
    int64_t before_ns = nb_now_ns();
    for (int which = 0; which < KERNELS; which++) {
        sum += kernel(s, which);
        int64_t after_ns = nb_now_ns();
        times[which * repeats] = (double)(after_ns - before_ns) * 1e-9;
        before_ns = after_ns;
    }
    return sum;
}

static double mean_distance(const double *values, long count, double expected)
{
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (long i = 0; i < count; i++)
        sum += fabs(values[i] - expected);
    return sum / (double)count / fabs(expected);
}

/* By bits, as a comparison with NaN may be optimised away. */
static double larger(double left, double right)
{
    return !nb_within(left, 1e300) || (nb_within(right, 1e300) && left > right) ? left : right;
}

/* The greatest relative error of the arrays and the last dot product. */
static double error_of(const struct arrays *s, double sum, long repeats)
{
    double a = START_A, b = START_B, c = START_C;
    for (long done = 0; done < repeats; done++) {
        c = a;
        b = SCALAR * c;
        c = a + b;
        a = b + SCALAR * c;
    }
    double expected = a * b * (double)s->count;
    double worst = fabs(sum - expected) / expected;
    worst = larger(worst, mean_distance(s->a, s->count, a));
    worst = larger(worst, mean_distance(s->b, s->count, b));
    return larger(worst, mean_distance(s->c, s->count, c));
}

static int allocate(struct arrays *s)
{
    size_t length = ((size_t)s->count + 7) / 8 * 8;
    double *block = aligned_alloc(64, 3 * length * sizeof *block);
    s->a = block;
    s->b = block ? block + length : NULL;
    s->c = block ? block + 2 * length : NULL;
    return block ? 0 : -ENOMEM;
}

static int report(const struct arrays *s, const struct nb_region *region, const double *times,
                  long repeats, double sum)
{
    char spreads[KERNELS * 100];
    int used = 0;
    double error = error_of(s, sum, repeats);
    int verified = nb_within(error, ERROR_BOUND);
    for (int which = 0; which < KERNELS; which++) {
        const double *kernel_times = times + which * repeats;
        struct nb_spread spread = nb_spread_of(kernel_times, repeats);
        nb_series_print(names[which], "s", kernel_times, repeats);
        used += snprintf(spreads + used, sizeof spreads - (size_t)used,
                         "%s_min_s=%.9f %s_avg_s=%.9f %s_max_s=%.9f ", names[which], spread.min,
                         names[which], spread.mean, names[which], spread.max);
    }
    if (!verified)
        fprintf(stderr, "stream: not verified: relative error %.3g (bound %.3g)\n", error,
                ERROR_BOUND);
    nb_region_print(region, "stream",
                    "threads=%d elements=%ld repeats=%ld %scompiler=%s sum=%.15g error=%.3e "
                    "series_values=%ld verified=%s",
                    omp_get_max_threads(), s->count, repeats, spreads, NB_COMPILER, sum, error,
                    nb_series_total(), verified ? "yes" : "no");
    return verified ? 0 : 1;
}

int main(int count, char **words)
{
    struct nb_option options[] = {
        {.name = "elements", .low = 1, .high = 2147483648, .value = 1 << 25},
        {.name = "repeats", .low = 1, .high = 10000, .value = 100},
        {0}
    };
    struct nb_region region;
    if (nb_parse_options(count, words, options))
        return 2;
    struct arrays s = {.count = (long)options[0].value};
    long repeats = (long)options[1].value;
    double *times = calloc((size_t)(KERNELS * repeats), sizeof *times), sum = 0;
    if (allocate(&s) || !times) {
        fprintf(stderr, "stream: no memory for three arrays of %ld doubles\n", s.count);
        return 1;
    }
    fill(&s);
    repeat(&s, times, repeats); /* warms up; its times are overwritten */
    fill(&s);
    nb_region_begin(&region);
    for (long done = 0; done < repeats; done++)
        sum = repeat(&s, times + done, repeats);
    nb_region_end(&region);
    int status = report(&s, &region, times, repeats, sum);
    free(s.a);
    free(times);
    return status;
}
