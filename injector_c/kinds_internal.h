/* Shared by kinds.c and the kinds_*.c: what a stressor is, and what those of memory, files and
 * interrupts offer; and by lane.c and supervisor.c: what a lane does with its kind of noise. */
#ifndef NB_KINDS_INTERNAL_H
#define NB_KINDS_INTERNAL_H
#include "internal.h"

#define NB_LINE_BYTES 64
#define NB_PAGE_BYTES 4096

struct nb_stressor {
    /* maps, faults in, opens; 0 or -errno */
    int (*arm)(const struct nb_injection *run, int cpu);
    /* does about so many units, at least a granule: how many, or -errno; 0: no progress just now */
    int64_t (*step)(int64_t wanted);
    void (*begin)(void); /* at an event's start */
    void (*disarm)(void);
    /* in place of paced steps */
    bool (*run)(struct nb_actor *self, double intensity, const struct nb_span *span, double *units);
    int64_t granule; /* units of the smallest step */
    /* units of the largest step: short enough to look up every 100 us, where the kernel permits */
    int64_t most;
    int64_t quantum_ns; /* steps are done at once for so long, then it sleeps */
};

/* Of a stressor: its least and its largest step; paced by the millisecond. */
#define NB_PACED(least, largest) .granule = least, .most = largest, .quantum_ns = 1000000

extern const struct nb_stressor nb_memory_stream, nb_cache, nb_io_read, nb_io_sync, nb_io_metadata,
    nb_network, nb_timer, nb_ipi;

/* Makes ready what the lane's events need; 0 or an errno. A lane has events of one kind only. */
int nb_kinds_arm(const struct nb_injection *run, const struct nb_lane *lane);
/* Event i, from now on, with its intensity; false if everything ends first. Logs what was achieved.
 */
bool nb_kind_run(struct nb_actor *self, int64_t i);
void nb_kinds_disarm(void);
/* Removes the scratch folder, once no lane is left. System calls only. */
void nb_kinds_clean(const struct nb_injection *run);

static inline int64_t nb_least(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

#endif
