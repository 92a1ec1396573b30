/* adaptive: a mesh that follows a front, so that load moves and is shared anew, as an adaptive
 * hydrodynamics code does it (SAGE).
 *
 *     mpirun adaptive [--blocks N] [--columns N] [--rows N] [--fields N] [--steps N] [--every N]
 *
 * A periodic chain of blocks of columns; a block at the front has columns of half the width. In
 * each step: an all-reduction of 8 bytes (the time step; SAGE's mean size, Ferreira et al. 2008,
 * section 6.2.2), the last column to the next rank (32 KiB by default), advection along the chain
 * and diffusion across. `every` so many steps blocks are refined or coarsened and shared anew: each
 * rank has a range of blocks of about the same work.
 * Timed: all steps. Verified: the sums, which are conserved, and on up to 8 ranks each cell: every
 * rank computes the whole chain again, alone. Exit status: 0 verified, 1 not, 2 usage.
 */
#include "ranks.h"

enum { MOST_RERUN = 8 };

struct chain {
    MPI_Comm comm;
    int rank, ranks, blocks, columns, rows, fields; /* columns: of a coarse block */
    size_t column;                                  /* values of a column: rows x fields */
    int *owner, *fine, *wanted;                     /* of each block; the same on all ranks */
    double **cells;                                 /* of own blocks */
    double *halo;
    long moved, refined;
};

static int columns_of(const struct chain *c, int block)
{
    return c->columns * (c->fine[block] ? 2 : 1);
}

static size_t values_of(const struct chain *c, int block)
{
    return (size_t)columns_of(c, block) * c->column;
}

static double *new_cells(const struct chain *c)
{
    return nb_new(2 * (size_t)c->columns * c->column, sizeof(double));
}

/* Ranges of blocks of about the same work, which is the number of columns. */
static void share(const struct chain *c, int *owner)
{
    long all = 0, before = 0;
    for (int block = 0; block < c->blocks; block++)
        all += columns_of(c, block);
    for (int block = 0; block < c->blocks; block++) {
        owner[block] = (int)((2 * before + columns_of(c, block)) * c->ranks / (2 * all));
        before += columns_of(c, block);
    }
}

static void set_up(struct chain *c)
{
    share(c, c->owner);
    for (int block = 0; block < c->blocks; block++) {
        if (c->owner[block] != c->rank)
            continue;
        double *value = c->cells[block] = new_cells(c);
        for (int i = 0; i < c->columns; i++)
            for (int f = 0; f < c->fields; f++)
                for (int j = 0; j < c->rows; j++) {
                    double place = (block + (i + 0.5) / c->columns) / c->blocks;
                    int inside = place > 0.2 && place < 0.25;
                    *value++ = 1 + f + (inside ? 1 + 0.5 * sin(2 * M_PI * j / c->rows) : 0);
                }
    }
}

/* The first (step -1) or last (step 1) own block; -1: there is none. */
static int outermost(const struct chain *c, int step)
{
    int block = step < 0 ? 0 : c->blocks - 1;
    while (block >= 0 && block < c->blocks && c->owner[block] != c->rank)
        block -= step;
    return block < c->blocks ? block : -1;
}

/* The last column of the block before the first own one, into the halo. */
static void exchange(struct chain *c)
{
    int first = outermost(c, -1), last = outermost(c, 1), size = (int)c->column;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    if (first < 0)
        return;
    int from = c->owner[(first + c->blocks - 1) % c->blocks];
    int to = c->owner[(last + 1) % c->blocks];
    double *outflow = c->cells[last] + values_of(c, last) - c->column;
    if (from == c->rank) {
        memcpy(c->halo, outflow, c->column * sizeof *outflow);
        return;
    }
    MPI_Irecv(c->halo, size, MPI_DOUBLE, from, c->blocks, c->comm, &requests[0]);
    MPI_Isend(outflow, size, MPI_DOUBLE, to, c->blocks, c->comm, &requests[1]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
}

/* The longest step: what the narrowest column of any rank allows. */
static double time_step(const struct chain *c)
{
    double own = 1, narrowest = 1;
    for (int block = 0; block < c->blocks; block++)
        if (c->owner[block] == c->rank && c->fine[block])
            own = 0.5;
    MPI_Allreduce(&own, &narrowest, 1, MPI_DOUBLE, MPI_MIN, c->comm);
    return 0.8 * narrowest;
}

static void diffuse(const struct chain *c, double *restrict value, double *restrict copy)
{
    memcpy(copy, value, c->column * sizeof *value);
    for (int f = 0; f < c->fields; f++, value += c->rows, copy += c->rows) {
        int last = c->rows - 1;
        value[0] += 0.1 * (copy[1] + copy[last] - 2 * copy[0]);
        for (int j = 1; j < last; j++)
            value[j] += 0.1 * (copy[j - 1] + copy[j + 1] - 2 * copy[j]);
        value[last] += 0.1 * (copy[last - 1] + copy[0] - 2 * copy[last]);
    }
}

static void add_inflow(size_t count, double share, double *restrict value,
                       const double *restrict before)
{
    for (size_t i = 0; i < count; i++)
        value[i] += share * (before[i] - value[i]);
}

/* First-order upwind: from the last column to the first, each takes what left the one before. */
static void advance(struct chain *c, double step, double *copy)
{
    for (int block = c->blocks - 1; block >= 0; block--) {
        if (c->owner[block] != c->rank)
            continue;
        double share = step * (c->fine[block] ? 2 : 1), *value = c->cells[block];
        for (int i = columns_of(c, block) - 1; i > 0; i--)
            add_inflow(c->column, share, value + (size_t)i * c->column,
                       value + (size_t)(i - 1) * c->column);
        int own = block > 0 && c->owner[block - 1] == c->rank;
        add_inflow(c->column, share, value,
                   own ? c->cells[block - 1] + values_of(c, block - 1) - c->column : c->halo);
        for (int i = 0; i < columns_of(c, block); i++)
            diffuse(c, value + (size_t)i * c->column, copy);
    }
}

static int is_steep(const struct chain *c, int block)
{
    const double *value = c->cells[block];
    for (size_t i = c->column; i < values_of(c, block); i += 7)
        if (fabs(value[i] - value[i - c->column]) > 0.02)
            return 1;
    return 0;
}

static void refine(struct chain *c, int block)
{
    double *old = c->cells[block], *fine = c->cells[block] = new_cells(c);
    for (int i = 0; i < 2 * c->columns; i++)
        memcpy(fine + (size_t)i * c->column, old + (size_t)(i / 2) * c->column,
               c->column * sizeof *old);
    free(old);
}

static void coarsen(struct chain *c, int block)
{
    double *value = c->cells[block];
    for (int i = 0; i < c->columns; i++)
        for (size_t j = 0; j < c->column; j++)
            value[(size_t)i * c->column + j] = (value[2 * (size_t)i * c->column + j] +
                                                value[(2 * (size_t)i + 1) * c->column + j]) /
                                               2;
}

/* Steep blocks and those beside them become fine, all others coarse. */
static void adapt(struct chain *c)
{
    int *steep = nb_new((size_t)c->blocks, sizeof *steep);
    for (int block = 0; block < c->blocks; block++)
        c->wanted[block] = c->owner[block] == c->rank && is_steep(c, block);
    MPI_Allreduce(c->wanted, steep, c->blocks, MPI_INT, MPI_MAX, c->comm);
    for (int block = 0; block < c->blocks; block++) {
        int before = (block + c->blocks - 1) % c->blocks, after = (block + 1) % c->blocks;
        int fine = steep[before] || steep[block] || steep[after];
        if (c->owner[block] == c->rank && fine && !c->fine[block])
            refine(c, block);
        if (c->owner[block] == c->rank && !fine && c->fine[block])
            coarsen(c, block);
        c->refined += fine && !c->fine[block];
        c->fine[block] = fine;
    }
    free(steep);
}

static void redistribute(struct chain *c)
{
    MPI_Request *requests = nb_new((size_t)c->blocks, sizeof *requests);
    int *next = nb_new((size_t)c->blocks, sizeof *next), open = 0;
    share(c, next);
    for (int block = 0; block < c->blocks; block++) {
        int size = (int)values_of(c, block), from = c->owner[block], to = next[block];
        if (from == to)
            continue;
        c->moved++;
        if (to == c->rank) {
            c->cells[block] = new_cells(c);
            MPI_Irecv(c->cells[block], size, MPI_DOUBLE, from, block, c->comm, &requests[open++]);
        } else if (from == c->rank)
            MPI_Isend(c->cells[block], size, MPI_DOUBLE, to, block, c->comm, &requests[open++]);
    }
    MPI_Waitall(open, requests, MPI_STATUSES_IGNORE);
    for (int block = 0; block < c->blocks; block++)
        if (c->owner[block] == c->rank && next[block] != c->rank)
            free(c->cells[block]);
    memcpy(c->owner, next, (size_t)c->blocks * sizeof *next);
    free(next), free(requests);
}

static void run(struct chain *c, long steps, long every)
{
    double *copy = nb_new(c->column, sizeof *copy);
    for (long step = 0; step < steps; step++) {
        if (step % every == 0) {
            adapt(c);
            redistribute(c);
        }
        double length = time_step(c);
        exchange(c);
        advance(c, length, copy);
    }
    free(copy);
}

static double sum_of(const struct chain *c)
{
    double own = 0, sum = 0;
    for (int block = 0; block < c->blocks; block++)
        for (size_t i = 0; c->owner[block] == c->rank && i < values_of(c, block); i++)
            own += c->cells[block][i] * (c->fine[block] ? 0.5 : 1);
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, c->comm);
    return sum;
}

static struct chain new_chain(MPI_Comm comm, const struct nb_option *options)
{
    struct chain c = {.comm = comm, .blocks = (int)options[0].value};
    MPI_Comm_rank(comm, &c.rank);
    MPI_Comm_size(comm, &c.ranks);
    c.columns = (int)options[1].value, c.rows = (int)options[2].value;
    c.fields = (int)options[3].value, c.column = (size_t)c.rows * (size_t)c.fields;
    c.owner = nb_new((size_t)c.blocks, sizeof *c.owner);
    c.fine = nb_new((size_t)c.blocks, sizeof *c.fine);
    c.wanted = nb_new((size_t)c.blocks, sizeof *c.wanted);
    c.cells = nb_new((size_t)c.blocks, sizeof *c.cells);
    c.halo = nb_new(c.column, sizeof *c.halo);
    set_up(&c);
    return c;
}

/* The greatest difference of own cells from those of the whole chain, computed alone. */
static double difference(const struct chain *c, const struct nb_option *options)
{
    double worst = 0;
    struct chain whole = new_chain(MPI_COMM_SELF, options);
    run(&whole, (long)options[4].value, (long)options[5].value);
    for (int block = 0; block < c->blocks; block++)
        for (size_t i = 0; c->owner[block] == c->rank && i < values_of(c, block); i++) {
            double apart = fabs(c->cells[block][i] - whole.cells[block][i]);
            worst = nb_within(apart, 1e300) ? fmax(worst, apart) : 1e300;
        }
    return nb_greatest(worst);
}

int main(int count, char **words)
{
    struct nb_option options[] = {
        {.name = "blocks", .low = 1, .high = 30000, .value = 64},
        {.name = "columns", .low = 2, .high = 1000, .value = 4},
        {.name = "rows", .low = 3, .high = 100000, .value = 1024},
        {.name = "fields", .low = 1, .high = 64, .value = 4},
        {.name = "steps", .low = 1, .high = 1000000, .value = 200},
        {.name = "every", .low = 1, .high = 1000000, .value = 10},
        {0}
    };
    struct nb_ranks all;
    if (nb_ranks_init(&all, count, words, options))
        return 2;
    struct chain c = new_chain(MPI_COMM_WORLD, options);
    double before = sum_of(&c);
    nb_ranks_begin(&all);
    run(&c, (long)options[4].value, (long)options[5].value);
    nb_ranks_end(&all);
    double drift = fabs(sum_of(&c) / before - 1);
    double error = all.ranks <= MOST_RERUN ? difference(&c, options) : 0;
    char text[200];
    snprintf(text, sizeof text,
             "blocks=%d columns=%d rows=%d fields=%d moved=%ld refined=%ld drift=%.3e rerun=%d "
             "error=%.3e",
             c.blocks, c.columns, c.rows, c.fields, c.moved, c.refined, drift,
             all.ranks <= MOST_RERUN, error);
    return nb_ranks_finish(&all, "adaptive", nb_within(drift, 1e-10) && nb_within(error, 1e-10),
                           text);
}
