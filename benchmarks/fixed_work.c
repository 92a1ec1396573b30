/* For benchmarks/ruler.py: chunks of fixed work, a parallel region each, clocked by the program.
 *
 *     fixed_work chain|triad CHUNKS
 *         chain: dependent multiplications and additions; triad: arrays that no cache holds
 *
 * Prints "FROM_NS TO_NS CPU_NS" of each chunk (CLOCK_MONOTONIC, CPU time of the thread).
 */
#include "noisebook.h"

enum { CHAIN = 600000, LENGTH = 1 << 19, MOST = 4096 };

static int64_t times[MOST][3];
static double first[LENGTH], second[LENGTH], third[LENGTH];
static volatile double result;

static int64_t cpu_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void chunk(int triad, int64_t *clock)
{
    clock[0] = nb_now_ns();
    clock[2] = cpu_ns();
    double value = result;
    for (int step = 0; !triad && step < CHAIN; step++)
        value = value * 0.999 + 0.001;
    for (int i = 0; triad && i < LENGTH; i++)
        first[i] = second[i] + 3 * third[i];
    result = value + first[LENGTH / 2];
    clock[2] = cpu_ns() - clock[2];
    clock[1] = nb_now_ns();
}

int main(int count, char **words)
{
    int triad = count == 3 && !strcmp(words[1], "triad"), chunks = count == 3 ? atoi(words[2]) : 0;
    struct nb_region region;
    memset(second, 1, sizeof second);
    memset(third, 1, sizeof third);
    nb_region_begin(&region);
    for (int i = 0; i < chunks && i < MOST; i++)
#pragma omp parallel num_threads(1)
        chunk(triad, times[i]);
    nb_region_end(&region);
    for (int i = 0; i < chunks && i < MOST; i++)
        printf("%lld %lld %lld\n", (long long)times[i][0], (long long)times[i][1],
               (long long)times[i][2]);
    nb_region_print(&region, "fixed_work", "verified=yes");
    return 0;
}
