/* cpus.h: lists of CPUs, as words of a command line. */
#ifndef NB_CPUS_H
#define NB_CPUS_H

#include "noisebook.h"

#include <sched.h>

/* A list such as 0,2-5; of CPUs that are `allowed`, or, where that is NULL, of any. */
static inline int nb_parse_cpus(const char *text, const cpu_set_t *allowed, cpu_set_t *cpus)
{
    CPU_ZERO(cpus);
    while (*text) {
        char *end;
        long first = strtol(text, &end, 10), last = first;
        if (end == text)
            return -EINVAL;
        if (*end == '-') {
            text = end + 1;
            last = strtol(text, &end, 10);
        }
        if (end == text || (*end && *end != ',') || first < 0 || last < first ||
            last >= CPU_SETSIZE)
            return -EINVAL;
        for (long cpu = first; cpu <= last; cpu++) {
            if (allowed && !CPU_ISSET(cpu, allowed))
                return -EINVAL;
            CPU_SET(cpu, cpus);
        }
        text = *end ? end + 1 : end;
    }
    return CPU_COUNT(cpus) ? 0 : -EINVAL;
}

#endif
