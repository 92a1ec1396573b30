/* Noise of memory: bandwidth, caches, growth and leak. Buffers are mapped and touched when the lane
 * is armed; what grows is only reserved then, and given back at an event's end. Nothing ever takes
 * more than half of what is available. */
#define _GNU_SOURCE
#include "kinds_internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { WALK_BYTES = 65536, GROW_BYTES = 65536, LOOK_BYTES = 16777216 };
static const int64_t LEAST_BUFFER = 64LL << 20, LARGEST_BUFFER = 1LL << 30;

static struct {
    unsigned char *bytes;
    int64_t size, at; /* at: where the walk is, or how much is taken */
    /* of what grows: last look at the available memory, and what must be left of it */
    int64_t looked_at, floor;
    int meminfo;
} memory = {.meminfo = -1};

static int64_t read_available(int fd)
{
    char text[2048];
    const ssize_t got = pread(fd, text, sizeof text - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    const char *line = strstr(text, "MemAvailable:");
    return line ? strtoll(line + strlen("MemAvailable:"), NULL, 10) * 1024 : 0;
}

int64_t nb_available_memory(void)
{
    const int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    const int64_t available = read_available(fd);
    close(fd);
    return available;
}

/* If memory runs out all the same, the kernel ends this process and no other. */
static void volunteer(void)
{
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    const ssize_t written = write(fd, "1000", 4); /* refused: no worse than without */
    (void)written;
    close(fd);
}

static int map(int64_t size)
{
    const int64_t most = nb_available_memory() / 2;
    volunteer();
    memory.size = nb_least(size, most) / NB_PAGE_BYTES * NB_PAGE_BYTES;
    if (memory.size < NB_PAGE_BYTES)
        return -ENOMEM;
    void *bytes = mmap(NULL, (size_t)memory.size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED)
        return -errno;
    memory.bytes = bytes;
    memory.at = 0;
    return 0;
}

static void disarm(void)
{
    if (memory.bytes)
        munmap(memory.bytes, (size_t)memory.size);
    if (memory.meminfo >= 0)
        close(memory.meminfo);
    memory.bytes = NULL;
    memory.meminfo = -1;
}

static void touch(int64_t from, int64_t size)
{
    volatile unsigned char *bytes = memory.bytes;
    for (int64_t at = from; at < from + size; at += NB_PAGE_BYTES)
        bytes[at] = 1;
}

static int arm_touched(int64_t size)
{
    const int error = map(size);
    if (error)
        return error;
    madvise(memory.bytes, (size_t)memory.size, MADV_HUGEPAGE);
    touch(0, memory.size);
    return 0;
}

/* Four times the last cache, so that none of it is still there when the walk comes round; with less
 * than twice it would be noise of a cache. */
static int arm_stream(const struct nb_injection *run, int kind, int cpu)
{
    (void)kind, (void)cpu;
    const struct nb_kind_options *options = &run->options;
    int64_t largest = 0;
    for (int level = 0; level < 3; level++)
        if (options->cache_bytes[level] > largest)
            largest = options->cache_bytes[level];
    const int64_t wanted = 4 * largest > LEAST_BUFFER ? 4 * largest : LEAST_BUFFER;
    const int error = arm_touched(
        nb_least(nb_least(wanted, LARGEST_BUFFER), options->memory_bytes));
    return error ? error : memory.size < nb_least(2 * largest, LARGEST_BUFFER) ? -ENOMEM : 0;
}

static int arm_cache(const struct nb_injection *run, int kind, int cpu)
{
    (void)cpu;
    const int64_t size = run->options.cache_bytes[kind - NB_CACHE_L1];
    if (size <= 0)
        return -ENODEV;
    const int error = arm_touched(nb_least(size, run->options.memory_bytes));
    return error ? error : memory.size < size / NB_PAGE_BYTES * NB_PAGE_BYTES ? -ENOMEM : 0;
}

/* The next stretch of the walk; a step never goes beyond the buffer's end. */
static unsigned char *stretch(int64_t wanted, int64_t *size)
{
    const int64_t lines = (wanted + NB_LINE_BYTES - 1) / NB_LINE_BYTES * NB_LINE_BYTES;
    unsigned char *from = memory.bytes + memory.at;
    *size = nb_least(lines, memory.size - memory.at);
    memory.at = (memory.at + *size) % memory.size;
    return from;
}

static int64_t read_lines(int64_t wanted)
{
    int64_t size;
    const volatile unsigned char *from = stretch(wanted, &size);
    for (int64_t at = 0; at < size; at += NB_LINE_BYTES)
        (void)*(const volatile uint64_t *)(from + at);
    return size;
}

static int64_t write_lines(int64_t wanted)
{
    int64_t size;
    unsigned char *from = stretch(wanted, &size);
    for (int64_t at = 0; at < size; at += NB_LINE_BYTES)
        *(volatile uint64_t *)(from + at) = (uint64_t)wanted;
    return size;
}

static int64_t change_lines(int64_t wanted)
{
    int64_t size;
    unsigned char *from = stretch(wanted, &size);
    for (int64_t at = 0; at < size; at += NB_LINE_BYTES)
        *(volatile uint64_t *)(from + at) += 1;
    return size;
}

static int64_t stream_lines(int64_t wanted)
{
    int64_t size;
    unsigned char *from = stretch(wanted, &size);
#ifdef __SSE2__
    const __m128i zero = _mm_setzero_si128();
    for (int64_t at = 0; at < size; at += (int64_t)sizeof zero)
        _mm_stream_si128((__m128i *)(void *)(from + at), zero);
    _mm_sfence();
#else
    memset(from, 0, (size_t)size);
    __asm__ volatile("" : : "r"(from) : "memory");
#endif
    return size;
}

static int arm_growth(const struct nb_injection *run, int kind, int cpu)
{
    (void)kind, (void)cpu;
    const int error = map(run->options.memory_bytes);
    if (error)
        return error;
    memory.meminfo = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    if (memory.meminfo < 0)
        return -errno;
    memory.floor = read_available(memory.meminfo) / 2;
    memory.looked_at = -LOOK_BYTES;
    return 0;
}

/* Others may be growing too: looks again and again, and stops at half of what was available at
 * first. */
static bool may_grow(void)
{
    if (memory.at < memory.looked_at + LOOK_BYTES)
        return true;
    if (read_available(memory.meminfo) < memory.floor + LOOK_BYTES)
        return false;
    memory.looked_at = memory.at;
    return true;
}

static int64_t grow(int64_t wanted)
{
    const int64_t pages = (wanted + NB_PAGE_BYTES - 1) / NB_PAGE_BYTES * NB_PAGE_BYTES;
    const int64_t size = may_grow() ? nb_least(pages, memory.size - memory.at) : 0;
    touch(memory.at, size);
    memory.at += size;
    return size;
}

static void shrink(void)
{
    madvise(memory.bytes, (size_t)memory.at, MADV_DONTNEED);
    memory.at = 0;
    memory.looked_at = -LOOK_BYTES;
}

/* Walks over its buffer, a line or more a step. */
#define WALK(arms, steps) \
    {.arm = arms, .step = steps, .disarm = disarm, NB_PACED(NB_LINE_BYTES, WALK_BYTES)}

const struct nb_stressor nb_memory_read = WALK(arm_stream, read_lines);
const struct nb_stressor nb_memory_write = WALK(arm_stream, write_lines);
const struct nb_stressor nb_memory_stream = WALK(arm_stream, stream_lines);
const struct nb_stressor nb_cache = WALK(arm_cache, change_lines);
const struct nb_stressor nb_memory_hold = {
    .arm = arm_growth,
    .step = grow,
    .is_level = true,
    .finish = shrink,
    .disarm = disarm,
    NB_PACED(NB_PAGE_BYTES, GROW_BYTES)
};
const struct nb_stressor nb_memory_leak = {
    .arm = arm_growth,
    .step = grow,
    .finish = shrink,
    .disarm = disarm,
    NB_PACED(NB_PAGE_BYTES, GROW_BYTES)
};
