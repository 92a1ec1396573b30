/* A library with OpenMP inside, for programs that know nothing of it, as Python's packages have. */
#include <omp.h>
#include <time.h>

static void compute(double milliseconds)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1e3 + (now.tv_nsec - begin.tv_nsec) / 1e6 < milliseconds);
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
        compute(omp_get_thread_num() ? 20 : 60);
        meet();
    }
    return team;
}
