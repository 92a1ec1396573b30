/* marks.h: how long the threads of an OpenMP program work and wait, as nbmarks.c writes it into the
 * file of speed.h.
 *
 * A thread is busy in the program's own code and waits in the runtime's: at barriers, at the end of
 * a region, before the next one. Each thread has a place in the file that says what it does now, so
 * nothing is lost where a program dies. When a state ends and the thread's mark before is a
 * millisecond old, a mark is added: busy time can be cut at any moment, at most 1 ms wrong.
 *
 * The functions of parallel regions and tasks are the ruler of speed: a mark of its own says how
 * often a thread has called one, and how long it was busy in it, over 4 ms or one longer call.
 */
#ifndef NB_MARKS_H
#define NB_MARKS_H

#include "speed.h"

enum { NB_MARK_THREADS = 1024, NB_MARK_NS = 1000000, NB_REGION_MARKS = 4 };
enum nb_state { NB_WAITING, NB_BUSY, NB_REGION };

/* Read by nbhelpers/speed. Ticks are those of ticks.h. */
struct nb_mark {
    int64_t wall_ns, ticks; /* the same moment; CLOCK_MONOTONIC, of NB_REGION 0 */
    int64_t since;          /* ticks: when the state began that ends here; the first of the calls */
    int64_t busy;           /* ticks: of the thread's life until now, those in which it was busy;
                             * of NB_REGION: those of the calls */
    int32_t thread, state;  /* what ends here: enum nb_state */
    int64_t function, calls; /* of NB_REGION: its place in its object, which is hashed; 0 */
};

struct nb_thread {
    int32_t thread, process; /* thread 0: a free place */
    int64_t since, busy;     /* ticks: when the state began; busy until then */
    int64_t marked;          /* ticks of the last mark */
    int64_t ended;           /* ticks: the end of the process; 0 before */
    int32_t state;
    char line[20]; /* each thread writes to its own line of the cache */
};

/* The file of speed.h ends with the threads' places and the marks. */
static inline int64_t nb_marks_bytes(const struct nb_speed_header *header)
{
    return header->marks_capacity ? NB_MARK_THREADS * (int64_t)sizeof(struct nb_thread) +
                                        header->marks_capacity * (int64_t)sizeof(struct nb_mark)
                                  : 0;
}

#define NB_INSIDE __attribute__((visibility("hidden")))
NB_INSIDE void nb_marks_open(struct nb_speed_header *header, void *places);
NB_INSIDE void nb_marks_thread_begins(void);
NB_INSIDE void nb_marks_thread_ends(void);
NB_INSIDE void nb_marks_in_child(void);

/* For those who see the program enter and leave the runtime. The state before is returned; a thread
 * that is seen for the first time had the state `first` since it began. */
NB_INSIDE int nb_marks_state(enum nb_state state, enum nb_state first);
/* A call of a region's function, or of a task's, by this thread, or what of it lies between two
 * waits: busy time of calls within it is theirs alone. The state is that of the function's own code
 * at the begin; at the end it may be the one that follows. Whoever has just changed the state saves
 * a reading of the clock: the change has read it. */
struct nb_visit {
    int64_t ticks, busy, counted;
};
NB_INSIDE struct nb_visit nb_marks_enter(int changed);
NB_INSIDE void nb_marks_leave(const struct nb_visit *visit, uintptr_t function);

NB_INSIDE void nb_marks_lack(void); /* something has no room */

/* GNU's runtime is observed from outside, others observe themselves. */
enum nb_observer { NB_NOBODY, NB_WRAPPERS, NB_OMPT };
extern NB_INSIDE enum nb_observer nb_marks_observer;

#endif
