/* sweep: wavefronts from all corners over a two-dimensional grid of ranks, as a transport code
 * makes them (Sweep3D): discrete ordinates, blocking messages, a reduction an iteration.
 *
 *     mpirun sweep [--nx N] [--ny N] [--nz N] [--planes N] [--angles N] [--iterations N]
 *                  [--bcasts N] [--barriers N]
 *
 * nx x ny x nz cells a rank, `angles` directions in each of eight octants; `planes` planes of z are
 * a block: receive two faces, compute, send two faces. By default a face towards the next column
 * of ranks has 36,000 bytes, as in the sample trace of the reference simulator, and there are 32
 * reductions of 8 bytes, 4 broadcasts and 3 barriers (Hoefler et al. 2010). The rest is our choice.
 * Timed: all iterations. Verified: the flux of each cell after the last iteration and its sum after
 * each, by the closed form of the recurrence. Exit status: 0 verified, 1 not verified, 2 usage.
 */
#include "ranks.h"

enum { X, Y, Z, AXES, OCTANTS = 8 };

struct space {
    struct nb_grid grid;
    long n[AXES], planes; /* cells of this rank along an axis */
    int angles;
    double *weight[AXES];      /* of each angle, over what a cell removes */
    double *power[AXES];       /* decay of an angle over so many cells: [cells][angle] */
    double *flux, *face[AXES]; /* faces: what flows into the next cell */
};

/* Whether an octant's sweep goes from low to high along an axis. */
static int goes_up(int octant, int axis)
{
    return !(octant >> axis & 1);
}

/* How many cells of all ranks the sweep has passed when it enters this rank's first one. */
static long passed(const struct space *s, int octant, int axis)
{
    long place = axis == Z ? 0 : s->grid.at[axis], ranks = axis == Z ? 1 : s->grid.shape[axis];
    return s->n[axis] * (goes_up(octant, axis) ? place : ranks - 1 - place);
}

/* The exact flux of an angle in the cell that is i, j, k cells behind the corner of an octant; the
 * faces of the domain are at 0. */
static double exact(const struct space *s, int a, long i, long j, long k)
{
    return s->power[X][i * s->angles + a] * s->power[Y][j * s->angles + a] *
           s->power[Z][k * s->angles + a];
}

/* Decays are chosen, and what a cell removes follows: then the recurrence has the closed form
 * above. They differ by axis and angle, so that nothing can be mistaken for anything else. */
static void choose_angles(struct space *s)
{
    double *removal = nb_new((size_t)s->angles, sizeof *removal);
    for (int axis = 0; axis < AXES; axis++) {
        long cells = s->n[axis] * (axis == Z ? 1 : s->grid.shape[axis]);
        s->weight[axis] = nb_new((size_t)s->angles, sizeof(double));
        s->power[axis] = nb_new((size_t)((cells + 1) * s->angles), sizeof(double));
        for (int a = 0; a < s->angles; a++) {
            double decay = 1 - (0.5 + 0.1 * axis + 0.03 * a) / (double)(cells + 1);
            s->weight[axis][a] = 0.3 + 0.1 * ((a + axis) % 5);
            removal[a] += s->weight[axis][a] / decay;
            for (long i = 0; i <= cells; i++)
                s->power[axis][i * s->angles + a] = pow(decay, (double)i);
        }
    }
    for (int axis = 0; axis < AXES; axis++)
        for (int a = 0; a < s->angles; a++)
            s->weight[axis][a] /= removal[a];
    free(removal);
}

/* A face of the domain: `axis` X or Y, for the planes from k on. */
static void fill_inflow(const struct space *s, int octant, int axis, long first, double scale)
{
    double *value = s->face[axis];
    int other = axis == X ? Y : X;
    for (long k = first; k < first + s->planes; k++)
        for (long j = 0; j < s->n[other]; j++)
            for (int a = 0; a < s->angles; a++) {
                long along = passed(s, octant, other) + j + 1;
                *value++ = scale * exact(s, a, axis == X ? 0 : along, axis == Y ? 0 : along, k + 1);
            }
}

static void fill_bottom(const struct space *s, int octant, double scale)
{
    double *value = s->face[Z];
    for (long i = 0; i < s->n[X]; i++)
        for (long j = 0; j < s->n[Y]; j++)
            for (int a = 0; a < s->angles; a++)
                *value++ = scale * exact(s, a, passed(s, octant, X) + i + 1,
                                         passed(s, octant, Y) + j + 1, 0);
}

/* Counted in the direction of the sweep ─► counted from 0 in memory. */
static long place(const struct space *s, int octant, int axis, long i)
{
    return goes_up(octant, axis) ? i : s->n[axis] - 1 - i;
}

/* One cell: each angle's flux follows from the three that flow in, and flows out in their place. */
static double cell(const struct space *s, double *restrict x, double *restrict y,
                   double *restrict z)
{
    double sum = 0;
    for (int a = 0; a < s->angles; a++) {
        double value = s->weight[X][a] * x[a] + s->weight[Y][a] * y[a] + s->weight[Z][a] * z[a];
        x[a] = y[a] = z[a] = value;
        sum += value;
    }
    return sum;
}

static void compute(const struct space *s, int octant, long first)
{
    for (long k = 0; k < s->planes; k++)
        for (long i = 0; i < s->n[X]; i++)
            for (long j = 0; j < s->n[Y]; j++) {
                long plane = place(s, octant, Z, first + k) * s->n[X];
                long row = (plane + place(s, octant, X, i)) * s->n[Y];
                s->flux[row + place(s, octant, Y, j)] += cell(
                    s, s->face[X] + (k * s->n[Y] + j) * s->angles,
                    s->face[Y] + (k * s->n[X] + i) * s->angles,
                    s->face[Z] + (i * s->n[Y] + j) * s->angles);
            }
}

static void sweep(const struct space *s, int octant, double scale)
{
    int from[2], to[2], count[2];
    for (int axis = X; axis <= Y; axis++) {
        int step = goes_up(octant, axis) ? 1 : -1;
        from[axis] = nb_neighbour(&s->grid, axis, -step, 0);
        to[axis] = nb_neighbour(&s->grid, axis, step, 0);
        count[axis] = (int)(s->planes * s->n[axis == X ? Y : X] * s->angles);
    }
    fill_bottom(s, octant, scale);
    for (long first = 0; first < s->n[Z]; first += s->planes) {
        for (int axis = X; axis <= Y; axis++) {
            MPI_Recv(s->face[axis], count[axis], MPI_DOUBLE, from[axis], axis, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            if (from[axis] == MPI_PROC_NULL)
                fill_inflow(s, octant, axis, first, scale);
        }
        compute(s, octant, first);
        for (int axis = X; axis <= Y; axis++)
            MPI_Send(s->face[axis], count[axis], MPI_DOUBLE, to[axis], axis, MPI_COMM_WORLD);
    }
}

static long cells_of(const struct space *s)
{
    return s->n[X] * s->n[Y] * s->n[Z];
}

/* One iteration; the sum of the flux over all cells of all ranks. */
static double iterate(const struct space *s, double scale)
{
    double sum = 0;
    memset(s->flux, 0, (size_t)cells_of(s) * sizeof *s->flux);
    for (int octant = 0; octant < OCTANTS; octant++)
        sweep(s, octant, scale);
    for (long i = 0; i < cells_of(s); i++)
        sum += s->flux[i];
    return nb_sum(sum);
}

/* The exact flux of all angles and octants in every cell. */
static void exact_flux(const struct space *s, double *flux)
{
    for (int octant = 0; octant < OCTANTS; octant++)
        for (long k = 0; k < s->n[Z]; k++)
            for (long i = 0; i < s->n[X]; i++)
                for (long j = 0; j < s->n[Y]; j++) {
                    long row = (place(s, octant, Z, k) * s->n[X] + place(s, octant, X, i)) *
                               s->n[Y];
                    for (int a = 0; a < s->angles; a++)
                        flux[row + place(s, octant, Y, j)] += exact(
                            s, a, passed(s, octant, X) + i + 1, passed(s, octant, Y) + j + 1,
                            k + 1);
                }
}

/* The greatest relative difference from the exact flux. */
static double difference(const struct space *s, const double *flux, double scale)
{
    double worst = 0;
    for (long i = 0; i < cells_of(s); i++) {
        double error = fabs(s->flux[i] / (scale * flux[i]) - 1);
        worst = nb_within(error, 1e300) ? fmax(worst, error) : 1e300;
    }
    return nb_greatest(worst);
}

static void new_space(struct space *s, const struct nb_ranks *all, const struct nb_option *options)
{
    s->grid = nb_grid_of(all, 2);
    for (int axis = 0; axis < AXES; axis++)
        s->n[axis] = (long)options[axis].value;
    s->planes = (long)fmin(options[3].value, options[2].value);
    s->n[Z] -= s->n[Z] % s->planes;
    s->angles = (int)options[4].value;
    s->flux = nb_new((size_t)cells_of(s), sizeof(double));
    s->face[X] = nb_new((size_t)(s->planes * s->n[Y] * s->angles), sizeof(double));
    s->face[Y] = nb_new((size_t)(s->planes * s->n[X] * s->angles), sizeof(double));
    s->face[Z] = nb_new((size_t)(s->n[X] * s->n[Y] * s->angles), sizeof(double));
    choose_angles(s);
}

int main(int count, char **words)
{
    struct nb_option options[] = {
        {.name = "nx", .low = 1, .high = 10000, .value = 50},
        {.name = "ny", .low = 1, .high = 10000, .value = 50},
        {.name = "nz", .low = 1, .high = 10000, .value = 150},
        {.name = "planes", .low = 1, .high = 10000, .value = 15},
        {.name = "angles", .low = 1, .high = 1000, .value = 6},
        {.name = "iterations", .low = 1, .high = 100000, .value = 32},
        {.name = "bcasts", .low = 1, .high = 100000, .value = 4},
        {.name = "barriers", .low = 0, .high = 100000, .value = 3},
        {0}
    };
    struct nb_ranks all;
    struct space s = {0};
    if (nb_ranks_init(&all, count, words, options))
        return 2;
    new_space(&s, &all, options);
    double *flux = nb_new((size_t)cells_of(&s), sizeof *flux), drift = 0, sum = 0, scale = 1;
    exact_flux(&s, flux);
    for (long i = 0; i < cells_of(&s); i++)
        sum += flux[i];
    sum = nb_sum(sum);
    double control[8] = {all.rank == 0 ? 0.01 : 0};
    nb_ranks_begin(&all);
    for (int i = 0; i < (int)options[6].value; i++)
        MPI_Bcast(control, 8, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < (int)options[5].value; i++) {
        scale = 1 + control[0] * i;
        drift = fmax(drift, fabs(iterate(&s, scale) / (scale * sum) - 1));
    }
    for (int i = 0; i < (int)options[7].value; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    nb_ranks_end(&all);
    double error = difference(&s, flux, scale);
    char text[200];
    snprintf(text, sizeof text,
             "grid=%dx%d nx=%ld ny=%ld nz=%ld planes=%ld angles=%d iterations=%d error=%.3e "
             "drift=%.3e",
             s.grid.shape[0], s.grid.shape[1], s.n[X], s.n[Y], s.n[Z], s.planes, s.angles,
             (int)options[5].value, error, drift);
    return nb_ranks_finish(&all, "sweep", nb_within(error, 1e-9) && nb_within(drift, 1e-9), text);
}
