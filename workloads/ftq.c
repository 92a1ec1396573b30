/* ftq: how much work fits into a fixed time (FTQ), and how long a fixed work takes (FWQ), sample
 * after sample, on each CPU.
 *
 * One pinned thread a CPU repeats a unit of integer work, some 100 ns. FTQ: units done within each
 * quantum; quanta lie on a grid of fixed times, so one that a detour covers whole counts 0 and a
 * spectrum can be taken (Sottile and Minnich 2004). FWQ: time of each portion of units, as many as
 * take a quantum undisturbed.
 *
 *     ftq [--mode ftq|fwq] [--seconds S] [--quantum US] [--cpus LIST] [--out FILE]
 *
 * FILE: struct file_header, struct file_thread, struct sample; see watch.h.
 */
#include "watch.h"

#include <math.h>

enum { UNIT_STEPS = 64, UNITS_A_BLOCK = 64, PATIENCE = 20, SPARE_SAMPLES = 2 };

struct sample {
    int64_t start_ns, value; /* from the region's start; units done (ftq) or ns taken (fwq) */
};

struct file_header {
    struct nb_file_start start;
    int64_t quantum_ns, fixed_work;
};

struct file_thread {
    int32_t cpu, finished;
    /* fwq: units of a portion; ftq: units that fit into a quantum undisturbed */
    int64_t count, begin_ns, end_ns, units_a_sample;
    double unit_ns, resolution_ns;
};

static struct {
    int64_t quantum_ns, capacity;
    int fixed_work;
    struct file_thread *results;
} job = {.quantum_ns = 1000000};

static struct nb_team team;

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

/* Length of a unit: the least of many blocks, for a disturbed one is only longer. `timed`: with the
 * reading of the clock that ftq makes. */
static double unit_length_ns(int timed)
{
    int64_t least = INT64_MAX;
    uint64_t state = 1;
    for (int block = 0; block < 16 * NB_CALIBRATION_BLOCKS; block++) {
        int64_t begin = nb_ticks(team.tsc), end = begin;
        for (int i = 0; i < UNITS_A_BLOCK; i++) {
            state = unit(state);
            if (timed)
                end = nb_ticks(team.tsc);
        }
        end = nb_ticks(team.tsc);
        least = end > begin && end - begin < least ? end - begin : least;
    }
    return (double)least * team.tick_ns / UNITS_A_BLOCK;
}

static int64_t fixed_time(struct sample *samples, int64_t begin, int64_t quantum)
{
    uint64_t state = 1;
    int64_t now = begin, sample = 0;
    for (; sample < job.capacity; sample++) {
        const int64_t next = begin + (sample + 1) * quantum;
        int64_t units = 0;
        while (now < next) {
            state = unit(state);
            now = nb_ticks(team.tsc);
            units++;
        }
        samples[sample] = (struct sample){begin + sample * quantum, units};
    }
    return sample;
}

static int64_t fixed_work(struct sample *samples, int64_t begin, int64_t units)
{
    const int64_t deadline = begin + (int64_t)(PATIENCE * (double)team.length_ns / team.tick_ns);
    uint64_t state = 1;
    int64_t now = begin, sample = 0;
    for (; sample < job.capacity && now < deadline; sample++) {
        int64_t start = now;
        state = portion(state, units);
        __asm__ volatile("" : : "r"(state));
        now = nb_ticks(team.tsc);
        samples[sample] = (struct sample){start, now - start};
    }
    return sample;
}

/* Ticks into nanoseconds from the region's start. */
static void convert(struct nb_watcher *self, struct file_thread *result, struct nb_anchor begin,
                    struct nb_anchor end)
{
    const double length = nb_ns_per_tick(begin, end);
    struct sample *samples = self->records;
    for (int64_t i = 0; i < self->count; i++) {
        double from_ns = (double)(samples[i].start_ns - begin.ticks) * length,
               taken_ns = (double)samples[i].value * length;
        samples[i] = (struct sample){
            begin.ns - team.region.start_ns + llround(from_ns),
            job.fixed_work ? llround(taken_ns) : samples[i].value
        };
    }
    result->begin_ns = begin.ns - team.region.start_ns;
    result->end_ns = end.ns - team.region.start_ns;
}

static void watch(struct nb_watcher *self)
{
    struct file_thread *result = &job.results[self->index];
    struct nb_anchor begin = nb_anchor_now(team.tsc);
    self->count = job.fixed_work ? fixed_work(self->records, begin.ticks, result->units_a_sample)
                                 : fixed_time(self->records, begin.ticks,
                                              (int64_t)((double)job.quantum_ns / team.tick_ns));
    convert(self, result, begin, nb_anchor_now(team.tsc));
    result->count = self->count;
    result->finished = self->count == job.capacity;
}

static void calibrate(struct nb_watcher *self)
{
    struct file_thread *result = &job.results[self->index];
    result->cpu = self->cpu;
    result->unit_ns = unit_length_ns(!job.fixed_work);
    result->resolution_ns = (double)nb_resolution_ticks(team.tsc) * team.tick_ns;
    result->units_a_sample = llround((double)job.quantum_ns / result->unit_ns);
    if (result->units_a_sample < 1)
        result->units_a_sample = 1;
}

static int save(void)
{
    struct file_header header = {
        nb_team_file_start(&team, "nbquanta"), job.quantum_ns, job.fixed_work
    };
    return nb_team_save(&team, &header, sizeof header, job.results, sizeof *job.results,
                        sizeof(struct sample));
}

static int report(int error)
{
    int64_t count = 0;
    int finished = 1;
    for (int i = 0; i < team.threads; i++) {
        count += job.results[i].count;
        finished &= job.results[i].finished;
    }
    nb_region_print(&team.region, job.fixed_work ? "fwq" : "ftq",
                    "threads=%d quantum_ns=%" PRId64 " unit_ns=%.3f samples=%" PRId64
                    " clock=%s verified=%s",
                    team.threads, job.quantum_ns, job.results[0].unit_ns, count,
                    team.tsc ? "tsc" : "monotonic", finished && !error ? "yes" : "no");
    return finished && !error ? 0 : 1;
}

static int take_option(const char *option, const char *value)
{
    double number = nb_positive(value);
    if (!strcmp(option, "--quantum") && number >= 10 && number <= 1e6)
        job.quantum_ns = (int64_t)(number * 1e3);
    else if (!strcmp(option, "--mode") && (!strcmp(value, "ftq") || !strcmp(value, "fwq")))
        job.fixed_work = value[1] == 'w';
    else
        return 0;
    return 1;
}

int main(int count, char **words)
{
    team = (struct nb_team){
        .name = "ftq",
        .option = take_option,
        .calibrate = calibrate,
        .watch = watch,
        .length_ns = 1000000000
    };
    if (nb_team_parse(&team, count, words)) {
        fprintf(stderr, "usage: ftq [--mode ftq|fwq] [--seconds S] [--quantum US, 10 to 1000000] "
                        "[--cpus LIST, such as 0,2-3, of CPUs that it may use]\n"
                        "           [--out FILE]\n");
        return 2;
    }
    job.capacity = team.length_ns / job.quantum_ns > 0 ? team.length_ns / job.quantum_ns : 1;
    job.results = calloc((size_t)CPU_COUNT(&team.cpus), sizeof *job.results);
    if (!job.results ||
        nb_team_watch(&team, (size_t)(job.capacity + SPARE_SAMPLES) * sizeof(struct sample)))
        return 1;
    return report(save());
}
