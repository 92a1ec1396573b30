/* detours: what a program that only reads the clock sees of the machine's noise ("selfish detour", Beckman et al. 2006).
 *
 * One pinned thread a CPU reads the clock in a loop; two readings further apart than a threshold are a detour. A thread ends when it
 * has had its quantum of undisturbed time, so the work is fixed and the run takes quantum + noise; or, with --for time, after the quantum.
 *   usage: detours [--seconds S] [--for work|time] [--cpus LIST] [--threshold NS] [--clock tsc|monotonic] [--capacity N] [--out FILE]
 * FILE (native byte order): struct file_header, a struct file_thread a thread, then each thread's struct detour records.
 */
#include "ticks.h"

#include <math.h>
#include <pthread.h>
#include <sys/mman.h>

enum { THRESHOLD_FACTOR = 10, LOWEST_THRESHOLD_NS = 200 };
enum { PATIENCE = 20 }; /* gives up after so many quanta: a threshold below the loop's own time would never end */

struct detour {
    int64_t start_ns, duration_ns; /* start counts from the region's start */
};

struct file_header {
    char magic[8];
    uint32_t version, threads;
    int64_t start_ns, end_ns, quantum_ns, resolution_ns, threshold_ns;
};

struct file_thread {
    int32_t cpu, finished;
    int64_t count, lost, begin_ns, end_ns, undisturbed_ns, samples; /* begin and end count from the region's start */
};

struct worker {
    struct file_thread result;
    struct detour *detours; /* within the loop in ticks */
    int64_t resolution_ticks;
    pthread_t thread;
};

static struct {
    int64_t quantum_ns, threshold_ns, capacity;
    double tick_ns, resolution_ns;
    int threads, tsc, fixed_time, threshold_given;
    cpu_set_t cpus;
    const char *out;
    struct worker *workers;
    struct nb_region region;
    pthread_barrier_t ready, go;
} job = {.quantum_ns = 100000000, .capacity = 1 << 18};

/* Of all CPUs the slowest clock counts. Its threshold is a multiple of a reading, so that a slow clock gets a higher one. */
static void choose_threshold(void)
{
    int64_t readings = 1;
    for (int i = 0; i < job.threads; i++)
        if (job.workers[i].resolution_ticks > readings)
            readings = job.workers[i].resolution_ticks;
    job.resolution_ns = (double)readings * job.tick_ns;
    if (job.threshold_ns <= 0)
        job.threshold_ns = (int64_t)ceil(THRESHOLD_FACTOR * job.resolution_ns);
    if (!job.threshold_given && job.threshold_ns < LOWEST_THRESHOLD_NS)
        job.threshold_ns = LOWEST_THRESHOLD_NS;
}

/* What the loop has counted in ticks, in nanoseconds from the region's start. Both ends of a detour are rounded, not its length,
 * so that neighbours never overlap. */
static void convert(struct worker *worker, struct nb_anchor begin, struct nb_anchor end, int64_t lost_ticks)
{
    const double length = nb_ns_per_tick(begin, end);
    int64_t detours_ns = 0;
    for (int64_t i = 0; i < worker->result.count; i++) {
        struct detour *detour = &worker->detours[i];
        int64_t from = detour->start_ns - begin.ticks, to = from + detour->duration_ns;
        int64_t from_ns = (int64_t)((double)from * length), to_ns = (int64_t)((double)to * length);
        *detour = (struct detour){begin.ns - job.region.start_ns + from_ns, to_ns - from_ns};
        detours_ns += to_ns - from_ns;
    }
    worker->result.begin_ns = begin.ns - job.region.start_ns;
    worker->result.end_ns = end.ns - job.region.start_ns;
    worker->result.undisturbed_ns = end.ns - begin.ns - detours_ns - (int64_t)((double)lost_ticks * length);
}

static inline __attribute__((always_inline)) void watch_by(struct worker *worker, int tsc)
{
    const int64_t threshold = (int64_t)ceil((double)(job.threshold_ns + 1) / job.tick_ns);
    const int64_t quantum = (int64_t)((double)job.quantum_ns / job.tick_ns), capacity = job.capacity;
    const int fixed_time = job.fixed_time;
    struct detour *detours = worker->detours;
    struct nb_anchor begin = nb_anchor_now(tsc);
    int64_t last = begin.ticks, count = 0, lost = 0, lost_ticks = 0, samples = 0, stop = begin.ticks + quantum;
    const int64_t deadline = begin.ticks + PATIENCE * quantum + (int64_t)(1e9 / job.tick_ns);
    while (last < stop && last < deadline) {
        int64_t now = nb_ticks(tsc), gap = now - last;
        samples++;
        if (__builtin_expect(gap > threshold, 0)) {
            if (count < capacity) {
                detours[count++] = (struct detour){last, gap};
            } else {
                lost++;
                lost_ticks += gap;
            }
            stop += fixed_time ? 0 : gap;
        }
        last = now;
    }
    struct nb_anchor end = nb_anchor_now(tsc);
    worker->result.finished = (fixed_time || last < deadline) && (double)job.threshold_ns > job.resolution_ns;
    worker->result.count = count;
    worker->result.lost = lost;
    worker->result.samples = samples;
    convert(worker, begin, end, lost_ticks);
}

static void watch(struct worker *worker)
{
    if (job.tsc)
        watch_by(worker, 1);
    else
        watch_by(worker, 0);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    nb_pin(worker->result.cpu);
    worker->resolution_ticks = nb_resolution_ticks(job.tsc);
    pthread_barrier_wait(&job.ready);
    pthread_barrier_wait(&job.go);
    watch(worker);
    pthread_barrier_wait(&job.go);
    pthread_barrier_wait(&job.ready); /* stays until the scheduler's sums have been read */
    return NULL;
}

/* Records that are written to for the first time within the region would be page faults, that is detours of our own making. */
static struct detour *touched_records(void)
{
    size_t size = (size_t)job.capacity * sizeof(struct detour);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    memset(memory, 1, size);
    mlock(memory, size); /* allowed or not: it is only a second safety */
    return memory;
}

static int prepare(void)
{
    job.threads = CPU_COUNT(&job.cpus);
    job.tick_ns = nb_tick_length_ns(job.tsc);
    job.workers = calloc((size_t)job.threads, sizeof *job.workers);
    if (!job.workers)
        return -ENOMEM;
    for (int cpu = 0, i = 0; i < job.threads; cpu++)
        if (CPU_ISSET(cpu, &job.cpus)) {
            job.workers[i].result.cpu = cpu;
            job.workers[i].detours = touched_records();
            if (!job.workers[i++].detours)
                return -ENOMEM;
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
    job.workers[0].resolution_ticks = nb_resolution_ticks(job.tsc);
    pthread_barrier_wait(&job.ready);
    choose_threshold();
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
    struct file_header header = {"nbdetour", 1, (uint32_t)job.threads, job.region.start_ns, job.region.end_ns,
                                 job.quantum_ns, job.resolution_ns < 1 ? 1 : llround(job.resolution_ns), job.threshold_ns};
    FILE *file = job.out ? fopen(job.out, "wb") : NULL;
    if (!file)
        return job.out ? -errno : 0;
    size_t missing = 1 - fwrite(&header, sizeof header, 1, file);
    for (int i = 0; i < job.threads; i++)
        missing += 1 - fwrite(&job.workers[i].result, sizeof(struct file_thread), 1, file);
    for (int i = 0; i < job.threads; i++) {
        size_t count = (size_t)job.workers[i].result.count;
        missing += count - fwrite(job.workers[i].detours, sizeof(struct detour), count, file);
    }
    return fclose(file) || missing ? -EIO : 0;
}

static int report(int error)
{
    int64_t count = 0, lost = 0, noise_ns = 0;
    int finished = 1;
    for (int i = 0; i < job.threads; i++) {
        const struct file_thread *result = &job.workers[i].result;
        count += result->count;
        lost += result->lost;
        noise_ns += result->end_ns - result->begin_ns - result->undisturbed_ns;
        finished &= result->finished;
    }
    if (error)
        fprintf(stderr, "detours: cannot write %s: %s\n", job.out, strerror(-error));
    nb_region_print(&job.region, "detours", "threads=%d threshold_ns=%" PRId64 " resolution_ns=%.3f clock=%s detours=%" PRId64
                    " detour_ns=%" PRId64 " lost=%" PRId64 " verified=%s", job.threads, job.threshold_ns, job.resolution_ns,
                    job.tsc ? "tsc" : "monotonic", count, noise_ns, lost, finished && !error ? "yes" : "no");
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
            job.quantum_ns = (int64_t)(number * 1e9);
        else if (!strcmp(words[i], "--threshold") && positive)
            job.threshold_ns = (int64_t)number, job.threshold_given = 1;
        else if (!strcmp(words[i], "--capacity") && positive && number <= 1 << 26)
            job.capacity = (int64_t)number;
        else if (!strcmp(words[i], "--for") && (!strcmp(value, "work") || !strcmp(value, "time")))
            job.fixed_time = *value == 't';
        else if (!strcmp(words[i], "--clock") && (!strcmp(value, "monotonic") || (!strcmp(value, "tsc") && nb_tsc_trusted())))
            job.tsc = *value == 't';
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
        fprintf(stderr, "usage: detours [--seconds S] [--cpus LIST, such as 0,2-3, of CPUs that it may use] [--threshold NS]\n"
                        "               [--for work (so long undisturbed) or time] [--clock tsc or monotonic] [--capacity DETOURS] [--out FILE]\n");
        return 2;
    }
    int error = prepare();
    if (error) {
        fprintf(stderr, "detours: cannot start: %s\n", strerror(-error));
        return 1;
    }
    measure();
    return report(save());
}
