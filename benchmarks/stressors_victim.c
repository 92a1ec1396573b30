/* What noise does to somebody: `stressors_victim WORK CPU LENGTH_NS FOLDER` says "ready", reads a start time (ns of CLOCK_MONOTONIC), repeats a
 * small piece of work on a CPU from then on, and prints how often it was done. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static unsigned char *buffer;
static int file = -1, folder = -1;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void walk(size_t bytes)
{
    static size_t at;
    for (int i = 0; i < 1024; i++, at = (at + 64) % bytes)
        *(volatile uint64_t *)(buffer + at) += 1;
}

static void spin(void)
{
    for (volatile int i = 0; i < 2000; i++)
        ;
}

static void stream(void)
{
    walk((size_t)96 << 20);
}

static void cache(void)
{
    walk((size_t)256 << 10);
}

static void last_cache(void)
{
    walk((size_t)8 << 20);
}

static void faults(void)
{
    madvise(buffer, 1 << 18, MADV_DONTNEED);
    for (int i = 0; i < 1 << 18; i += 4096)
        ((volatile unsigned char *)buffer)[i] = 1;
}

static void disk(void)
{
    static int64_t at;
    if (pwrite(file, buffer, 65536, at) != 65536 || fdatasync(file))
        exit(1);
    at = (at + 65536) % (4 << 20);
}

static void names(void)
{
    close(openat(folder, "name", O_CREAT | O_RDWR, 0600));
    unlinkat(folder, "name", 0);
}

static const struct {
    const char *name;
    void (*work)(void);
} victims[] = {{"spin", spin}, {"stream", stream}, {"cache", cache}, {"last_cache", last_cache}, {"faults", faults}, {"disk", disk}, {"names", names}};

int main(int count, char **words)
{
    if (count != 5)
        return 2;
    cpu_set_t place;
    CPU_ZERO(&place);
    CPU_SET(atoi(words[2]), &place);
    sched_setaffinity(0, sizeof place, &place);
    buffer = mmap(NULL, (size_t)96 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED)
        return 1;
    if (strcmp(words[1], "faults"))
        memset(buffer, 1, (size_t)96 << 20);
    folder = open(words[4], O_PATH | O_DIRECTORY);
    file = open(words[4], O_TMPFILE | O_RDWR, 0600);
    long long t0;
    if (puts("ready") < 0 || fflush(stdout) || scanf("%lld", &t0) != 1)
        return 1;
    const int64_t end = t0 + atoll(words[3]);
    const struct timespec start = {.tv_sec = t0 / 1000000000, .tv_nsec = t0 % 1000000000};
    for (size_t i = 0; i < sizeof victims / sizeof victims[0]; i++)
        if (!strcmp(words[1], victims[i].name)) {
            int64_t done = 0;
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &start, NULL);
            for (; now_ns() < end; done++)
                victims[i].work();
            return printf("%lld\n", (long long)done) < 0;
        }
    return 2;
}
