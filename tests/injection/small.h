/* A small injection in shared memory, for the C programs of the tests. Each of them is the
 * injector's program, too: it executes itself. */
#ifndef SMALL_H
#define SMALL_H
#include "expect.h"
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    LANES = 4,
    MOST_LANES = 5,
    EVENTS = 80,
    EACH = EVENTS / LANES,
    LOG_COLUMNS = sizeof(struct nb_log) / sizeof(void *)
};

struct shared {
    struct nb_control control;
    struct nb_lane lanes[MOST_LANES];
    int64_t start[EVENTS], duration[EVENTS];
    double intensity[EVENTS];
    int8_t policy[EVENTS], priority[EVENTS], kind[EVENTS];
    int64_t log[LOG_COLUMNS][EVENTS]; /* as wide as the widest column of the log */
};

static inline int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int shared_fd;

static inline struct shared *shared_memory(void)
{
    void *memory;
    shared_fd = nb_map_memory(sizeof(struct shared), &memory);
    EXPECT(shared_fd >= 0);
    return memory;
}

static inline void release_memory(struct shared *s)
{
    nb_unmap_memory(s, sizeof *s);
    EXPECT(close(shared_fd) == 0);
}

static inline int start(struct nb_injection *run, int workload)
{
    return nb_start(run, workload, "/proc/self/exe");
}

/* At the beginning of main: does not return where this process is the program. */
static inline void perhaps_program(int count, char **words)
{
    if (count == NB_PROGRAM_WORDS)
        exit(nb_program(count, words));
}

/* Every lane has EACH events of 50 us, gap_ns from start to start: in turn two real-time ones and
 * an ordinary one. */
static inline void fill_plan(struct shared *s, int64_t gap_ns)
{
    memset(s, 0, sizeof *s);
    for (int i = 0; i < EVENTS; i++) {
        s->start[i] = 1000000 + (i % EACH) * gap_ns;
        s->duration[i] = 50000;
        s->policy[i] = i % 3 ? NB_FIFO : NB_OTHER;
        s->priority[i] = i % 3 ? 40 + i % 2 : 0;
    }
    for (int i = 0; i < LANES; i++)
        s->lanes[i] = (struct nb_lane){.first = i * EACH, .count = EACH, .cpu = NB_ROAM};
}

/* The log is a list of pointers to columns; this program's memory has room for each of them,
 * whichever there are. */
static inline struct nb_injection small_injection(struct shared *s, int lanes, int64_t gap_ns)
{
    fill_plan(s, gap_ns);
    struct nb_injection run = {
        .memory = s,
        .memory_bytes = sizeof *s,
        .memory_fd = shared_fd,
        .control = &s->control,
        .lanes = s->lanes,
        .lane_count = lanes,
        .event_count = EVENTS
    };
    run.rules = (struct nb_rules){
        .wake_allowance_ns = 500000,
        .give_up_ns = 100000000,
        .costs =
            {{.wake_ns = 20000,
              .wake_most_ns = 60000,
              .length_ns = {100000, 10000000},
              .exit_ns = {5000, 20000},
              .points = 2,
              .exit_per_wake = 0.3}},
        .longest_event_ns = 3000000000,
        .limit_ns = 20000000000,
        .armed_limit_ns = 5000000000,
        .realtime_limit_us = 1000000
    };
    run.plan = (struct nb_plan){
        .start_ns = s->start,
        .duration_ns = s->duration,
        .policy = s->policy,
        .priority = s->priority,
        .kind = s->kind,
        .intensity = s->intensity
    };
    void *columns[LOG_COLUMNS];
    for (int i = 0; i < LOG_COLUMNS; i++)
        columns[i] = s->log[i];
    memcpy(&run.log, columns, sizeof run.log);
    return run;
}
#endif
