/* syncbench: what OpenMP's constructs cost, by the method of the EPCC microbenchmarks (Bull 1999),
 * one construct a run.
 *
 *     syncbench [--construct NAME] [--delay STEPS] [--inner N] [--outer N] [--references N]
 *               [--calibrate US]
 *     threads: OMP_NUM_THREADS
 *
 * One time: `inner` executions of the construct around a delay, divided by their number; its
 * reference: the delay (atomic: the addition) by one thread. critical, lock and atomic share the
 * executions out among the threads, ordered as a loop of chunk 1. Timed: `outer` repetitions, each
 * printed. The references come before. Verified: as many delays (additions) as asked for, and in a
 * pass before the timed region that the construct does what it promises.
 */
#include "overhead.h"

enum { PARALLEL, FOR, PARALLEL_FOR, BARRIER, SINGLE, CRITICAL, LOCK, ORDERED, ATOMIC, REDUCTION };

static const char *const constructs[] = {"parallel", "for",  "parallel-for", "barrier", "single",
                                         "critical", "lock", "ordered",      "atomic",  "reduction",
                                         NULL};

static struct {
    int construct, threads;
    long delay, inner, share; /* share: of a thread, where they are shared out */
    omp_lock_t lock;
    double total; /* by atomic and reduction */
    long wrong;
} job;

static void do_parallel(void)
{
    for (long done = 0; done < job.inner; done++) {
#pragma omp parallel
        nb_delay(job.delay);
    }
}

static void do_for(void)
{
#pragma omp parallel
    for (long done = 0; done < job.inner; done++) {
#pragma omp for
        for (int i = 0; i < job.threads; i++)
            nb_delay(job.delay);
    }
}

static void do_parallel_for(void)
{
    for (long done = 0; done < job.inner; done++) {
#pragma omp parallel for
        for (int i = 0; i < job.threads; i++)
            nb_delay(job.delay);
    }
}

static void do_barrier(void)
{
#pragma omp parallel
    for (long done = 0; done < job.inner; done++) {
        nb_delay(job.delay);
#pragma omp barrier
    }
}

static void do_single(void)
{
#pragma omp parallel
    for (long done = 0; done < job.inner; done++) {
#pragma omp single
        nb_delay(job.delay);
    }
}

static void do_critical(void)
{
#pragma omp parallel
    for (long done = 0; done < job.share; done++) {
#pragma omp critical
        nb_delay(job.delay);
    }
}

static void do_lock(void)
{
#pragma omp parallel
    for (long done = 0; done < job.share; done++) {
        omp_set_lock(&job.lock);
        nb_delay(job.delay);
        omp_unset_lock(&job.lock);
    }
}

static void do_ordered(void)
{
#pragma omp parallel for ordered schedule(static, 1)
    for (long done = 0; done < job.inner; done++) {
#pragma omp ordered
        nb_delay(job.delay);
    }
}

static void do_atomic(void)
{
#pragma omp parallel
    for (long done = 0; done < job.share; done++) {
#pragma omp atomic
        job.total += 1;
    }
}

static void do_reduction(void)
{
    double total = 0;
    for (long done = 0; done < job.inner; done++) {
#pragma omp parallel reduction(+ : total)
        {
            nb_delay(job.delay);
            total += 1;
        }
    }
    job.total += total;
}

static void alone(void)
{
    for (long done = 0; done < job.inner; done++)
        nb_delay(job.delay);
}

/* Each sum goes to memory, as the atomic ones do. */
static void add_alone(void)
{
    for (long done = 0; done < job.inner; done++) {
        job.total += 1;
        __asm__ volatile("" : : : "memory");
    }
}

static void (*const tests[])(void) = {do_parallel, do_for,      do_parallel_for, do_barrier,
                                      do_single,   do_critical, do_lock,         do_ordered,
                                      do_atomic,   do_reduction};

/* How many executions one time stands for. */
static long executions(void)
{
    int shared = job.construct == CRITICAL || job.construct == LOCK || job.construct == ATOMIC;
    return shared ? job.share * job.threads : job.inner;
}

/* How many delays one time takes. */
static long delays(void)
{
    int by_all = job.construct <= BARRIER || job.construct == REDUCTION;
    return job.construct == ATOMIC ? 0 : by_all ? job.inner * job.threads : executions();
}

static double total_added(void)
{
    return job.construct == ATOMIC      ? (double)executions()
           : job.construct == REDUCTION ? (double)(job.inner * job.threads)
                                        : 0;
}

static void measure(void (*what)(void), long number, struct nb_times *times)
{
    for (long at = 0; at < times->count; at++) {
        int64_t before_ns = nb_now_ns();
        what();
        times->values[at] = (double)(nb_now_ns() - before_ns) * 1e-3 / (double)number;
    }
}

static void expect(int right)
{
#pragma omp atomic
    job.wrong += !right;
}

/* A loop's iterations are done once each; a parallel region has all its threads. */
static void check_sharing(void)
{
    int *loop = calloc((size_t)job.threads, sizeof *loop),
        *both = calloc((size_t)job.threads, sizeof *both), started = 0;
    if (!loop || !both)
        job.wrong++;
#pragma omp parallel reduction(+ : started)
    {
        started += omp_get_num_threads() == job.threads;
#pragma omp for
        for (int i = 0; i < job.threads; i++)
            loop[i]++;
    }
#pragma omp parallel for
    for (int i = 0; i < job.threads; i++)
        both[i]++;
    expect(started == job.threads);
    for (int i = 0; i < job.threads; i++)
        expect(loop[i] == 1 && both[i] == 1);
    free(loop), free(both);
}

enum { ROUNDS = 20 };

/* Nobody passes a barrier before all have come; a single is done once; the iterations of an ordered
 * loop come in order. */
static void check_meeting(void)
{
    int come = 0, singles = 0;
    long next = 0;
#pragma omp parallel
    for (int round = 1; round <= ROUNDS; round++) {
        int seen;
#pragma omp atomic
        come++;
#pragma omp barrier
#pragma omp atomic read
        seen = come;
        expect(seen == round * job.threads);
#pragma omp barrier
#pragma omp single
        singles++;
    }
#pragma omp parallel for ordered schedule(static, 1)
    for (long i = 0; i < ROUNDS * job.threads; i++) {
#pragma omp ordered
        expect(i == next++);
    }
    expect(singles == ROUNDS);
}

/* Two threads are never both between the reading and the writing of a number. */
static void check_exclusion(void)
{
    volatile long guarded = 0, locked = 0;
#pragma omp parallel
    for (int round = 0; round < ROUNDS; round++) {
#pragma omp barrier
#pragma omp critical
        {
            long before = guarded;
            nb_delay(1000);
            guarded = before + 1;
        }
        omp_set_lock(&job.lock);
        long before = locked;
        nb_delay(1000);
        locked = before + 1;
        omp_unset_lock(&job.lock);
    }
    expect(guarded == (long)ROUNDS * job.threads);
    expect(locked == (long)ROUNDS * job.threads);
}

static struct nb_region run(struct nb_times *times, struct nb_times *reference)
{
    struct nb_region region;
    check_sharing(); /* the checks warm up as well */
    check_meeting();
    check_exclusion();
    measure(job.construct == ATOMIC ? add_alone : alone, job.inner, reference);
    job.total = 0;
    uint64_t before = nb_all_delays();
    nb_region_begin(&region);
    measure(tests[job.construct], executions(), times);
    nb_region_end(&region);
    expect(nb_all_delays() - before == (uint64_t)(times->count * delays()));
    expect(fabs(job.total - (double)times->count * total_added()) < 0.5);
    return region;
}

int main(int count, char **words)
{
    struct nb_option options[] = {
        {.name = "construct", .value = REDUCTION, .words = constructs},
        {.name = "delay", .low = 1, .high = 1e8, .value = 100},
        {.name = "inner", .low = 1, .high = 1e7, .value = 1000},
        {.name = "outer", .low = 1, .high = 1e5, .value = 100},
        {.name = "references", .low = 1, .high = 1e5, .value = 10},
        {.name = "calibrate", .high = 1e6, .fraction = 1},
        {0}
    };
    char what[200];
    if (nb_parse_options(count, words, options))
        return 2;
    if (options[5].value > 0)
        return nb_calibrate(options[5].value);
    struct nb_times times = {.count = (long)options[3].value},
                    reference = {.count = (long)options[4].value};
    job.construct = (int)options[0].value, job.delay = (long)options[1].value,
    job.inner = (long)options[2].value;
    job.threads = omp_get_max_threads();
    job.share = job.inner < job.threads ? 1 : job.inner / job.threads;
    if (nb_allocate_times("syncbench", &times, &reference))
        return 1;
    omp_init_lock(&job.lock);
    struct nb_region region = run(&times, &reference);
    snprintf(what, sizeof what, "construct=%s delay=%ld inner=%ld", constructs[job.construct],
             job.delay, executions());
    int status = nb_report_overhead("syncbench", constructs[job.construct], &region, &times,
                                    &reference, what, job.wrong);
    omp_destroy_lock(&job.lock);
    free(times.values), free(reference.values);
    return status;
}
