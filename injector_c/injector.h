/* What the injector offers; cffi reads this very file, so it holds nothing but declarations and numbers.
 *
 * An injection is a plan and a log, both flat columns in memory shared between processes, and a few lanes. A lane is one injector
 * process that replays a slice of the plan: at an event's start it takes a CPU, and keeps it for the event's duration. A supervisor
 * process above them ends everything when the workload ends, when the owner (who called nb_start) ends, and at a time limit.
 *
 *     nb_start (forks, returns at once) -> nb_wait_ready -> nb_release(t0) -> ... -> nb_stop -> nb_join
 *
 * Functions return 0 or -errno. The columns belong to the caller, and must lie in one MAP_SHARED mapping.
 */
#ifndef NB_INJECTOR_H
#define NB_INJECTOR_H
#include <stdint.h>

#define NB_MAX_LANES 1024
#define NB_MAX_CPUS 8192
#define NB_HIGHEST_PRIORITY 98 /* of an event; 99 is the supervisor's */
#define NB_ROAM -1             /* a lane that may run on every CPU */

/* policies; the kernel's numbers */
#define NB_OTHER 0
#define NB_FIFO 1
#define NB_RR 2
#define NB_BATCH 3
#define NB_IDLE 5

/* outcome of an event; a fresh log is all zero */
#define NB_NOT_REACHED 0
#define NB_INJECTED 1
#define NB_LATE 2    /* woke after the allowance, kept its planned duration */
#define NB_CUT 3     /* the end came in the middle of it */
#define NB_DROPPED 4 /* woke so late that injecting it would make everything after it late too */

/* state of an injection (a futex) */
#define NB_ARMED 0
#define NB_RELEASED 1
#define NB_STOPPING 2

/* why it ended */
#define NB_RUNNING 0
#define NB_PLAN_DONE 1
#define NB_WORKLOAD_ENDED 2
#define NB_OWNER_ENDED 3
#define NB_ASKED 4
#define NB_TIME_LIMIT 5
#define NB_FAILED 6

struct nb_plan { /* one value an event; in each lane by start */
    int64_t *start_ns; /* from t0 */
    int64_t *duration_ns;
    int8_t *policy;
    int8_t *priority; /* NB_FIFO, NB_RR: 1..NB_HIGHEST_PRIORITY; the others: nice -20..19 */
};

struct nb_log { /* one value an event */
    int64_t *start_ns;    /* the injector had a CPU, from t0 */
    int64_t *taken_ns;    /* the workload was without that CPU, from t0: the planned start, where the timer took it */
    int64_t *end_ns;      /* it gave it back, from t0 */
    int64_t *cpu_time_ns; /* it consumed between the two */
    int64_t *gap_ns;      /* longest time in between without progress: hypervisor, fair server, interrupts */
    int16_t *ran_on;      /* CPU at the start */
    int8_t *policy;       /* it really had */
    int8_t *outcome;
};

struct nb_lane {
    int64_t first; /* event of the plan */
    int64_t count;
    int32_t cpu; /* or NB_ROAM */
    int32_t pid;
    int32_t error;   /* errno that kept the lane from becoming ready */
    int32_t status;  /* as from waitpid, once reaped */
    int32_t refused; /* changes of policy that the kernel did not permit */
    int32_t killed;  /* by the supervisor: it did not end by itself in time */
    int32_t done;    /* every event of the slice has been dealt with */
    int32_t reserved;
};

struct nb_rules {
    int64_t wake_allowance_ns; /* an event that wakes at most so late was on time: waking up is part of the noise */
    int64_t give_up_ns;        /* an event that wakes later than this is dropped */
    int64_t exit_cost_ns;      /* what giving the CPU back costs the workload after a real-time event's last instruction */
    int64_t longest_event_ns;  /* longer ones are refused */
    int64_t limit_ns;          /* everything ends so long after t0 */
    int64_t armed_limit_ns;    /* or so long after nb_start, if never released */
    int64_t realtime_limit_us; /* RLIMIT_RTTIME: the kernel's own watchdog of a lane that never sleeps */
};

struct nb_control { /* in the shared memory */
    uint32_t state;
    int32_t ended_by;
    int32_t stay; /* lanes sleep after their last event until they are stopped: ending a process costs the workload milliseconds */
    int32_t reserved;
    int64_t t0_ns;
    int64_t ended_ns; /* CLOCK_MONOTONIC */
};

struct nb_injection {
    void *memory; /* the shared mapping that holds all that follows */
    uint64_t memory_bytes;
    struct nb_control *control;
    struct nb_lane *lanes;
    int32_t lane_count;
    int32_t supervisor_pid; /* 0 when there is none; the rest is filled by nb_start */
    int32_t control_fd;
    int32_t ready_fd;
    int32_t lanes_ready;
    int32_t reserved;
    struct nb_rules rules;
    struct nb_plan plan;
    struct nb_log log;
};

/* -EINVAL: lanes or an event out of order, or out of range; *event is its index, or -1. */
int nb_check(const struct nb_injection *run, int64_t *event);
/* Forks supervisor and lanes. workload_pid 0: there is none, the plan or the limit is the end. -ESRCH: it has ended already. */
int nb_start(struct nb_injection *run, int32_t workload_pid);
/* -ETIMEDOUT, -EINTR (call again), -ECHILD: a lane failed, its error says why. */
int nb_wait_ready(struct nb_injection *run, int32_t timeout_ms);
/* Times of the plan count from t0_ns of CLOCK_MONOTONIC. */
int nb_release(struct nb_injection *run, int64_t t0_ns);
/* Asks for the end; returns at once. */
int nb_stop(struct nb_injection *run);
/* Waits until every process of the injection is gone and closes the descriptors; -ETIMEDOUT, -EINTR (call again). */
int nb_join(struct nb_injection *run, int32_t timeout_ms);
/* Kills and joins, whatever the state. */
int nb_kill(struct nb_injection *run);
#endif
