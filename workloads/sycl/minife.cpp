/* minife: a small finite-element application, SYCL: assembly of -Laplace(u) = f with hexahedra,
 * then conjugate gradients (after Mantevo's miniFE).
 *
 *     minife [--nx N] [--ny N] [--nz N] [--iterations MOST] [--tolerance T]
 *     threads: DPCPP_CPU_NUM_CUS
 *
 * The twin of ../minife.c: the same mesh, equations, colours, checks and output. Assembly and all
 * vector operations run on the device; the host lays out where rows begin and adds up the blocks'
 * sums. Sums have a fixed order, so the answer does not depend on the threads.
 * Exit status: 0 verified, 1 not verified, no memory or no SYCL, 2 usage.
 */
#include "device.hpp"

#include "../compiler.h"
#include "../options.h"
#include "../series.h"

#include "../element.h"
#include "../minife.h"
#include "minife_kernels.h"
#include <numeric>

static const char source[] =
#include "element.inc"
#include "minife_kernels.inc"
    ;
static const char header[] =
#include "kernel.inc"
    ;

static long row_length(const mesh &m, long row)
{
    node n = node_of(m, row);
    return neighbours(n.i, m.nx) * neighbours(n.j, m.ny) * neighbours(n.k, m.nz);
}

static long blocks(const fe_system &s)
{
    return (s.mesh.rows + BLOCK - 1) / BLOCK;
}

static void assemble(nb::device &device, const fe_system &s)
{
    s.begin[0] = 0;
    for (long row = 0; row < s.mesh.rows; row++)
        s.begin[row + 1] = s.begin[row] + row_length(s.mesh, row);
    device.launch<minife_lay_kernel>(blocks(s), 1, s);
    for (int colour = 0; colour < 8; colour++) {
        long lines = in_colour(s.mesh.ny, colour >> 1 & 1) * in_colour(s.mesh.nz, colour >> 2);
        device.launch<minife_add_kernel>(lines, 1, {s, colour});
    }
    device.launch<minife_constrain_kernel>(blocks(s), 1, s);
    device.wait();
}

static double dot(nb::device &device, const fe_system &s, const double *left, const double *right)
{
    device.launch<minife_dot_kernel>(blocks(s), 1, {s, nullptr, left, right, 0});
    device.wait();
    return std::accumulate(s.partial, s.partial + blocks(s), 0.0);
}

static void multiply(nb::device &device, const fe_system &s, const double *vector, double *product)
{
    device.launch<minife_multiply_kernel>(blocks(s), 1, {s, product, vector, nullptr, 0});
}

/* result = left + factor * right */
static void add_scaled(nb::device &device, const fe_system &s, double *result, const double *left,
                       double factor, const double *right)
{
    device.launch<minife_scale_kernel>(blocks(s), 1, {s, result, left, right, factor});
}

/* Conjugate gradients (Hestenes & Stiefel 1952) from x = 0; the time of each iteration goes to
 * times. */
static solution solve(nb::device &device, const fe_system &s, long most, double tolerance,
                      double *times)
{
    add_scaled(device, s, s.r, s.b, 0, s.x);
    add_scaled(device, s, s.p, s.b, 0, s.x);
    double square = dot(device, s, s.r, s.r), norm_b = sqrt(square);
    solution found = {0, norm_b, 1, 0};
    while (found.iterations < most && found.residual > tolerance) {
        int64_t before_ns = nb_now_ns();
        multiply(device, s, s.p, s.q);
        double step = square / dot(device, s, s.p, s.q);
        add_scaled(device, s, s.x, s.x, step, s.p);
        add_scaled(device, s, s.r, s.r, -step, s.q);
        double next = dot(device, s, s.r, s.r);
        add_scaled(device, s, s.p, s.r, next / square, s.p);
        square = next;
        found.residual = sqrt(square) / norm_b;
        times[found.iterations++] = (double)(nb_now_ns() - before_ns) * 1e-9;
    }
    device.wait();
    return found;
}

/* Whether a first step is an exact one: the cosine of the second direction and the first one's
 * product with the matrix. Forgets the solution. */
static double first_cosine(nb::device &device, const fe_system &s)
{
    double scratch[1];
    std::fill(s.x, s.x + s.mesh.rows, 0);
    solve(device, s, 1, 0, scratch);
    double along = dot(device, s, s.p, s.q);
    return fabs(along) / sqrt(dot(device, s, s.p, s.p) * dot(device, s, s.q, s.q));
}

/* No number anywhere: what is not assembled anew is seen. */
static void poison(const fe_system &s)
{
    std::fill(s.value, s.value + s.mesh.nonzeros, NAN);
    for (double *vector : {s.b, s.x, s.r, s.p, s.q})
        std::fill(vector, vector + s.mesh.rows, NAN);
}

/* |b - A x| / |b| */
static double true_residual(nb::device &device, const fe_system &s, double norm_b)
{
    multiply(device, s, s.x, s.q);
    add_scaled(device, s, s.r, s.b, -1, s.q);
    return sqrt(dot(device, s, s.r, s.r)) / norm_b;
}

/* The greatest distance from the exact solution, relative to its greatest value; no number where a
 * value is none. */
static double distance(const fe_system &s)
{
    double worst = 0, largest = 0;
    for (long row = 0; row < s.mesh.rows; row++) {
        double expected = exact_at(s.mesh, row), difference = fabs(s.x[row] - expected);
        worst = difference <= worst ? worst : difference;
        largest = fmax(largest, fabs(expected));
    }
    return worst / largest;
}

static bool allocate(nb::device &device, fe_system &s)
{
    mesh &m = s.mesh;
    m.nonzeros = (3 * m.nx + 1) * (3 * m.ny + 1) * (3 * m.nz + 1);
    for (double **vector : {&s.b, &s.x, &s.r, &s.p, &s.q, &s.partial})
        *vector = device.allocate<double>(m.rows);
    s.begin = device.allocate<int64_t>(m.rows + 1);
    s.column = device.allocate<int32_t>(m.nonzeros);
    s.value = device.allocate<double>(m.nonzeros);
    return s.b && s.x && s.r && s.p && s.q && s.partial && s.begin && s.column && s.value;
}

static void release(nb::device &device, const fe_system &s)
{
    for (void *memory : std::initializer_list<void *>{
             s.b, s.x, s.r, s.p, s.q, s.partial, s.begin, s.column, s.value
         })
        device.release(memory);
}

static int report(nb::device &device, const fe_system &s, const nb_region &region, solution found,
                  const double *times, double tolerance, int64_t assembled_ns)
{
    const mesh &m = s.mesh;
    double residual = true_residual(device, s, found.norm_b), error = distance(s);
    double norm = (double)sqrtl(std::inner_product(s.value, s.value + m.nonzeros, s.value, 0.0L));
    found.cosine = first_cosine(device, s);
    nb_series_print("iteration", "s", times, found.iterations);
    bool verified = is_solved(&found, residual, error, tolerance);
    nb_region_print(
        &region, "minife",
        "threads=%d nx=%ld ny=%ld nz=%ld rows=%ld nonzeros=%ld iterations=%ld assembly_s=%.9f "
        "cg_s=%.9f "
        "compiler=%s %s residual=%.3e error=%.3e matrix_norm=%.15g series_values=%ld verified=%s",
        device.threads(), m.nx, m.ny, m.nz, m.rows, m.nonzeros, found.iterations,
        (double)(assembled_ns - region.start_ns) * 1e-9,
        (double)(region.end_ns - assembled_ns) * 1e-9, NB_COMPILER, device.words().c_str(),
        residual, error, norm, nb_series_total(), verified ? "yes" : "no");
    return verified ? 0 : 1;
}

static int run(const mesh &m, long most, double tolerance)
{
    nb::device device(source, header);
    fe_system s{};
    std::vector<double> times((size_t)most);
    nb_region region;
    s.mesh = m;
    if (!allocate(device, s)) {
        fprintf(stderr, "minife: no memory for %ld x %ld x %ld elements\n", m.nx, m.ny, m.nz);
        return 1;
    }
    device.warm_up([&] {
        assemble(device, s); /* touches all memory */
        solve(device, s, 1, tolerance, times.data());
    });
    poison(s);
    nb_region_begin(&region);
    assemble(device, s);
    int64_t assembled_ns = nb_now_ns();
    solution found = solve(device, s, most, tolerance, times.data());
    nb_region_end(&region);
    int status = report(device, s, region, found, times.data(), tolerance, assembled_ns);
    release(device, s);
    return status;
}

static mesh mesh_of(const nb_option *options)
{
    mesh m{};
    m.nx = (long)options[0].value;
    m.ny = options[1].value ? (long)options[1].value : m.nx;
    m.nz = options[2].value ? (long)options[2].value : m.nx;
    m.rows = (m.nx + 1) * (m.ny + 1) * (m.nz + 1);
    return m;
}

int main(int count, char **words)
{
    struct nb_option options[6] = {
        {"nx", 2, 400, 40, 0, nullptr},
        {"ny", 2, 400, 0, 0, nullptr},
        {"nz", 2, 400, 0, 0, nullptr},
        {"iterations", 1, 100000, 2000, 0, nullptr},
        {"tolerance", 1e-14, 0.1, 1e-10, 1, nullptr},
        {}
    };
    if (nb_parse_options(count, words, options))
        return 2;
    return nb::guarded(
        "minife", [&] { return run(mesh_of(options), (long)options[3].value, options[4].value); });
}
