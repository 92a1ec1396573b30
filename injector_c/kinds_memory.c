/* Noise of memory: its bandwidth, and the last cache. Buffers are mapped and touched when the lane
 * is armed; nothing ever takes more than half of what is available. */
#define _GNU_SOURCE
#include "kinds_internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { WALK_BYTES = 65536 };
static const int64_t LEAST_BUFFER = 64LL << 20, LARGEST_BUFFER = 1LL << 30;

static struct {
    unsigned char *bytes;
    int64_t size, at; /* at: where the walk is */
} memory;

/* MemAvailable of /proc/meminfo in bytes; 0 where it can't be read. */
static int64_t available_memory(void)
{
    char text[2048];
    const int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    const ssize_t got = pread(fd, text, sizeof text - 1, 0);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    const char *line = strstr(text, "MemAvailable:");
    return line ? strtoll(line + strlen("MemAvailable:"), NULL, 10) * 1024 : 0;
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
    const int64_t most = available_memory() / 2;
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
    memory.bytes = NULL;
}

static void touch(void)
{
    volatile unsigned char *bytes = memory.bytes;
    for (int64_t at = 0; at < memory.size; at += NB_PAGE_BYTES)
        bytes[at] = 1;
}

static int arm_touched(int64_t size)
{
    const int error = map(size);
    if (error)
        return error;
    madvise(memory.bytes, (size_t)memory.size, MADV_HUGEPAGE);
    touch();
    return 0;
}

/* Four times the last cache, so that none of it is still there when the walk comes round; with less
 * than twice it would be noise of a cache. */
static int arm_stream(const struct nb_injection *run, int cpu)
{
    (void)cpu;
    const struct nb_kind_options *options = &run->options;
    const int64_t largest = options->cache_bytes;
    const int64_t wanted = 4 * largest > LEAST_BUFFER ? 4 * largest : LEAST_BUFFER;
    const int error = arm_touched(
        nb_least(nb_least(wanted, LARGEST_BUFFER), options->memory_bytes));
    return error ? error : memory.size < nb_least(2 * largest, LARGEST_BUFFER) ? -ENOMEM : 0;
}

static int arm_cache(const struct nb_injection *run, int cpu)
{
    (void)cpu;
    const int64_t size = run->options.cache_bytes;
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

/* Walks over its buffer, a line or more a step. */
#define WALK(arms, steps) \
    {.arm = arms, .step = steps, .disarm = disarm, NB_PACED(NB_LINE_BYTES, WALK_BYTES)}

const struct nb_stressor nb_memory_stream = WALK(arm_stream, stream_lines);
const struct nb_stressor nb_cache = WALK(arm_cache, change_lines);
