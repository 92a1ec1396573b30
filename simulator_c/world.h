/* What the implicit evaluation knows of ranks and messages while it runs; its parts share it. */
#ifndef NB_WORLD_H
#define NB_WORLD_H

#include <stddef.h>

#include "implicit.h"
#include "model.h"

#define NEVER UINT64_MAX
#define LONGEST (UINT64_C(1) << 62) /* ps; sums beyond might leave 64 bits */
enum {
    BLOCK = 256,
    GROUP = 64,
    PART = BLOCK * GROUP, /* ranks; both halves have whole groups */
    RANKS_AHEAD = 6,      /* fetched into the cache */
    FIRST_NODES = 4096,
    LARGE_PAGE = 1 << 21,
    ROOMS = 16,
    OWN_NODES = 2, /* of a rank */
    ODD_BITS = 14,
    LONGER_BITS = 10,
    HISTORY_ENTRIES = 1 << 30,
    EARLY_HISTORY_ENTRIES = 1 << 26
};
#define NO_SEND UINT32_MAX           /* as `front`: none may go */
#define COMPUTATION (UINT32_MAX - 1) /* as `front`: a computation comes next */
#define FROM_ITSELF UINT32_MAX       /* as `from`: a send that may go, not a message */

/* One cache line a rank. `at`: its round, counted through all repetitions (free-running: its
 * repetition). `front`: the next send of the round (free-running: the round of the first send that
 * may go), COMPUTATION, or NO_SEND; `released`, `chain` and `origin`: when and through what it came
 * about. `aside`: messages received before their round, and sends that may go but have to queue. */
struct rank {
    uint64_t cpu, send_gap, receive_gap, released;
    uint32_t chain, origin, inbox, waiting, aside, at, remaining, front;
};

/* What let an operation go: when, and through which line of events; with a history `chain` is the
 * event. `origin`: the rank where the line began; where all steps are even, when the last longer
 * one was (roughly: 0, or time >> 14, in 2^-26 s), for then the rank follows from the round. */
struct cause {
    uint64_t time;
    /* longer: where all steps are even, how long that step was, in 2^-30 s */
    uint32_t chain, origin, longer;
};

/* An entry of the history: a message with its send, or a local event. released: when its send could
 * go, through `parent`, of whose descendants it is number `index` (0: the message of a send, which
 * comes before what that lets go); created: when the send began. Events are named 4 * entry + kind.
 */
struct past {
    uint64_t released, created;
    uint32_t parent, index;
};

enum { AT_START = 0, RECEIVED = 1, SENT = 2, LOCAL = 3, INDEX_RECEPTION = 1 << 30 };

struct node {
    uint64_t time, created;
    /* waited: its send, after it was let go; ps, at most 2^32 - 1 */
    uint32_t chain, origin, from, at, way, child, sibling, waited, longer, taken;
};

struct room {
    void *start;
    size_t bytes;
};

/* A message to a rank of another part: delivered between two windows. */
struct parcel {
    struct node message;
    uint32_t to;
};

/* What one thread knows: its part of the ranks, first .. last - 1, and their messages. Arrays by
 * rank are shared by all parts, and so is the history, of which each part writes its own piece. */
struct world {
    struct nb_implicit *job;
    const struct nb_network *network;
    const struct nb_noise *noise;
    struct rank *ranks;
    uint64_t *next, *next_of_block, *next_of_group, *quiet, soonest;
    /* when a rank's receptions will be posted; NEVER: they are. NULL: all are, from the start */
    uint64_t *posting;
    struct node *nodes;
    uint32_t first, last, used, capacity, spare, rounds, total;
    int even;
    /* a rank receives one message a round at most, all posted from the start, in 32 rounds at most:
     * `aside` is a mask of those that have come early */
    int lone;
    uint64_t messages, windows, ties;
    struct parcel *parcels;
    uint32_t parcel_count, parcel_room;
    /* of each rank's cause, where there is noise and all steps are even; else NULL */
    uint32_t *longer;
    uint32_t *travelled;               /* even: how far a line has come by each round */
    struct past *history;              /* or NULL */
    uint64_t entries, room_of_history; /* the next entry, and the end of the part's piece */
    uint64_t shortest_wait, shortest_flight;
    int failed;
    uint32_t rooms;
    struct room room[ROOMS];
};

/* Zeroed memory that lives as long as the world; NULL: there is none. */
void *nb_room_for(struct world *w, size_t count, size_t size);
void nb_give_back(const struct room *room);
void nb_give_all_back(struct world *w);

#endif
