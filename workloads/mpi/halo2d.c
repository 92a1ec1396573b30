/* halo2d: a two-dimensional halo and tiny all-reductions, as an ocean model makes them (POP): in
 * each step tracers are mixed, then conjugate gradients solve for the surface pressure.
 *
 *     mpirun halo2d [--nx N] [--ny N] [--levels N] [--steps N] [--tolerance T] [--bcasts N]
 *                   [--barriers N]
 *
 * nx x ny points a rank. Baroclinic part: `levels` tracers, explicit diffusion, one halo of all
 * levels. Barotropic part: -Laplace(u) = f with values 0 at the edge, five points, two reductions
 * of 8 bytes an iteration. Each step has bcasts of 64 bytes (its forcing) and barriers.
 * Timed: all steps. Verified: the exact solution, a cubic in x and y, which five points reproduce;
 * the tracers' sums, which diffusion conserves. Exit status: 0 verified, 1 not verified, 2 usage.
 */
#include "ranks.h"

enum { WEST, EAST, SOUTH, NORTH, SIDES, FORCING = 8 };

struct sea {
    struct nb_grid grid;
    long nx, ny, row, level; /* points of this rank; distances in memory */
    int levels, neighbours[SIDES];
    double cx, cy; /* weights of the neighbours */
    double *x, *b, *r, *p, *q, *tracer, *mixed, *buffers[2 * SIDES];
};

static double *new_field(const struct sea *s, int levels)
{
    return nb_new((size_t)(s->level * levels), sizeof(double));
}

static double *at(const struct sea *s, double *field, long i, long j)
{
    return field + i * s->row + j;
}

/* The points of a side of one level: the first, how many, how far from one to the next; `inside`
 * those to be sent, else the halo. */
static double *side(const struct sea *s, double *field, int which, int inside, long *count,
                    long *stride)
{
    int along_y = which == WEST || which == EAST;
    *count = along_y ? s->ny : s->nx;
    *stride = along_y ? 1 : s->row;
    if (along_y)
        return at(s, field, which == WEST ? !!inside : s->nx + 1 - !!inside, 1);
    return at(s, field, 1, which == SOUTH ? !!inside : s->ny + 1 - !!inside);
}

static void copy_side(const struct sea *s, double *field, int levels, int which, int pack)
{
    double *buffer = s->buffers[pack ? which : SIDES + which];
    long count, stride;
    for (int l = 0; l < levels; l++) {
        double *points = side(s, field + l * s->level, which, pack, &count, &stride);
        for (long i = 0; i < count; i++, buffer++, points += stride)
            if (pack)
                *buffer = *points;
            else
                *points = *buffer;
    }
}

/* Fills the halo of all levels of a field by its neighbours' outermost points. */
static void exchange(struct sea *s, double *field, int levels)
{
    MPI_Request requests[2 * SIDES];
    for (int which = 0; which < SIDES; which++) {
        int count = (int)(levels * (which < SOUTH ? s->ny : s->nx));
        MPI_Irecv(s->buffers[SIDES + which], count, MPI_DOUBLE, s->neighbours[which], which ^ 1,
                  MPI_COMM_WORLD, &requests[which]);
    }
    for (int which = 0; which < SIDES; which++) {
        int count = (int)(levels * (which < SOUTH ? s->ny : s->nx));
        copy_side(s, field, levels, which, 1);
        MPI_Isend(s->buffers[which], count, MPI_DOUBLE, s->neighbours[which], which, MPI_COMM_WORLD,
                  &requests[SIDES + which]);
    }
    MPI_Waitall(2 * SIDES, requests, MPI_STATUSES_IGNORE);
    for (int which = 0; which < SIDES; which++)
        if (s->neighbours[which] != MPI_PROC_NULL)
            copy_side(s, field, levels, which, 0);
}

/* Coasts: what is outside of the sea is as the point beside it, so nothing flows. */
static void mirror(struct sea *s, double *field)
{
    for (int which = 0; which < SIDES; which++) {
        long count, stride;
        double *halo = side(s, field, which, 0, &count, &stride);
        double *beside = side(s, field, which, 1, &count, &stride);
        for (long i = 0; s->neighbours[which] == MPI_PROC_NULL && i < count; i++)
            halo[i * stride] = beside[i * stride];
    }
}

static void mix_tracers(struct sea *s)
{
    exchange(s, s->tracer, s->levels);
    for (int l = 0; l < s->levels; l++) {
        double *old = s->tracer + l * s->level, *mixed = s->mixed + l * s->level;
        mirror(s, old);
        for (long i = 1; i <= s->nx; i++) {
            const double *here = at(s, old, i, 0), *west = here - s->row, *east = here + s->row;
            double *there = at(s, mixed, i, 0);
            for (long j = 1; j <= s->ny; j++)
                there[j] = here[j] +
                           0.2 * (west[j] + east[j] + here[j - 1] + here[j + 1] - 4 * here[j]);
        }
    }
    double *swapped = s->tracer;
    s->tracer = s->mixed, s->mixed = swapped;
}

static double tracer_sum(struct sea *s)
{
    double sum = 0;
    for (int l = 0; l < s->levels; l++)
        for (long i = 1; i <= s->nx; i++)
            for (long j = 1; j <= s->ny; j++)
                sum += *at(s, s->tracer + l * s->level, i, j);
    return nb_sum(sum);
}

/* product = A vector; the scalar product of the two. */
static double multiply(struct sea *s, double *vector, double *product)
{
    double dot = 0;
    exchange(s, vector, 1);
    for (long i = 1; i <= s->nx; i++) {
        const double *here = at(s, vector, i, 0), *west = here - s->row, *east = here + s->row;
        double *there = at(s, product, i, 0);
        for (long j = 1; j <= s->ny; j++) {
            there[j] = here[j] - s->cx * (west[j] + east[j]) - s->cy * (here[j - 1] + here[j + 1]);
            dot += here[j] * there[j];
        }
    }
    return nb_sum(dot);
}

/* result = left + factor * right; the sum of its squares on this rank. */
static double add_scaled(struct sea *s, double *result, double *left, double factor, double *right)
{
    double sum = 0;
    for (long i = 1; i <= s->nx; i++) {
        double *to = at(s, result, i, 0);
        const double *from = at(s, left, i, 0), *added = at(s, right, i, 0);
        for (long j = 1; j <= s->ny; j++) {
            to[j] = from[j] + factor * added[j];
            sum += to[j] * to[j];
        }
    }
    return sum;
}

/* Conjugate gradients (Hestenes & Stiefel 1952) for A x = scale b, from the x at hand; the number
 * of iterations. */
static long solve(struct sea *s, double scale, double norm_b, double tolerance, long most)
{
    long iterations = 0;
    multiply(s, s->x, s->q);
    add_scaled(s, s->r, s->q, -scale, s->b); /* the negative residual */
    double square = nb_sum(add_scaled(s, s->r, s->r, -2, s->r));
    add_scaled(s, s->p, s->r, 0, s->r);
    while (iterations < most && sqrt(square) > tolerance * scale * norm_b) {
        double step = square / multiply(s, s->p, s->q);
        add_scaled(s, s->x, s->x, step, s->p);
        double next = nb_sum(add_scaled(s, s->r, s->r, -step, s->q));
        add_scaled(s, s->p, s->r, next / square, s->p);
        square = next;
        iterations++;
    }
    return iterations;
}

/* x - x^3 and 2 y - 3 y^2 + y^3 are 0 at 0 and 1; second differences of cubics are exact. */
static void set_up(struct sea *s, double *exact)
{
    double hx = 1. / (double)(s->nx * s->grid.shape[0] + 1);
    double hy = 1. / (double)(s->ny * s->grid.shape[1] + 1);
    double scale = 1 / (2 / (hx * hx) + 2 / (hy * hy));
    s->cx = scale / (hx * hx), s->cy = scale / (hy * hy);
    for (long i = 1; i <= s->nx; i++)
        for (long j = 1; j <= s->ny; j++) {
            double x = hx * (double)(s->grid.at[0] * s->nx + i);
            double y = hy * (double)(s->grid.at[1] * s->ny + j);
            double in_x = x - x * x * x, in_y = y * (2 + y * (y - 3));
            *at(s, exact, i, j) = in_x * in_y;
            *at(s, s->b, i, j) = scale * (6 * x * in_y + in_x * (6 - 6 * y));
            for (int l = 0; l < s->levels; l++)
                *at(s, s->tracer + l * s->level, i, j) = 1 + x * (l + 1) + y * y;
        }
}

static void new_sea(struct sea *s, const struct nb_ranks *all, const struct nb_option *options)
{
    s->grid = nb_grid_of(all, 2);
    s->nx = (long)options[0].value, s->ny = (long)options[1].value;
    s->levels = (int)options[2].value;
    s->row = s->ny + 2, s->level = (s->nx + 2) * s->row;
    double **fields[] = {&s->x, &s->b, &s->r, &s->p, &s->q};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        *fields[i] = new_field(s, 1);
    s->tracer = new_field(s, s->levels), s->mixed = new_field(s, s->levels);
    for (int which = 0; which < SIDES; which++)
        s->neighbours[which] = nb_neighbour(&s->grid, which / 2, which % 2 ? 1 : -1, 0);
    for (int which = 0; which < 2 * SIDES; which++)
        s->buffers[which] = nb_new((size_t)((s->nx + s->ny) * s->levels), sizeof(double));
}

/* One step; its number of iterations. `forcing` comes from rank 0. */
static long step(struct sea *s, double *forcing, const struct nb_option *options, double norm_b)
{
    for (int i = 0; i < (int)options[5].value; i++)
        MPI_Bcast(forcing, FORCING, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    mix_tracers(s);
    long iterations = solve(s, forcing[0], norm_b, options[4].value,
                            20 * (s->nx + s->ny) * (s->grid.shape[0] + s->grid.shape[1]));
    for (int i = 0; i < (int)options[6].value; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    return iterations;
}

int main(int count, char **words)
{
    struct nb_option options[] = {
        {.name = "nx", .low = 2, .high = 10000, .value = 256},
        {.name = "ny", .low = 2, .high = 10000, .value = 256},
        {.name = "levels", .low = 1, .high = 1000, .value = 20},
        {.name = "steps", .low = 1, .high = 100000, .value = 4},
        {.name = "tolerance", .low = 1e-13, .high = 1e-6, .value = 1e-10, .fraction = 1},
        {.name = "bcasts", .low = 1, .high = 1000, .value = 1},
        {.name = "barriers", .low = 0, .high = 1000, .value = 1},
        {0}
    };
    struct nb_ranks all;
    struct sea s = {0};
    double forcing[FORCING] = {1};
    if (nb_ranks_init(&all, count, words, options))
        return 2;
    new_sea(&s, &all, options);
    double *exact = new_field(&s, 1);
    set_up(&s, exact);
    double before = tracer_sum(&s), norm_b = sqrt(nb_sum(add_scaled(&s, s.r, s.b, 0, s.b)));
    long iterations = 0, steps = (long)options[3].value;
    nb_ranks_begin(&all);
    for (long i = 0; i < steps; i++) {
        forcing[0] = all.rank == 0 ? 1 + 0.1 * (double)i : NAN;
        iterations += step(&s, forcing, options, norm_b);
    }
    nb_ranks_end(&all);
    double drift = fabs(tracer_sum(&s) / before - 1), scale = 1 + 0.1 * (double)(steps - 1);
    double size = nb_sum(add_scaled(&s, s.q, exact, 0, exact));
    double error = sqrt(nb_sum(add_scaled(&s, s.q, s.x, -scale, exact)) / size) / scale;
    char text[200];
    snprintf(text, sizeof text,
             "grid=%dx%d nx=%ld ny=%ld levels=%d steps=%ld iterations=%ld "
             "error=%.3e drift=%.3e",
             s.grid.shape[0], s.grid.shape[1], s.nx, s.ny, s.levels, steps, iterations, error,
             drift);
    return nb_ranks_finish(
        &all, "halo2d", nb_within(error, 1e4 * options[4].value) && nb_within(drift, 1e-10), text);
}
