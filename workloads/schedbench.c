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
 * asked for, and in a pass after the timed region each iteration done once and in the chunks of the
 * schedule.
 */
#include "overhead.h"

enum { STATIC, DYNAMIC, GUIDED };

static const char *const schedules[] = {"static", "dynamic", "guided", NULL};

struct job {
    int schedule, chunk;
    long per_thread, delay, inner, total;
    int *owner; /* of each iteration, -1: nobody yet; NULL: not asked for */
};

static inline void visit(const struct job *job, long i)
{
    nb_delay(job->delay);
    if (job->owner)
        job->owner[i] = job->owner[i] == -1 ? omp_get_thread_num() : -2;
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

/* Chunks of fixed length start at multiples of it and have one owner; the static schedule also says
 * which (OpenMP 5.2, 11.5.3). */
static long wrong_owners(const struct job *job)
{
    long wrong = 0, threads = omp_get_max_threads(), chunk = job->chunk ? job->chunk : 1;
    int chunked = job->schedule == DYNAMIC || (job->schedule == STATIC && job->chunk);
    for (long i = 0; i < job->total; i++) {
        wrong += job->owner[i] < 0;
        wrong += chunked && i % chunk && job->owner[i] != job->owner[i - 1];
        wrong += job->schedule == STATIC && job->chunk && job->owner[i] != i / chunk % threads;
        wrong += job->schedule == STATIC && !job->chunk && i && job->owner[i] < job->owner[i - 1];
    }
    return wrong;
}

enum { CHECKED_STEPS = 2000000 }; /* long enough that all threads take part, at most a few ms */

static long check(struct job job)
{
    job.inner = 1;
    job.delay = job.total < CHECKED_STEPS ? CHECKED_STEPS / job.total : 1;
    job.owner = malloc((size_t)job.total * sizeof *job.owner);
    if (!job.owner)
        return 1;
    for (long i = 0; i < job.total; i++)
        job.owner[i] = -1;
    loop(&job);
    long wrong = wrong_owners(&job);
    free(job.owner);
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
    free(times->values);
    free(reference->values);
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
    job.total = job.per_thread * omp_get_max_threads();
    if (nb_allocate_times("schedbench", &times, &reference))
        return 1;
    long wrong = check(job); /* warms up as well */
    measure(&job, alone, &reference);
    uint64_t before = nb_all_delays();
    nb_region_begin(&region);
    measure(&job, loop, &times);
    nb_region_end(&region);
    wrong += nb_all_delays() - before !=
             (uint64_t)times.count * (uint64_t)job.inner * (uint64_t)job.total;
    return report(&job, &region, &times, &reference, wrong);
}
