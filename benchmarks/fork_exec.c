/* What a run costs in C: fork, exec and wait, so many times.
 *
 *     fork_exec RUNS PROGRAM
 *
 * Prints the CPU time of this process and of its children a run, and the time that passed, in us.
 * benchmarks/run_cost.py compares with it. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double cpu_us(int who)
{
    struct rusage used;
    getrusage(who, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 + used.ru_utime.tv_usec +
           used.ru_stime.tv_usec;
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    const int runs = atoi(words[1]);
    const double began_us = now_us();
    for (int run = 0; run < runs; run++) {
        const pid_t pid = fork();
        if (pid == 0) {
            execl(words[2], words[2], (char *)NULL);
            _exit(127);
        }
        int status = 1;
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
            return 1;
    }
    printf("%.3f %.3f\n", (cpu_us(RUSAGE_SELF) + cpu_us(RUSAGE_CHILDREN)) / runs,
           (now_us() - began_us) / runs);
    return 0;
}
