/* hog: takes a CPU away, on schedule. A planted truth: what it does must show in a trace and be
 * reproduced by an injection.
 *
 *     hog (--cpu N | --roam) [--fifo PRIORITY]
 *         --schedule START_NS:LENGTH_NS[,START_NS:LENGTH_NS...]
 *
 * Times count from the common start (noisebook.h), or from now when started by hand; one process
 * takes one CPU. It sleeps until each start absolutely, then spins until start + length: what it
 * takes away does not depend on how late it woke. Shares no code with the injector. At most 0.9 s
 * at a stretch: the kernel's fair server would step in after 0.95 s, and the machine must stay
 * usable.
 */
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "noisebook.h"

#define LONGEST_NS INT64_C(900000000)

struct block {
    int64_t start_ns, length_ns;
};

struct request {
    int cpu, fifo, count;
    struct block *blocks;
};

static int parse_number(const char *text, const char *stops, int64_t high, int64_t *number,
                        const char **rest)
{
    char *end = NULL;
    errno = 0;
    *number = strtoll(text, &end, 10);
    *rest = end;
    return errno || end == text || *number < 0 || *number > high || !strchr(stops, *end) ? -EINVAL
                                                                                         : 0;
}

/* Blocks must be in order, not overlap, and be at most LONGEST_NS long. */
static int parse_schedule(const char *text, struct request *request)
{
    int64_t free_from_ns = 0;
    request->blocks = calloc(strlen(text) / 3 + 1, sizeof *request->blocks);
    if (!request->blocks)
        return -ENOMEM;
    while (*text) {
        struct block *block = &request->blocks[request->count++];
        if (parse_number(text, ":", INT64_MAX / 4, &block->start_ns, &text) || *text++ != ':' ||
            parse_number(text, ",", LONGEST_NS, &block->length_ns, &text) ||
            block->start_ns < free_from_ns)
            return -EINVAL;
        free_from_ns = block->start_ns + block->length_ns;
        text += *text == ',';
    }
    return 0;
}

static int parse_request(char **words, struct request *request)
{
    for (; *words; words++) {
        const char *rest = "", *value = words[1] ? words[1] : "";
        int64_t number = 0;
        if (!strcmp(*words, "--roam")) {
            request->cpu = -1;
            continue;
        }
        if (!strcmp(*words, "--cpu") && !parse_number(value, "", CPU_SETSIZE - 1, &number, &rest))
            request->cpu = (int)number;
        else if (!strcmp(*words, "--fifo") && !parse_number(value, "", 98, &number, &rest) &&
                 number > 0)
            request->fifo = (int)number;
        else if (strcmp(*words, "--schedule") || parse_schedule(value, request))
            return -EINVAL;
        words++;
    }
    return request->count && request->cpu >= -1 ? 0 : -EINVAL;
}

static int take_place(const struct request *request)
{
    const struct sched_param parameters = {.sched_priority = request->fifo};
    const struct rlimit watchdog = {2 * LONGEST_NS / 1000, 2 * LONGEST_NS / 1000};
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    if (request->cpu >= 0) {
        CPU_SET((size_t)request->cpu, &cpus);
        if (sched_setaffinity(0, sizeof cpus, &cpus) < 0)
            return -errno;
    }
    prctl(PR_SET_TIMERSLACK, 1UL);
    if (setrlimit(RLIMIT_RTTIME, &watchdog) < 0)
        return -errno;
    return request->fifo && sched_setscheduler(0, SCHED_FIFO, &parameters) < 0 ? -errno : 0;
}

static void take_cpu(const struct block *block, int64_t t0_ns)
{
    const int64_t start_ns = t0_ns + block->start_ns, end_ns = start_ns + block->length_ns;
    const struct timespec start = {
        .tv_sec = (time_t)(start_ns / 1000000000), .tv_nsec = (long)(start_ns % 1000000000)
    };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &start, NULL) == EINTR)
        ;
    while (nb_now_ns() < end_ns)
        ;
}

int main(int count, char **words)
{
    struct request request = {.cpu = -2};
    if (count < 2 || parse_request(words + 1, &request)) {
        fprintf(stderr,
                "usage: hog (--cpu N | --roam) [--fifo 1..98] --schedule START_NS:LENGTH_NS[,...]\n"
                "  blocks in order, not overlapping, each at most 900000000 ns long\n");
        return 2;
    }
    const int error = take_place(&request);
    if (error) {
        fprintf(stderr, "hog: cannot take CPU %d with priority %d: %s\n", request.cpu, request.fifo,
                strerror(-error));
        return 1;
    }
    const int accompanies = getenv("NOISEBOOK_GO_FD") != NULL;
    const int64_t agreed_ns = nb_barrier(), t0_ns = agreed_ns > 0 ? agreed_ns : nb_now_ns();
    if (accompanies && !agreed_ns) /* the run that it was to disturb will not happen */
        return 1;
    for (int i = 0; i < request.count; i++)
        take_cpu(&request.blocks[i], t0_ns);
    free(request.blocks);
    return 0;
}
