/* stream: the five kernels by which BabelStream (Deakin et al. 2018) measures memory bandwidth,
 * OpenMP; the time of each repetition is printed.
 *
 *     stream [--elements N] [--repeats N] [--precision double|single]
 *     threads: OMP_NUM_THREADS; three arrays of N numbers
 *
 * copy c = a, mul b = s c, add c = a + b, triad a = b + s c, dot sum a b, in this order in each
 * repetition. The arrays are touched by the threads that work on them, a pass warms up and the
 * start values are set again. Compiled without -ffast-math, as BabelStream is: dot adds in order.
 * Verified: each element and each dot product against the recursion in scalars.
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
#define MOST_SINGLE 1500            /* in single precision a is then near the least number */
#define ALIGNMENT ((size_t)2 << 20) /* as BabelStream's */

enum { COPY, MUL, ADD, TRIAD, DOT, KERNELS };

static const char *const names[] = {"copy", "mul", "add", "triad", "dot"};

struct arrays {
    long count;
    void *a, *b, *c;
};

struct expected {
    double a, b, c, dot;
};

/* What depends on the precision. */
struct precision {
    const char *name;
    double epsilon;
    size_t size;
    void (*fill)(const struct arrays *);
    double (*kernel)(const struct arrays *, int);
    double (*array_error)(const struct arrays *, const struct expected *);
    double (*order_error)(const struct arrays *, double);
};

/* By bits, as a comparison with NaN may be optimised away. */
static double larger(double left, double right)
{
    return !nb_within(left, 1e300) || (nb_within(right, 1e300) && left > right) ? left : right;
}

#define NAME "double"
#define REAL double
#define IN(name) name##_double
#define EPSILON 2.2e-16
#define FUSED fma
#include "stream_real.h"

#define NAME "single"
#define REAL float
#define IN(name) name##_single
#define EPSILON 1.2e-7
#define FUSED fmaf
#include "stream_real.h"

static const struct precision *const precisions[] = {&precision_double, &precision_single};
static const char *const precision_names[] = {"double", "single", NULL};

/* One repetition; the times go to times[kernel * repeats]. Returns the dot product. */
static double repeat(const struct precision *real, const struct arrays *s, double *times,
                     long repeats)
{
    double sum = 0;
    int64_t before_ns = nb_now_ns();
    for (int which = 0; which < KERNELS; which++) {
        sum += real->kernel(s, which);
        int64_t after_ns = nb_now_ns();
        times[which * repeats] = (double)(after_ns - before_ns) * 1e-9;
        before_ns = after_ns;
    }
    return sum;
}

/* One repetition in scalars. */
static void advance(struct expected *at, const struct precision *real, long count)
{
    int single = real->size == sizeof(float);
    double scalar = single ? (float)SCALAR : SCALAR;
    at->c = at->a;
    at->b = scalar * at->c;
    at->c = at->a + at->b;
    at->a = at->b + scalar * at->c;
    at->dot = at->a * at->b * (double)count;
}

/* What a run is verified by; all relative. */
struct errors {
    double arrays, dots, order;
};

/* The arrays' elements, every dot product against the exact one, and the last against a sum in the
 * same order. */
static struct errors errors_of(const struct precision *real, const struct arrays *s,
                               const double *sums, long repeats)
{
    struct errors found = {0};
    struct expected end = {.a = real->size == sizeof(float) ? (float)START_A : START_A};
    for (long done = 0; done < repeats; done++) {
        advance(&end, real, s->count);
        found.dots = larger(fabs(sums[done] - end.dot) / end.dot, found.dots);
    }
    found.arrays = real->array_error(s, &end);
    found.order = real->order_error(s, sums[repeats - 1]);
    return found;
}

/* A dot product may be off by a rounding of one sign a term, if it was taken in order; the last
 * must be what that order gives, or be better than any order could make it by chance. */
static int is_verified(const struct precision *real, const struct errors *found, long count,
                       long repeats)
{
    double arrays = real->epsilon * (100 + 4 * (double)repeats),
           dots = fmin(0.5, real->epsilon * (100 + (double)count)),
           order = real->epsilon * (100 + (double)count / 64);
    int verified = nb_within(found->arrays, arrays) && nb_within(found->dots, dots) &&
                   (nb_within(found->order, 1000 * real->epsilon) || nb_within(found->dots, order));
    if (!verified)
        fprintf(stderr,
                "stream: not verified: relative error of the arrays %.3g (bound %.3g), of the dot "
                "products %.3g (bound %.3g), of the last one's order %.3g\n",
                found->arrays, arrays, found->dots, dots, found->order);
    return verified;
}

static int allocate(struct arrays *s, size_t size)
{
    void **each[] = {&s->a, &s->b, &s->c};
    size_t bytes = ((size_t)s->count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    for (int i = 0; i < 3; i++)
        if (!(*each[i] = aligned_alloc(ALIGNMENT, bytes)))
            return -ENOMEM;
    return 0;
}

static int report(const struct precision *real, const struct arrays *s,
                  const struct nb_region *region, const double *times, long repeats,
                  const double *sums)
{
    char spreads[KERNELS * 100];
    int used = 0;
    struct errors errors = errors_of(real, s, sums, repeats);
    int verified = is_verified(real, &errors, s->count, repeats);
    for (int which = 0; which < KERNELS; which++) {
        const double *kernel_times = times + which * repeats;
        struct nb_spread spread = nb_spread_of(kernel_times, repeats);
        nb_series_print(names[which], "s", kernel_times, repeats);
        used += snprintf(spreads + used, sizeof spreads - (size_t)used,
                         "%s_min_s=%.9f %s_avg_s=%.9f %s_max_s=%.9f ", names[which], spread.min,
                         names[which], spread.mean, names[which], spread.max);
    }
    nb_region_print(region, "stream",
                    "threads=%d elements=%ld repeats=%ld precision=%s %scompiler=%s sum=%.15g "
                    "error=%.3e series_values=%ld verified=%s",
                    omp_get_max_threads(), s->count, repeats, real->name, spreads, NB_COMPILER,
                    sums[repeats - 1], larger(errors.arrays, errors.dots), nb_series_total(),
                    verified ? "yes" : "no");
    return verified ? 0 : 1;
}

int main(int count, char **words)
{
    struct nb_option options[] = {
        {.name = "elements", .low = 1, .high = 2147483648, .value = 1 << 25},
        {.name = "repeats", .low = 1, .high = 10000, .value = 100},
        {.name = "precision", .words = precision_names},
        {0}
    };
    struct nb_region region;
    if (nb_parse_options(count, words, options))
        return 2;
    const struct precision *real = precisions[(int)options[2].value];
    struct arrays s = {.count = (long)options[0].value};
    long repeats = (long)options[1].value;
    if (real->size == sizeof(float) && repeats > MOST_SINGLE)
        return nb_usage("stream", options, "repeats in single precision (at most 1500)", "more");
    double *times = calloc((size_t)(KERNELS * repeats), sizeof *times),
           *sums = calloc((size_t)repeats, sizeof *sums);
    if (allocate(&s, real->size) || !times || !sums) {
        fprintf(stderr, "stream: no memory for three arrays of %ld numbers\n", s.count);
        return 1;
    }
    real->fill(&s);
    repeat(real, &s, times, repeats); /* warms up; its times are overwritten */
    real->fill(&s);
    nb_region_begin(&region);
    for (long done = 0; done < repeats; done++)
        sums[done] = repeat(real, &s, times + done, repeats);
    nb_region_end(&region);
    int status = report(real, &s, &region, times, repeats, sums);
    free(s.a), free(s.b), free(s.c);
    free(times), free(sums);
    return status;
}
