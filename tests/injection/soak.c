/* Injection after injection, each of a few ms and each to another end; after each one this process
 * is as it was before.
 *
 *     soak COUNT   prints how many there were, and how many events they injected
 */
#define _GNU_SOURCE
#include "small.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int entries(const char *folder)
{
    int found = 0;
    DIR *const open = opendir(folder);
    EXPECT(open);
    while (readdir(open))
        found++;
    closedir(open);
    return found;
}

static int mappings(void)
{
    int lines = 0, letter;
    FILE *const maps = fopen("/proc/self/maps", "r");
    EXPECT(maps);
    while ((letter = getc(maps)) != EOF)
        lines += letter == '\n';
    fclose(maps);
    return lines;
}

/* In turn: to the plan's end, asked to stop, beside a workload that ends, killed, never released;
 * pinned or not; 1 to 4 lanes. */
static int inject(int number)
{
    struct shared *const s = shared_memory();
    struct nb_injection run = small_injection(s, 1 + number % LANES, number % 3 ? 60000 : 1000000);
    const int how = number % 5;
    for (int lane = 0; lane < run.lane_count; lane++)
        s->lanes[lane].cpu = number / 5 % 2 ? sched_getcpu() : NB_ROAM;
    const pid_t workload = how == 2 ? fork() : 0;
    if (how == 2 && workload == 0) {
        usleep(3000);
        _exit(0);
    }
    EXPECT(start(&run, workload) == 0);
    EXPECT(nb_wait_ready(&run, 15000) == 0);
    const int released = how == 4 ? 0 : nb_release(&run, now_ns());
    EXPECT(released == 0 || (how == 2 && released == -ESRCH)); /* the workload was faster */
    EXPECT(how == 3 ? nb_kill(&run) == 0 : 1);
    EXPECT(how == 1 || how == 4 ? nb_stop(&run) == 0 : 1);
    EXPECT(nb_join(&run, 15000) == 0);
    EXPECT(how != 2 || waitpid(workload, NULL, 0) == workload);
    int injected = 0;
    for (int i = 0; i < EVENTS; i++)
        injected += run.log.outcome[i] == NB_INJECTED || run.log.outcome[i] == NB_LATE;
    release_memory(s);
    return injected;
}

int main(int argc, char **argv)
{
    perhaps_program(argc, argv);
    EXPECT(argc == 2);
    const int count = atoi(argv[1]);
    long injected = 0;
    /* whatever an injection leaves behind becomes a child of ours */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    inject(0);
    const int descriptors = entries("/proc/self/fd"), mapped = mappings(),
              threads = entries("/proc/self/task");
    for (int number = 0; number < count; number++) {
        injected += inject(number);
        EXPECT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
        EXPECT(entries("/proc/self/fd") == descriptors && mappings() == mapped &&
               entries("/proc/self/task") == threads);
    }
    printf("%d %ld\n", count, injected);
    return 0;
}
