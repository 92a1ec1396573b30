/* minife_kernels.h: assembly and conjugate gradients of the finite-element system. A work-item has
 * a block of rows, or a line of elements: a row a work-item would be vectorised across rows, by
 * gathers, and take several times as long on a CPU device. After element.h. */
#include "kernel.h"

/* rows of a block: the same on any number of threads, and so is each sum */
enum { BLOCK = 1024 };

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

struct element {
    long rows[CORNERS];
    double nodes[CORNERS][3], stiffness[CORNERS][CORNERS], load[CORNERS];
};

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
        add_point(e.nodes, at, e.stiffness, e.load);
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
