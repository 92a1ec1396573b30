/* nbbeside: samples the speed of CPUs beside a program that cannot load libnbspeed.so.
 *
 *     nbbeside FILE CPUS
 *
 * A thread a CPU, which preempts the program for some microseconds each time: it notes when it was
 * to wake (in the place of the CPU time, which is not the program's) and when it did. It ends with
 * its parent.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "cpus.h"
#include "works.h"

static struct nb_speed_header *header;
static struct nb_works works;

static void add_sample(int cpu, int64_t planned_ns, uint64_t *state)
{
    int64_t wall_ns = nb_now_ns();
    int64_t place = __atomic_fetch_add(&header->count, 1, __ATOMIC_RELAXED);
    if (place >= header->capacity)
        return;
    struct nb_speed_sample *samples = (struct nb_speed_sample *)((char *)header + NB_SPEED_HEADER);
    struct nb_works own = works;
    samples[place].wall_ns = wall_ns;
    samples[place].cpu_ns = planned_ns;
    samples[place].thread = -1 - cpu;
    samples[place].cpu = cpu;
    samples[place].place = NB_BESIDE;
    nb_work(&own, state, &samples[place]);
}

/* First among the threads of the CPU where that is permitted: else it wakes late. */
static void go_first(int cpu)
{
    cpu_set_t set;
    struct sched_param first = {.sched_priority = 1};
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &first) && nice(-20) < 0)
        errno = 0;
}

static void *watch(void *which)
{
    int cpu = (int)(intptr_t)which;
    uint64_t state = (uint64_t)cpu * 0x9e3779b97f4a7c15ULL;
    go_first(cpu);
    for (;;) {
        int64_t next_ns = nb_next_turn_ns(nb_now_ns(), header->interval_ns, cpu);
        struct timespec wake = {next_ns / 1000000000, next_ns % 1000000000};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL) == EINTR)
            ;
        add_sample(cpu, next_ns, &state);
    }
    return NULL;
}

static int open_file(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    void *file = MAP_FAILED;
    if (size > NB_SPEED_HEADER)
        file = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (file == MAP_FAILED)
        return -errno;
    header = file;
    nb_works_begin(&works, header);
    return strncmp(header->magic, NB_SPEED_MAGIC, sizeof header->magic) ? -EINVAL : 0;
}

int main(int count, char **words)
{
    cpu_set_t cpus;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1UL);
    if (count != 3 || nb_parse_cpus(words[2], NULL, &cpus) || open_file(words[1])) {
        fprintf(stderr, "usage: nbbeside FILE CPUS\n");
        return 2;
    }
    for (intptr_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        pthread_t thread;
        if (CPU_ISSET((size_t)cpu, &cpus) && pthread_create(&thread, NULL, watch, (void *)cpu))
            return 1;
    }
    pause();
}
