/* halo3d: a three-dimensional halo with large messages and few, larger collectives, as a shock
 * physics code makes them (CTH): explicit advection of several materials.
 *
 *     mpirun halo3d [--nx N] [--fields N] [--steps N] [--reductions N] [--reduce-bytes B]
 *                   [--bcasts N] [--bcast-bytes B]
 *
 * nx^3 cells a rank, periodic; first-order upwind in three dimensions. Faces of all fields go in
 * one message a side (128 KiB by default). Each step has reductions of 32 bytes (the fields' sums)
 * and broadcasts of 1024 bytes, from which the step takes its Courant numbers: the means that
 * Ferreira et al. 2008 measured of CTH (section 6.2.2). Everything else is our choice.
 * Timed: all steps. Verified: each cell against the closed form (a wave is damped and turned by a
 * known factor a step), and the sums, which are conserved. Exit status: 0 verified, 1 not, 2 usage.
 */
#include <complex.h>

#include "ranks.h"

enum { AXES = 3, MOST_NUMBERS = 131072 };

struct box {
    struct nb_grid grid;
    long nx, row, plane, field; /* cells along an axis; distances in memory */
    int fields, before[AXES], after[AXES];
    double *now, *next, *sent[AXES], *received[AXES];
};

/* Upwind, for winds towards higher indices: only the lower neighbour of each axis is read. */
static void copy_face(const struct box *b, int axis, int pack)
{
    const long strides[AXES] = {b->plane, b->row, 1};
    long u = strides[axis == 0 ? 1 : 0], v = strides[axis == 2 ? 1 : 2];
    double *buffer = pack ? b->sent[axis] : b->received[axis];
    for (int f = 0; f < b->fields; f++) {
        double *cell = b->now + f * b->field + (pack ? b->nx : 0) * strides[axis];
        for (long i = 1; i <= b->nx; i++)
            for (long j = 1; j <= b->nx; j++, buffer++)
                if (pack)
                    *buffer = cell[i * u + j * v];
                else
                    cell[i * u + j * v] = *buffer;
    }
}

static void exchange(struct box *b)
{
    MPI_Request requests[AXES];
    int count = (int)(b->fields * b->nx * b->nx);
    for (int axis = 0; axis < AXES; axis++)
        MPI_Irecv(b->received[axis], count, MPI_DOUBLE, b->before[axis], axis, MPI_COMM_WORLD,
                  &requests[axis]);
    for (int axis = 0; axis < AXES; axis++) {
        copy_face(b, axis, 1);
        MPI_Send(b->sent[axis], count, MPI_DOUBLE, b->after[axis], axis, MPI_COMM_WORLD);
    }
    for (int axis = 0; axis < AXES; axis++) {
        MPI_Wait(&requests[axis], MPI_STATUS_IGNORE);
        copy_face(b, axis, 0);
    }
}

static void advect(struct box *b, const double *courant)
{
    double cx = courant[0], cy = courant[1], cz = courant[2], rest = 1 - cx - cy - cz;
    for (int f = 0; f < b->fields; f++)
        for (long i = 1; i <= b->nx; i++)
            for (long j = 1; j <= b->nx; j++) {
                long start = f * b->field + i * b->plane + j * b->row;
                const double *here = b->now + start;
                double *there = b->next + start;
                for (long k = 1; k <= b->nx; k++)
                    there[k] = rest * here[k] + cx * here[k - b->plane] + cy * here[k - b->row] +
                               cz * here[k - 1];
            }
    double *swapped = b->now;
    b->now = b->next, b->next = swapped;
}

/* The sum of each field on this rank. */
static void sum_fields(const struct box *b, double *sums)
{
    for (int f = 0; f < b->fields; f++) {
        sums[f] = 0;
        for (long i = 1; i <= b->nx; i++)
            for (long j = 1; j <= b->nx; j++)
                for (long k = 1; k <= b->nx; k++)
                    sums[f] += b->now[f * b->field + i * b->plane + j * b->row + k];
    }
}

/* Of step `step`: different in each, and below 1 together. */
static void courant_numbers(long step, double *courant)
{
    for (int axis = 0; axis < AXES; axis++)
        courant[axis] = 0.1 + 0.05 * (double)((step + axis) % 3);
}

/* Of field f: one wave along each axis, f + 1 along the first. */
static double wave_number(const struct box *b, int f, int axis)
{
    double turns = axis == 0 ? f + 1 : 1;
    return 2 * M_PI * turns / (double)(b->nx * b->grid.shape[axis]);
}

/* What all steps make of the wave of a field: upwind multiplies it by a factor in each. */
static double complex amplitude(const struct box *b, int f, long steps)
{
    double complex product = 1;
    for (long step = 0; step < steps; step++) {
        double courant[AXES];
        double complex factor = 1;
        courant_numbers(step, courant);
        for (int axis = 0; axis < AXES; axis++)
            factor -= courant[axis] * (1 - cexp(-I * wave_number(b, f, axis)));
        product *= factor;
    }
    return product;
}

/* The wave at a cell, on top of a constant. */
static double closed_form(const struct box *b, int f, double complex factor, const long *cell)
{
    double phase = 0;
    for (int axis = 0; axis < AXES; axis++)
        phase += wave_number(b, f, axis) * (double)(b->grid.at[axis] * b->nx + cell[axis]);
    return f + 2 + creal(factor * cexp(I * phase));
}

/* Sets the cells by the closed form after so many steps, or returns how far they are from it. */
static double compare(struct box *b, long steps, int set)
{
    double worst = 0;
    for (int f = 0; f < b->fields; f++) {
        double complex factor = amplitude(b, f, steps);
        for (long i = 1; i <= b->nx; i++)
            for (long j = 1; j <= b->nx; j++)
                for (long k = 1; k <= b->nx; k++) {
                    const long cell[AXES] = {i, j, k};
                    double exact = closed_form(b, f, factor, cell);
                    double *here = &b->now[f * b->field + i * b->plane + j * b->row + k];
                    *here = set ? exact : *here;
                    double error = fabs(*here - exact);
                    worst = nb_within(error, 1e300) ? fmax(worst, error) : 1e300;
                }
    }
    return nb_greatest(worst);
}

static void new_box(struct box *b, const struct nb_ranks *all, long nx, int fields)
{
    b->grid = nb_grid_of(all, AXES);
    b->nx = nx, b->fields = fields;
    b->row = nx + 1, b->plane = b->row * b->row, b->field = b->plane * b->row;
    b->now = nb_new((size_t)(b->field * fields), sizeof *b->now);
    b->next = nb_new((size_t)(b->field * fields), sizeof *b->next);
    for (int axis = 0; axis < AXES; axis++) {
        b->before[axis] = nb_neighbour(&b->grid, axis, -1, 1);
        b->after[axis] = nb_neighbour(&b->grid, axis, 1, 1);
        b->sent[axis] = nb_new((size_t)(nx * nx * fields), sizeof(double));
        b->received[axis] = nb_new((size_t)(nx * nx * fields), sizeof(double));
    }
}

struct collectives {
    int reductions, reduced, bcasts, numbers; /* how often a step, and of how many values */
    double *own, *sums, *control;
};

/* One step; how far the sums of the fields are from what they were at first. */
static double one_step(struct box *b, struct collectives *c, const struct nb_ranks *all, long step,
                       const double *first)
{
    double drift = 0;
    if (all->rank == 0)
        courant_numbers(step, c->control);
    for (int i = 0; i < c->bcasts; i++)
        MPI_Bcast(c->control, c->numbers, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    exchange(b);
    advect(b, c->control);
    sum_fields(b, c->own);
    for (int i = 0; i < c->reductions; i++)
        MPI_Allreduce(c->own, c->sums, c->reduced, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int f = 0; c->reductions && f < b->fields && f < c->reduced; f++)
        drift = fmax(drift, fabs(c->sums[f] / first[f] - 1));
    return drift;
}

static struct collectives new_collectives(const struct nb_option *options)
{
    struct collectives c = {
        .reductions = (int)options[3].value,
        .reduced = (int)options[4].value / 8,
        .bcasts = (int)options[5].value,
        .numbers = (int)options[6].value / 8
    };
    c.own = nb_new(MOST_NUMBERS, sizeof(double));
    c.sums = nb_new(MOST_NUMBERS, sizeof(double));
    c.control = nb_new(MOST_NUMBERS, sizeof(double));
    return c;
}

int main(int count, char **words)
{
    struct nb_option options[] = {
        {.name = "nx", .low = 2, .high = 500, .value = 64},
        {.name = "fields", .low = 1, .high = 64, .value = 4},
        {.name = "steps", .low = 1, .high = 1000000, .value = 200},
        {.name = "reductions", .low = 0, .high = 1000, .value = 1},
        {.name = "reduce-bytes", .low = 8, .high = 8 * MOST_NUMBERS, .value = 32},
        {.name = "bcasts", .low = 1, .high = 1000, .value = 1},
        {.name = "bcast-bytes", .low = 24, .high = 8 * MOST_NUMBERS, .value = 1024},
        {0}
    };
    struct nb_ranks all;
    struct box b = {0};
    if (nb_ranks_init(&all, count, words, options))
        return 2;
    long steps = (long)options[2].value;
    new_box(&b, &all, (long)options[0].value, (int)options[1].value);
    struct collectives c = new_collectives(&options[0]);
    double *first = nb_new((size_t)b.fields, sizeof *first), drift = 0;
    compare(&b, 0, 1);
    sum_fields(&b, c.own);
    MPI_Allreduce(c.own, first, b.fields, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    nb_ranks_begin(&all);
    for (long step = 0; step < steps; step++)
        drift = fmax(drift, one_step(&b, &c, &all, step, first));
    nb_ranks_end(&all);
    double error = compare(&b, steps, 0);
    char text[200];
    snprintf(text, sizeof text, "grid=%dx%dx%d nx=%ld fields=%d steps=%ld error=%.3e drift=%.3e",
             b.grid.shape[0], b.grid.shape[1], b.grid.shape[2], b.nx, b.fields, steps, error,
             drift);
    return nb_ranks_finish(&all, "halo3d", nb_within(error, 1e-9) && nb_within(drift, 1e-9), text);
}
