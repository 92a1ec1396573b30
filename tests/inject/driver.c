/* Drives the injector's C core without Python, for the sanitizers: two injections to their end, one stopped in the middle, bad plans. */
#define _GNU_SOURCE
#include "injector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { EVENTS = 40 };

struct shared {
    struct nb_control control;
    struct nb_lane lanes[2];
    int64_t start[EVENTS], duration[EVENTS], begin[EVENTS], taken[EVENTS], end[EVENTS], cpu[EVENTS], gap[EVENTS];
    int16_t ran_on[EVENTS];
    int8_t policy[EVENTS], priority[EVENTS], had[EVENTS], outcome[EVENTS];
};

#define EXPECT(condition)                                                       \
    do {                                                                        \
        if (!(condition)) {                                                     \
            fprintf(stderr, "line %d: " #condition " is false\n", __LINE__);    \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

static struct nb_injection prepare(struct shared *s, int64_t gap_ns)
{
    memset(s, 0, sizeof *s);
    for (int i = 0; i < EVENTS; i++) {
        s->start[i] = 1000000 + (i % 20) * gap_ns;
        s->duration[i] = 50000;
        s->policy[i] = i % 3 ? NB_FIFO : NB_OTHER;
        s->priority[i] = i % 3 ? 40 + i % 2 : 0;
    }
    s->lanes[0] = (struct nb_lane){.first = 0, .count = 20, .cpu = NB_ROAM};
    s->lanes[1] = (struct nb_lane){.first = 20, .count = 20, .cpu = NB_ROAM};
    return (struct nb_injection){
        .memory = s, .memory_bytes = sizeof *s, .control = &s->control, .lanes = s->lanes, .lane_count = 2,
        .rules = {500000, 100000000, 5000, 1000000000, 20000000000, 5000000000, 1000000},
        .plan = {s->start, s->duration, s->policy, s->priority},
        .log = {s->begin, s->taken, s->end, s->cpu, s->gap, s->ran_on, s->had, s->outcome}};
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void replay(struct shared *s, int64_t gap_ns, int stop)
{
    struct nb_injection run = prepare(s, gap_ns);
    int64_t event;
    EXPECT(nb_check(&run, &event) == 0 && event == -1);
    EXPECT(nb_start(&run, 0) == 0);
    EXPECT(nb_wait_ready(&run, 5000) == 0);
    EXPECT(nb_release(&run, now_ns() + 1000000) == 0);
    EXPECT(nb_release(&run, now_ns()) == -ESRCH);
    if (stop) {
        struct timespec wait = {.tv_nsec = 20000000};
        nanosleep(&wait, NULL);
        EXPECT(nb_stop(&run) == 0);
    }
    EXPECT(nb_join(&run, 8000) == 0);
    EXPECT(s->control.ended_by == (stop ? NB_ASKED : NB_PLAN_DONE));
    EXPECT(s->lanes[0].status == 0 && s->lanes[1].status == 0);
    for (int i = 0; i < EVENTS && !stop; i++)
        EXPECT(s->outcome[i] == NB_INJECTED || s->outcome[i] == NB_LATE);
    EXPECT(!stop || s->outcome[EVENTS - 1] == NB_NOT_REACHED);
    EXPECT(nb_stop(&run) == 0 && nb_kill(&run) == 0);
}

static void refuse(struct shared *s)
{
    int64_t event;
    struct nb_injection run = prepare(s, 1000);
    s->start[7] = 0;
    EXPECT(nb_start(&run, 0) == -EINVAL && nb_check(&run, &event) == -EINVAL && event == 7);
    run = prepare(s, 1000);
    s->priority[1] = 99;
    EXPECT(nb_check(&run, &event) == -EINVAL && event == 1);
    run = prepare(s, 1000);
    s->duration[39] = -1;
    EXPECT(nb_check(&run, &event) == -EINVAL && event == 39);
    run = prepare(s, 1000);
    EXPECT(nb_start(&run, INT32_MAX) == -ESRCH && nb_join(&run, 0) == 0);
}

int main(void)
{
    struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(s != MAP_FAILED);
    replay(s, 1000000, 0);
    replay(s, 0, 0);
    replay(s, 100000000, 1);
    refuse(s);
    return munmap(s, sizeof *s);
}
