/*
 * A program of two threads that meet after each step, with causes of its own: the file of its
 * first argument holds what this run does beside its work: nothing, sleep, more, or second.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 120, WORK = 1000000, MORE = 60 };

static pthread_barrier_t meeting;
static volatile double sums[3];

static void work(int of, long count)
{
    double sum = 1;
    for (long i = 0; i < count; i++)
        sum = sum * 0.999 + (double)i;
    sums[of] = sum;
}

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static void *steps(void *own)
{
    int of = *(int *)own;
    pin(of);
    for (int step = 0; step < STEPS; step++) {
        work(of, WORK);
        pthread_barrier_wait(&meeting);
    }
    return NULL;
}

/* on the CPU of the first thread, since it inherits where that one may run */
static void *second(void *unused)
{
    prctl(PR_SET_NAME, "second");
    work(2, (long)WORK * MORE);
    return unused;
}

static void plant(const char *cause, pthread_t *beside)
{
    struct timespec length = {.tv_nsec = 150000000};
    if (!strcmp(cause, "sleep"))
        nanosleep(&length, NULL);
    if (!strcmp(cause, "more"))
        work(0, (long)WORK * MORE);
    if (!strcmp(cause, "second"))
        pthread_create(beside, NULL, second, NULL);
}

int main(int count, char **words)
{
    char cause[16] = "nothing";
    FILE *file = count > 1 ? fopen(words[1], "r") : NULL;
    if (file) {
        if (fscanf(file, "%15s", cause) != 1)
            return 1;
        fclose(file);
    }
    int numbers[2] = {0, 1};
    pthread_t other, beside = 0;
    pthread_barrier_init(&meeting, NULL, 2);
    pthread_create(&other, NULL, steps, &numbers[1]);
    pin(0);
    plant(cause, &beside);
    steps(&numbers[0]);
    pthread_join(other, NULL);
    if (beside)
        pthread_join(beside, NULL);
    printf("%g\n", sums[0] + sums[1] + sums[2]);
    return 0;
}
