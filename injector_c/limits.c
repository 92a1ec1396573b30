/* What a plan may demand of the whole machine: how long at a stretch, and how much of a second and
 * of ten, real-time events may take every CPU at once; how much of its kind an event may ask for.
 *
 * Each real-time lane holds one CPU at most; one that roams counts as a CPU of its own, lanes that
 * are pinned to the same CPU as one. A lane that disturbs its CPU from others roams. Within a lane
 * an event waits for the end of the one before.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <stdlib.h>

/* of CPUs, of lanes that roam */
enum { ROAMING = NB_MAX_CPUS, SLOTS = ROAMING + NB_MAX_LANES };
static const int64_t LATEST_NS = INT64_MAX / 2;
static const int64_t NO_PAUSE_NS = 100000, PAUSE_NS = 1000000;

/* What leaves a CPU to others; 0: the machine limits it (a bandwidth), or options do (memory). */
static const double HIGHEST[NB_KIND_COUNT] = {
    [NB_DUTY] = 1, [NB_IO_METADATA] = 1e6, [NB_TIMER] = 1e5, [NB_IPI] = 1e6
};

struct edge {
    int64_t time_ns;
    int32_t slot, step; /* step 1: an event begins, -1: it ends */
};

struct stretch {
    int64_t start_ns, end_ns, before_ns; /* before_ns: taken until its start */
};

static int intensities(const struct nb_injection *run, struct nb_excess *excess)
{
    if (run->rules.any_intensity || !run->plan.kind || !run->plan.intensity)
        return 0;
    for (int lane = 0; lane < run->lane_count; lane++)
        for (int64_t k = 0; k < run->lanes[lane].count; k++) {
            const int64_t i = run->lanes[lane].first + k;
            const double most = HIGHEST[run->plan.kind[i]];
            if (most > 0 && run->plan.intensity[i] > most) {
                *excess = (struct nb_excess){NB_LIMIT_INTENSITY,     lane, i, 0,
                                             run->plan.intensity[i], most};
                return -EDQUOT;
            }
        }
    return 0;
}

/* Lanes that disturb from elsewhere use every CPU if they may not use two. */
static bool is_anywhere(const struct nb_injection *run, bool elsewhere)
{
    int count = 0;
    for (int i = 0; i < NB_MAX_CPUS / 64; i++)
        count += __builtin_popcountll(run->roam[i]);
    return count < (elsewhere ? 2 : 1);
}

/* Number of CPUs that the lanes may run on; INT_MAX: all of the machine. */
static int reach(const struct nb_injection *run)
{
    uint64_t cpus[NB_MAX_CPUS / 64] = {0};
    bool roams = false, elsewhere = false;
    int count = 0;
    for (int lane = 0; lane < run->lane_count; lane++) {
        const int cpu = run->lanes[lane].cpu;
        elsewhere |= run->lanes[lane].count > 0 &&
                     nb_is_from_elsewhere(nb_kind_of(run, run->lanes[lane].first));
        roams |= elsewhere || cpu == NB_ROAM;
        if (cpu != NB_ROAM)
            cpus[cpu / 64] |= 1ULL << cpu % 64;
    }
    for (int i = 0; i < NB_MAX_CPUS / 64; i++)
        count += __builtin_popcountll(cpus[i] | (roams ? run->roam[i] : 0));
    return roams && is_anywhere(run, elsewhere) ? INT_MAX : count;
}

/* The real-time events of all lanes. */
static int64_t count_realtime(const struct nb_injection *run)
{
    int64_t count = 0;
    for (int lane = 0; lane < run->lane_count; lane++)
        for (int64_t k = 0; k < run->lanes[lane].count; k++)
            count += nb_is_realtime(run->plan.policy[run->lanes[lane].first + k]);
    return count;
}

static void add_edges(struct edge *edges, int64_t *count, int slot, const struct nb_span *span)
{
    edges[(*count)++] = (struct edge){span->start_ns, slot, 1};
    edges[(*count)++] = (struct edge){span->end_ns, slot, -1};
}

/* Two an event. */
static int64_t fill_edges(const struct nb_injection *run, struct edge *edges)
{
    int64_t count = 0;
    for (int lane = 0; lane < run->lane_count; lane++) {
        const struct nb_lane *slice = &run->lanes[lane];
        const bool roams = slice->cpu == NB_ROAM;
        int64_t free_ns = 0;
        for (int64_t i = slice->first; i < slice->first + slice->count; i++) {
            const int64_t planned = run->plan.start_ns[i];
            const int64_t start = planned > free_ns ? planned : free_ns;
            free_ns = start + run->plan.duration_ns[i];
            free_ns = free_ns < LATEST_NS ? free_ns : LATEST_NS;
            if (!nb_is_realtime(run->plan.policy[i]) || free_ns == start)
                continue;
            const struct nb_span span = {start, free_ns};
            const bool elsewhere = nb_is_from_elsewhere(nb_kind_of(run, i));
            add_edges(edges, &count, roams || elsewhere ? ROAMING + lane : slice->cpu, &span);
        }
    }
    return count;
}

static int compare_edges(const void *left, const void *right)
{
    const struct edge *a = left, *b = right;
    return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

/* The stretches in which `cpus` slots are taken at once. */
static int64_t find_stretches(const struct edge *edges, int64_t count, int cpus,
                              struct stretch *stretches)
{
    static _Thread_local int depth[SLOTS];
    int64_t found = 0, taken_ns = 0;
    int busy = 0;
    for (int slot = 0; slot < SLOTS; slot++)
        depth[slot] = 0;
    for (int64_t i = 0; i < count; i++) {
        const int before = busy;
        const int was = depth[edges[i].slot];
        depth[edges[i].slot] = was + edges[i].step;
        busy += (was + edges[i].step > 0) - (was > 0);
        if (before < cpus && busy >= cpus) {
            stretches[found].start_ns = edges[i].time_ns;
            stretches[found].before_ns = taken_ns;
        } else if (before >= cpus && busy < cpus) {
            stretches[found].end_ns = edges[i].time_ns;
            taken_ns += edges[i].time_ns - stretches[found].start_ns;
            found++;
        }
    }
    return found;
}

/* Time taken until `time_ns`; *at: the last stretch that had begun by the time of the last call. */
static int64_t taken_until(const struct stretch *stretches, int64_t count, int64_t *at,
                           int64_t time_ns)
{
    while (*at + 1 < count && stretches[*at + 1].start_ns <= time_ns)
        ++*at;
    const struct stretch *last = &stretches[*at];
    return last->before_ns + (time_ns < last->end_ns ? time_ns : last->end_ns) - last->start_ns;
}

/* One of the windows that hold most begins with a stretch: from any other one that cannot be moved
 * to hold more, it can be moved there and holds as much. */
static int64_t fullest_window(const struct stretch *stretches, int64_t count, int64_t window_ns,
                              int64_t *start_ns)
{
    int64_t most_ns = 0, last = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t until = stretches[i].start_ns + window_ns;
        const int64_t taken = taken_until(stretches, count, &last, until) - stretches[i].before_ns;
        if (taken > most_ns) {
            most_ns = taken;
            *start_ns = stretches[i].start_ns;
        }
    }
    return most_ns;
}

/* The longest time without a pause for others. A pause of 0.1 ms is none, nor is one of 1 ms that
 * is not longer than the noise before it. */
static int64_t longest_time(const struct stretch *stretches, int64_t count, int64_t *start_ns)
{
    int64_t longest_ns = 0, begin_ns = 0, noise_ns = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t before_ns = i ? stretches[i - 1].end_ns : -LATEST_NS;
        const int64_t pause_ns = stretches[i].start_ns - before_ns;
        if (pause_ns > NO_PAUSE_NS) {
            if (pause_ns > PAUSE_NS || pause_ns > before_ns - noise_ns)
                begin_ns = stretches[i].start_ns;
            noise_ns = stretches[i].start_ns;
        }
        if (stretches[i].end_ns - begin_ns > longest_ns) {
            longest_ns = stretches[i].end_ns - begin_ns;
            *start_ns = begin_ns;
        }
    }
    return longest_ns;
}

static int judge(const struct nb_injection *run, const struct stretch *stretches, int64_t count,
                 struct nb_excess *excess)
{
    const int32_t limits[] = {NB_LIMIT_STRETCH, NB_LIMIT_SECOND, NB_LIMIT_TEN_SECONDS};
    const int64_t windows[] = {0, NB_SECOND_NS, 10 * NB_SECOND_NS};
    const int64_t most[] = {
        run->rules.full_stop_ns, run->rules.full_stop_second_ns, run->rules.full_stop_ten_seconds_ns
    };
    for (int i = 0; i < 3; i++) {
        int64_t start_ns = 0;
        const int64_t taken = windows[i] ? fullest_window(stretches, count, windows[i], &start_ns)
                                         : longest_time(stretches, count, &start_ns);
        if (most[i] && taken > most[i]) {
            *excess = (struct nb_excess){limits[i],      -1, -1, start_ns, (double)taken,
                                         (double)most[i]};
            return -EDQUOT;
        }
    }
    return 0;
}

static int full_stops(const struct nb_injection *run, struct nb_excess *excess)
{
    const int64_t count = count_realtime(run);
    if (run->rules.cpus < 1 || !count || reach(run) < run->rules.cpus)
        return 0;
    struct edge *const edges = malloc(2 * (size_t)count * sizeof *edges);
    struct stretch *const stretches = malloc((size_t)count * sizeof *stretches);
    int error = -ENOMEM;
    if (edges && stretches) {
        const int64_t filled = fill_edges(run, edges);
        qsort(edges, (size_t)filled, sizeof *edges, compare_edges);
        error = judge(run, stretches, find_stretches(edges, filled, run->rules.cpus, stretches),
                      excess);
    }
    free(edges);
    free(stretches);
    return error;
}

int nb_check_limits(const struct nb_injection *run, struct nb_excess *excess)
{
    *excess = (struct nb_excess){.lane = -1, .event = -1};
    const int error = intensities(run, excess);
    return error ? error : full_stops(run, excess);
}
