/* A recorded training job carried out again with other durations; see replay.c. */
#ifndef NB_REPLAY_H
#define NB_REPLAY_H

#include <stdint.h>

/* The operations of one step of one replica, and what was measured of them. Members of a group
 * begin together, when the last of all that they need is over: one member for a computation, two
 * for a message. A joint group also waits for the other replicas. Groups stand in an order in which
 * they can be carried out. A lane is a step of a replica: lane = step * replicas + replica. */
struct nb_replay {
    int32_t operations, groups, steps, replicas, lasts;
    const int32_t *needs_start, *needs;    /* [groups + 1], operations */
    const int32_t *member_start, *members; /* [groups + 1], operations */
    const uint8_t *joint;                  /* [groups] */
    const int32_t *last;                   /* [lasts], the operations that nothing needs */
    const double *measured;                /* [operations][lanes], seconds */
    const double *ideal;                   /* [operations], seconds */
};

/* Which durations are as measured: those of the chosen operations in the chosen lanes; with
 * `others` all but those. The rest is ideal. */
struct nb_scenarios {
    int32_t count;
    const uint8_t *chosen_operations; /* [count][operations] */
    const uint8_t *chosen_lanes;      /* [count][lanes] */
    const uint8_t *others;            /* [count] */
};

/* step_s: [count][steps], when the last operations of the step are over. ends: NULL, or
 * [count][operations][lanes], when each is over. 0, or -1 without memory. */
int nb_replay(const struct nb_replay *job, const struct nb_scenarios *scenarios, double *step_s,
              double *ends);
#endif
