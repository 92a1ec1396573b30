/* victim: small programs of one thread, each sensitive to one kind of disturbance, for the bench of
 * known causes.
 *
 *   victim WORK STEPS RETRIES [FILE]
 *
 * Does STEPS pieces of WORK in the timed region; each of RETRIES further pieces of computing is a
 * slow path that the program takes and counts. FILE is read by "map" and written by "disk".
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "noisebook.h"

enum { PAGE = 4096, LINE = 64, WALK = 4096, BLOCK = 1 << 20, CHUNK = 1 << 18 };
static const size_t HUGE_BYTES = (size_t)32 << 20, STREAM_BYTES = (size_t)64 << 20;

/* of the work, touched before the timed region where the work is not the touching itself */
static unsigned char *memory;
static size_t bytes;
static int file = -1;
static uint64_t state = 1;

static uint64_t next_random(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

/* One random cycle through all cache lines (Sattolo's shuffle), so that each load depends on the
 * one before. */
static int link_lines(void)
{
    size_t lines = bytes / LINE;
    uint32_t *order = malloc(lines * sizeof *order);
    if (!order)
        return -ENOMEM;
    for (size_t i = 0; i < lines; i++)
        order[i] = (uint32_t)i;
    for (size_t i = lines - 1; i > 0; i--) {
        size_t j = next_random() % i;
        uint32_t saved = order[i];
        order[i] = order[j], order[j] = saved;
    }
    for (size_t i = 0; i < lines; i++)
        *(uint64_t *)(memory + (size_t)order[i] * LINE) = (uint64_t)order[(i + 1) % lines] * LINE;
    free(order);
    return 0;
}

static int take(size_t wanted)
{
    bytes = wanted;
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? -errno : 0;
}

static int take_lines(size_t wanted)
{
    int error = take(wanted);
    return error ? error : link_lines();
}

static int begin_cache(const char *path)
{
    (void)path;
    return take_lines((size_t)512 << 10);
}
static int begin_last_cache(const char *path)
{
    (void)path;
    return take_lines((size_t)8 << 20);
}
static int begin_nothing(const char *path)
{
    (void)path;
    return 0;
}

static int begin_stream(const char *path)
{
    (void)path;
    int error = take(STREAM_BYTES);
    if (!error)
        memset(memory, 1, bytes);
    return error;
}

static int begin_disk(const char *path)
{
    file = path ? open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600) : -1;
    return file < 0 ? -errno : take(BLOCK);
}

static int begin_map(const char *path)
{
    struct stat found;
    file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0 || fstat(file, &found))
        return -errno;
    bytes = (size_t)found.st_size;
    memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
    return memory == MAP_FAILED ? -errno : bytes < PAGE ? -EINVAL : 0;
}

static int compute(long step)
{
    static volatile uint64_t last; /* so that the computing is not left out */
    (void)step;
    for (int i = 0; i < 4000; i++)
        next_random();
    last = state;
    (void)last;
    return 0;
}

static int chase(long step)
{
    static uint64_t at;
    (void)step;
    for (int i = 0; i < WALK; i++)
        at = *(volatile uint64_t *)(memory + at);
    return at < bytes ? 0 : -ERANGE;
}

static int stream(long step)
{
    uint64_t *half = (uint64_t *)(memory + bytes / 2), *other = (uint64_t *)memory;
    for (size_t i = 0; i < bytes / 2 / sizeof *half; i++)
        half[i] = 3 * other[i] + (uint64_t)step;
    return half[0] == 3 * other[0] + (uint64_t)step ? 0 : -ERANGE;
}

/* Computes, too: an allocator that gives memory back at once makes the touching alone a hundred
 * times slower. */
static int allocate(long step)
{
    volatile unsigned char *chunk = malloc(CHUNK);
    if (!chunk)
        return -ENOMEM;
    for (int i = 0; i < 50; i++)
        compute(step);
    for (int i = 0; i < CHUNK; i += PAGE / 4)
        chunk[i] = (unsigned char)step;
    free((void *)chunk);
    return 0;
}

/* Takes memory that may be huge pages, touches it at random, gives it back. */
static int huge(long step)
{
    int error = take(HUGE_BYTES);
    if (error)
        return error;
    /* a kernel without huge pages refuses, and that is a disturbance, too */
    madvise(memory, bytes, MADV_HUGEPAGE);
    for (int i = 0; i < 1 << 20; i++)
        memory[next_random() % bytes] += (unsigned char)step;
    return munmap(memory, bytes) ? -errno : 0;
}

static int map(long step)
{
    volatile const unsigned char *read_only = memory;
    for (size_t i = (size_t)step % PAGE; i < bytes; i += LINE)
        (void)read_only[i];
    return 0;
}

static int disk(long step)
{
    if (pwrite(file, memory, BLOCK, step % 16 * BLOCK) != BLOCK || fdatasync(file))
        return -errno;
    return 0;
}

static const struct work {
    const char *name;
    int (*begin)(const char *path);
    int (*step)(long step);
} works[] = {
    {"compute", begin_nothing, compute},
    {"cache", begin_cache, chase},
    {"last_cache", begin_last_cache, chase},
    {"stream", begin_stream, stream},
    {"allocate", begin_nothing, allocate},
    {"huge", begin_nothing, huge},
    {"map", begin_map, map},
    {"disk", begin_disk, disk}
};

static const struct work *find_work(const char *name)
{
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (!strcmp(works[i].name, name))
            return &works[i];
    return NULL;
}

static int do_steps(const struct work *work, long steps, long retries, long *retried)
{
    int error = 0;
    for (long step = 0; step < steps && !error; step++)
        error = work->step(step);
    for (*retried = 0; *retried < retries; ++*retried)
        compute(0);
    return error;
}

int main(int count, char **words)
{
    const struct work *work = count > 3 ? find_work(words[1]) : NULL;
    long steps = work ? atol(words[2]) : 0, retries = work ? atol(words[3]) : 0, retried = 0;
    if (!work || steps < 1 || retries < 0 || count > 5) {
        fprintf(stderr,
                "usage: %s compute|cache|last_cache|stream|allocate|huge|map|disk STEPS RETRIES "
                "[FILE]\n",
                words[0]);
        return 2;
    }
    int error = work->begin(count == 5 ? words[4] : NULL);
    struct nb_region region;
    nb_region_begin(&region);
    error = error ? error : do_steps(work, steps, retries, &retried);
    nb_region_end(&region);
    if (error)
        fprintf(stderr, "victim: %s: %s\n", work->name, strerror(-error));
    nb_region_print(&region, "victim", "work=%s steps=%ld retries=%ld verified=%s", work->name,
                    steps, retried, error ? "no" : "yes");
    return error ? 1 : 0;
}
