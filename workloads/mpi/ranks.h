/* ranks.h: what the MPI programs have in common: their begin, their timed region, their last line.
 *
 * Launchers close the descriptors of Noisebook's barrier. So rank 0 waits for the common start by
 * noisebook_begin() (region of kind "symbols"), and all others wait for rank 0. The region is rank
 * 0's, from a barrier of all ranks to another.
 */
#ifndef NB_RANKS_H
#define NB_RANKS_H

#include <mpi.h>

#include "../noisebook.h"

#include "../options.h"
#include "../series.h"

extern void noisebook_begin(void) __attribute__((weak));
extern void noisebook_end(void) __attribute__((weak));

enum { NB_WORST_TAG = 32767 }; /* the greatest tag that every MPI allows */

struct nb_ranks {
    int rank, ranks;
    struct nb_region region;
};

/* MPI_Init() and the options, about which rank 0 alone prints a message; 0, or 2 after a message,
 * when MPI is finalised. */
static inline int nb_ranks_init(struct nb_ranks *all, int count, char **words,
                                struct nb_option *options)
{
    int status = 0;
    memset(all, 0, sizeof *all);
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &all->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &all->ranks);
    if (all->rank == 0)
        status = nb_parse_options(count, words, options);
    MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (status)
        MPI_Finalize();
    else if (all->rank > 0)
        nb_parse_options(count, words, options);
    return status;
}

/* Memory, all 0; ends the program of all ranks if there is none. */
static inline void *nb_new(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        fprintf(stderr, "no memory for %zu values of %zu bytes\n", count, size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static inline void nb_ranks_begin(struct nb_ranks *all)
{
    struct nb_region *region = &all->region;
    MPI_Barrier(MPI_COMM_WORLD);
    if (all->rank == 0) {
        if (noisebook_begin)
            noisebook_begin();
        nb_region_begin(region);
    }
    region->before = nb_thread_times_now();
    MPI_Barrier(MPI_COMM_WORLD);
    region->start_ns = nb_now_ns();
}

static inline void nb_ranks_end(struct nb_ranks *all)
{
    MPI_Barrier(MPI_COMM_WORLD);
    nb_region_end(&all->region);
    if (all->rank == 0 && noisebook_end)
        noisebook_end();
}

/* The times of the threads of all ranks, at rank 0. */
static inline void nb_sum_threads(struct nb_thread_times *times)
{
    int64_t own[] = {times->cpu_ns, times->runqueue_wait_ns, times->timeslices, times->threads};
    int64_t sum[4] = {0};
    MPI_Reduce(own, sum, 4, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    *times = (struct nb_thread_times){sum[0], sum[1], sum[2], (int)sum[3]};
}

/* Whether all ranks found their part right. */
static inline int nb_all(int right)
{
    int every = 0;
    MPI_Allreduce(&right, &every, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return every;
}

/* The greatest of the ranks' values; 1e300 if one is no number. */
static inline double nb_greatest(double value)
{
    double own = nb_within(value, 1e300) ? value : 1e300, greatest = 0;
    MPI_Allreduce(&own, &greatest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return greatest;
}

static inline double nb_sum(double value)
{
    double sum = 0;
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

/* Prints the last line at rank 0 and finalises MPI; the exit status. `text` has the program's own
 * "key=value" words. */
static inline int nb_ranks_finish(struct nb_ranks *all, const char *name, int right,
                                  const char *text)
{
    int verified = nb_all(right);
    nb_sum_threads(&all->region.before);
    nb_sum_threads(&all->region.after);
    if (all->rank == 0) {
        if (!verified)
            fprintf(stderr, "%s: the result is not right (not verified)\n", name);
        nb_region_print(&all->region, name, "ranks=%d %s series_values=%ld verified=%s", all->ranks,
                        text, nb_series_total(), verified ? "yes" : "no");
    }
    MPI_Finalize();
    return verified ? 0 : 1;
}

/* A grid of all ranks of 2 or 3 dimensions, the last one fastest; `at` is where this rank is. */
struct nb_grid {
    int dimensions, shape[3], at[3];
};

static inline struct nb_grid nb_grid_of(const struct nb_ranks *all, int dimensions)
{
    struct nb_grid grid = {.dimensions = dimensions, .shape = {0, 0, 0}};
    MPI_Dims_create(all->ranks, dimensions, grid.shape);
    for (int d = dimensions - 1, rest = all->rank; d >= 0; rest /= grid.shape[d--])
        grid.at[d] = rest % grid.shape[d];
    return grid;
}

/* The rank one step away, or MPI_PROC_NULL beyond the end of a dimension that is not periodic. */
static inline int nb_neighbour(const struct nb_grid *grid, int dimension, int step, int periodic)
{
    int rank = 0;
    for (int d = 0; d < grid->dimensions; d++) {
        int at = grid->at[d] + (d == dimension ? step : 0), length = grid->shape[d];
        if (!periodic && (at < 0 || at >= length))
            return MPI_PROC_NULL;
        rank = rank * length + (at + length) % length;
    }
    return rank;
}

#endif
