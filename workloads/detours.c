/* detours: what a program that only reads the clock sees of the machine's noise ("selfish detour", Beckman et al. 2006).
 *
 * One pinned thread a CPU reads CLOCK_MONOTONIC in a loop; two readings further apart than a threshold are a detour. A thread ends
 * when it has had its quantum of undisturbed time, so the work is fixed and the run takes quantum + noise.
 *   usage: detours [--seconds S] [--cpus LIST] [--threshold NS] [--capacity N] [--out FILE]
 * FILE (native byte order): struct file_header, a struct file_thread a thread, then each thread's struct detour records.
 */
#include "noisebook.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

enum { CALIBRATION_SAMPLES = 200000, HISTOGRAM = 8192, THRESHOLD_FACTOR = 10, LOWEST_THRESHOLD_NS = 200 };
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
    struct detour *detours;
    pthread_t thread;
};

static struct {
    int64_t quantum_ns, threshold_ns, resolution_ns, capacity;
    int threads;
    cpu_set_t cpus;
    const char *out;
    struct worker *workers;
    struct nb_region region;
    pthread_barrier_t ready, go;
} job = {.quantum_ns = 100000000, .capacity = 1 << 18};

/* Median time between two readings of the clock; the threshold is a multiple of it, so that a slow clock gets a higher one. */
static void calibrate(void)
{
    static int32_t histogram[HISTOGRAM];
    int64_t last = nb_now_ns(), below = 0;
    memset(histogram, 0, sizeof histogram);
    for (int i = 0; i < CALIBRATION_SAMPLES; i++) {
        int64_t now = nb_now_ns(), gap = now - last;
        histogram[gap < HISTOGRAM ? gap : HISTOGRAM - 1]++;
        last = now;
    }
    for (job.resolution_ns = 0; job.resolution_ns < HISTOGRAM; job.resolution_ns++)
        if ((below += histogram[job.resolution_ns]) > CALIBRATION_SAMPLES / 2)
            break;
    if (job.threshold_ns <= 0) {
        job.threshold_ns = THRESHOLD_FACTOR * job.resolution_ns;
        if (job.threshold_ns < LOWEST_THRESHOLD_NS)
            job.threshold_ns = LOWEST_THRESHOLD_NS;
    }
}

static void watch(struct worker *worker)
{
    const int64_t threshold = job.threshold_ns, quantum = job.quantum_ns, capacity = job.capacity, origin = job.region.start_ns;
    struct detour *detours = worker->detours;
    int64_t begin = nb_now_ns(), last = begin, undisturbed = 0, count = 0, lost = 0, samples = 0;
    const int64_t deadline = begin + PATIENCE * quantum + 1000000000;
    while (undisturbed < quantum && last < deadline) {
        int64_t now = nb_now_ns(), gap = now - last;
        samples++;
        if (gap <= threshold) {
            undisturbed += gap;
        } else if (count < capacity) {
            detours[count++] = (struct detour){last - origin, gap};
        } else {
            lost++;
        }
        last = now;
    }
    worker->result.finished = undisturbed >= quantum;
    worker->result.count = count;
    worker->result.lost = lost;
    worker->result.begin_ns = begin - origin;
    worker->result.end_ns = last - origin;
    worker->result.undisturbed_ns = undisturbed;
    worker->result.samples = samples;
}

static int pin(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    pin(worker->result.cpu);
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
    return -pin(job.workers[0].result.cpu);
}

static void measure(void)
{
    calibrate();
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
    struct file_header header = {"nbdetour", 1, (uint32_t)job.threads, job.region.start_ns, job.region.end_ns,
                                 job.quantum_ns, job.resolution_ns, job.threshold_ns};
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
    nb_region_print(&job.region, "detours", "threads=%d threshold_ns=%" PRId64 " resolution_ns=%" PRId64 " detours=%" PRId64
                    " detour_ns=%" PRId64 " lost=%" PRId64 " verified=%s", job.threads, job.threshold_ns, job.resolution_ns,
                    count, noise_ns, lost, finished && !error ? "yes" : "no");
    return finished && !error ? 0 : 1;
}

/* A list such as 0,2-5, of CPUs that we may use. */
static int parse_cpus(const char *text, cpu_set_t *allowed, cpu_set_t *cpus)
{
    CPU_ZERO(cpus);
    while (*text) {
        char *end;
        long first = strtol(text, &end, 10), last = first;
        if (end == text)
            return -EINVAL;
        if (*end == '-') {
            text = end + 1;
            last = strtol(text, &end, 10);
        }
        if (end == text || (*end && *end != ',') || first < 0 || last < first || last >= CPU_SETSIZE)
            return -EINVAL;
        for (long cpu = first; cpu <= last; cpu++) {
            if (!CPU_ISSET(cpu, allowed))
                return -EINVAL;
            CPU_SET(cpu, cpus);
        }
        text = *end ? end + 1 : end;
    }
    return CPU_COUNT(cpus) ? 0 : -EINVAL;
}

static int parse(int count, char **words)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return -errno;
    job.cpus = allowed;
    for (int i = 1; i < count; i += 2) {
        const char *value = i + 1 < count ? words[i + 1] : "";
        char *end = NULL;
        double number = strtod(value, &end);
        int positive = end != value && !*end && number > 0 && number < 1e9;
        if (!strcmp(words[i], "--seconds") && positive && number <= 3600)
            job.quantum_ns = (int64_t)(number * 1e9);
        else if (!strcmp(words[i], "--threshold") && positive)
            job.threshold_ns = (int64_t)number;
        else if (!strcmp(words[i], "--capacity") && positive && number <= 1 << 26)
            job.capacity = (int64_t)number;
        else if (!strcmp(words[i], "--out") && *value)
            job.out = value;
        else if (strcmp(words[i], "--cpus") || parse_cpus(value, &allowed, &job.cpus))
            return -EINVAL;
    }
    return 0;
}

int main(int count, char **words)
{
    if (parse(count, words)) {
        fprintf(stderr, "usage: detours [--seconds S] [--cpus LIST, such as 0,2-3, of CPUs that it may use] [--threshold NS]\n"
                        "               [--capacity DETOURS] [--out FILE]\n");
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
