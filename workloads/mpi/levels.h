/* levels.h: the levels of an algebraic multigrid cycle on many ranks: sparse matrices, the messages
 * between neighbours, aggregation, and the cycle itself; of amg.c.
 */
#ifndef NB_LEVELS_H
#define NB_LEVELS_H

#include "ranks.h"

enum { SIDES = 6, MOST_LEVELS = 12, FEWEST_ROWS = 8, COARSEST_SWEEPS = 20 };

struct link { /* with a neighbour: rows to be sent, and where its rows lie behind our own */
    int rank;
    long sent, received, first, *rows;
    double *buffer;
};

struct level {
    long rows, ghosts, *begin, *column, *aggregate;
    double *value, *inverse; /* of the diagonal */
    double *x, *b, *r;
    int links;
    struct link link[SIDES];
};

static const double DAMPING = 2. / 3, STEP = 1.5; /* a correction by aggregates is too short */

/* Fills what lies behind the own rows by the neighbours' values. */
static void exchange(struct level *l, double *vector)
{
    MPI_Request requests[2 * SIDES];
    for (int i = 0; i < l->links; i++) {
        struct link *link = &l->link[i];
        MPI_Irecv(vector + l->rows + link->first, (int)link->received, MPI_DOUBLE, link->rank, 0,
                  MPI_COMM_WORLD, &requests[i]);
        for (long j = 0; j < link->sent; j++)
            link->buffer[j] = vector[link->rows[j]];
        MPI_Isend(link->buffer, (int)link->sent, MPI_DOUBLE, link->rank, 0, MPI_COMM_WORLD,
                  &requests[l->links + i]);
    }
    MPI_Waitall(2 * l->links, requests, MPI_STATUSES_IGNORE);
}

static double row_product(const struct level *l, long row, const double *vector)
{
    double sum = 0;
    for (long at = l->begin[row]; at < l->begin[row + 1]; at++)
        sum += l->value[at] * vector[l->column[at]];
    return sum;
}

/* r = b - A x */
static void residual(struct level *l, double *x, const double *b, double *r)
{
    exchange(l, x);
    for (long row = 0; row < l->rows; row++)
        r[row] = b[row] - row_product(l, row, x);
}

static void smooth(struct level *l, int sweeps, int from_zero)
{
    for (int sweep = 0; sweep < sweeps; sweep++) {
        if (sweep == 0 && from_zero)
            memcpy(l->r, l->b, (size_t)l->rows * sizeof *l->r);
        else
            residual(l, l->x, l->b, l->r);
        for (long row = 0; row < l->rows; row++)
            l->x[row] = (sweep == 0 && from_zero ? 0 : l->x[row]) +
                        DAMPING * l->inverse[row] * l->r[row];
    }
}

/* A V-cycle for A x = b from x = 0; b and x of the levels below are overwritten. */
static void cycle(struct level *l, int levels, int sweeps)
{
    smooth(l, levels == 1 ? COARSEST_SWEEPS : sweeps, 1);
    if (levels == 1)
        return;
    struct level *coarse = l + 1;
    residual(l, l->x, l->b, l->r);
    memset(coarse->b, 0, (size_t)coarse->rows * sizeof *coarse->b);
    for (long row = 0; row < l->rows; row++)
        coarse->b[l->aggregate[row]] += l->r[row];
    cycle(coarse, levels - 1, sweeps);
    for (long row = 0; row < l->rows; row++)
        l->x[row] += STEP * coarse->x[l->aggregate[row]];
    smooth(l, sweeps, 0);
}

static void new_vectors(struct level *l)
{
    double **vectors[] = {&l->x, &l->b, &l->r};
    for (int i = 0; i < 3; i++)
        *vectors[i] = nb_new((size_t)(l->rows + l->ghosts), sizeof(double));
    l->inverse = nb_new((size_t)l->rows, sizeof(double));
    for (long row = 0; row < l->rows; row++)
        for (long at = l->begin[row]; at < l->begin[row + 1]; at++)
            if (l->column[at] == row)
                l->inverse[row] = 1 / l->value[at];
}

static int is_strong(const struct level *l, long row, long at)
{
    return l->column[at] != row && l->column[at] < l->rows && l->value[at] < 0 &&
           -l->value[at] * l->inverse[row] > 0.05;
}

/* Rows with all their free neighbours first, then those left over join a neighbour's aggregate; the
 * number of aggregates. */
static long aggregate(struct level *l)
{
    long count = 0;
    for (long row = 0; row < l->rows + l->ghosts; row++)
        l->aggregate[row] = -1;
    for (int joining = 0; joining < 2; joining++)
        for (long row = 0; row < l->rows; row++) {
            long joined = -1, taken = 0;
            for (long at = l->begin[row]; at < l->begin[row + 1]; at++)
                if (is_strong(l, row, at) && l->aggregate[l->column[at]] >= 0)
                    joined = l->aggregate[l->column[at]], taken++;
            if (l->aggregate[row] >= 0 || (taken && !joining))
                continue;
            l->aggregate[row] = joined >= 0 ? joined : count++;
            for (long at = l->begin[row]; joined < 0 && at < l->begin[row + 1]; at++)
                if (is_strong(l, row, at))
                    l->aggregate[l->column[at]] = l->aggregate[row];
        }
    return count;
}

/* The different ones of some numbers, in the order in which they first come; `place`, of each
 * number, is where. Returns how many. */
static long distinct(const double *numbers, long count, long *found, long *place, long most)
{
    long *seen = nb_new((size_t)most, sizeof *seen), different = 0;
    for (long i = 0; i < count; i++) {
        long number = (long)numbers[i];
        if (!seen[number])
            found[different++] = number, seen[number] = different;
        place[i] = seen[number] - 1;
    }
    free(seen);
    return different;
}

/* Both sides of a link see the same numbers in the same order, so they agree without a message. */
static void coarsen_links(struct level *l, struct level *coarse)
{
    double *numbers = nb_new((size_t)(l->rows + l->ghosts), sizeof *numbers);
    for (long row = 0; row < l->rows; row++)
        numbers[row] = (double)l->aggregate[row];
    exchange(l, numbers);
    coarse->links = l->links;
    for (int i = 0; i < l->links; i++) {
        struct link *fine = &l->link[i], *link = &coarse->link[i];
        long longest = fine->sent > fine->received ? fine->sent : fine->received;
        long *place = nb_new((size_t)longest, sizeof *place);
        long *found = nb_new((size_t)longest, sizeof *found);
        double *ghosts = numbers + l->rows + fine->first, largest = 0;
        for (long j = 0; j < fine->received; j++)
            largest = fmax(largest, ghosts[j]);
        link->rank = fine->rank, link->first = coarse->ghosts;
        link->received = distinct(ghosts, fine->received, found, place, (long)largest + 1);
        for (long j = 0; j < fine->received; j++)
            l->aggregate[l->rows + fine->first + j] = coarse->rows + link->first + place[j];
        coarse->ghosts += link->received;
        link->rows = nb_new((size_t)longest, sizeof *link->rows);
        link->buffer = nb_new((size_t)longest, sizeof *link->buffer);
        link->sent = distinct(fine->buffer, fine->sent, link->rows, place, coarse->rows);
        free(place), free(found);
    }
    free(numbers);
}

/* Each coarse row is the sum of its fine rows, in coarse columns. */
static void coarsen_matrix(const struct level *l, struct level *coarse)
{
    long entries = 0, *members = nb_new((size_t)l->rows, sizeof *members);
    long *first = nb_new((size_t)coarse->rows + 2, sizeof *first);
    long *place = nb_new((size_t)(coarse->rows + coarse->ghosts), sizeof *place);
    coarse->begin = nb_new((size_t)coarse->rows + 1, sizeof *coarse->begin);
    coarse->column = nb_new((size_t)l->begin[l->rows], sizeof *coarse->column);
    coarse->value = nb_new((size_t)l->begin[l->rows], sizeof *coarse->value);
    for (long row = 0; row < l->rows; row++)
        first[l->aggregate[row] + 2]++;
    for (long row = 0; row < coarse->rows; row++)
        first[row + 2] += first[row + 1];
    for (long row = 0; row < l->rows; row++)
        members[first[l->aggregate[row] + 1]++] = row;
    for (long row = 0; row < coarse->rows; row++) {
        for (long m = first[row]; m < first[row + 1]; m++)
            for (long at = l->begin[members[m]]; at < l->begin[members[m] + 1]; at++) {
                long column = l->aggregate[l->column[at]];
                if (place[column] <= coarse->begin[row]) { /* places count from 1 */
                    place[column] = ++entries;
                    coarse->column[entries - 1] = column;
                }
                coarse->value[place[column] - 1] += l->value[at];
            }
        coarse->begin[row + 1] = entries;
    }
    free(members), free(first), free(place);
}

/* All levels below the first; how many there are. The same on all ranks. */
static int coarsen(struct level *levels, int most)
{
    int count = 1;
    while (count < most && nb_all(levels[count - 1].rows > FEWEST_ROWS)) {
        struct level *l = &levels[count - 1], *coarse = &levels[count];
        l->aggregate = nb_new((size_t)(l->rows + l->ghosts), sizeof *l->aggregate);
        coarse->rows = aggregate(l);
        coarsen_links(l, coarse);
        coarsen_matrix(l, coarse);
        new_vectors(coarse);
        count++;
    }
    return count;
}

#endif
