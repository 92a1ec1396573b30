/* Drives every kind of noise without Python, for the sanitizers: `kinds_driver FOLDER`; once to the
 * end, once stopped in the middle. */
#define _GNU_SOURCE
#include "expect.h"
#include "injector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = NB_KIND_COUNT - 1, LENGTH_NS = 8000000 };

struct shared {
    struct nb_control control;
    struct nb_lane lanes[EVENTS];
    int64_t start[EVENTS], duration[EVENTS], begin[EVENTS], taken[EVENTS], end[EVENTS], cpu[EVENTS],
        gap[EVENTS], preempted[EVENTS];
    int16_t ran_on[EVENTS];
    int8_t policy[EVENTS], priority[EVENTS], had[EVENTS], outcome[EVENTS], kind[EVENTS];
    double intensity[EVENTS], achieved[EVENTS];
};

static double modest(int kind)
{
    const double per_s[] = {[NB_DUTY] = 0.2,    [NB_MEMORY_HOLD] = 1e6, [NB_IO_METADATA] = 1e3,
                            [NB_TIMER] = 1e3,   [NB_IPI] = 1e3,         [NB_TLB] = 1e3,
                            [NB_MIGRATE] = 1e3, [NB_KIND_COUNT] = 0};
    return per_s[kind] > 0 ? per_s[kind] : 1e7;
}

/* One lane a kind, some of them roaming. */
static const struct nb_rules rules = {
    .wake_allowance_ns = 500000,
    .give_up_ns = 1000000000,
    .longest_event_ns = 1000000,
    .limit_ns = 20000000000,
    .armed_limit_ns = 20000000000,
    .realtime_limit_us = 1000000
};
static const struct nb_kind_options options = {
    .memory_bytes = 16 << 20, .file_bytes = 1 << 20, .cache_bytes = {32768, 524288, 4194304}
};

static struct nb_plan plan_in(struct shared *s)
{
    return (struct nb_plan){
        .start_ns = s->start,
        .duration_ns = s->duration,
        .policy = s->policy,
        .priority = s->priority,
        .kind = s->kind,
        .intensity = s->intensity
    };
}

static struct nb_log log_in(struct shared *s)
{
    return (struct nb_log){
        .start_ns = s->begin,
        .taken_ns = s->taken,
        .end_ns = s->end,
        .cpu_time_ns = s->cpu,
        .gap_ns = s->gap,
        .preempted_ns = s->preempted,
        .ran_on = s->ran_on,
        .policy = s->had,
        .outcome = s->outcome,
        .achieved = s->achieved
    };
}

static struct nb_injection prepare(struct shared *s, const char *folder, int first_kind, int count,
                                   int64_t length_ns)
{
    memset(s, 0, sizeof *s);
    for (int i = 0; i < count; i++) {
        s->start[i] = 1000000;
        s->duration[i] = length_ns;
        s->kind[i] = (int8_t)(first_kind + i);
        s->intensity[i] = modest(first_kind + i);
        s->lanes[i] = (struct nb_lane){.first = i, .count = 1, .cpu = i % 2 ? NB_ROAM : 0};
    }
    struct nb_injection run = {
        .memory = s,
        .memory_bytes = sizeof *s,
        .control = &s->control,
        .lanes = s->lanes,
        .lane_count = count,
        .event_count = EVENTS,
        .rules = rules,
        .plan = plan_in(s),
        .log = log_in(s),
        .options = options
    };
    snprintf(run.options.folder, sizeof run.options.folder, "%s", folder);
    EXPECT(mkdir(folder, 0700) == 0);
    return run;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void replay(struct shared *s, const char *folder, int first_kind, int count, int stop)
{
    struct nb_injection run = prepare(s, folder, first_kind, count, stop ? 10000000000 : LENGTH_NS);
    EXPECT(nb_start(&run, 0) == 0);
    EXPECT(nb_wait_ready(&run, 15000) == 0);
    EXPECT(nb_release(&run, now_ns() + 1000000) == 0);
    if (stop) {
        struct timespec wait = {.tv_nsec = 30000000};
        nanosleep(&wait, NULL);
        EXPECT(nb_stop(&run) == 0);
    }
    EXPECT(nb_join(&run, 15000) == 0);
    for (int i = 0; i < count; i++) {
        EXPECT(s->lanes[i].error == 0 && (s->lanes[i].status == 0 || s->lanes[i].killed));
        EXPECT(stop || s->outcome[i] == NB_INJECTED || s->outcome[i] == NB_LATE);
    }
    EXPECT(access(folder, F_OK) != 0);
}

static void refuse(struct shared *s, const char *folder)
{
    int64_t event;
    struct nb_injection run = prepare(s, folder, NB_DUTY, 2, LENGTH_NS);
    s->intensity[1] = 0;
    EXPECT(nb_check(&run, &event) == -22 && event == 1);
    s->intensity[1] = 1;
    s->kind[1] = NB_KIND_COUNT;
    EXPECT(nb_check(&run, &event) == -22 && event == 1);
    s->kind[1] = NB_MEMORY_READ;
    s->lanes[0].count = 2; /* two kinds in a lane */
    run.lane_count = 1;
    EXPECT(nb_start(&run, 0) == 0 && nb_wait_ready(&run, 5000) < 0 && s->lanes[0].error == 22);
    EXPECT(nb_kill(&run) == 0);
    rmdir(folder); /* the supervisor, if it was quicker to end than to be killed, has done it */
    EXPECT(access(folder, F_OK) != 0);
}

int main(int count, char **words)
{
    struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                            0);
    EXPECT(s != MAP_FAILED && count == 2);
    for (int kind = 1; kind < NB_KIND_COUNT; kind++)
        replay(s, words[1], kind, 1, 0);
    replay(s, words[1], NB_IO_READ, 5, 1);
    refuse(s, words[1]);
    return munmap(s, sizeof *s);
}
