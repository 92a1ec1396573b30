/* series.h: the many values of one run (a time a repetition), printed where Noisebook finds them;
 * after noisebook.h. C11 and C++11.
 *
 *     noisebook-series: NAME UNIT v1 v2 v3 ...
 *
 * any number of such lines before the last one. The last line says series_values=N, how many values
 * there must be in all (nb_series_total): a run of which one was lost is refused. Names and units
 * hold no spaces; lines of one name are one series.
 */
#ifndef NOISEBOOK_SERIES_H
#define NOISEBOOK_SERIES_H

#include <stdio.h>

enum { NB_SERIES_PER_LINE = 1000 };

static inline long *nb_series_counter(void)
{
    static long total;
    return &total;
}

/* How many values were printed so far. */
static inline long nb_series_total(void)
{
    return *nb_series_counter();
}

static inline void nb_series_print(const char *name, const char *unit, const double *values,
                                   long count)
{
    for (long i = 0; i < count; i++) {
        if (i % NB_SERIES_PER_LINE == 0)
            printf("%snoisebook-series: %s %s", i ? "\n" : "", name, unit);
        printf(" %.9g", values[i]);
    }
    if (count > 0)
        putchar('\n');
    *nb_series_counter() += count;
}

/* Least, mean and greatest of a series; the median needs an order and is left to the reader. */
struct nb_spread {
    double min, mean, max;
};

static inline struct nb_spread nb_spread_of(const double *values, long count)
{
    struct nb_spread spread = {values[0], 0, values[0]};
    for (long i = 0; i < count; i++) {
        spread.min = values[i] < spread.min ? values[i] : spread.min;
        spread.max = values[i] > spread.max ? values[i] : spread.max;
        spread.mean += values[i] / (double)count;
    }
    return spread;
}

#endif
