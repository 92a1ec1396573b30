/* detours: what a program that only reads the clock sees of the machine's noise ("selfish detour",
 * Beckman et al. 2006).
 *
 * One pinned thread a CPU reads the clock in a loop; two readings further apart than a threshold
 * are a detour. A thread ends when it has had its quantum of undisturbed time, so the work is fixed
 * and the run takes quantum + noise; or, with --for time, after the quantum.
 *
 *     detours [--seconds S] [--for work|time] [--cpus LIST] [--threshold NS]
 *             [--clock tsc|monotonic] [--capacity N] [--out FILE]
 *
 * FILE: struct file_header, struct file_thread, struct detour; see watch.h.
 */
#include "watch.h"

#include <math.h>

enum { THRESHOLD_FACTOR = 10, LOWEST_THRESHOLD_NS = 200 };
/* gives up after so many quanta: a threshold below the loop's own time would never end */
enum { PATIENCE = 20 };

struct detour {
    int64_t start_ns, duration_ns; /* start counts from the region's start */
};

struct file_header {
    struct nb_file_start start;
    int64_t quantum_ns, resolution_ns, threshold_ns;
};

struct file_thread {
    int32_t cpu, finished;
    /* begin and end count from the region's start */
    int64_t count, lost, begin_ns, end_ns, undisturbed_ns, samples;
};

static struct {
    int64_t threshold_ns, capacity;
    double resolution_ns;
    int fixed_time, threshold_given;
    struct file_thread *results;
    int64_t *resolution_ticks; /* of each thread */
} job = {.capacity = 1 << 18};

static struct nb_team team;

/* Of all CPUs the slowest clock counts. Its threshold is a multiple of a reading, so that a slow
 * clock gets a higher one. */
static void choose_threshold(void)
{
    int64_t readings = 1;
    for (int i = 0; i < team.threads; i++)
        if (job.resolution_ticks[i] > readings)
            readings = job.resolution_ticks[i];
    job.resolution_ns = (double)readings * team.tick_ns;
    if (job.threshold_ns <= 0)
        job.threshold_ns = (int64_t)ceil(THRESHOLD_FACTOR * job.resolution_ns);
    if (!job.threshold_given && job.threshold_ns < LOWEST_THRESHOLD_NS)
        job.threshold_ns = LOWEST_THRESHOLD_NS;
}

/* What the loop has counted in ticks, in nanoseconds from the region's start. Both ends of a detour
 * are rounded, not its length, so that neighbours never overlap. */
static void convert(struct nb_watcher *self, struct file_thread *result, struct nb_anchor begin,
                    struct nb_anchor end, int64_t lost_ticks)
{
    const double length = nb_ns_per_tick(begin, end);
    struct detour *detours = self->records;
    int64_t detours_ns = 0;
    for (int64_t i = 0; i < self->count; i++) {
        struct detour *detour = &detours[i];
        int64_t from = detour->start_ns - begin.ticks, to = from + detour->duration_ns;
        int64_t from_ns = (int64_t)((double)from * length), to_ns = (int64_t)((double)to * length);
        *detour = (struct detour){begin.ns - team.region.start_ns + from_ns, to_ns - from_ns};
        detours_ns += to_ns - from_ns;
    }
    result->begin_ns = begin.ns - team.region.start_ns;
    result->end_ns = end.ns - team.region.start_ns;
    result->undisturbed_ns = end.ns - begin.ns - detours_ns -
                             (int64_t)((double)lost_ticks * length);
}

static inline __attribute__((always_inline)) void watch_by(struct nb_watcher *self, int tsc)
{
    const int64_t threshold = (int64_t)ceil((double)(job.threshold_ns + 1) / team.tick_ns);
    const int64_t quantum = (int64_t)((double)team.length_ns / team.tick_ns),
                  capacity = job.capacity;
    const int fixed_time = job.fixed_time;
    struct detour *detours = self->records;
    struct file_thread *result = &job.results[self->index];
    struct nb_anchor begin = nb_anchor_now(tsc);
    int64_t last = begin.ticks, count = 0, lost = 0, lost_ticks = 0, samples = 0,
            stop = begin.ticks + quantum;
    const int64_t deadline = begin.ticks + PATIENCE * quantum + (int64_t)(1e9 / team.tick_ns);
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
    result->finished = (fixed_time || last < deadline) &&
                       (double)job.threshold_ns > job.resolution_ns;
    result->count = self->count = count;
    result->lost = lost;
    result->samples = samples;
    convert(self, result, begin, end, lost_ticks);
}

static void watch(struct nb_watcher *self)
{
    if (team.tsc)
        watch_by(self, 1);
    else
        watch_by(self, 0);
}

static void calibrate(struct nb_watcher *self)
{
    job.results[self->index].cpu = self->cpu;
    job.resolution_ticks[self->index] = nb_resolution_ticks(team.tsc);
}

static int save(void)
{
    struct file_header header = {
        nb_team_file_start(&team, "nbdetour"), team.length_ns,
        job.resolution_ns < 1 ? 1 : llround(job.resolution_ns), job.threshold_ns
    };
    return nb_team_save(&team, &header, sizeof header, job.results, sizeof *job.results,
                        sizeof(struct detour));
}

static int report(int error)
{
    int64_t count = 0, lost = 0, noise_ns = 0;
    int finished = 1;
    for (int i = 0; i < team.threads; i++) {
        const struct file_thread *result = &job.results[i];
        count += result->count;
        lost += result->lost;
        noise_ns += result->end_ns - result->begin_ns - result->undisturbed_ns;
        finished &= result->finished;
    }
    nb_region_print(
        &team.region, "detours",
        "threads=%d threshold_ns=%" PRId64 " resolution_ns=%.3f clock=%s detours=%" PRId64
        " detour_ns=%" PRId64 " lost=%" PRId64 " verified=%s",
        team.threads, job.threshold_ns, job.resolution_ns, team.tsc ? "tsc" : "monotonic", count,
        noise_ns, lost, finished && !error ? "yes" : "no");
    return finished && !error ? 0 : 1;
}

static int take_option(const char *option, const char *value)
{
    double number = nb_positive(value);
    if (!strcmp(option, "--threshold") && number > 0)
        job.threshold_ns = (int64_t)number, job.threshold_given = 1;
    else if (!strcmp(option, "--capacity") && number > 0 && number <= 1 << 26)
        job.capacity = (int64_t)number;
    else if (!strcmp(option, "--for") && (!strcmp(value, "work") || !strcmp(value, "time")))
        job.fixed_time = *value == 't';
    else if (!strcmp(option, "--clock") &&
             (!strcmp(value, "monotonic") || (!strcmp(value, "tsc") && nb_tsc_trusted())))
        team.tsc = *value == 't';
    else
        return 0;
    return 1;
}

int main(int count, char **words)
{
    team = (struct nb_team){
        .name = "detours",
        .option = take_option,
        .calibrate = calibrate,
        .agree = choose_threshold,
        .watch = watch,
        .length_ns = 100000000
    };
    if (nb_team_parse(&team, count, words)) {
        fprintf(stderr, "usage: detours [--seconds S] [--cpus LIST, such as 0,2-3, of CPUs that it "
                        "may use] [--threshold NS]\n"
                        "               [--for work (so long undisturbed) or time] [--clock tsc or "
                        "monotonic] [--capacity DETOURS] [--out FILE]\n");
        return 2;
    }
    size_t threads = (size_t)CPU_COUNT(&team.cpus);
    job.results = calloc(threads, sizeof *job.results);
    job.resolution_ticks = calloc(threads, sizeof *job.resolution_ticks);
    if (!job.results || !job.resolution_ticks ||
        nb_team_watch(&team, (size_t)job.capacity * sizeof(struct detour)))
        return 1;
    return report(save());
}
