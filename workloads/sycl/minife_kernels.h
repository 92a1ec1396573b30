/* minife_kernels.h: assembly and conjugate gradients of the finite-element system. A work-item has
 * a block of rows, or a line of elements: a row a work-item would be vectorised across rows, by
 * gathers, and take several times as long on a CPU device. */
#include "kernel.h"

#define SOURCE (-12.0) /* minus the Laplacian of exact() */

/* rows of a block: the same on any number of threads, and so is each sum */
enum { CORNERS = 8, BLOCK = 1024 };

struct mesh {
    long nx, ny, nz, rows, nonzeros; /* a node a row */
};

struct fe_system {
    struct mesh mesh;
    std::int64_t *begin; /* of each row, rows + 1 */
    std::int32_t *column;
    double *value, *b, *x, *r, *p, *q, *partial; /* partial: one sum a block */
};

struct minife_colour {
    fe_system s;
    int colour;
};

/* result = left + factor right; or of left and right what the kernel says. */
struct minife_vectors {
    fe_system s;
    double *result;
    const double *left, *right;
    double factor;
};

static inline double exact(double x, double y, double z)
{
    return x * x + 2 * y * y + 3 * z * z + x * y * z + x - y + 2 * z;
}

struct node {
    long i, j, k;
};

static inline node node_of(const mesh &m, long row)
{
    long rest = row / (m.nx + 1);
    return {row % (m.nx + 1), rest % (m.ny + 1), rest / (m.ny + 1)};
}

static inline long row_of(const mesh &m, long i, long j, long k)
{
    return i + (m.nx + 1) * (j + (m.ny + 1) * k);
}

static inline double exact_at(const mesh &m, long row)
{
    node n = node_of(m, row);
    return exact((double)n.i / (double)m.nx, (double)n.j / (double)m.ny,
                 (double)n.k / (double)m.nz);
}

static inline bool on_face(const mesh &m, long row)
{
    node n = node_of(m, row);
    return n.i == 0 || n.i == m.nx || n.j == 0 || n.j == m.ny || n.k == 0 || n.k == m.nz;
}

static inline long block_end(const mesh &m, long block)
{
    return (block + 1) * BLOCK < m.rows ? (block + 1) * BLOCK : m.rows;
}

/* The pattern of a row, its value 0; columns ascend. */
static inline void lay_row(const fe_system &s, long row)
{
    const mesh &m = s.mesh;
    node n = node_of(m, row);
    std::int64_t at = s.begin[row];
    for (long k = n.k - (n.k > 0); k <= n.k + (n.k < m.nz); k++)
        for (long j = n.j - (n.j > 0); j <= n.j + (n.j < m.ny); j++)
            for (long i = n.i - (n.i > 0); i <= n.i + (n.i < m.nx); i++) {
                s.column[at] = (std::int32_t)row_of(m, i, j, k);
                s.value[at++] = 0;
            }
}

static void minife_lay(long block, fe_system s)
{
    for (long row = block * BLOCK; row < block_end(s.mesh, block); row++) {
        lay_row(s, row);
        s.b[row] = s.x[row] = s.r[row] = s.p[row] = s.q[row] = 0;
    }
}
NB_KERNEL(minife_lay, fe_system)

/* Corner c of the reference cube [-1, 1]^3: bits 0, 1, 2 are x, y, z. */
static inline double side(int corner, int direction)
{
    return corner >> direction & 1 ? 1 : -1;
}

/* Values and gradients of the trilinear shape functions at a point of the reference cube. */
static inline void shape(const double at[3], double values[CORNERS], double gradients[CORNERS][3])
{
    for (int c = 0; c < CORNERS; c++) {
        double f[3];
        for (int d = 0; d < 3; d++)
            f[d] = 0.5 * (1 + side(c, d) * at[d]);
        values[c] = f[0] * f[1] * f[2];
        gradients[c][0] = 0.5 * side(c, 0) * f[1] * f[2];
        gradients[c][1] = 0.5 * side(c, 1) * f[0] * f[2];
        gradients[c][2] = 0.5 * side(c, 2) * f[0] * f[1];
    }
}

/* Inverts the Jacobian; returns its determinant. */
static inline double invert(const double j[3][3], double inverse[3][3])
{
    for (int row = 0; row < 3; row++)
        for (int column = 0; column < 3; column++) {
            int a = (column + 1) % 3, b = (column + 2) % 3, c = (row + 1) % 3, d = (row + 2) % 3;
            inverse[row][column] = j[a][c] * j[b][d] - j[a][d] * j[b][c];
        }
    double determinant = j[0][0] * inverse[0][0] + j[0][1] * inverse[1][0] +
                         j[0][2] * inverse[2][0];
    for (int entry = 0; entry < 9; entry++)
        inverse[entry / 3][entry % 3] /= determinant;
    return determinant;
}

struct element {
    long rows[CORNERS];
    double nodes[CORNERS][3], stiffness[CORNERS][CORNERS], load[CORNERS];
};

/* Adds a Gauss point's part of the element's stiffness and load. */
static inline void add_point(element &e, const double at[3])
{
    double values[CORNERS], reference[CORNERS][3], gradients[CORNERS][3] = {{0}},
                                                   jacobian[3][3] = {{0}}, inverse[3][3];
    shape(at, values, reference);
    for (int c = 0; c < CORNERS; c++)
        for (int entry = 0; entry < 9; entry++)
            jacobian[entry / 3][entry % 3] += reference[c][entry / 3] * e.nodes[c][entry % 3];
    double volume = invert(jacobian, inverse);
    for (int c = 0; c < CORNERS; c++)
        for (int entry = 0; entry < 9; entry++)
            gradients[c][entry / 3] += inverse[entry / 3][entry % 3] * reference[c][entry % 3];
    for (int row = 0; row < CORNERS; row++) {
        e.load[row] += volume * SOURCE * values[row];
        for (int column = 0; column < CORNERS; column++)
            e.stiffness[row][column] += volume * (gradients[row][0] * gradients[column][0] +
                                                  gradients[row][1] * gradients[column][1] +
                                                  gradients[row][2] * gradients[column][2]);
    }
}

static inline std::int64_t find(const fe_system &s, long row, long column)
{
    std::int64_t low = s.begin[row], high = s.begin[row + 1] - 1;
    while (low < high) {
        std::int64_t middle = (low + high) / 2;
        if (s.column[middle] < column)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static inline void add_element(const fe_system &s, long i, long j, long k)
{
    const mesh &m = s.mesh;
    const double point = 0.57735026918962576; /* 1 / sqrt(3) */
    element e = {};
    for (int c = 0; c < CORNERS; c++) {
        long ci = i + (c & 1), cj = j + (c >> 1 & 1), ck = k + (c >> 2);
        e.rows[c] = row_of(m, ci, cj, ck);
        e.nodes[c][0] = (double)ci / (double)m.nx;
        e.nodes[c][1] = (double)cj / (double)m.ny;
        e.nodes[c][2] = (double)ck / (double)m.nz;
    }
    for (int g = 0; g < 8; g++) {
        const double at[3] = {point * side(g, 0), point * side(g, 1), point * side(g, 2)};
        add_point(e, at);
    }
    for (int row = 0; row < CORNERS; row++) {
        s.b[e.rows[row]] += e.load[row];
        for (int column = 0; column < CORNERS; column++)
            s.value[find(s, e.rows[row], e.rows[column])] += e.stiffness[row][column];
    }
}

/* Elements of a colour, which are two apart in a direction of n elements. */
static inline long in_colour(long n, int odd)
{
    return (n + 1 - odd) / 2;
}

/* A line of the elements of one colour: these share no node, so no two work-items write to the same
 * entry. */
static void minife_add(long line, minife_colour a)
{
    const mesh &m = a.s.mesh;
    int odd_i = a.colour & 1, odd_j = a.colour >> 1 & 1, odd_k = a.colour >> 2;
    long lines = in_colour(m.ny, odd_j);
    for (long i = 0; i < in_colour(m.nx, odd_i); i++)
        add_element(a.s, 2 * i + odd_i, 2 * (line % lines) + odd_j, 2 * (line / lines) + odd_k);
}
NB_KERNEL(minife_add, minife_colour)

/* Given values: their rows become the identity, their columns move to the right-hand side; the
 * matrix stays symmetric. */
static void minife_constrain(long block, fe_system s)
{
    const mesh &m = s.mesh;
    for (long row = block * BLOCK; row < block_end(m, block); row++) {
        bool fixed = on_face(m, row);
        double b = fixed ? exact_at(m, row) : s.b[row];
        for (std::int64_t at = s.begin[row]; at < s.begin[row + 1]; at++) {
            long column = s.column[at];
            if (!fixed && !on_face(m, column))
                continue;
            b -= fixed ? 0 : s.value[at] * exact_at(m, column);
            s.value[at] = fixed && column == row;
        }
        s.b[row] = b;
    }
}
NB_KERNEL(minife_constrain, fe_system)

/* result = matrix left */
static void minife_multiply(long block, minife_vectors v)
{
    const double *value = v.s.value, *vector = v.left;
    const std::int32_t *column = v.s.column;
    for (long row = block * BLOCK; row < block_end(v.s.mesh, block); row++) {
        double sum = 0;
        for (std::int64_t at = v.s.begin[row]; at < v.s.begin[row + 1]; at++)
            sum += value[at] * vector[column[at]];
        v.result[row] = sum;
    }
}
NB_KERNEL(minife_multiply, minife_vectors)

static void minife_dot(long block, minife_vectors v)
{
    const double *left = v.left, *right = v.right;
    double sum = 0;
    for (long row = block * BLOCK; row < block_end(v.s.mesh, block); row++)
        sum += left[row] * right[row];
    v.s.partial[block] = sum;
}
NB_KERNEL(minife_dot, minife_vectors)

static void minife_scale(long block, minife_vectors v)
{
    const double *left = v.left, *right = v.right;
    double *result = v.result, factor = v.factor;
    for (long row = block * BLOCK; row < block_end(v.s.mesh, block); row++)
        result[row] = left[row] + factor * right[row];
}
NB_KERNEL(minife_scale, minife_vectors)
