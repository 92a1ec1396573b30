/* What the programs of the truth test have in common: work for some milliseconds, and their own
 * stamps. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void work_ms(int milliseconds)
{
    int64_t until_ns = now_ns() + (int64_t)milliseconds * 1000000;
    while (now_ns() < until_ns)
        ;
}

/* Into the file $TRUTH: after the begin and before the end, as a program that is right would have
 * it. */
static void tell_truth(int64_t begin_ns, int64_t end_ns)
{
    FILE *file = fopen(getenv("TRUTH"), "a");
    fprintf(file, "%lld %lld\n", (long long)begin_ns, (long long)end_ns);
    fclose(file);
}

#ifdef __cplusplus
}
#endif
