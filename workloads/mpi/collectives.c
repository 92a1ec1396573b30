/* collectives: one collective operation again and again, by size of its message; the time of every
 * call of every rank.
 *
 *     mpirun collectives [--operation allreduce|bcast|barrier|alltoall|all] [--smallest B]
 *                        [--largest B] [--factor F] [--calls N] [--before barrier|nothing]
 *                        [--span MS]
 *
 * A call is timed from its begin to its end on each rank. With --before barrier all ranks meet
 * first, outside the time: else the calls of a slow rank overlap with its neighbours' earlier ones.
 * With --span each of the N values is the mean of several calls in a row, as many as make the
 * values of a size take about so long together: rare noise then strikes short calls, too. Alltoall
 * sends the bytes to each rank. The series NAME_BYTES_RANK has the times in us. Verified: every
 * byte received, and, of ranks on one node, that none left the barrier before the last one came.
 * Exit status: 0 verified, 1 not verified, 2 usage.
 */
#include "ranks.h"

enum { ALLREDUCE, BCAST, BARRIER, ALLTOALL, ALL, MOST_SIZES = 40 };
static const char *const OPERATIONS[] = {"allreduce", "bcast", "barrier", "alltoall", "all", NULL};
static const char *const BEFORE[] = {"barrier", "nothing", NULL};

struct job {
    int operation, meets, one_node;
    long calls, together, span_ns, sizes, bytes[MOST_SIZES];
    double *sent, *received; /* alltoall: a part for each rank */
    int64_t *begun, *ended;
};

/* Different for each rank, call and place, and small enough for exact sums. */
static double value_of(int rank, long call, long place)
{
    return (double)((7 * (long)rank + 13 * call + place) % 1021);
}

static void fill(struct job *job, const struct nb_ranks *all, long count, long call)
{
    long parts = job->operation == ALLTOALL ? all->ranks : 1;
    for (long i = 0; i < parts * count; i++) {
        job->sent[i] = value_of(all->rank, call, i);
        job->received[i] = -1;
    }
    if (job->operation == BCAST && all->rank == 0)
        memcpy(job->received, job->sent, (size_t)count * sizeof *job->sent);
}

static void call_it(struct job *job, int count)
{
    if (job->operation == ALLREDUCE)
        MPI_Allreduce(job->sent, job->received, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    else if (job->operation == BCAST)
        MPI_Bcast(job->received, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    else if (job->operation == BARRIER)
        MPI_Barrier(MPI_COMM_WORLD);
    else
        MPI_Alltoall(job->sent, count, MPI_DOUBLE, job->received, count, MPI_DOUBLE,
                     MPI_COMM_WORLD);
}

static double expected(const struct job *job, const struct nb_ranks *all, long count, long call,
                       long i)
{
    double sum = 0;
    if (job->operation == BCAST)
        return value_of(0, call, i);
    if (job->operation == ALLTOALL)
        return value_of((int)(i / count), call, all->rank * count + i % count);
    for (int rank = 0; rank < all->ranks; rank++)
        sum += value_of(rank, call, i);
    return sum;
}

static int is_right(const struct job *job, const struct nb_ranks *all, long count, long call)
{
    long parts = job->operation == ALLTOALL ? all->ranks : 1;
    if (job->operation == BARRIER)
        return 1;
    for (long i = 0; i < parts * count; i++)
        if (job->received[i] != expected(job, all, count, call, i))
            return 0;
    return 1;
}

/* The clock is the node's: on several nodes nothing can be said. */
static int nobody_left_early(const struct job *job)
{
    int64_t last_come, first_gone;
    for (long call = 0; call < job->calls; call++) {
        MPI_Allreduce(&job->begun[call], &last_come, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
        MPI_Allreduce(&job->ended[call], &first_gone, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
        if (first_gone < last_come)
            return 0;
    }
    return 1;
}

static void print_times(struct job *job, const struct nb_ranks *all, long bytes)
{
    double *own = nb_new((size_t)job->calls, sizeof *own);
    double *every = nb_new((size_t)job->calls * (size_t)all->ranks, sizeof *every);
    for (long call = 0; call < job->calls; call++)
        own[call] = (double)(job->ended[call] - job->begun[call]) * 1e-3 / (double)job->together;
    MPI_Gather(own, (int)job->calls, MPI_DOUBLE, every, (int)job->calls, MPI_DOUBLE, 0,
               MPI_COMM_WORLD);
    for (int rank = 0; all->rank == 0 && rank < all->ranks; rank++) {
        char name[64];
        snprintf(name, sizeof name, "%s_%ld_%d", OPERATIONS[job->operation], bytes, rank);
        nb_series_print(name, "us", every + rank * job->calls, job->calls);
    }
    free(own), free(every);
}

/* All calls of one size; whether every answer was right. */
static int measure(struct job *job, const struct nb_ranks *all, long bytes)
{
    long count = bytes / (long)sizeof(double);
    int right = 1;
    for (long call = 0; call < job->calls; call++) {
        fill(job, all, count, call);
        if (job->meets)
            MPI_Barrier(MPI_COMM_WORLD);
        job->begun[call] = nb_now_ns();
        for (long each = 0; each < job->together; each++)
            call_it(job, (int)count);
        job->ended[call] = nb_now_ns();
        right &= is_right(job, all, count, call);
    }
    return right;
}

/* How many calls in a row are one value, the same on all ranks, by a few that are not recorded. */
static long calls_together(struct job *job, const struct nb_ranks *all, long bytes)
{
    long calls = job->calls, longest = 0, spent;
    if (!job->span_ns)
        return 1;
    job->calls = calls < 20 ? calls : 20, job->together = 5;
    measure(job, all, bytes);
    spent = 0;
    for (long call = 0; call < job->calls; call++)
        spent += (long)(job->ended[call] - job->begun[call]);
    spent /= job->calls * job->together;
    job->calls = calls;
    MPI_Allreduce(&spent, &longest, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    spent = job->span_ns / calls / (longest > 0 ? longest : 1);
    return spent > 1 ? spent : 1;
}

static void choose_sizes(struct job *job, const struct nb_option *options)
{
    long smallest = (long)options[1].value, largest = (long)options[2].value;
    long factor = (long)options[3].value;
    job->sizes = 0;
    for (long bytes = smallest; bytes < largest && job->sizes < MOST_SIZES - 1; bytes *= factor)
        job->bytes[job->sizes++] = bytes / 8 * 8;
    job->bytes[job->sizes++] = largest / 8 * 8;
}

/* One operation at all sizes; whether every answer was right. */
static int measure_sizes(struct job *job, const struct nb_ranks *all)
{
    int right = 1, no_bytes = job->operation == BARRIER;
    for (long size = 0; size < (no_bytes ? 1 : job->sizes); size++) {
        long bytes = no_bytes ? 0 : job->bytes[size];
        job->together = calls_together(job, all, bytes);
        right &= measure(job, all, bytes);
        print_times(job, all, bytes);
    }
    return right;
}

static int all_on_one_node(const struct nb_ranks *all)
{
    MPI_Comm node;
    int ranks;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &ranks);
    MPI_Comm_free(&node);
    return ranks == all->ranks;
}

int main(int count, char **words)
{
    struct nb_option options[] = {
        {.name = "operation", .words = OPERATIONS},
        {.name = "smallest", .low = 8, .high = 1 << 30, .value = 8},
        {.name = "largest", .low = 8, .high = 1 << 30, .value = 1 << 20},
        {.name = "factor", .low = 2, .high = 1024, .value = 4},
        {.name = "calls", .low = 1, .high = 1000000, .value = 200},
        {.name = "before", .words = BEFORE},
        {.name = "span", .low = 0, .high = 100000, .value = 0},
        {0}
    };
    struct nb_ranks all;
    struct job job = {0};
    if (nb_ranks_init(&all, count, words, options))
        return 2;
    int chosen = (int)options[0].value, first = chosen == ALL ? ALLREDUCE : chosen;
    job.operation = first, job.calls = (long)options[4].value, job.together = 1;
    job.span_ns = (long)(options[6].value * 1e6);
    job.meets = options[5].value == 0, job.one_node = all_on_one_node(&all);
    choose_sizes(&job, options);
    long largest = job.bytes[job.sizes - 1] / 8, parts = chosen >= ALLTOALL ? all.ranks : 1;
    job.sent = nb_new((size_t)(parts * largest), sizeof *job.sent);
    job.received = nb_new((size_t)(parts * largest), sizeof *job.received);
    job.begun = nb_new((size_t)job.calls, sizeof *job.begun);
    job.ended = nb_new((size_t)job.calls, sizeof *job.ended);
    int right = measure(&job, &all, job.operation == BARRIER ? 0 : job.bytes[job.sizes - 1]);
    nb_ranks_begin(&all); /* what was measured before warmed up */
    for (job.operation = first; job.operation <= (chosen == ALL ? ALLTOALL : chosen);
         job.operation++) {
        right &= measure_sizes(&job, &all);
        if (job.operation == BARRIER && job.one_node)
            right &= nobody_left_early(&job);
    }
    nb_ranks_end(&all);
    char text[100];
    snprintf(text, sizeof text, "operation=%s sizes=%ld calls=%ld one_node=%d", OPERATIONS[chosen],
             job.sizes, job.calls, job.one_node);
    free(job.sent), free(job.received), free(job.begun), free(job.ended);
    return nb_ranks_finish(&all, "collectives", right, text);
}
