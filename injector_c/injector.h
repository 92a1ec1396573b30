/* What the injector offers; cffi reads this very file, so it holds nothing but declarations and
 * numbers.
 *
 * An injection is a plan and a log, both flat columns in memory shared between processes, and a few
 * lanes. A lane is one injector process that replays a slice of the plan: at an event's start it
 * takes a CPU, and keeps it for the event's duration. A supervisor process above them ends
 * everything when the workload ends, when the owner (who called nb_start) ends, and at a time
 * limit.
 *
 *     nb_map_memory -> nb_start (executes, returns at once) -> nb_wait_ready -> nb_release(t0)
 *         -> ... -> nb_stop -> nb_join -> nb_unmap_memory
 *
 * Supervisor and lanes are the program `nbinject`, which starts in the same time whatever the
 * owner's size. Functions return 0 or -errno. The columns belong to the caller, and must lie in the
 * memory of one nb_map_memory.
 */
#ifndef NB_INJECTOR_H
#define NB_INJECTOR_H
#include "kinds.h"

#include <stdint.h>

#define NB_MAX_LANES 1024
#define NB_MAX_CPUS 8192
#define NB_HIGHEST_PRIORITY 98 /* of an event; 99 is the supervisor's */
#define NB_ROAM -1             /* a lane that may run on every CPU */
#define NB_CORE_KINDS 4        /* of cores that differ in what an event costs there */
#define NB_EXIT_POINTS 8       /* lengths that the cost of leaving was measured at */

/* policies; the kernel's numbers */
#define NB_OTHER 0
#define NB_FIFO 1
#define NB_RR 2
#define NB_BATCH 3
#define NB_IDLE 5

/* what an event does with the CPU while it has it; codes from 1 on are in kinds.h */
#define NB_OCCUPY 0

/* outcome of an event; a fresh log is all zero */
#define NB_NOT_REACHED 0
#define NB_INJECTED 1
/* woke after the allowance, with its planned duration; events behind it wait, and pauses between
 * them use lateness up */
#define NB_LATE 2
#define NB_CUT 3     /* the end came in the middle of it */
#define NB_DROPPED 4 /* woke after give_up_ns */

/* state of an injection (a futex) */
#define NB_ARMED 0
#define NB_RELEASED 1
#define NB_STOPPING 2

/* why it ended */
#define NB_RUNNING 0
#define NB_PLAN_DONE 1
#define NB_WORKLOAD_ENDED 2
#define NB_OWNER_ENDED 3
#define NB_STOP_REQUESTED 4
#define NB_TIME_LIMIT 5
#define NB_FAILED 6

struct nb_plan {       /* one value an event; in each lane by start */
    int64_t *start_ns; /* from t0 */
    int64_t *duration_ns;
    int8_t *policy;
    int8_t *priority;  /* NB_FIFO, NB_RR: 1..NB_HIGHEST_PRIORITY; the others: nice -20..19 */
    int8_t *kind;      /* NB_OCCUPY, ...; NULL: all of them occupy */
    double *intensity; /* what it means depends on the kind; NULL where no kind needs it */
};

struct nb_log {        /* one value an event */
    int64_t *start_ns; /* the injector had a CPU, from t0 */
    /* the workload was without that CPU, from t0: the planned start, where the timer took it */
    int64_t *taken_ns;
    int64_t *end_ns;      /* it gave it back, from t0 */
    int64_t *cpu_time_ns; /* it consumed between the two */
    /* longest time in between without progress: hypervisor, fair server, interrupts */
    int64_t *gap_ns;
    /* of a real-time event: how long others had the CPU meanwhile; the event lasts so much longer
     */
    int64_t *preempted_ns;
    int16_t *ran_on; /* CPU at the start */
    int8_t *policy;  /* it really had */
    int8_t *outcome;
    /* in the unit of the intensity; left alone by events that occupy; NULL: not wanted */
    double *achieved;
};

struct nb_lane {
    int64_t first; /* event of the plan */
    int64_t count;
    int32_t cpu; /* or NB_ROAM */
    int32_t pid;
    /* errno why the lane did not become ready, or its noise from being made */
    int32_t error;
    int32_t status;  /* as from waitpid, once reaped */
    int32_t refused; /* changes of policy that the kernel did not permit */
    int32_t killed;  /* by the supervisor: it did not end by itself in time */
    int32_t done;    /* every event of the slice has been dealt with */
    int32_t stopped; /* somebody had stopped it (SIGSTOP) when it was to end */
};

struct nb_costs {    /* of a real-time event, on one kind of core */
    int64_t wake_ns; /* from the timer to its first instruction, usually */
    /* what woke later than this was stopped by the hypervisor, which tells nothing of the way out
     */
    int64_t wake_most_ns;
    /* what giving the CPU back costs the workload after its last instruction: at these lengths, in
     * ascending order; between them straight over the logarithm of the length... */
    int64_t length_ns[NB_EXIT_POINTS];
    int64_t exit_ns[NB_EXIT_POINTS];
    int64_t points; /* how many; 0: no core is of this kind */
    /* ...and so much more for each ns that it woke later than usual: leaving is as slow as waking
     * was */
    double exit_per_wake;
};

struct nb_rules {
    /* an event that wakes at most so late was on time: waking up is part of the noise */
    int64_t wake_allowance_ns;
    int64_t give_up_ns; /* an event that wakes later than this is dropped */
    struct nb_costs costs[NB_CORE_KINDS];
    int64_t longest_event_ns; /* longer ones are refused */
    int64_t limit_ns;         /* everything ends so long after t0 */
    int64_t armed_limit_ns;   /* or so long after nb_start, if never released */
    /* RLIMIT_RTTIME: the kernel's own watchdog of a lane that never sleeps */
    int64_t realtime_limit_us;
    /* most that real-time events may take all `cpus` at once: at a stretch, of any second, of any
     * ten seconds; 0: not limited */
    int64_t full_stop_ns;
    int64_t full_stop_second_ns;
    int64_t full_stop_ten_seconds_ns;
    int32_t cpus;          /* of the machine; 0: not limited */
    int32_t any_intensity; /* whether an event may ask for any intensity */
};

/* which limit a plan exceeds */
#define NB_LIMIT_INTENSITY 1
#define NB_LIMIT_SECOND 2
#define NB_LIMIT_TEN_SECONDS 3
#define NB_LIMIT_STRETCH 4

struct nb_excess {
    int32_t limit;
    int32_t lane;     /* -1: all of them together */
    int64_t event;    /* -1: all of them together */
    int64_t start_ns; /* of the window, from t0 */
    double value;     /* ns, or the intensity */
    double most;
};

#define NB_BUDGET_SLOTS 64 /* seconds that are accounted for at a time */

struct nb_control { /* in the shared memory */
    uint32_t state;
    int32_t ended_by;
    /* lanes sleep after their last event until they are stopped: ending a process costs the
     * workload time */
    int32_t stay;
    int32_t reserved;
    int64_t t0_ns;
    int64_t ended_ns; /* CLOCK_MONOTONIC */
    /* what real-time events of all lanes take in each second from t0: the second, and ns */
    uint64_t taken[NB_BUDGET_SLOTS];
};

/* exit status of a program that was built from other declarations */
#define NB_OTHER_BUILD 3
#define NB_BAD_PLAN 4 /* of one that was handed a plan that cannot be, or must not be replayed */

struct nb_injection {
    void *memory; /* the shared mapping that holds all that follows */
    uint64_t memory_bytes;
    int32_t memory_fd;         /* of nb_map_memory; the caller closes it */
    int32_t supervisor_status; /* as from waitpid, once reaped */
    struct nb_control *control;
    struct nb_lane *lanes;
    int32_t lane_count;
    int32_t supervisor_pid; /* 0 when there is none; the rest is filled by nb_start */
    int32_t control_fd;
    int32_t ready_fd;
    int32_t lanes_ready;
    int32_t reserved;
    int64_t event_count; /* length of the columns */
    /* CPUs that lanes with NB_ROAM may run on, a bit each; all zero: every CPU */
    uint64_t roam[NB_MAX_CPUS / 64];
    uint8_t core_kind[NB_MAX_CPUS]; /* of each CPU: which of rules.costs */
    struct nb_rules rules;
    struct nb_plan plan;
    struct nb_log log;
    struct nb_kind_options options; /* of kinds that do more than occupy */
};

/* -EINVAL: lanes or an event out of order, or out of range; *event is its index, or -1. */
int nb_check(const struct nb_injection *run, int64_t *event);
/* Of a plan that nb_check has let pass. -EDQUOT: it exceeds a limit, *excess says which. */
int nb_check_limits(const struct nb_injection *run, struct nb_excess *excess);
/* Zeroed memory that the program can share: its descriptor, or -errno. */
int32_t nb_map_memory(uint64_t bytes, void **memory);
void nb_unmap_memory(void *memory, uint64_t bytes);
/* Executes supervisor and lanes. workload_pid 0: there is none, the plan or the limit is the end.
 * program: the file nbinject. -ESRCH: the workload has ended already; -ENOENT, -EACCES: there is no
 * such program. */
int nb_start(struct nb_injection *run, int32_t workload_pid, const char *program);
/* -ETIMEDOUT, -EINTR (call again), -ECHILD: a lane failed, its error says why; without one the
 * supervisor ended. */
int nb_wait_ready(struct nb_injection *run, int32_t timeout_ms);
/* Times of the plan count from t0_ns of CLOCK_MONOTONIC. */
int nb_release(struct nb_injection *run, int64_t t0_ns);
/* Asks for the end; returns at once. */
int nb_stop(struct nb_injection *run);
/* Waits until every process of the injection is gone and closes the descriptors; -ETIMEDOUT, -EINTR
 * (call again). */
int nb_join(struct nb_injection *run, int32_t timeout_ms);
/* Kills and joins, whatever the state. */
int nb_kill(struct nb_injection *run);
/* The calling thread becomes a SCHED_FIFO loop on one CPU from t0 on, and stays what it became:
 * call it in a thread of its own. Each pair of gaps is when it was last and when it was again
 * running, from t0. Returns how many there were. */
int64_t nb_observe_losses(int32_t cpu, int32_t priority, int64_t t0_ns, int64_t length_ns,
                          int64_t threshold_ns, int64_t *gaps, int64_t capacity);
#endif
