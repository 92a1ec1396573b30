/* The LogGOPS simulator behind nbhelpers.simulation: what all its parts share. Every other header
 * of a .c file here is read by cffi, too.
 *
 * Times are int64: picoseconds in the mode `exact`, nanoseconds in `compat` (there with the
 * reference simulator's modular arithmetic). Functions return 0, or a positive code that says why
 * they stopped (enum nb_stop).
 */
#ifndef NB_SIMULATOR_H
#define NB_SIMULATOR_H

#include <stdint.h>

enum nb_mode { NB_EXACT = 0, NB_COMPAT = 1 };
enum nb_kind { NB_SEND = 1, NB_RECV = 2, NB_CALC = 3 };

/* What messages of `least` bytes and more cost; least is 1 in the first, and rises. */
struct nb_piece {
    int64_t least, L, o, r, g; /* bytes; then in the mode's unit, r: o at the receiver */
    double G, O;               /* exact: ps a byte; compat: whole ns a byte */
};

struct nb_network {
    int32_t mode;   /* enum nb_mode */
    int32_t pieces; /* compat: one, with r = o */
    const struct nb_piece *piece;
    uint64_t S; /* bytes */
};

/* Where a rank is in its trace. Nothing is lost in [from, until), simulated time; a rank without
 * noise is left alone from 0 to 2^64 - 1. */
struct nb_place {
    uint64_t from, until;
    int64_t begins; /* exact: simulated time at which the present turn of the trace began */
    int32_t trace;
    int32_t hint; /* where the last look-up ended */
};

/* Detours: those of trace i are detour[2 * first[i]] to detour[2 * first[i + 1]], two numbers each:
 * exact: start of a stretch of lost time (disjoint, sorted, within the period), noise-free time of
 * the period before it; compat: start and duration as they stand in the trace. */
struct nb_noise {
    const int64_t *detour;
    const int64_t *first;      /* traces + 1 */
    const int64_t *period;     /* traces */
    const int64_t *free;       /* traces; exact: noise-free time in a period */
    const int32_t *rank_trace; /* ranks; -1: no noise */
    const int64_t *phase;      /* ranks */
    struct nb_place *place;    /* ranks */
};

/* A column that is the same for all operations has stride 0. width: bytes of an entry. */
struct nb_column {
    const void *data;
    int32_t width;
    int32_t stride; /* 0 or 1 */
};

#endif
