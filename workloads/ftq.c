/* ftq: how much work fits into a fixed time (FTQ), and how long a fixed work takes (FWQ), sample after sample, on each CPU.
 *
 * One pinned thread a CPU repeats a unit of integer work, some 100 ns. FTQ: units done within each quantum; quanta lie on a grid
 * of fixed times, so one that a detour covers whole counts 0 and a spectrum can be taken (Sottile and Minnich 2004). FWQ: time of
 * each portion of units, as many as take a quantum undisturbed.
 *   usage: ftq [--mode ftq|fwq] [--seconds S] [--quantum US] [--cpus LIST] [--out FILE]
 * FILE (native byte order): struct file_header, a struct file_thread a thread, then each thread's struct sample records.
 */
#include "ticks.h"

#include <math.h>
#include <pthread.h>

enum { UNIT_STEPS = 64, UNITS_A_BLOCK = 64, PATIENCE = 20, SPARE_SAMPLES = 2 };

struct sample {
    int64_t start_ns, value; /* from the region's start; units done (ftq) or ns taken (fwq) */
};

struct file_header {
    char magic[8];
    uint32_t version, threads;
    int64_t start_ns, end_ns, quantum_ns, fixed_work;
};

struct file_thread {
    int32_t cpu, finished;
    int64_t count, begin_ns, end_ns, units_a_sample; /* fwq: units of a portion; ftq: units that fit into a quantum undisturbed */
    double unit_ns, resolution_ns;
};

struct worker {
    struct file_thread result;
    struct sample *samples;
    pthread_t thread;
};

static struct {
    int64_t quantum_ns, length_ns, capacity;
    double tick_ns;
    int threads, tsc, fixed_work;
    cpu_set_t cpus;
    const char *out;
    struct worker *workers;
    struct nb_region region;
    pthread_barrier_t ready, go;
} job = {.quantum_ns = 1000000, .length_ns = 1000000000};

/* A chain of multiplications that no compiler shortens and no cache or other core delays. */
static inline __attribute__((always_inline)) uint64_t unit(uint64_t state)
{
    for (int i = 0; i < UNIT_STEPS; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        __asm__ volatile("" : "+r"(state));
    }
    return state;
}

static uint64_t portion(uint64_t state, int64_t units)
{
    for (int64_t i = 0; i < units; i++)
        state = unit(state);
    return state;
}

/* Length of a unit: the least of many blocks, for a disturbed one is only longer. `timed`: with the reading of the clock that ftq makes. */
static double unit_length_ns(int timed)
{
    int64_t least = INT64_MAX;
    uint64_t state = 1;
    for (int block = 0; block < 16 * NB_CALIBRATION_BLOCKS; block++) {
        int64_t begin = nb_ticks(job.tsc), end = begin;
        for (int i = 0; i < UNITS_A_BLOCK; i++) {
            state = unit(state);
            if (timed)
                end = nb_ticks(job.tsc);
        }
        end = nb_ticks(job.tsc);
        least = end > begin && end - begin < least ? end - begin : least;
    }
    return (double)least * job.tick_ns / UNITS_A_BLOCK;
}

static int64_t fixed_time(struct worker *worker, int64_t begin, int64_t quantum)
{
    uint64_t state = 1;
    int64_t now = begin, sample = 0;
    for (; sample < job.capacity; sample++) {
        const int64_t next = begin + (sample + 1) * quantum;
        int64_t units = 0;
        while (now < next) {
            state = unit(state);
            now = nb_ticks(job.tsc);
            units++;
        }
        worker->samples[sample] = (struct sample){begin + sample * quantum, units};
    }
    return sample;
}

static int64_t fixed_work(struct worker *worker, int64_t begin)
{
    const int64_t units = worker->result.units_a_sample, deadline = begin + (int64_t)(PATIENCE * (double)job.length_ns / job.tick_ns);
    uint64_t state = 1;
    int64_t now = begin, sample = 0;
    for (; sample < job.capacity && now < deadline; sample++) {
        int64_t start = now;
        state = portion(state, units);
        __asm__ volatile("" : : "r"(state));
        now = nb_ticks(job.tsc);
        worker->samples[sample] = (struct sample){start, now - start};
    }
    return sample;
}

/* Ticks into nanoseconds from the region's start. */
static void convert(struct worker *worker, struct nb_anchor begin, struct nb_anchor end)
{
    const double length = nb_ns_per_tick(begin, end);
    for (int64_t i = 0; i < worker->result.count; i++) {
        struct sample *sample = &worker->samples[i];
        double from_ns = (double)(sample->start_ns - begin.ticks) * length, taken_ns = (double)sample->value * length;
        *sample = (struct sample){begin.ns - job.region.start_ns + llround(from_ns), job.fixed_work ? llround(taken_ns) : sample->value};
    }
    worker->result.begin_ns = begin.ns - job.region.start_ns;
    worker->result.end_ns = end.ns - job.region.start_ns;
}

static void watch(struct worker *worker)
{
    struct nb_anchor begin = nb_anchor_now(job.tsc);
    worker->result.count = job.fixed_work ? fixed_work(worker, begin.ticks)
                                          : fixed_time(worker, begin.ticks, (int64_t)((double)job.quantum_ns / job.tick_ns));
    worker->result.finished = worker->result.count == job.capacity;
    convert(worker, begin, nb_anchor_now(job.tsc));
}

static void calibrate(struct worker *worker)
{
    worker->result.unit_ns = unit_length_ns(!job.fixed_work);
    worker->result.resolution_ns = (double)nb_resolution_ticks(job.tsc) * job.tick_ns;
    worker->result.units_a_sample = llround((double)job.quantum_ns / worker->result.unit_ns);
    if (worker->result.units_a_sample < 1)
        worker->result.units_a_sample = 1;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    nb_pin(worker->result.cpu);
    calibrate(worker);
    pthread_barrier_wait(&job.ready);
    pthread_barrier_wait(&job.go);
    watch(worker);
    pthread_barrier_wait(&job.go);
    pthread_barrier_wait(&job.ready); /* stays until the scheduler's sums have been read */
    return NULL;
}

static int prepare(void)
{
    job.threads = CPU_COUNT(&job.cpus);
    job.tick_ns = nb_tick_length_ns(job.tsc);
    job.capacity = job.length_ns / job.quantum_ns > 0 ? job.length_ns / job.quantum_ns : 1;
    job.workers = calloc((size_t)job.threads, sizeof *job.workers);
    if (!job.workers)
        return -ENOMEM;
    for (int cpu = 0, i = 0; i < job.threads; cpu++)
        if (CPU_ISSET(cpu, &job.cpus)) {
            size_t size = (size_t)(job.capacity + SPARE_SAMPLES) * sizeof(struct sample);
            job.workers[i].result.cpu = cpu;
            job.workers[i].samples = malloc(size);
            if (!job.workers[i].samples)
                return -ENOMEM;
            memset(job.workers[i++].samples, 1, size); /* a page fault within the region would be noise of our own making */
        }
    pthread_barrier_init(&job.ready, NULL, (unsigned)job.threads);
    pthread_barrier_init(&job.go, NULL, (unsigned)job.threads);
    for (int i = 1; i < job.threads; i++) {
        int error = pthread_create(&job.workers[i].thread, NULL, work, &job.workers[i]);
        if (error)
            return -error;
    }
    return nb_pin(job.workers[0].result.cpu);
}

static void measure(void)
{
    calibrate(&job.workers[0]);
    pthread_barrier_wait(&job.ready);
    nb_region_begin(&job.region);
    pthread_barrier_wait(&job.go);
    watch(&job.workers[0]);
    pthread_barrier_wait(&job.go);
    nb_region_end(&job.region);
    pthread_barrier_wait(&job.ready);
    for (int i = 1; i < job.threads; i++)
        pthread_join(job.workers[i].thread, NULL);
}

static int save(void)
{
    struct file_header header = {"nbquanta", 1, (uint32_t)job.threads, job.region.start_ns, job.region.end_ns, job.quantum_ns, job.fixed_work};
    FILE *file = job.out ? fopen(job.out, "wb") : NULL;
    if (!file)
        return job.out ? -errno : 0;
    size_t missing = 1 - fwrite(&header, sizeof header, 1, file);
    for (int i = 0; i < job.threads; i++)
        missing += 1 - fwrite(&job.workers[i].result, sizeof(struct file_thread), 1, file);
    for (int i = 0; i < job.threads; i++) {
        size_t count = (size_t)job.workers[i].result.count;
        missing += count - fwrite(job.workers[i].samples, sizeof(struct sample), count, file);
    }
    return fclose(file) || missing ? -EIO : 0;
}

static int report(int error)
{
    int64_t count = 0;
    int finished = 1;
    for (int i = 0; i < job.threads; i++) {
        count += job.workers[i].result.count;
        finished &= job.workers[i].result.finished;
    }
    if (error)
        fprintf(stderr, "ftq: cannot write %s: %s\n", job.out, strerror(-error));
    nb_region_print(&job.region, job.fixed_work ? "fwq" : "ftq", "threads=%d quantum_ns=%" PRId64 " unit_ns=%.3f samples=%" PRId64 " clock=%s verified=%s",
                    job.threads, job.quantum_ns, job.workers[0].result.unit_ns, count, job.tsc ? "tsc" : "monotonic",
                    finished && !error ? "yes" : "no");
    return finished && !error ? 0 : 1;
}

static int parse(int count, char **words)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return -errno;
    job.cpus = allowed;
    job.tsc = nb_tsc_trusted();
    for (int i = 1; i < count; i += 2) {
        const char *value = i + 1 < count ? words[i + 1] : "";
        char *end = NULL;
        double number = strtod(value, &end);
        int positive = end != value && !*end && number > 0 && number < 1e9;
        if (!strcmp(words[i], "--seconds") && positive && number <= 3600)
            job.length_ns = (int64_t)(number * 1e9);
        else if (!strcmp(words[i], "--quantum") && positive && number >= 10 && number <= 1e6)
            job.quantum_ns = (int64_t)(number * 1e3);
        else if (!strcmp(words[i], "--mode") && (!strcmp(value, "ftq") || !strcmp(value, "fwq")))
            job.fixed_work = value[1] == 'w';
        else if (!strcmp(words[i], "--out") && *value)
            job.out = value;
        else if (strcmp(words[i], "--cpus") || nb_parse_cpus(value, &allowed, &job.cpus))
            return -EINVAL;
    }
    return 0;
}

int main(int count, char **words)
{
    if (parse(count, words)) {
        fprintf(stderr, "usage: ftq [--mode ftq|fwq] [--seconds S] [--quantum US, 10 to 1000000] [--cpus LIST, such as 0,2-3, of CPUs that it may use]\n"
                        "           [--out FILE]\n");
        return 2;
    }
    int error = prepare();
    if (error) {
        fprintf(stderr, "ftq: cannot start: %s\n", strerror(-error));
        return 1;
    }
    measure();
    return report(save());
}
