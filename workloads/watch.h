/* watch.h: one pinned thread a CPU, all watching within one timed region, and the file of what they
 * saw; for detours.
 *
 * A program fills a struct nb_team (what each thread does, by index), and calls nb_team_parse,
 * nb_team_watch and nb_team_save. FILE (native byte order): the program's header, which begins with
 * struct nb_file_start, its result of each thread, then each thread's records.
 */
#ifndef NB_WATCH_H
#define NB_WATCH_H

#include "cpus.h"
#include "ticks.h"

#include <pthread.h>
#include <sys/mman.h>

struct nb_team;

struct nb_watcher {
    struct nb_team *team;
    void *records;
    int64_t count; /* of records */
    pthread_t thread;
    int index, cpu;
};

struct nb_file_start {
    char magic[8];
    uint32_t version, threads;
    int64_t start_ns, end_ns; /* of the region */
};

struct nb_team {
    const char *name, *out;
    /* takes an option of the program's own; false: it is none, or does not fit */
    int (*option)(const char *option, const char *value);
    void (*calibrate)(struct nb_watcher *self); /* on its own CPU, before the region */
    void (*agree)(void);                        /* once all have calibrated; or NULL */
    void (*watch)(struct nb_watcher *self);     /* the region */
    struct nb_watcher *watchers;
    struct nb_region region;
    pthread_barrier_t ready, go;
    cpu_set_t allowed, cpus;
    double tick_ns;
    int64_t length_ns;
    int threads, tsc;
};

/* The CPUs that we may use, the clock and so the length of its tick. */
static inline int nb_team_begin(struct nb_team *team)
{
    if (sched_getaffinity(0, sizeof team->allowed, &team->allowed))
        return -errno;
    team->cpus = team->allowed;
    team->tsc = nb_tsc_trusted();
    return 0;
}

/* A number in full, above 0 and below 10^9; else 0. */
static inline double nb_positive(const char *text)
{
    char *end = NULL;
    double number = strtod(text, &end);
    return end != text && !*end && number > 0 && number < 1e9 ? number : 0;
}

/* The options that all watching programs have: --seconds, --cpus, --out; 0 if it was one of them
 * and fits. */
static inline int nb_team_option(struct nb_team *team, const char *option, const char *value)
{
    double number = nb_positive(value);
    if (!strcmp(option, "--seconds") && number > 0 && number <= 3600)
        team->length_ns = (int64_t)(number * 1e9);
    else if (!strcmp(option, "--out") && *value)
        team->out = value;
    else if (strcmp(option, "--cpus") || nb_parse_cpus(value, &team->allowed, &team->cpus))
        return -EINVAL;
    return 0;
}

/* The command line; 0, or -errno. */
static inline int nb_team_parse(struct nb_team *team, int count, char **words)
{
    if (nb_team_begin(team))
        return -EINVAL;
    for (int i = 1; i < count; i += 2) {
        const char *value = i + 1 < count ? words[i + 1] : "";
        if (!team->option(words[i], value) && nb_team_option(team, words[i], value))
            return -EINVAL;
    }
    return 0;
}

/* Records that are written to for the first time within the region would be page faults, that is
 * noise of our own making. */
static inline void *nb_touched(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    memset(memory, 1, size);
    mlock(memory, size); /* allowed or not: it is only a second safety */
    return memory;
}

static inline void *nb_team_work(void *argument)
{
    struct nb_watcher *self = argument;
    struct nb_team *team = self->team;
    nb_pin(self->cpu);
    team->calibrate(self);
    pthread_barrier_wait(&team->ready);
    pthread_barrier_wait(&team->go);
    team->watch(self);
    pthread_barrier_wait(&team->go);
    pthread_barrier_wait(&team->ready); /* stays until the scheduler's sums have been read */
    return NULL;
}

static inline int nb_team_start(struct nb_team *team, size_t records_size)
{
    team->threads = CPU_COUNT(&team->cpus);
    team->tick_ns = nb_tick_length_ns(team->tsc);
    team->watchers = calloc((size_t)team->threads, sizeof *team->watchers);
    if (!team->watchers)
        return -ENOMEM;
    for (int cpu = 0, i = 0; i < team->threads; cpu++)
        if (CPU_ISSET(cpu, &team->cpus)) {
            team->watchers[i] = (struct nb_watcher){
                .team = team, .index = i, .cpu = cpu, .records = nb_touched(records_size)
            };
            if (!team->watchers[i++].records)
                return -ENOMEM;
        }
    pthread_barrier_init(&team->ready, NULL, (unsigned)team->threads);
    pthread_barrier_init(&team->go, NULL, (unsigned)team->threads);
    for (int i = 1; i < team->threads; i++) {
        int error = pthread_create(&team->watchers[i].thread, NULL, nb_team_work,
                                   &team->watchers[i]);
        if (error)
            return -error;
    }
    return nb_pin(team->watchers[0].cpu);
}

/* All threads watch, this one too; each has room for records of so many bytes. 0, or a message was
 * printed. */
static inline int nb_team_watch(struct nb_team *team, size_t records_size)
{
    int error = nb_team_start(team, records_size);
    if (error) {
        fprintf(stderr, "%s: cannot start: %s\n", team->name, strerror(-error));
        return error;
    }
    team->calibrate(&team->watchers[0]);
    pthread_barrier_wait(&team->ready);
    if (team->agree)
        team->agree();
    nb_region_begin(&team->region);
    pthread_barrier_wait(&team->go);
    team->watch(&team->watchers[0]);
    pthread_barrier_wait(&team->go);
    nb_region_end(&team->region);
    pthread_barrier_wait(&team->ready);
    for (int i = 1; i < team->threads; i++)
        pthread_join(team->watchers[i].thread, NULL);
    return 0;
}

static inline struct nb_file_start nb_team_file_start(const struct nb_team *team,
                                                      const char magic[8])
{
    struct nb_file_start start = {
        .version = 1,
        .threads = (uint32_t)team->threads,
        .start_ns = team->region.start_ns,
        .end_ns = team->region.end_ns
    };
    memcpy(start.magic, magic, sizeof start.magic);
    return start;
}

/* `results` holds one of `result_size` bytes a thread. 0, also where no file was asked for; or a
 * message was printed. */
static inline int nb_team_save(const struct nb_team *team, const void *header, size_t header_size,
                               const void *results, size_t result_size, size_t record_size)
{
    if (!team->out)
        return 0;
    FILE *file = fopen(team->out, "wb");
    size_t threads = (size_t)team->threads;
    int complete = file && fwrite(header, header_size, 1, file) == 1 &&
                   fwrite(results, result_size, threads, file) == threads;
    for (int i = 0; complete && i < team->threads; i++) {
        size_t count = (size_t)team->watchers[i].count;
        complete = fwrite(team->watchers[i].records, record_size, count, file) == count;
    }
    int error = complete ? 0 : errno;
    if (file && fclose(file) && !error)
        error = errno;
    if (error)
        fprintf(stderr, "%s: cannot write %s: %s\n", team->name, team->out, strerror(error));
    return -error;
}

#endif
