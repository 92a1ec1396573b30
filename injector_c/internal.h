/* Shared by owner.c, program.c, supervisor.c, lane.c and prepare.c: clock, futex, what is watched,
 * what the owner hands over to the program. */
#ifndef NB_INTERNAL_H
#define NB_INTERNAL_H
#include "injector.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NB_SECOND_NS 1000000000LL

static inline int64_t nb_clock_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * NB_SECOND_NS + time.tv_nsec;
}

static inline int64_t nb_now_ns(void)
{
    return nb_clock_ns(CLOCK_MONOTONIC);
}

static inline bool nb_is_realtime(int policy)
{
    return policy == NB_FIFO || policy == NB_RR;
}

static inline int nb_kind_of(const struct nb_injection *run, int64_t event)
{
    return run->plan.kind ? run->plan.kind[event] : NB_OCCUPY;
}

/* Whether there is such a kind. */
static inline bool nb_is_kind(int kind)
{
    switch (kind) {
    case NB_DUTY:
    case NB_MEMORY_STREAM:
    case NB_CACHE_L3:
    case NB_IO_READ:
    case NB_IO_SYNC:
    case NB_IO_METADATA:
    case NB_NETWORK:
    case NB_TIMER:
    case NB_IPI: return true;
    default: return false;
    }
}

/* Whether a lane of this kind disturbs its CPU from others. */
static inline bool nb_is_from_elsewhere(int kind)
{
    return kind == NB_IPI;
}

struct nb_span { /* of an event; CLOCK_MONOTONIC, or from t0 */
    int64_t start_ns, end_ns;
};

static inline uint32_t nb_state(const struct nb_control *control)
{
    return __atomic_load_n(&control->state, __ATOMIC_ACQUIRE);
}

static inline void nb_set_state(struct nb_control *control, uint32_t state)
{
    __atomic_store_n(&control->state, state, __ATOMIC_RELEASE);
    syscall(SYS_futex, &control->state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Sleeps while the state is `state`, until when_ns of CLOCK_MONOTONIC (INT64_MAX: for ever), or a
 * signal. Unlike clock_nanosleep it cannot miss a change of state; the timer is the same. */
static inline void nb_sleep_in_state(struct nb_control *control, uint32_t state, int64_t when_ns)
{
    const struct timespec when = {
        .tv_sec = when_ns / NB_SECOND_NS, .tv_nsec = when_ns % NB_SECOND_NS
    };
    syscall(SYS_futex, &control->state, FUTEX_WAIT_BITSET, state,
            when_ns == INT64_MAX ? NULL : &when, NULL, FUTEX_BITSET_MATCH_ANY);
}

static inline int nb_until_ms(int64_t time_ns)
{
    const int64_t left = (time_ns - nb_now_ns() + 999999) / 1000000;
    return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

struct nb_actor { /* what an injector process is at the moment */
    struct nb_injection *run;
    struct nb_lane *lane;
    int64_t hard_end_ns;
    int requested_policy, requested_priority; /* for the event before */
    int policy, nice;                         /* really had */
    /* what the event in progress is to take: its duration, less what lateness has cost it */
    int64_t due_ns;
    int64_t exit_ns; /* what giving the CPU back after it will cost */
    /* CPU time of this process that events account for; -1: begin with the next event */
    int64_t counted_ns;
    int64_t reading_ns;   /* what reading the clock of CPU time costs */
    long preemptions;     /* when the event in progress began */
    int early_timers[2];  /* timerfds; -1: none. See set_clock_early */
    int64_t clock_set_to; /* the last event that they are set for; -1: none */
};

static inline bool nb_goes_on(const struct nb_actor *self, int64_t now_ns)
{
    return nb_state(self->run->control) == NB_RELEASED && now_ns < self->hard_end_ns;
}

struct nb_watch { /* descriptors that the supervisor inherits; -1: none */
    int control, workload, owner, ready;
};

enum {
    NB_HANDED_OVER = 5,                    /* these four, and the memory */
    NB_PROGRAM_WORDS = 2 + NB_HANDED_OVER, /* of the program's command */
    NB_LAYOUT_BYTES = 64
};

/* Both sides must have been compiled from the same declarations. */
static inline void nb_layout(char *text)
{
    snprintf(text, NB_LAYOUT_BYTES, "%zu/%zu/%zu", sizeof(struct nb_injection),
             sizeof(struct nb_lane), sizeof(struct nb_control));
}

/* What the program `nbinject` does. The command is a name, the layout and the descriptors. The
 * injection comes through the control socket, its columns lie in the memory. */
int nb_program(int count, char **words);

/* The whole life of the supervisor. */
_Noreturn void nb_supervise(struct nb_injection *run, const struct nb_watch *watch);
/* Everything that may fail or take long, before the owner hears that a lane is ready; 0 or an
 * errno. */
int nb_prepare(struct nb_actor *self);
/* Takes a policy if it differs from the one before. */
void nb_become(struct nb_actor *self, int policy, int priority);
/* Waits for an event, and does it; its row of the log. */
void nb_replay_event(struct nb_actor *self, int64_t i);
/* The whole life of an injector process, from just after its fork; its exit status. */
int nb_lane_main(struct nb_injection *run, struct nb_lane *lane, int ready_fd);

#endif
