/* The time of day of a program jumps: CLOCK_STEP is "monotonic ns, seconds", when and by how much.
 * Time that only goes on (CLOCK_MONOTONIC) is left alone, as when somebody sets the clock. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static int (*real)(clockid_t, struct timespec *);

static time_t step(void)
{
    static long long at_ns, step_s;
    struct timespec now;
    if (!real) {
        const char *const text = getenv("CLOCK_STEP");
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
        if (!text || sscanf(text, "%lld %lld", &at_ns, &step_s) != 2)
            step_s = 0;
    }
    real(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec >= at_ns ? step_s : 0;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    const time_t by = step();
    const int result = real(clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        time->tv_sec += by;
    return result;
}

time_t time(time_t *to)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to)
        *to = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict to, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    to->tv_sec = now.tv_sec;
    to->tv_usec = now.tv_nsec / 1000;
    return 0;
}
