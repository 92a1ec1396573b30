/* What noise does to somebody: `stressors_victim WORK CPU LENGTH_NS FOLDER CACHE_BYTES` says
 * "ready", reads a start time (ns of CLOCK_MONOTONIC), repeats a small piece of work on a CPU from
 * then on, and prints how often it was done. CACHE_BYTES: what `last_cache` wants of the L3 cache.
 */
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

enum { MEMORY = 96 << 20, LINE = 64, BLOCK = 65536, FILE_BYTES = 4 << 20 };

static unsigned char *buffer;
static int file = -1, direct = -1, folder = -1;
static void **next; /* line of a ring through a part of the buffer, in random order */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void spin(void)
{
    for (volatile int i = 0; i < 2000; i++)
        ;
}

static void stream(void)
{
    static size_t at;
    for (int i = 0; i < 1024; i++, at = (at + LINE) % MEMORY)
        *(volatile uint64_t *)(buffer + at) += 1;
}

/* Sattolo's shuffle: one ring through all lines, which no prefetcher foresees. */
static void make_ring(size_t bytes)
{
    const size_t count = bytes / LINE;
    uint64_t random = 88172645463325252ULL;
    for (size_t i = 0; i < count; i++)
        *(void **)(buffer + i * LINE) = buffer + i * LINE;
    for (size_t i = count - 1; i > 0; i--) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        void **const one = (void **)(buffer + i * LINE),
                     **const other = (void **)(buffer + random % i * LINE), *const saved = *one;
        *one = *other;
        *other = saved;
    }
    next = (void **)buffer;
}

/* Each load waits for the one before it: what it costs is the time of an access. */
static void last_cache(void)
{
    for (int i = 0; i < 1024; i++)
        next = *(void **volatile *)next;
}

/* Past the page cache. Whoever writes and syncs is served by the syncs of others, too, and may even
 * be faster beside them. */
static void disk_read(void)
{
    static int64_t at;
    if (pread(direct, buffer, BLOCK, at) != BLOCK)
        exit(1);
    at = (at + BLOCK) % FILE_BYTES;
}

static int open_files(const char *place)
{
    char name[64];
    folder = open(place, O_PATH | O_DIRECTORY);
    file = open(place, O_TMPFILE | O_RDWR, 0600);
    for (int64_t at = 0; at < FILE_BYTES; at += BLOCK)
        if (pwrite(file, buffer, BLOCK, at) != BLOCK)
            return -1;
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    direct = open(name, O_RDONLY | O_DIRECT);
    return direct < 0 ? -1 : fdatasync(file);
}

static void names(void)
{
    close(openat(folder, "name", O_CREAT | O_RDWR, 0600));
    unlinkat(folder, "name", 0);
}

static const struct {
    const char *name;
    void (*work)(void);
} victims[] = {
    {"spin", spin},
    {"stream", stream},
    {"last_cache", last_cache},
    {"disk_read", disk_read},
    {"names", names}
};

int main(int count, char **words)
{
    if (count != 6 || atoll(words[5]) < 2 * LINE || atoll(words[5]) > MEMORY)
        return 2;
    cpu_set_t place;
    CPU_ZERO(&place);
    CPU_SET(atoi(words[2]), &place);
    sched_setaffinity(0, sizeof place, &place);
    buffer = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED)
        return 1;
    memset(buffer, 1, MEMORY);
    if (open_files(words[4]))
        return 1;
    if (!strcmp(words[1], "last_cache"))
        make_ring((size_t)atoll(words[5]));
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
