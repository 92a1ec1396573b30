/* amg: conjugate gradients with an algebraic multigrid cycle, after AMG2006: coarse levels are made
 * from the matrix alone, by aggregation; small messages and few points on coarse levels.
 *
 *     mpirun amg [--nx N] [--levels N] [--solves N] [--sweeps N] [--tolerance T]
 *
 * -Laplace(u) = f on the unit cube, seven points, nx^3 points a rank, as a sparse matrix. Rows that
 * are strongly coupled become one row of the next level (within a rank); a level's matrix is the
 * sum of its rows' (Galerkin). Smoother: damped Jacobi. Two reductions an iteration.
 * Timed: making the levels, and all solves. Verified: the true residual, and the exact solution, a
 * product of cubics, which seven points reproduce. Exit status: 0 verified, 1 not, 2 usage.
 */
#include "ranks.h"

#include "levels.h"

/* The neighbour of point i, j, k on a side: its column, or -1 beyond the edge of the cube. */
static long column_of(const struct level *l, long n, const long *point, int side, const int *links)
{
    const long strides[3] = {n * n, n, 1};
    int axis = side / 2, step = side % 2 ? 1 : -1;
    long row = point[0] * n * n + point[1] * n + point[2], next = point[axis] + step;
    if (next >= 0 && next < n)
        return row + step * strides[axis];
    if (links[side] < 0)
        return -1;
    long u = point[axis == 0 ? 1 : 0], v = point[axis == 2 ? 1 : 2], at = u * n + v;
    l->link[links[side]].rows[at] = row;
    return l->rows + l->link[links[side]].first + at;
}

static void new_links(struct level *l, const struct nb_grid *grid, long n, int *links)
{
    for (int side = 0; side < SIDES; side++) {
        int rank = nb_neighbour(grid, side / 2, side % 2 ? 1 : -1, 0);
        links[side] = rank == MPI_PROC_NULL ? -1 : l->links;
        if (rank == MPI_PROC_NULL)
            continue;
        struct link *link = &l->link[l->links++];
        link->rank = rank, link->first = l->ghosts;
        link->sent = link->received = n * n, l->ghosts += n * n;
        link->rows = nb_new((size_t)(n * n), sizeof *link->rows);
        link->buffer = nb_new((size_t)(n * n), sizeof *link->buffer);
    }
}

/* The matrix of the first level, the right-hand side and the exact solution. Second differences of
 * the cubics, which are 0 at 0 and 1, are exact. */
static void assemble(struct level *l, const struct nb_grid *grid, long n, double *b, double *exact)
{
    int links[SIDES];
    long entries = 0, point[3];
    double weight[3], h[3], most = 0;
    new_links(l, grid, n, links);
    for (int axis = 0; axis < 3; axis++) {
        h[axis] = 1. / (double)(n * grid->shape[axis] + 1);
        most = fmax(most, weight[axis] = 1 / (h[axis] * h[axis]));
    }
    for (l->rows = n * n * n, point[0] = 0; point[0] < n; point[0]++)
        for (point[1] = 0; point[1] < n; point[1]++)
            for (point[2] = 0; point[2] < n; point[2]++) {
                long row = point[0] * n * n + point[1] * n + point[2], column;
                double value[3], second[3];
                for (int axis = 0; axis < 3; axis++) {
                    double x = h[axis] * (double)(grid->at[axis] * n + point[axis] + 1);
                    value[axis] = axis ? x * (1 - x) * (2 - x + axis) : x - x * x * x;
                    second[axis] = axis ? 6 + 2 * axis - 6 * x : 6 * x;
                }
                exact[row] = value[0] * value[1] * value[2];
                b[row] = (second[0] * value[1] * value[2] + value[0] * second[1] * value[2] +
                          value[0] * value[1] * second[2]) /
                         most;
                l->column[entries] = row;
                l->value[entries++] = 2 * (weight[0] + weight[1] + weight[2]) / most;
                for (int side = 0; side < SIDES; side++)
                    if ((column = column_of(l, n, point, side, links)) >= 0) {
                        l->column[entries] = column;
                        l->value[entries++] = -weight[side / 2] / most;
                    }
                l->begin[row + 1] = entries;
            }
}

static double dot(const struct level *l, const double *left, const double *right)
{
    double sum = 0;
    for (long row = 0; row < l->rows; row++)
        sum += left[row] * right[row];
    return sum;
}

struct search {
    double *x, *r, *p, *q;
    long iterations;
};

/* Conjugate gradients from x = 0, with a cycle in place of the inverse. */
static void solve(struct level *levels, int count, const double *b, struct search *s, int sweeps,
                  double tolerance)
{
    struct level *l = levels;
    size_t bytes = (size_t)l->rows * sizeof(double);
    double end = tolerance * sqrt(nb_sum(dot(l, b, b))), sums[2] = {1e300, 0}, before = 0;
    memset(s->x, 0, bytes), memcpy(s->r, b, bytes);
    for (long i = 0; i < 1000; i++, s->iterations++) {
        memcpy(l->b, s->r, bytes);
        cycle(l, count, sweeps);
        double own[] = {dot(l, s->r, s->r), dot(l, s->r, l->x)};
        MPI_Allreduce(own, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (sqrt(sums[0]) <= end)
            return;
        for (long row = 0; row < l->rows; row++)
            s->p[row] = l->x[row] + (i ? sums[1] / before * s->p[row] : 0);
        before = sums[1];
        exchange(l, s->p);
        for (long row = 0; row < l->rows; row++)
            s->q[row] = row_product(l, row, s->p);
        double step = sums[1] / nb_sum(dot(l, s->p, s->q));
        for (long row = 0; row < l->rows; row++)
            s->x[row] += step * s->p[row], s->r[row] -= step * s->q[row];
    }
}

static void new_level(struct level *l, long n)
{
    l->begin = nb_new((size_t)(n * n * n + 1), sizeof *l->begin);
    l->column = nb_new((size_t)(7 * n * n * n), sizeof *l->column);
    l->value = nb_new((size_t)(7 * n * n * n), sizeof *l->value);
}

int main(int count, char **words)
{
    struct nb_option options[] = {
        {.name = "nx", .low = 2, .high = 300, .value = 32},
        {.name = "levels", .low = 1, .high = MOST_LEVELS, .value = MOST_LEVELS},
        {.name = "solves", .low = 1, .high = 100000, .value = 4},
        {.name = "sweeps", .low = 1, .high = 100, .value = 2},
        {.name = "tolerance", .low = 1e-13, .high = 1e-4, .value = 1e-10, .fraction = 1},
        {0}
    };
    struct nb_ranks all;
    static struct level levels[MOST_LEVELS];
    if (nb_ranks_init(&all, count, words, options))
        return 2;
    struct nb_grid grid = nb_grid_of(&all, 3);
    long n = (long)options[0].value;
    size_t room = (size_t)(n * n * (n + SIDES));
    double *vectors[6], tolerance = options[4].value;
    for (int i = 0; i < 6; i++)
        vectors[i] = nb_new(room, sizeof(double));
    double *b = vectors[0], *exact = vectors[1];
    struct search s = {vectors[2], vectors[3], vectors[4], vectors[5], 0};
    new_level(levels, n);
    assemble(levels, &grid, n, b, exact);
    new_vectors(levels);
    nb_ranks_begin(&all);
    int made = coarsen(levels, (int)options[1].value);
    for (int i = 0; i < (int)options[2].value; i++)
        solve(levels, made, b, &s, (int)options[3].value, tolerance);
    nb_ranks_end(&all);
    double norm = sqrt(nb_sum(dot(levels, b, b))), size = sqrt(nb_sum(dot(levels, exact, exact)));
    residual(levels, s.x, b, s.r);
    double left = sqrt(nb_sum(dot(levels, s.r, s.r))) / norm;
    for (long row = 0; row < levels->rows; row++)
        s.q[row] = s.x[row] - exact[row];
    double error = sqrt(nb_sum(dot(levels, s.q, s.q))) / size;
    char text[200];
    snprintf(text, sizeof text,
             "grid=%dx%dx%d nx=%ld levels=%d solves=%d iterations=%ld "
             "residual=%.3e error=%.3e",
             grid.shape[0], grid.shape[1], grid.shape[2], n, made, (int)options[2].value,
             s.iterations, left, error);
    return nb_ranks_finish(
        &all, "amg", nb_within(left, 10 * tolerance) && nb_within(error, 1e4 * tolerance), text);
}
