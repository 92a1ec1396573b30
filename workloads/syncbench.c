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
 * printed. The references come before. Verified, in the timed loops themselves: as many delays
 * (additions) as asked for by each thread; and in one execution of each repetition, another one
 * each time, that the construct does what it promises: nobody else works in a critical section,
 * nobody passes a barrier alone. A pass before the timed region looks at every execution.
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
    long mask, looked_at; /* an execution is looked at where its number & mask is this */
    uint64_t before;      /* delays before this repetition */
    uint64_t *begun;      /* delays of each thread before all repetitions */
} job;

static void expect(int right)
{
    if (!right) {
#pragma omp atomic
        job.wrong++;
    }
}

/* The same for all threads: job is written to by others meanwhile. */
struct look {
    long mask, at;
};

static inline struct look look_of(void)
{
    return (struct look){job.mask, job.looked_at};
}

static inline int looks(const struct look *look, long done)
{
    return __builtin_expect((done & look->mask) == look->at, 0);
}

/* After a meeting of all: nobody does less than this thread, or more than one delay beyond. */
__attribute__((noinline)) static void expect_met(void)
{
    int me = omp_get_thread_num();
    uint64_t own = nb_delays_of(me) - job.begun[me];
    for (int thread = 0; thread < job.threads; thread++) {
        uint64_t others = nb_delays_of(thread) - job.begun[thread];
        expect(others == own || (others == own + 1 && thread != me));
    }
}

/* All threads' delays of this repetition are `least`, or at most `more` beyond. */
__attribute__((noinline)) static void expect_total(long least, int more)
{
    uint64_t total = nb_all_delays() - job.before;
    expect(total >= (uint64_t)least && total <= (uint64_t)(least + more));
}

/* Nobody else finishes a delay while this thread is in one. */
__attribute__((noinline)) static void delay_alone(void)
{
    uint64_t before = nb_all_delays();
    nb_delay(job.delay);
    expect(nb_all_delays() == before + 1);
}

static void do_parallel(void)
{
    const struct look look = look_of();
    for (long done = 0; done < job.inner; done++) {
#pragma omp parallel
        nb_delay(job.delay);
        if (looks(&look, done))
            expect_met();
    }
}

static void do_for(void)
{
    const struct look look = look_of();
#pragma omp parallel
    for (long done = 0; done < job.inner; done++) {
#pragma omp for
        for (int i = 0; i < job.threads; i++)
            nb_delay(job.delay);
        if (looks(&look, done))
            expect_met();
    }
}

static void do_parallel_for(void)
{
    const struct look look = look_of();
    for (long done = 0; done < job.inner; done++) {
#pragma omp parallel for
        for (int i = 0; i < job.threads; i++)
            nb_delay(job.delay);
        if (looks(&look, done))
            expect_met();
    }
}

static void do_barrier(void)
{
    const struct look look = look_of();
#pragma omp parallel
    for (long done = 0; done < job.inner; done++) {
        nb_delay(job.delay);
#pragma omp barrier
        if (looks(&look, done))
            expect_met();
    }
}

static void do_single(void)
{
    const struct look look = look_of();
#pragma omp parallel
    for (long done = 0; done < job.inner; done++) {
#pragma omp single
        nb_delay(job.delay);
        if (looks(&look, done))
            expect_total(done + 1, 1);
    }
}

static void do_critical(void)
{
    const struct look look = look_of();
#pragma omp parallel
    for (long done = 0; done < job.share; done++) {
#pragma omp critical
        if (looks(&look, done))
            delay_alone();
        else
            nb_delay(job.delay);
    }
}

static void do_lock(void)
{
    const struct look look = look_of();
#pragma omp parallel
    for (long done = 0; done < job.share; done++) {
        omp_set_lock(&job.lock);
        if (looks(&look, done))
            delay_alone();
        else
            nb_delay(job.delay);
        omp_unset_lock(&job.lock);
    }
}

static void do_ordered(void)
{
    const struct look look = look_of();
#pragma omp parallel for ordered schedule(static, 1)
    for (long done = 0; done < job.inner; done++) {
#pragma omp ordered
        if (looks(&look, done)) {
            expect_total(done, 0);
            delay_alone();
        } else {
            nb_delay(job.delay);
        }
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
    const struct look look = look_of();
    double total = 0;
    for (long done = 0; done < job.inner; done++) {
#pragma omp parallel reduction(+ : total)
        {
            nb_delay(job.delay);
            if (looks(&look, done))
                expect(total == 0); /* each thread has a sum of its own */
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

/* How many delays of one time are a thread's; -1: any thread may do them (single). */
static long delays_of(int thread)
{
    long even = job.inner / job.threads, rest = job.inner % job.threads;
    switch (job.construct) {
    case SINGLE: return -1;
    case CRITICAL:
    case LOCK: return job.share;
    case ORDERED: return even + (thread < rest);
    case ATOMIC: return 0;
    default: return job.inner;
    }
}

static double total_added(void)
{
    return job.construct == ATOMIC      ? (double)executions()
           : job.construct == REDUCTION ? (double)(job.inner * job.threads)
                                        : 0;
}

/* How many executions a thread counts in one time. */
static long counted(void)
{
    int shared = job.construct == CRITICAL || job.construct == LOCK || job.construct == ATOMIC;
    return shared ? job.share : job.inner;
}

/* mask 0: every execution is looked at; -1: one of each repetition. */
static void measure(void (*what)(void), long number, struct nb_times *times, long mask)
{
    for (long at = 0; at < times->count; at++) {
        job.mask = mask;
        job.looked_at = mask & (at * 7919 % counted());
        job.before = nb_all_delays();
        int64_t before_ns = nb_now_ns();
        what();
        times->values[at] = (double)(nb_now_ns() - before_ns) * 1e-3 / (double)number;
    }
}

/* Measures the construct, and that each thread did its part. */
static void measure_construct(struct nb_times *times, long mask)
{
    uint64_t all = 0;
    job.total = 0;
    for (int thread = 0; thread < job.threads; thread++)
        job.begun[thread] = nb_delays_of(thread);
    measure(tests[job.construct], executions(), times, mask);
    for (int thread = 0; thread < job.threads; thread++) {
        uint64_t done = nb_delays_of(thread) - job.begun[thread];
        long wanted = delays_of(thread);
        expect(wanted < 0 || done == (uint64_t)(times->count * wanted));
        all += done;
    }
    expect(job.construct != SINGLE || all == (uint64_t)(times->count * job.inner));
    expect(fabs(job.total - (double)times->count * total_added()) < 0.5);
}

static void set_size(long inner, long delay)
{
    job.delay = delay;
    job.inner = inner;
    job.share = inner < job.threads ? 1 : inner / job.threads;
}

enum { CHECKED = 200, CHECKED_ADDITIONS = 400000, CHECKED_DELAY = 2000, CHECKED_TIMES = 5 };

/* A pass in which every execution is looked at, with a delay that is long enough for two threads to
 * meet; it warms up as well. */
static void check(void)
{
    double values[CHECKED_TIMES];
    struct nb_times times = {.values = values, .count = CHECKED_TIMES};
    long inner = job.inner, delay = job.delay;
    set_size(job.construct == ATOMIC ? CHECKED_ADDITIONS : CHECKED + 4 * job.threads,
             CHECKED_DELAY);
    measure_construct(&times, 0);
    expect(!nb_short_delays(CHECKED_DELAY));
    set_size(inner, delay);
}

static struct nb_region run(struct nb_times *times, struct nb_times *reference)
{
    struct nb_region region;
    check();
    uint64_t before = nb_all_delays();
    job.total = 0;
    measure(job.construct == ATOMIC ? add_alone : alone, job.inner, reference, -1);
    uint64_t alone = (uint64_t)(reference->count * job.inner);
    expect(job.construct == ATOMIC ? fabs(job.total - (double)alone) < 0.5
                                   : nb_all_delays() - before == alone);
    nb_region_begin(&region);
    measure_construct(times, -1);
    nb_region_end(&region);
    expect(!nb_short_delays(job.delay));
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
    job.construct = (int)options[0].value;
    job.threads = omp_get_max_threads();
    set_size((long)options[2].value, (long)options[1].value);
    job.begun = calloc((size_t)job.threads, sizeof *job.begun);
    if (!job.begun || nb_find_counters("syncbench") ||
        nb_allocate_times("syncbench", &times, &reference))
        return 1;
    omp_init_lock(&job.lock);
    struct nb_region region = run(&times, &reference);
    snprintf(what, sizeof what, "construct=%s delay=%ld inner=%ld", constructs[job.construct],
             job.delay, executions());
    int status = nb_report_overhead("syncbench", constructs[job.construct], &region, &times,
                                    &reference, what, job.wrong);
    omp_destroy_lock(&job.lock);
    free(times.values), free(reference.values), free(job.begun), free(nb_counters);
    return status;
}
