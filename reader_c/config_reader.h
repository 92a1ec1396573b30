/* What the reader of noise configs offers; cffi reads this very file, so it holds nothing but declarations and numbers.
 *
 * The lists of events are all but a few lines of a config. This reader turns them into columns; everything else of the document,
 * and what makes a list of events a good one, is checked in Python. It is strict: it takes a part of JSON in any layout, and refuses the
 * rest, which the caller then reads in the slow way. So whatever it takes means the same to every reader of JSON.
 */
#ifndef NB_CONFIG_READER_H
#define NB_CONFIG_READER_H
#include <stdint.h>

#define NB_LISTS 4096         /* CPUs */
#define NB_TAILS 65536        /* different tails */
#define NB_TAIL_SLOTS 262144  /* of the table in which they are found; a power of two */
#define NB_SHORTEST_EVENT 8   /* characters, with what follows it: [0,1,0], */

struct nb_config_lists {
    /* columns, one value an event, with room for `room` events: given by the caller */
    int64_t room;
    int64_t *start_ns;
    int64_t *duration_ns;
    int32_t *tail; /* what follows in its list, as a place in tail_begin and tail_end */
    /* the rest is filled in */
    int64_t events;
    int64_t lists_begin; /* offsets in the text of the object of lists: {"0": [...], ...} */
    int64_t lists_end;
    int32_t whole_text; /* the object is the whole document (the published format), not its field "cpus" */
    int32_t fractions;  /* some number was written 12.0 */
    int32_t lists;
    int32_t tails;
    int32_t cpu[NB_LISTS];
    int64_t first_event[NB_LISTS];
    int64_t tail_begin[NB_TAILS];
    int64_t tail_end[NB_TAILS];
    int32_t slots[NB_TAIL_SLOTS];
};

/* 0, or -1 for a text that this reader does not take. Times are 0 to 2^62 - 1; tails are not looked into: what lies between the
 * second comma of an event and the next bracket outside of a string. */
int nb_read_config(const char *text, int64_t length, struct nb_config_lists *config);
#endif
