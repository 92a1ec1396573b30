/* What the implicit evaluation knows of ranks and messages while it runs; for implicit.c only. */
#ifndef NB_WORLD_H
#define NB_WORLD_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "implicit.h"
#include "model.h"
#include "shapes.h"

#define NEVER UINT64_MAX
#define LONGEST (UINT64_C(1) << 62) /* ps; sums beyond might leave 64 bits */
enum {
    BLOCK = 256,
    GROUP = 64,
    AHEAD = 6,
    FIRST_NODES = 4096,
    LARGE_PAGE = 1 << 21,
    ROOMS = 16,
    ODD_BITS = 14,
    LONGER_BITS = 10,
    HISTORY_ENTRIES = 1 << 30,
    KEPT_ENTRIES = 1 << 26
};
static const uint32_t NONE = UINT32_MAX, COMPUTE = UINT32_MAX - 1, READY = UINT32_MAX;

/* One cache line a rank. `at`: its round, counted through all repetitions (free-running: its
 * repetition). `front`: the next send of the round (free-running: the round of the first send that
 * may go), COMPUTE, or NONE; `released`, `chain` and `origin`: when and through what it came about.
 * `aside`: messages received before their round, and sends that may go but have to queue. */
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

struct world {
    struct nb_implicit *job;
    const struct nb_network *network;
    const struct nb_noise *noise;
    struct rank *ranks;
    uint64_t *next, *next_of_block, *next_of_group, *quiet, soonest;
    /* when a rank's receptions will be posted; NEVER: they are. NULL: all are, from the start */
    uint64_t *posting;
    struct node *nodes;
    uint32_t used, capacity, spare, rounds, total;
    int even;
    /* of each rank's cause, where there is noise and all steps are even; else NULL */
    uint32_t *longer;
    uint32_t *travelled;  /* even: how far a line has come by each round */
    struct past *history; /* or NULL */
    uint64_t entries, room_of_history, shortest_wait, shortest_flight;
    int failed;
    uint32_t rooms;
    struct room room[ROOMS];
};

/* Zeroed memory, in large pages where it is large: ranks and messages are met in no order once
 * noise has scattered them. It lives as long as the world. */
static void *room_for(struct world *w, size_t count, size_t size)
{
    const size_t bytes = count * size;
    void *room;
    if (w->rooms == ROOMS)
        return NULL;
    if (bytes < LARGE_PAGE) {
        room = calloc(1, bytes ? bytes : 1);
    } else {
        room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        room = room == MAP_FAILED ? NULL : room;
        if (room)
            madvise(room, bytes, MADV_HUGEPAGE);
    }
    if (room)
        w->room[w->rooms++] = (struct room){room, bytes};
    return room;
}

static void give_back(const struct room *room)
{
    if (room->bytes < LARGE_PAGE)
        free(room->start);
    else
        munmap(room->start, room->bytes);
}

#endif
