/* Drives the injector's C core without Python, for the sanitizers: injections to every kind of end,
 * lanes of every kind, bad plans. */
#define _GNU_SOURCE
#include "small.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static void wait_ms(int milliseconds)
{
    const struct timespec wait = {.tv_nsec = milliseconds * 1000000L};
    nanosleep(&wait, NULL);
}

static void begin(struct nb_injection *run, pid_t workload, int64_t ahead_ns)
{
    int64_t event;
    EXPECT(nb_check(run, &event) == 0 && event == -1);
    EXPECT(start(run, workload) == 0);
    EXPECT(nb_wait_ready(run, 15000) == 0);
    EXPECT(nb_release(run, now_ns() + ahead_ns) == 0);
    EXPECT(nb_release(run, now_ns()) == -ESRCH);
}

static void finish(struct nb_injection *run, int ended_by)
{
    EXPECT(nb_join(run, 15000) == 0);
    EXPECT(run->control->ended_by == ended_by);
    for (int i = 0; i < run->lane_count; i++)
        EXPECT(run->lanes[i].status == 0 && run->lanes[i].error == 0);
    EXPECT(nb_stop(run) == 0 && nb_kill(run) == 0);
    EXPECT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static int count(const struct nb_injection *run, int lane, int outcome)
{
    int found = 0;
    for (int i = lane * EACH; i < (lane + 1) * EACH; i++)
        found += run->log.outcome[i] == outcome;
    return found;
}

static void to_the_end(struct shared *s, int lanes, int64_t gap_ns)
{
    struct nb_injection run = small_injection(s, lanes, gap_ns);
    begin(&run, 0, 10000000);
    finish(&run, NB_PLAN_DONE);
    for (int lane = 0; lane < lanes; lane++)
        EXPECT(count(&run, lane, NB_INJECTED) + count(&run, lane, NB_LATE) == EACH);
}

static void stopped(struct shared *s)
{
    struct nb_injection run = small_injection(s, 2, 100000000);
    begin(&run, 0, 1000000);
    wait_ms(20);
    EXPECT(nb_stop(&run) == 0);
    finish(&run, NB_STOP_REQUESTED);
    EXPECT(run.log.outcome[2 * EACH - 1] == NB_NOT_REACHED);
}

/* Two lanes on one CPU: an ordinary event of 30 ms, into which the real-time ones of the other lane
 * fall. */
static void two_lanes_on_a_cpu(struct shared *s)
{
    struct nb_injection run = small_injection(s, 2, 1000000);
    for (int i = 0; i < EACH; i++) {
        s->policy[i] = NB_FIFO;
        s->priority[i] = 50;
        s->policy[EACH + i] = i % 2 ? NB_BATCH : NB_OTHER;
        s->priority[EACH + i] = (int8_t)(i % 4);
    }
    s->duration[EACH] = 30000000;
    s->lanes[0].cpu = s->lanes[1].cpu = sched_getcpu();
    begin(&run, 0, 1000000);
    finish(&run, NB_PLAN_DONE);
    EXPECT(count(&run, 0, NB_NOT_REACHED) == 0 && count(&run, 1, NB_NOT_REACHED) == 0);
}

/* Released long after its t0. */
static void too_late(struct shared *s, int64_t late_ns)
{
    struct nb_injection run = small_injection(s, 2, 1000000);
    begin(&run, 0, -late_ns);
    finish(&run, NB_PLAN_DONE);
    EXPECT(count(&run, 0, NB_NOT_REACHED) == 0);
    EXPECT(late_ns < run.rules.give_up_ns + EACH * 1000000 || count(&run, 0, NB_DROPPED) == EACH);
}

static void beside_a_workload(struct shared *s, int kill_it)
{
    struct nb_injection run = small_injection(s, LANES, 2000000);
    int go_on[2];
    char byte;
    EXPECT(pipe(go_on) == 0);
    /* ends when it is told to, however long a sanitized start takes */
    const pid_t workload = fork();
    if (workload == 0)
        _exit(read(go_on[0], &byte, 1) != 1);
    begin(&run, workload, 0);
    wait_ms(10);
    EXPECT(kill_it ? kill(workload, SIGKILL) == 0 : write(go_on[1], "", 1) == 1);
    close(go_on[0]);
    close(go_on[1]);
    EXPECT(waitpid(workload, NULL, 0) == workload);
    finish(&run, NB_WORKLOAD_ENDED);
}

static void at_its_limit(struct shared *s)
{
    struct nb_injection run = small_injection(s, 1, 1000000);
    s->duration[1] = 2000000000;
    s->policy[1] = NB_OTHER;
    s->priority[1] = 0;
    run.rules.limit_ns = 20000000;
    begin(&run, 0, 0);
    EXPECT(nb_join(&run, 15000) == 0);
    EXPECT(run.log.outcome[1] == NB_CUT &&
           (run.control->ended_by == NB_TIME_LIMIT || run.control->ended_by == NB_PLAN_DONE));
}

static void never_released(struct shared *s)
{
    struct nb_injection run = small_injection(s, 2, 1000000);
    EXPECT(start(&run, 0) == 0 && nb_wait_ready(&run, 15000) == 0);
    EXPECT(nb_stop(&run) == 0);
    finish(&run, NB_STOP_REQUESTED);
    EXPECT(start(&run, 0) == 0);
    EXPECT(nb_kill(&run) == 0);
}

static double intensity_of(int kind)
{
    const bool in_bytes = (kind >= NB_MEMORY_STREAM && kind <= NB_IO_SYNC) || kind == NB_NETWORK;
    return kind == NB_DUTY ? 0.5 : in_bytes ? 20e6 : 1000;
}

/* Two events of a kind, beside a lane that occupies. A machine may lack what a kind needs; then the
 * lane says so and nothing is left. */
static void of_kind(struct shared *s, int kind)
{
    char folder[] = "/tmp/noisebook-driver-XXXXXX";
    struct nb_injection run = small_injection(s, 2, 15000000);
    EXPECT(mkdtemp(folder));
    snprintf(run.options.folder, sizeof run.options.folder, "%s", folder);
    run.options.memory_bytes = run.options.file_bytes = 4 << 20;
    run.options.cache_bytes = 4 << 20;
    for (int i = 0; i < 2; i++) {
        s->kind[i] = (int8_t)kind;
        s->intensity[i] = intensity_of(kind);
        s->duration[i] = 10000000;
        s->policy[i] = NB_OTHER;
        s->priority[i] = 0;
    }
    s->lanes[0].count = 2;
    s->lanes[1].count = 5;
    s->lanes[0].cpu = sched_getcpu();
    EXPECT(start(&run, 0) == 0);
    const int ready = nb_wait_ready(&run, 15000);
    EXPECT(ready == 0 || (ready == -ECHILD && s->lanes[0].error));
    if (ready == 0) {
        EXPECT(nb_release(&run, now_ns()) == 0);
        finish(&run, NB_PLAN_DONE);
        EXPECT(run.log.outcome[0] != NB_NOT_REACHED && run.log.achieved[0] >= 0);
    } else {
        fprintf(stdout, "kind %d: %s\n", kind, strerror(s->lanes[0].error));
        EXPECT(nb_kill(&run) == 0);
    }
    EXPECT(access(folder, F_OK) && errno == ENOENT);
}

static void *observe(void *gaps)
{
    *(int64_t *)gaps = nb_observe_losses(sched_getcpu(), 10, now_ns(), 5000000, 1000,
                                         (int64_t *)gaps + 1, 4);
    return NULL;
}

static void losses_are_observed(void)
{
    int64_t gaps[9] = {0};
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, observe, gaps) == 0 && pthread_join(thread, NULL) == 0);
    for (int64_t i = 0; i < gaps[0] && i < 4; i++)
        EXPECT(gaps[1 + 2 * i] <= gaps[2 + 2 * i]);
}

static void refuse(struct shared *s)
{
    int64_t event;
    struct nb_injection run = small_injection(s, 2, 1000);
    s->start[7] = 0;
    EXPECT(start(&run, 0) == -EINVAL && nb_check(&run, &event) == -EINVAL && event == 7);
    run = small_injection(s, 2, 1000);
    s->priority[1] = 99;
    EXPECT(nb_check(&run, &event) == -EINVAL && event == 1);
    run = small_injection(s, 2, 1000);
    s->duration[2 * EACH - 1] = -1;
    EXPECT(nb_check(&run, &event) == -EINVAL && event == 2 * EACH - 1);
    run = small_injection(s, LANES, 1000);
    s->lanes[LANES - 1].count = EACH + 1;
    EXPECT(nb_check(&run, &event) == -EINVAL && event == -1);
    run = small_injection(s, 2, 1000);
    EXPECT(start(&run, INT32_MAX) == -ESRCH && nb_join(&run, 0) == 0);
}

int main(int count, char **words)
{
    perhaps_program(count, words);
    struct shared *s = shared_memory();
    to_the_end(s, 2, 1000000);
    to_the_end(s, LANES, 0);
    stopped(s);
    two_lanes_on_a_cpu(s);
    too_late(s, 10000000);
    too_late(s, 1000000000);
    beside_a_workload(s, 0);
    beside_a_workload(s, 1);
    for (int kind = 1; kind < NB_KIND_COUNT; kind++)
        if (nb_is_kind(kind))
            of_kind(s, kind);
    at_its_limit(s);
    never_released(s);
    losses_are_observed();
    refuse(s);
    release_memory(s);
    return 0;
}
