/* minife: a small finite-element application, OpenMP: assembly of -Laplace(u) = f with hexahedra,
 * then conjugate gradients (after Mantevo's miniFE).
 *
 *     minife [--nx N] [--ny N] [--nz N] [--iterations MOST] [--tolerance T]
 *     threads: OMP_NUM_THREADS
 *
 * Unit cube, nx ny nz trilinear elements, 2x2x2 Gauss points, values fixed on all faces, CSR.
 * Elements are assembled in eight colours, and sums are taken in blocks of fixed length, so any
 * number of threads does the same arithmetic and the same number of iterations. The exact solution
 * is a quadratic one that such elements reproduce at the nodes. Timed: assembly and solution.
 * Compiled without -ffast-math, as miniFE is. Verified: convergence, the true residual, the
 * distance from the exact solution, and that the first directions of the search are conjugate. Exit
 * status: 0 verified, 1 not verified or no memory, 2 usage.
 */
#include <omp.h>

#include "noisebook.h"

#include "compiler.h"
#include "options.h"
#include "series.h"

#include "element.h"
#include "minife.h"

enum { NEIGHBOURS = 27, BLOCK = 4096 };

struct mesh {
    long nx, ny, nz, rows, nonzeros; /* a node a row */
};

struct system {
    struct mesh mesh;
    int64_t *begin; /* of each row, rows + 1 */
    int32_t *column;
    double *value, *b, *x, *r, *p, *q, *partial;
};

static double exact_at(const struct mesh *m, long row)
{
    long i = row % (m->nx + 1), rest = row / (m->nx + 1), j = rest % (m->ny + 1),
         k = rest / (m->ny + 1);
    return exact((double)i / (double)m->nx, (double)j / (double)m->ny, (double)k / (double)m->nz);
}

static int on_face(const struct mesh *m, long row)
{
    long i = row % (m->nx + 1), rest = row / (m->nx + 1), j = rest % (m->ny + 1),
         k = rest / (m->ny + 1);
    return i == 0 || i == m->nx || j == 0 || j == m->ny || k == 0 || k == m->nz;
}

static long row_length(const struct mesh *m, long row)
{
    long i = row % (m->nx + 1), rest = row / (m->nx + 1), j = rest % (m->ny + 1),
         k = rest / (m->ny + 1);
    return neighbours(i, m->nx) * neighbours(j, m->ny) * neighbours(k, m->nz);
}

/* The pattern of a row, its value 0; columns ascend. */
static void lay_row(struct system *s, long row)
{
    const struct mesh *m = &s->mesh;
    long i = row % (m->nx + 1), rest = row / (m->nx + 1), j = rest % (m->ny + 1),
         k = rest / (m->ny + 1);
    int64_t at = s->begin[row];
    for (long kk = k - (k > 0); kk <= k + (k < m->nz); kk++)
        for (long jj = j - (j > 0); jj <= j + (j < m->ny); jj++)
            for (long ii = i - (i > 0); ii <= i + (i < m->nx); ii++) {
                s->column[at] = (int32_t)(ii + (m->nx + 1) * (jj + (m->ny + 1) * kk));
                s->value[at++] = 0;
            }
}

static void lay_out(struct system *s)
{
    s->begin[0] = 0;
    for (long row = 0; row < s->mesh.rows; row++)
        s->begin[row + 1] = s->begin[row] + row_length(&s->mesh, row);
#pragma omp parallel for schedule(static)
    for (long row = 0; row < s->mesh.rows; row++) {
        lay_row(s, row);
        s->b[row] = s->x[row] = s->r[row] = s->p[row] = s->q[row] = 0;
    }
}

static int64_t find(const struct system *s, long row, long column)
{
    int64_t low = s->begin[row], high = s->begin[row + 1] - 1;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (s->column[middle] < column)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_element(struct system *s, long i, long j, long k)
{
    const struct mesh *m = &s->mesh;
    const double point = 0.57735026918962576; /* 1 / sqrt(3) */
    double nodes[CORNERS][3], stiffness[CORNERS][CORNERS] = {{0}}, load[CORNERS] = {0};
    long rows[CORNERS];
    for (int c = 0; c < CORNERS; c++) {
        long ci = i + (c & 1), cj = j + (c >> 1 & 1), ck = k + (c >> 2);
        rows[c] = ci + (m->nx + 1) * (cj + (m->ny + 1) * ck);
        nodes[c][0] = (double)ci / (double)m->nx;
        nodes[c][1] = (double)cj / (double)m->ny;
        nodes[c][2] = (double)ck / (double)m->nz;
    }
    for (int g = 0; g < 8; g++) {
        const double at[3] = {point * side(g, 0), point * side(g, 1), point * side(g, 2)};
        add_point((const double (*)[3])nodes, at, stiffness, load);
    }
    for (int row = 0; row < CORNERS; row++) {
        s->b[rows[row]] += load[row];
        for (int column = 0; column < CORNERS; column++)
            s->value[find(s, rows[row], rows[column])] += stiffness[row][column];
    }
}

/* Elements of one colour share no node: no two threads write to the same entry. */
static void add_colour(struct system *s, int colour)
{
    const struct mesh *m = &s->mesh;
    long ni = (m->nx + 1 - (colour & 1)) / 2, nj = (m->ny + 1 - (colour >> 1 & 1)) / 2,
         nk = (m->nz + 1 - (colour >> 2)) / 2;
#pragma omp parallel for collapse(2) schedule(static)
    for (long k = 0; k < nk; k++)
        for (long j = 0; j < nj; j++)
            for (long i = 0; i < ni; i++)
                add_element(s, 2 * i + (colour & 1), 2 * j + (colour >> 1 & 1),
                            2 * k + (colour >> 2));
}

/* Given values: their rows become the identity, their columns move to the right-hand side; the
 * matrix stays symmetric. */
static void constrain(struct system *s)
{
    const struct mesh *m = &s->mesh;
#pragma omp parallel for schedule(static)
    for (long row = 0; row < m->rows; row++) {
        int fixed = on_face(m, row);
        s->b[row] = fixed ? exact_at(m, row) : s->b[row];
        for (int64_t at = s->begin[row]; at < s->begin[row + 1]; at++) {
            long column = s->column[at];
            if (!fixed && !on_face(m, column))
                continue;
            if (!fixed)
                s->b[row] -= s->value[at] * exact_at(m, column);
            s->value[at] = fixed && column == row;
        }
    }
}

static void assemble(struct system *s)
{
    lay_out(s);
    for (int colour = 0; colour < 8; colour++)
        add_colour(s, colour);
    constrain(s);
}

/* Not inlined: the order of a block's sum must not depend on what surrounds it. */
__attribute__((noinline)) static double block_dot(const double *restrict left,
                                                  const double *restrict right, long from, long to)
{
    double sum = 0;
    for (long i = from; i < to; i++)
        sum += left[i] * right[i];
    return sum;
}

static double dot(const struct system *s, const double *left, const double *right)
{
    long rows = s->mesh.rows, blocks = (rows + BLOCK - 1) / BLOCK;
    double sum = 0;
#pragma omp parallel for schedule(static)
    for (long block = 0; block < blocks; block++)
        s->partial[block] = block_dot(left, right, block * BLOCK,
                                      (block + 1) * BLOCK < rows ? (block + 1) * BLOCK : rows);
    for (long block = 0; block < blocks; block++)
        sum += s->partial[block];
    return sum;
}

static void multiply(const struct system *s, const double *vector, double *product)
{
    const int64_t *begin = s->begin;
    const int32_t *column = s->column;
    const double *value = s->value;
#pragma omp parallel for schedule(static)
    for (long row = 0; row < s->mesh.rows; row++) {
        double sum = 0;
        for (int64_t at = begin[row]; at < begin[row + 1]; at++)
            sum += value[at] * vector[column[at]];
        product[row] = sum;
    }
}

/* result = left + factor * right */
static void add_scaled(long rows, double *result, const double *left, double factor,
                       const double *right)
{
#pragma omp parallel for schedule(static)
    for (long row = 0; row < rows; row++)
        result[row] = left[row] + factor * right[row];
}

/* Conjugate gradients (Hestenes & Stiefel 1952) from x = 0; the time of each iteration goes to
 * times. */
static struct solution solve(struct system *s, long most, double tolerance, double *times)
{
    long rows = s->mesh.rows;
    add_scaled(rows, s->r, s->b, 0, s->x);
    add_scaled(rows, s->p, s->b, 0, s->x);
    double square = dot(s, s->r, s->r), norm_b = sqrt(square);
    struct solution found = {.norm_b = norm_b, .residual = 1};
    while (found.iterations < most && found.residual > tolerance) {
        int64_t before_ns = nb_now_ns();
        multiply(s, s->p, s->q);
        double step = square / dot(s, s->p, s->q);
        add_scaled(rows, s->x, s->x, step, s->p);
        add_scaled(rows, s->r, s->r, -step, s->q);
        double next = dot(s, s->r, s->r);
        add_scaled(rows, s->p, s->r, next / square, s->p);
        square = next;
        found.residual = sqrt(square) / norm_b;
        times[found.iterations++] = (double)(nb_now_ns() - before_ns) * 1e-9;
    }
    return found;
}

/* Whether a first step is an exact one: the cosine of the second direction and the first one's
 * product with the matrix. Forgets the solution. */
static double first_cosine(struct system *s)
{
    double scratch[1];
    memset(s->x, 0, (size_t)s->mesh.rows * sizeof *s->x);
    solve(s, 1, 0, scratch);
    double along = dot(s, s->p, s->q);
    return fabs(along) / sqrt(dot(s, s->p, s->p) * dot(s, s->q, s->q));
}

/* No number anywhere: what is not assembled anew is seen. */
static void poison(struct system *s)
{
    memset(s->value, 0xff, (size_t)s->mesh.nonzeros * sizeof *s->value);
    for (long row = 0; row < s->mesh.rows; row++)
        s->b[row] = s->x[row] = s->r[row] = s->p[row] = s->q[row] = NAN;
}

/* |b - A x| / |b| */
static double true_residual(struct system *s, double norm_b)
{
    multiply(s, s->x, s->q);
    add_scaled(s->mesh.rows, s->r, s->b, -1, s->q);
    return sqrt(dot(s, s->r, s->r)) / norm_b;
}

/* The greatest distance from the exact solution, relative to its greatest value; 1e300 where a
 * value is not a number. */
static double distance(const struct system *s)
{
    double worst = 0, largest = 0;
    for (long row = 0; row < s->mesh.rows; row++) {
        double expected = exact_at(&s->mesh, row), difference = fabs(s->x[row] - expected);
        worst = !nb_within(difference, 1e300) ? 1e300 : fmax(worst, difference);
        largest = fmax(largest, fabs(expected));
    }
    return worst / largest;
}

static int allocate(struct system *s)
{
    struct mesh *m = &s->mesh;
    double **vectors[] = {&s->b, &s->x, &s->r, &s->p, &s->q, &s->partial};
    size_t length = ((size_t)m->rows + 7) / 8 * 8, count = sizeof vectors / sizeof *vectors;
    m->nonzeros = (3 * m->nx + 1) * (3 * m->ny + 1) * (3 * m->nz + 1);
    double *block = aligned_alloc(64, count * length * sizeof *block);
    for (size_t i = 0; block && i < count; i++)
        *vectors[i] = block + i * length;
    s->begin = malloc(((size_t)m->rows + 1) * sizeof *s->begin);
    s->column = malloc((size_t)m->nonzeros * sizeof *s->column);
    s->value = malloc((size_t)m->nonzeros * sizeof *s->value);
    return block && s->begin && s->column && s->value ? 0 : -ENOMEM;
}

static int report(struct system *s, const struct nb_region *region, struct solution found,
                  const double *times, double tolerance, int64_t assembled_ns)
{
    const struct mesh *m = &s->mesh;
    double residual = true_residual(s, found.norm_b), error = distance(s),
           norm = sqrt(block_dot(s->value, s->value, 0, m->nonzeros));
    found.cosine = first_cosine(s);
    nb_series_print("iteration", "s", times, found.iterations);
    int verified = is_solved(&found, residual, error, tolerance);
    nb_region_print(
        region, "minife",
        "threads=%d nx=%ld ny=%ld nz=%ld rows=%ld nonzeros=%ld iterations=%ld assembly_s=%.9f "
        "cg_s=%.9f "
        "compiler=%s residual=%.3e error=%.3e matrix_norm=%.15g series_values=%ld verified=%s",
        omp_get_max_threads(), m->nx, m->ny, m->nz, m->rows, m->nonzeros, found.iterations,
        (double)(assembled_ns - region->start_ns) * 1e-9,
        (double)(region->end_ns - assembled_ns) * 1e-9, NB_COMPILER, residual, error, norm,
        nb_series_total(), verified ? "yes" : "no");
    return verified ? 0 : 1;
}

static struct mesh mesh_of(const struct nb_option *options)
{
    long nx = (long)options[0].value, ny = (long)options[1].value, nz = (long)options[2].value;
    struct mesh m = {.nx = nx, .ny = ny ? ny : nx, .nz = nz ? nz : nx};
    m.rows = (m.nx + 1) * (m.ny + 1) * (m.nz + 1);
    return m;
}

int main(int count, char **words)
{
    struct nb_option options[] = {
        {.name = "nx", .low = 2, .high = 400, .value = 40},
        {.name = "ny", .low = 2, .high = 400},
        {.name = "nz", .low = 2, .high = 400},
        {.name = "iterations", .low = 1, .high = 100000, .value = 2000},
        {.name = "tolerance", .low = 1e-14, .high = 1e-6, .value = 1e-10, .fraction = 1},
        {0}
    };
    struct nb_region region;
    if (nb_parse_options(count, words, options))
        return 2;
    struct system s = {.mesh = mesh_of(options)};
    long most = (long)options[3].value;
    double *times = calloc((size_t)most, sizeof *times);
    if (allocate(&s) || !times) {
        fprintf(stderr, "minife: no memory for %ld x %ld x %ld elements\n", s.mesh.nx, s.mesh.ny,
                s.mesh.nz);
        return 1;
    }
    assemble(&s); /* touches all memory in the threads that work on it, and warms up */
    poison(&s);
    nb_region_begin(&region);
    assemble(&s);
    int64_t assembled_ns = nb_now_ns();
    struct solution found = solve(&s, most, options[4].value, times);
    nb_region_end(&region);
    int status = report(&s, &region, found, times, options[4].value, assembled_ns);
    free(s.b), free(s.begin), free(s.column), free(s.value), free(times);
    return status;
}
