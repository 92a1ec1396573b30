/* A library with OpenMP inside, for programs that know nothing of it, as Python's packages have. */
#include <omp.h>
#include <time.h>

static long worked_ns;

static long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

/* How long it took by its own clock: longer, where another program has the CPU at its end. */
static long compute(long milliseconds)
{
    long begin = now_ns(), now = begin;
    while (now < begin + milliseconds * 1000000)
        now = now_ns();
    return now - begin;
}

/* By the threads but the first, in all calls. */
long worked(void)
{
    return worked_ns;
}

/* Ends with the runtime's function: the call leaves no address of this library. */
__attribute__((noinline)) void meet(void)
{
#pragma omp barrier
}

int run(void)
{
    int team = 0;
#pragma omp parallel num_threads(2)
    {
#pragma omp atomic
        team += omp_get_num_threads();
        if (omp_get_thread_num())
            worked_ns += compute(20);
        else
            compute(60);
        meet();
    }
    return team;
}
