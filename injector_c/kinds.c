/* Runs a stressor at its intensity: steps of work, paced against the clock, until the event's end.
 *
 * A stressor is asked for what is due a quantum ahead, works that off at once, and sleeps. What it
 * could not do in time it catches up with, but never for more than DEBT_NS: lateness does not build
 * up, and what is missing shows in what was achieved.
 */
#define _GNU_SOURCE
#include "kinds_internal.h"

enum { DEBT_NS = 10000000, STUCK_NS = 1000000, SPIN_NS = 50000 };

/* Occupation with a duty cycle; its unit is a nanosecond of CPU time. */

static int64_t cpu_seen_ns;

static int arm_duty(const struct nb_injection *run, int cpu)
{
    (void)run, (void)cpu;
    return 0;
}

static void note_cpu(void)
{
    cpu_seen_ns = nb_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static int64_t spin(int64_t wanted)
{
    const int64_t end_ns = nb_now_ns() + wanted, before = cpu_seen_ns;
    while (nb_now_ns() < end_ns)
        ;
    note_cpu();
    return cpu_seen_ns - before;
}

static const struct nb_stressor duty = {
    .arm = arm_duty,
    .begin = note_cpu,
    .step = spin,
    .granule = 1000,
    .most = SPIN_NS,
    .quantum_ns = 10000000
};

/* A duty is nanoseconds a nanosecond, everything else is counted by the second. */
static double unit_ns(const struct nb_stressor *stressor)
{
    return stressor == &duty ? 1 : (double)NB_SECOND_NS;
}

static const struct nb_stressor *const stressors[NB_KIND_COUNT] = {
    [NB_DUTY] = &duty,          [NB_MEMORY_STREAM] = &nb_memory_stream,
    [NB_CACHE_L3] = &nb_cache,  [NB_IO_READ] = &nb_io_read,
    [NB_IO_SYNC] = &nb_io_sync, [NB_IO_METADATA] = &nb_io_metadata,
    [NB_NETWORK] = &nb_network, [NB_TIMER] = &nb_timer,
    [NB_IPI] = &nb_ipi
};
static const struct nb_stressor *armed; /* of this lane */

static const struct nb_stressor *stressor_of(int kind)
{
    return nb_is_kind(kind) ? stressors[kind] : NULL;
}

/* A lane has one kind of noise, so that kinds can overlap in time, and none makes another late. */
int nb_kinds_arm(const struct nb_injection *run, const struct nb_lane *lane)
{
    const int8_t *kind = run->plan.kind;
    armed = NULL;
    if (!kind || !lane->count || kind[lane->first] == 0)
        return 0;
    for (int64_t i = lane->first; i < lane->first + lane->count; i++)
        if (kind[i] != kind[lane->first])
            return EINVAL;
    armed = stressor_of(kind[lane->first]);
    return armed ? -armed->arm(run, lane->cpu) : EINVAL;
}

void nb_kinds_disarm(void)
{
    if (armed && armed->disarm)
        armed->disarm();
    armed = NULL;
}

static const double WHOLE = 0.999; /* of a granule: rounding of times must not cost the last one */

struct pace {
    const struct nb_stressor *stressor;
    double per_ns; /* units a nanosecond */
    int64_t start_ns, end_ns;
    double done, forgiven;
    int64_t *gap_ns;
};

/* Units that should have been done by now, and a quantum ahead; at least a granule, so that no
 * event does nothing. */
static double due_by(const struct pace *pace, int64_t now_ns)
{
    const int64_t ahead_ns = nb_least(now_ns + pace->stressor->quantum_ns, pace->end_ns) -
                             pace->start_ns;
    const double due = pace->per_ns * (double)ahead_ns;
    return due > (double)pace->stressor->granule ? due : (double)pace->stressor->granule;
}

/* When the next quantum's work, or the next step, is due; the end if there is none. */
static int64_t next_due_ns(const struct pace *pace)
{
    const double quantum = pace->per_ns * (double)pace->stressor->quantum_ns,
                 granule = (double)pace->stressor->granule;
    const double done = pace->done + pace->forgiven,
                 left_ns = (double)(pace->end_ns - pace->start_ns);
    if (done + WHOLE * granule > pace->per_ns * left_ns)
        return pace->end_ns;
    const double after_ns = (done + (quantum > granule ? quantum : granule)) / pace->per_ns -
                            (double)pace->stressor->quantum_ns;
    return after_ns < left_ns ? pace->start_ns + (int64_t)after_ns : pace->end_ns;
}

static void nap(struct nb_actor *self, const struct pace *pace, int64_t when_ns)
{
    nb_sleep_in_state(self->run->control, NB_RELEASED,
                      nb_least(when_ns, nb_least(pace->end_ns, self->hard_end_ns)));
}

/* One step; its length counts as a stretch without progress. */
static int64_t advance(struct pace *pace, int64_t now_ns, double missing)
{
    const int64_t wanted = missing < (double)pace->stressor->most ? (int64_t)missing
                                                                  : pace->stressor->most;
    const int64_t did = pace->stressor->step(wanted);
    const int64_t took_ns = nb_now_ns() - now_ns;
    if (took_ns > *pace->gap_ns)
        *pace->gap_ns = took_ns;
    pace->done += did > 0 ? (double)did : 0;
    return did;
}

static void forgive(struct pace *pace, double missing)
{
    const double most = pace->per_ns * DEBT_NS + (double)pace->stressor->most;
    if (missing > most)
        pace->forgiven += missing - most;
}

/* Until the event's end: true; until everything ends: false. After an error, left in *error, the
 * rest of the event is slept. */
static bool keep_pace(struct nb_actor *self, struct pace *pace, int *error)
{
    for (;;) {
        const int64_t now = nb_now_ns();
        if (!nb_goes_on(self, now))
            return false;
        if (now >= pace->end_ns)
            return true;
        const double missing = due_by(pace, now) - pace->done - pace->forgiven;
        if (*error || missing < WHOLE * (double)pace->stressor->granule) {
            nap(self, pace, *error ? pace->end_ns : next_due_ns(pace));
            continue;
        }
        forgive(pace, missing);
        const int64_t did = advance(pace, now, missing);
        if (did < 0)
            *error = (int)-did;
        if (did == 0)
            nb_sleep_in_state(self->run->control, NB_RELEASED,
                              nb_least(now + STUCK_NS, nb_least(pace->end_ns, self->hard_end_ns)));
    }
}

/* Steps from start_ns to end_ns; *units: how many were done. */
static bool run_paced(struct nb_actor *self, const struct nb_stressor *stressor, int64_t i,
                      const struct nb_span *span, double *units)
{
    struct pace pace = {
        .stressor = stressor,
        .per_ns = self->run->plan.intensity[i] / unit_ns(stressor),
        .start_ns = span->start_ns,
        .end_ns = span->end_ns,
        .gap_ns = &self->run->log.gap_ns[i]
    };
    int error = 0;
    if (stressor->begin)
        stressor->begin();
    const bool whole = keep_pace(self, &pace, &error);
    *units = pace.done;
    if (error && !self->lane->error)
        self->lane->error = error;
    return whole;
}

/* An event that woke in time began when it should have: what is due by its end is what was planned.
 */
bool nb_kind_run(struct nb_actor *self, int64_t i)
{
    const struct nb_injection *run = self->run;
    const struct nb_stressor *stressor = stressor_of(run->plan.kind[i]);
    const int64_t planned = run->control->t0_ns + run->plan.start_ns[i], now = nb_now_ns();
    struct nb_span span = {
        .start_ns = now - planned > run->rules.wake_allowance_ns ? now : planned
    };
    span.end_ns = span.start_ns + self->due_ns;
    double units = 0;
    const bool whole = stressor->run ? stressor->run(self, run->plan.intensity[i], &span, &units)
                                     : run_paced(self, stressor, i, &span, &units);
    const double lasted_ns = (double)(nb_now_ns() - span.start_ns);
    if (run->log.achieved)
        run->log.achieved[i] = units / lasted_ns * unit_ns(stressor);
    return whole;
}
