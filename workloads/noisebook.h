/* noisebook.h: marks the timed region of a program and waits at Noisebook's barrier
 * (CONTRIBUTING.md, "How a run goes").
 *
 * Include it, warm up, call nb_region_begin(), compute, call nb_region_end(), check the result,
 * call nb_region_print(). Started by hand the program does not wait; started by Noisebook it writes
 * one byte to NOISEBOOK_READY_FD, reads the start time (int64, CLOCK_MONOTONIC, ns) from
 * NOISEBOOK_GO_FD and begins exactly then. C11 and C++11; Linux.
 */
#ifndef NOISEBOOK_H
#define NOISEBOOK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* How long before the start the sleep ends: longer than the kernel's timer slack (50 us) and a late
 * wake-up. */
#define NB_SPIN_NS INT64_C(200000)

/* Sums over the threads of the process, from /proc/self/task/TID/schedstat. */
struct nb_thread_times {
    int64_t cpu_ns, runqueue_wait_ns, timeslices;
    int threads; /* 0: not readable here */
};

struct nb_region {
    int64_t t0_ns; /* the agreed start; 0: nobody waits for us */
    int64_t start_ns, end_ns;
    struct nb_thread_times before, after;
};

static inline int64_t nb_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The file descriptor named by an environment variable, or -1. */
static inline int nb_fd_from_environment(const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    if (!text || !*text)
        return -1;
    errno = 0;
    long fd = strtol(text, &end, 10);
    return errno || *end || fd < 0 || fd > INT_MAX ? -1 : (int)fd;
}

static inline int nb_write_byte(int fd)
{
    ssize_t done;
    do
        done = write(fd, "r", 1);
    while (done < 0 && errno == EINTR);
    return done == 1 ? 0 : done < 0 ? -errno : -EIO;
}

static inline int nb_read_time(int fd, int64_t *time_ns)
{
    size_t have = 0;
    while (have < sizeof *time_ns) {
        ssize_t got = read(fd, (char *)time_ns + have, sizeof *time_ns - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -EPIPE;
        have += (size_t)got;
    }
    return 0;
}

/* Says "I wait" and returns the agreed start in ns; 0 if nobody asked us to wait, or the barrier is
 * broken. Forgets the barrier, so that neither a second region nor a child waits at it again. */
static inline int64_t nb_barrier(void)
{
    int ready = nb_fd_from_environment("NOISEBOOK_READY_FD"),
        go = nb_fd_from_environment("NOISEBOOK_GO_FD");
    int64_t t0_ns = 0;
    unsetenv("NOISEBOOK_READY_FD");
    unsetenv("NOISEBOOK_GO_FD");
    if (ready < 0 || go < 0)
        return 0;
    int error = nb_write_byte(ready);
    if (!error)
        error = nb_read_time(go, &t0_ns);
    if (error) {
        fprintf(stderr,
                "noisebook: no barrier (file descriptors %d and %d: %s), starting at once\n", ready,
                go, strerror(-error));
        return 0;
    }
    close(ready);
    close(go);
    return t0_ns;
}

/* Sleeps until shortly before a point in time, then spins; returns at once if it has passed. */
static inline void nb_sleep_until(int64_t time_ns)
{
    int64_t wake_ns = time_ns - NB_SPIN_NS;
    struct timespec wake;
    wake.tv_sec = (time_t)(wake_ns / 1000000000);
    wake.tv_nsec = (long)(wake_ns % 1000000000);
    if (wake_ns > 0)
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL) == EINTR)
            ;
    while (nb_now_ns() < time_ns)
        ;
}

static inline void nb_add_thread(struct nb_thread_times *sum, int folder, const char *thread)
{
    char path[300], text[100];
    snprintf(path, sizeof path, "%s/schedstat", thread);
    int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    int64_t cpu_ns, wait_ns, slices;
    text[got > 0 ? got : 0] = 0;
    if (sscanf(text, "%" SCNd64 " %" SCNd64 " %" SCNd64, &cpu_ns, &wait_ns, &slices) != 3)
        return;
    sum->cpu_ns += cpu_ns;
    sum->runqueue_wait_ns += wait_ns;
    sum->timeslices += slices;
    sum->threads++;
}

static inline struct nb_thread_times nb_thread_times_now(void)
{
    struct nb_thread_times sum;
    struct dirent *entry;
    DIR *tasks = opendir("/proc/self/task");
    memset(&sum, 0, sizeof sum);
    if (!tasks)
        return sum;
    while ((entry = readdir(tasks)))
        if (entry->d_name[0] != '.')
            nb_add_thread(&sum, dirfd(tasks), entry->d_name);
    closedir(tasks);
    return sum;
}

/* Peak resident memory in KiB, or 0. Not from getrusage(): its value survives exec and is then the
 * launching process's. */
static inline long nb_peak_memory_kb(void)
{
    char line[200];
    long peak_kb = 0;
    FILE *status = fopen("/proc/self/status", "re");
    if (!status)
        return 0;
    while (!peak_kb && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %ld kB", &peak_kb) != 1)
            peak_kb = 0;
    fclose(status);
    return peak_kb;
}

/* Begins the timed region: waits at the barrier if there is one. Threads must be running and memory
 * touched before. */
static inline void nb_region_begin(struct nb_region *region)
{
    memset(region, 0, sizeof *region);
    region->t0_ns = nb_barrier();
    region->before = nb_thread_times_now();
    if (region->t0_ns > 0)
        nb_sleep_until(region->t0_ns);
    region->start_ns = nb_now_ns();
}

static inline void nb_region_end(struct nb_region *region)
{
    region->end_ns = nb_now_ns();
    region->after = nb_thread_times_now();
}

/* Prints the line that Noisebook reads. `format` adds the program's own "key=value" words; let the
 * last be verified=yes or no. Scheduler sums are left out where a thread ended within the region:
 * it took its share with it. */
#ifdef __GNUC__
__attribute__((format(printf, 3, 4)))
#endif
static inline void nb_region_print(const struct nb_region *region, const char *name,
                                   const char *format, ...)
{
    const struct nb_thread_times *before = &region->before, *after = &region->after;
    int64_t spent_ns = region->end_ns - region->start_ns;
    long peak_kb = nb_peak_memory_kb();
    va_list arguments;
    printf("noisebook: %s seconds=%.9f start_ns=%" PRId64 " end_ns=%" PRId64, name,
           (double)spent_ns * 1e-9, region->start_ns, region->end_ns);
    if (before->threads > 0 && after->threads >= before->threads)
        printf(" runqueue_wait_ns=%" PRId64 " cpu_ns=%" PRId64 " timeslices=%" PRId64,
               after->runqueue_wait_ns - before->runqueue_wait_ns, after->cpu_ns - before->cpu_ns,
               after->timeslices - before->timeslices);
    if (peak_kb > 0)
        printf(" max_rss_kb=%ld", peak_kb);
    putchar(' ');
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

#endif
