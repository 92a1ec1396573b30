/* Programs whose threads work and wait in known ways, each by its own clock: `waits CASE`.
 *
 * Whatever computes does so by compute(), which notes from when to when. At the end a line for each
 * time: "TID from NS to NS" (CLOCK_MONOTONIC).
 */
#include <omp.h>
#include <sys/syscall.h>

#include "noisebook.h"

enum { MS = 1000000, MOST = 8192 };

static struct {
    long id;
    int64_t from_ns, to_ns;
} times[MOST];
static int time_count;

static void compute(double milliseconds)
{
    int number = __atomic_fetch_add(&time_count, 1, __ATOMIC_RELAXED) % MOST;
    times[number].id = syscall(SYS_gettid);
    int64_t begin = nb_now_ns(), now = begin;
    while (now < begin + (int64_t)(milliseconds * MS))
        now = nb_now_ns();
    times[number].from_ns = begin;
    times[number].to_ns = now;
}

static int me(void)
{
    return omp_get_thread_num();
}

static void imbalance(void)
{
    for (int region = 0; region < 4; region++)
#pragma omp parallel
        compute(me() ? 10 : 30);
}

static void barriers(void)
{
#pragma omp parallel
    for (int phase = 0; phase < 6; phase++) {
        compute(me() == phase % 2 ? 12 : 3);
#pragma omp barrier
    }
}

static void serial(void)
{
    for (int region = 0; region < 3; region++) {
        compute(20);
#pragma omp parallel
        compute(10);
    }
}

static void dynamic(void)
{
#pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < 9; i++)
        compute(i == 8 ? 40 : 5);
#pragma omp parallel
    {
#pragma omp for schedule(guided)
        for (int i = 0; i < 4; i++)
            compute(i ? 4 : 16);
#pragma omp for schedule(static)
        for (int i = 0; i < 2; i++)
            compute(i ? 4 : 16);
    }
}

static void nested(void)
{
    omp_set_max_active_levels(1);
#pragma omp parallel num_threads(2)
    {
        compute(me() ? 4 : 8);
#pragma omp parallel num_threads(2)
        compute(10);
        compute(2);
    }
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
        int outer = me();
#pragma omp parallel num_threads(2)
        compute(outer && me() ? 20 : 5);
    }
}

static void tasks(void)
{
#pragma omp parallel
#pragma omp single
    {
        for (int i = 0; i < 7; i++)
#pragma omp task
            compute(6);
#pragma omp taskwait
        compute(5);
#pragma omp taskloop grainsize(1)
        for (int i = 0; i < 3; i++)
            compute(8);
    }
}

static void locks(void)
{
#pragma omp parallel
    for (int i = 0; i < 5; i++) {
#pragma omp critical(named)
        compute(8);
    }
}

static void sections(void)
{
    double sum = 0;
#pragma omp parallel sections reduction(+ : sum)
    {
#pragma omp section
        {
            compute(25);
            sum += 1;
        }
#pragma omp section
        {
            compute(5);
            sum += 1;
        }
    }
#pragma omp parallel reduction(task, + : sum)
    {
        sum += 1;
        compute(me() ? 5 : 15);
    }
    if (sum < 2)
        exit(1);
}

static void changing(void)
{
    static const int counts[] = {2, 4, 1, 3, 2};
    for (int i = 0; i < 5; i++) {
#pragma omp parallel num_threads(counts[i])
        compute(me() ? 5 : 10);
        compute(3);
    }
}

/* The middle third may be slower: WAITS_SLOWER is by what factor. */
static void short_regions(void)
{
    const char *slower = getenv("WAITS_SLOWER");
    double factor = slower ? atof(slower) : 1;
    for (int region = 0; region < 300; region++) {
        double times = region / 100 == 1 ? factor : 1;
#pragma omp parallel
        compute((me() ? 0.02 : 0.06) * times);
    }
}

/* Many short regions in turn, each with a function of its own: compilers make one of equal ones. */
#define REGION _Pragma("omp parallel") compute(0.004 + 1e-9 * __COUNTER__);
#define FOUR REGION REGION REGION REGION
static void many(void)
{
    for (int turn = 0; turn < 100; turn++) {
        FOUR FOUR FOUR FOUR FOUR FOUR FOUR FOUR
    }
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"imbalance", imbalance}, {"barriers", barriers}, {"serial", serial},
                 {"dynamic", dynamic},     {"nested", nested},     {"tasks", tasks},
                 {"locks", locks},         {"sections", sections}, {"changing", changing},
                 {"short", short_regions}, {"many", many}};
#pragma omp parallel
    compute(1);
    time_count = 0;
    struct nb_region region;
    memset(&region, 0, sizeof region);
    nb_region_begin(&region);
    for (size_t i = 0; count > 1 && i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(cases[i].name, words[1]))
            cases[i].run();
    nb_region_end(&region);
    for (int i = 0; i < time_count; i++)
        printf("%ld from %lld to %lld\n", times[i].id, (long long)times[i].from_ns,
               (long long)times[i].to_ns);
    nb_region_print(&region, "waits", "verified=yes");
    return 0;
}
