/* One real-time event of the injector on a CPU that an ordinary program wants too: what each of
 * them got, in ns.
 *
 *     fair_hog CPU SECONDS   prints: wall=... injector=... ordinary=... longest_gap=...
 */
#define _GNU_SOURCE
#include "small.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEAD_NS = 200000000, MARGIN_NS = 20000000 };

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static pid_t start_burner(int cpu)
{
    cpu_set_t cpus;
    const pid_t pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    sched_setaffinity(0, sizeof cpus, &cpus);
    for (;;)
        ;
}

static struct nb_injection one_event(struct shared *s, int cpu, int64_t duration_ns)
{
    struct nb_injection run = small_injection(s, 1, 0);
    s->lanes[0].count = 1;
    s->lanes[0].cpu = cpu;
    s->start[0] = 0;
    s->duration[0] = duration_ns;
    s->policy[0] = NB_FIFO;
    s->priority[0] = 50;
    run.rules.wake_allowance_ns = 100000000;
    run.rules.give_up_ns = 1000000000;
    run.rules.longest_event_ns = duration_ns;
    run.rules.realtime_limit_us = 4 * duration_ns / 1000;
    return run;
}

static void sleep_until(int64_t when_ns)
{
    while (now_ns() < when_ns)
        usleep(1000);
}

/* Replays the event; CPU time that the ordinary program got while it lasted. */
static int64_t replay(struct nb_injection *run, clockid_t ordinary, int64_t duration_ns)
{
    const int64_t t0 = now_ns() + LEAD_NS;
    EXPECT(start(run, 0) == 0);
    EXPECT(nb_wait_ready(run, 20000) == 0);
    EXPECT(nb_release(run, t0) == 0);
    sleep_until(t0 + MARGIN_NS);
    const int64_t before_ns = clock_ns(ordinary);
    sleep_until(t0 + duration_ns - MARGIN_NS);
    const int64_t got_ns = clock_ns(ordinary) - before_ns;
    EXPECT(nb_join(run, 20000) == 0);
    return got_ns;
}

int main(int argc, char **argv)
{
    perhaps_program(argc, argv);
    EXPECT(argc == 3);
    const int cpu = atoi(argv[1]);
    const int64_t duration_ns = (int64_t)(atof(argv[2]) * 1e9);
    struct nb_injection run = one_event(shared_memory(), cpu, duration_ns);
    const pid_t burner = start_burner(cpu);
    clockid_t ordinary;
    EXPECT(clock_getcpuclockid(burner, &ordinary) == 0);
    const int64_t got_ns = replay(&run, ordinary, duration_ns);
    kill(burner, SIGKILL);
    waitpid(burner, NULL, 0);
    EXPECT(run.log.policy[0] == NB_FIFO &&
           (run.log.outcome[0] == NB_INJECTED || run.log.outcome[0] == NB_LATE));
    printf("wall=%lld injector=%lld ordinary=%lld longest_gap=%lld\n",
           (long long)(run.log.end_ns[0] - run.log.start_ns[0]), (long long)run.log.cpu_time_ns[0],
           (long long)got_ns, (long long)run.log.gap_ns[0]);
    return 0;
}
