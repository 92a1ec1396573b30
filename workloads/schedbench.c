/* schedbench: what the schedules of an OpenMP loop cost, by the method of the EPCC microbenchmarks
 * (Bull 1999), one schedule a run.
 *
 *     schedbench [--schedule static|dynamic|guided] [--chunk N] [--iterations-per-thread N]
 *                [--delay STEPS] [--inner N] [--outer N] [--references N] [--calibrate US]
 *     threads: OMP_NUM_THREADS
 *
 * One time: a loop of iterations-per-thread x threads delays, `inner` times in one parallel region;
 * its reference: iterations-per-thread delays by one thread. chunk 0 is the schedule's own default.
 * Timed: `outer` repetitions, each printed. The references come before. Verified: as many delays as
 * asked for (static: of each thread), and in a pass of the same loop before the timed region which
 * schedule it is, by the chunks that the threads get.
 */
#include "overhead.h"

enum { STATIC, DYNAMIC, GUIDED };

static const char *const schedules[] = {"static", "dynamic", "guided", NULL};

struct job {
    int schedule, chunk, threads;
    long per_thread, delay, inner, total;
    struct chunks *chunks; /* NULL: not looked at */
};

/* Who got what. The thread of the first iteration waits until all others have a chunk; they hold
 * theirs until it has taken the rest. So the others' first chunks are seen in full. */
struct chunks {
    int *owner; /* of each iteration, -1: nobody yet, -2: two threads */
    char *came; /* each thread: at its first iteration */
    int first, arrived, released;
    long left; /* until the first thread has what it gets, if the schedule is what it claims */
    int64_t give_up_ns; /* a thread that does not get a chunk, or a CPU, ends the waiting */
};

static void pause_until(const struct chunks *chunks, const int *value, int least)
{
    const struct timespec moment = {0, 20000};
    while (__atomic_load_n(value, __ATOMIC_ACQUIRE) < least && nb_now_ns() < chunks->give_up_ns)
        nanosleep(&moment, NULL);
}

__attribute__((noinline)) static void witness(const struct job *job, long i)
{
    struct chunks *chunks = job->chunks;
    int me = omp_get_thread_num(), is_new = !chunks->came[me];
    chunks->came[me] = 1;
    if (i == 0) {
        chunks->first = me;
        pause_until(chunks, &chunks->arrived, job->threads - 1);
    } else if (is_new) {
        __atomic_add_fetch(&chunks->arrived, 1, __ATOMIC_RELEASE);
        pause_until(chunks, &chunks->released, 1);
    }
    chunks->owner[i] = chunks->owner[i] == -1 ? me : -2;
    /* guided takes the last chunk last; LLVM's dynamic steals and has no such order */
    if (me == chunks->first &&
        (job->schedule == GUIDED ? i == job->total - 1 : --chunks->left == 0))
        __atomic_store_n(&chunks->released, 1, __ATOMIC_RELEASE);
}

static inline void visit(const struct job *job, long i)
{
    nb_delay(job->delay);
    if (job->chunks)
        witness(job, i);
}

/* A construct for each schedule, for a schedule(runtime) would be another one; without a chunk
 * asked for, dynamic and guided take 1. */
#define LOOP(name, construct)                                                       \
    static void loop_##name(const struct job *job)                                  \
    {                                                                               \
        const int chunk = job->chunk ? job->chunk : 1;                              \
        (void)chunk;                                                                \
        _Pragma("omp parallel") for (long done = 0; done < job->inner; done++)      \
        {                                                                           \
            _Pragma(construct) for (long i = 0; i < job->total; i++) visit(job, i); \
        }                                                                           \
    }

LOOP(static, "omp for schedule(static)")
LOOP(static_chunk, "omp for schedule(static, chunk)")
LOOP(dynamic, "omp for schedule(dynamic, chunk)")
LOOP(guided, "omp for schedule(guided, chunk)")

static void loop(const struct job *job)
{
    if (job->schedule == DYNAMIC)
        loop_dynamic(job);
    else if (job->schedule == GUIDED)
        loop_guided(job);
    else if (job->chunk)
        loop_static_chunk(job);
    else
        loop_static(job);
}

/* The same work of one thread without OpenMP. */
static void alone(const struct job *job)
{
    for (long i = 0; i < job->inner * job->per_thread; i++)
        nb_delay(job->delay);
}

static void measure(const struct job *job, void (*what)(const struct job *), struct nb_times *times)
{
    for (long at = 0; at < times->count; at++) {
        int64_t before_ns = nb_now_ns();
        what(job);
        times->values[at] = (double)(nb_now_ns() - before_ns) * 1e-3 / (double)job->inner;
    }
}

/* Of the static schedule (OpenMP 5.2, 11.5.3; without a chunk as even as can be). */
static long static_share(const struct job *job, int thread)
{
    long share = 0, chunk = job->chunk, round = chunk * job->threads;
    if (!chunk)
        return job->total / job->threads + (thread < job->total % job->threads);
    share = job->total / round * chunk;
    long rest = job->total % round - thread * chunk;
    return share + (rest < 0 ? 0 : rest < chunk ? rest : chunk);
}

static long wrong_static(const struct job *job, const int *owner)
{
    long wrong = 0;
    for (long i = 0; i < job->total; i++)
        wrong += job->chunk ? owner[i] != i / job->chunk % job->threads
                            : i > 0 && owner[i] < owner[i - 1];
    return wrong;
}

/* The others have one chunk each, which they held; chunks start at multiples of their length. */
static long wrong_dynamic(const struct job *job, const int *owner, const long *shares)
{
    long wrong = 0, chunk = job->chunk ? job->chunk : 1;
    for (long i = 1; i < job->total; i++)
        wrong += i % chunk && owner[i] != owner[i - 1];
    for (int thread = 0; thread < job->threads; thread++)
        wrong += thread != owner[0] && shares[thread] != chunk;
    return wrong;
}

/* Each chunk is in proportion to what was left: a share of a thread (GNU), or half of one (LLVM);
 * what follows the others' first chunks is all the first thread's. */
static long wrong_guided(const struct job *job, const int *owner)
{
    long wrong = 0, from = 0, threads = job->threads, least = job->chunk ? job->chunk : 1;
    for (long k = 0, to; k < threads; k++, from = to) {
        long left = job->total - from, share = (left + threads - 1) / threads,
             most = share > least ? share : least;
        for (to = from + 1; to < job->total && owner[to] == owner[from];)
            to++;
        wrong += to - from < least || to - from < left / (4 * threads) || to - from > most;
        wrong += k > 0 && owner[from] == owner[0];
    }
    for (long i = from; i < job->total; i++)
        wrong += owner[i] != owner[0];
    return wrong;
}

static long wrong_chunks(const struct job *job, long *shares)
{
    const int *owner = job->chunks->owner;
    long wrong = 0;
    memset(shares, 0, (size_t)job->threads * sizeof *shares);
    for (long i = 0; i < job->total; i++) {
        if (owner[i] < 0)
            return 1;
        shares[owner[i]]++;
    }
    for (int thread = 0; job->schedule == STATIC && thread < job->threads; thread++)
        wrong += shares[thread] != static_share(job, thread);
    return job->threads == 1          ? 0
           : job->schedule == STATIC  ? wrong + wrong_static(job, owner)
           : job->schedule == DYNAMIC ? wrong_dynamic(job, owner, shares)
                                      : wrong_guided(job, owner);
}

enum { PATIENCE_MS = 100, ATTEMPTS = 10, LONGEST_CHUNK = 2000 };

/* One pass of the loop; how many things are not as the schedule has them. */
static long pass(struct job *job, long *shares)
{
    struct chunks *chunks = job->chunks;
    long chunk = job->chunk ? job->chunk : 1;
    chunks->first = -1;
    chunks->arrived = chunks->released = 0;
    chunks->left = job->schedule == STATIC ? static_share(job, 0)
                                           : job->total - (job->threads - 1) * chunk;
    chunks->give_up_ns = nb_now_ns() + INT64_C(1000000) * PATIENCE_MS;
    memset(chunks->came, 0, (size_t)job->threads);
    for (long i = 0; i < job->total; i++)
        chunks->owner[i] = -1;
    loop(job);
    return wrong_chunks(job, shares);
}

/* The schedule by its chunks, in a loop so long that those of each schedule differ. A thread that
 * gets no CPU in time proves nothing, so there are some attempts. */
static long check(struct job job)
{
    job.chunk = job.chunk < LONGEST_CHUNK ? job.chunk : LONGEST_CHUNK;
    job.inner = 1, job.delay = 1;
    job.total = 8L * job.threads * (job.chunk + 8) + 3;
    long wrong = 1, *shares = malloc((size_t)job.threads * sizeof *shares);
    struct chunks chunks = {
        .owner = malloc((size_t)job.total * sizeof *chunks.owner),
        .came = malloc((size_t)job.threads)
    };
    job.chunks = &chunks;
    for (int at = 0; shares && chunks.owner && chunks.came && wrong && at < ATTEMPTS; at++)
        wrong = pass(&job, shares);
    free(chunks.owner), free(chunks.came), free(shares);
    return wrong + nb_short_delays(1);
}

/* The references, and whether one of them did less or more than it has to. */
static long measure_references(const struct job *job, struct nb_times *reference)
{
    uint64_t before = nb_all_delays();
    measure(job, alone, reference);
    return nb_all_delays() - before !=
           (uint64_t)reference->count * (uint64_t)job->inner * (uint64_t)job->per_thread;
}

/* The loops, and how many threads did less or more than they have to. */
static long measure_loops(const struct job *job, struct nb_times *times)
{
    uint64_t all = nb_all_delays(), *before = calloc((size_t)job->threads, sizeof *before),
             loops = (uint64_t)times->count * (uint64_t)job->inner;
    if (!before)
        return 1;
    for (int thread = 0; thread < job->threads; thread++)
        before[thread] = nb_delays_of(thread);
    measure(job, loop, times);
    long wrong = nb_all_delays() - all != loops * (uint64_t)job->total;
    for (int thread = 0; job->schedule == STATIC && thread < job->threads; thread++)
        wrong += nb_delays_of(thread) - before[thread] !=
                 loops * (uint64_t)static_share(job, thread);
    free(before);
    return wrong;
}

static int report(const struct job *job, const struct nb_region *region, struct nb_times *times,
                  struct nb_times *reference, long wrong)
{
    const char *schedule = schedules[job->schedule];
    char what[200], series[40];
    snprintf(what, sizeof what,
             "schedule=%s chunk=%d iterations_per_thread=%ld delay=%ld inner=%ld", schedule,
             job->chunk, job->per_thread, job->delay, job->inner);
    snprintf(series, sizeof series, job->chunk ? "%s_%d" : "%s", schedule, job->chunk);
    int status = nb_report_overhead("schedbench", series, region, times, reference, what, wrong);
    free(times->values), free(reference->values), free(nb_counters);
    return status;
}

int main(int count, char **words)
{
    struct nb_option options[] = {
        {.name = "schedule", .value = DYNAMIC, .words = schedules},
        {.name = "chunk", .high = 1e6, .value = 1},
        {.name = "iterations-per-thread", .low = 1, .high = 1e6, .value = 8192},
        {.name = "delay", .low = 1, .high = 1e8, .value = 15000},
        {.name = "inner", .low = 1, .high = 1e6, .value = 1},
        {.name = "outer", .low = 1, .high = 1e5, .value = 100},
        {.name = "references", .low = 1, .high = 1e5, .value = 10},
        {.name = "calibrate", .high = 1e6, .fraction = 1},
        {0}
    };
    struct nb_region region;
    if (nb_parse_options(count, words, options))
        return 2;
    if (options[7].value > 0)
        return nb_calibrate(options[7].value);
    struct job job = {
        .schedule = (int)options[0].value,
        .chunk = (int)options[1].value,
        .per_thread = (long)options[2].value,
        .delay = (long)options[3].value,
        .inner = (long)options[4].value
    };
    struct nb_times times = {.count = (long)options[5].value},
                    reference = {.count = (long)options[6].value};
    job.threads = omp_get_max_threads();
    job.total = job.per_thread * job.threads;
    if (nb_find_counters("schedbench") || nb_allocate_times("schedbench", &times, &reference))
        return 1;
    long wrong = check(job); /* warms up as well */
    wrong += measure_references(&job, &reference);
    nb_region_begin(&region);
    wrong += measure_loops(&job, &times);
    nb_region_end(&region);
    wrong += nb_short_delays(job.delay);
    return report(&job, &region, &times, &reference, wrong);
}
