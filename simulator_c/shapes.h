/* Who sends to whom in a regular collective: the rounds of each rank, from its number alone.
 * Inline, because a rank asks for each of its messages: calls cost halos a quarter more time.
 *
 * Trees have two rounds, what comes in and what goes out; stars and halos one. Exchanges with place
 * XOR step are done by a core of a power of two: of the first 2 (ranks - core) ranks the even ones,
 * guests, hand over to the odd ones, their hosts, in the first round, and get the result in the
 * last.
 */
#ifndef NB_SHAPES_H
#define NB_SHAPES_H

#include "implicit.h"

struct nb_round {
    uint32_t sends, receptions;
};

struct nb_way {
    /* the receiver, its round that the message belongs to, and the direction it goes (halo) */
    uint32_t to, round, way;
};

/* --- trees ------------------------------------------------------------------------------------ */

static inline uint32_t nb_root_of(const struct nb_implicit *job, uint32_t repetition)
{
    return job->rotate ? (uint32_t)(((uint64_t)job->root + repetition) % job->ranks) : job->root;
}

/* A rank's place in the tree, and the rank at a place: the root changes places with rank 0. */
static inline uint32_t nb_swapped(uint32_t number, uint32_t root)
{
    return number == root ? 0 : number == 0 ? root : number;
}

/* k-nomial tree: place v has the children v + j radix^d (j = 1 .. radix - 1) of every power above
 * v, nearest first; its parent's number lacks the leading digit. */
static inline uint64_t nb_first_power(uint32_t place, uint32_t radix)
{
    uint64_t power = 1;
    while (power <= place)
        power *= radix;
    return power;
}

static inline uint32_t nb_children(const struct nb_implicit *job, uint32_t place)
{
    uint32_t count = 0;
    for (uint64_t power = nb_first_power(place, job->radix); place + power < job->ranks;
         power *= job->radix) {
        uint64_t fit = (job->ranks - 1 - place) / power;
        count += (uint32_t)(fit < job->radix - 1 ? fit : job->radix - 1);
    }
    return count;
}

static inline uint32_t nb_child(const struct nb_implicit *job, uint32_t place, uint32_t index)
{
    uint64_t power = nb_first_power(place, job->radix);
    for (; index >= job->radix - 1; index -= job->radix - 1)
        power *= job->radix;
    return (uint32_t)(place + (index + 1) * power);
}

static inline uint32_t nb_parent(const struct nb_implicit *job, uint32_t place)
{
    return (uint32_t)(place % (nb_first_power(place, job->radix) / job->radix));
}

/* --- halo: directions 2i and 2i + 1 lead up and down in dimension i --------------------------- */

static inline int nb_neighbour(const struct nb_implicit *job, uint32_t rank, uint32_t way,
                               uint32_t *neighbour)
{
    uint32_t stride = 1, dim = way / 2;
    for (uint32_t i = 0; i < dim; i++)
        stride *= job->dims[i];
    uint32_t extent = job->dims[dim], place = rank / stride % extent;
    int at_edge = way % 2 ? place == 0 : place == extent - 1;
    if (extent == 1 || (at_edge && !job->periodic))
        return 0;
    uint32_t there = way % 2 ? (at_edge ? extent - 1 : place - 1) : (at_edge ? 0 : place + 1);
    *neighbour = rank + there * stride - place * stride;
    return 1;
}

static inline struct nb_way nb_halo_way(const struct nb_implicit *job, uint32_t rank,
                                        uint32_t index)
{
    struct nb_way found = {rank, 0, 0};
    for (; found.way < 6; found.way++)
        if (nb_neighbour(job, rank, found.way, &found.to) && index-- == 0)
            break;
    return found;
}

static inline uint32_t nb_neighbours(const struct nb_implicit *job, uint32_t rank)
{
    uint32_t count = 0, neighbour;
    for (uint32_t way = 0; way < 6; way++)
        count += (uint32_t)nb_neighbour(job, rank, way, &neighbour);
    return count;
}

/* --- exchanges with place XOR step ------------------------------------------------------------ */

static inline uint32_t nb_core(const struct nb_implicit *job)
{
    return UINT32_C(1) << (31 - __builtin_clz(job->ranks));
}

static inline uint32_t nb_place_in_core(const struct nb_implicit *job, uint32_t rank)
{
    uint32_t extra = job->ranks - nb_core(job);
    return rank < 2 * extra ? rank / 2 : rank - extra;
}

static inline uint32_t nb_rank_in_core(const struct nb_implicit *job, uint32_t place)
{
    uint32_t extra = job->ranks - nb_core(job);
    return place < extra ? 2 * place + 1 : place + extra;
}

static inline struct nb_round nb_xor_round(const struct nb_implicit *job, uint32_t rank,
                                           uint32_t round)
{
    uint32_t extra = job->ranks - nb_core(job);
    if (!extra)
        return (struct nb_round){1, 1};
    int paired = rank < 2 * extra, guest = paired && rank % 2 == 0;
    if (round == 0)
        return (struct nb_round){guest, paired && !guest};
    if (round == job->rounds - 1)
        return (struct nb_round){paired && !guest, guest};
    return (struct nb_round){!guest, !guest};
}

static inline struct nb_way nb_xor_way(const struct nb_implicit *job, uint32_t rank, uint32_t round)
{
    if (job->ranks != nb_core(job) && (round == 0 || round == job->rounds - 1))
        return (struct nb_way){rank ^ 1, round, 0};
    return (struct nb_way){
        nb_rank_in_core(job, nb_place_in_core(job, rank) ^ job->step[round]), round, 0
    };
}

/* Bytes up to the end of chunk i, when the larger chunks come first. */
static inline int64_t nb_end_of_chunk(const struct nb_implicit *job, int64_t i)
{
    int64_t rest = job->total % job->parts;
    return job->total / job->parts * i + (i < rest ? i : rest);
}

/* Halving and doubling with unequal chunks: in the round of a mask a place sends the half that it
 * does not keep, on the way back the half that it has. */
static inline int64_t nb_halves(const struct nb_implicit *job, uint32_t place, uint32_t round)
{
    int64_t low = 0, high = job->parts;
    const uint32_t begin = job->ranks != nb_core(job), masks = (job->rounds - 2 * begin) / 2;
    const int back = round - begin >= masks;
    for (uint32_t mask = 1;; mask *= 2) {
        int64_t middle = (low + high) / 2;
        int upper = (place & mask) != 0;
        if (mask == job->step[round])
            return upper != back ? nb_end_of_chunk(job, middle) - nb_end_of_chunk(job, low)
                                 : nb_end_of_chunk(job, high) - nb_end_of_chunk(job, middle);
        low = upper ? middle : low;
        high = upper ? high : middle;
    }
}

/* --- all of them ------------------------------------------------------------------------------ */

static inline struct nb_round nb_round_of(const struct nb_implicit *job, uint32_t rank,
                                          uint32_t repetition, uint32_t round)
{
    const uint32_t others = job->ranks - 1;
    if (job->pattern == NB_SHIFT)
        return (struct nb_round){others > 0, others > 0};
    const uint32_t root = nb_root_of(job, repetition), place = nb_swapped(rank, root);
    switch (others ? job->pattern : NB_SHIFT) {
    case NB_XOR: return nb_xor_round(job, rank, round);
    case NB_BCAST:
        return round ? (struct nb_round){nb_children(job, place), 0}
                     : (struct nb_round){0, place != 0};
    case NB_REDUCE:
        return round ? (struct nb_round){place != 0, 0}
                     : (struct nb_round){0, nb_children(job, place)};
    case NB_SCATTER: return place ? (struct nb_round){0, 1} : (struct nb_round){others, 0};
    case NB_GATHER: return place ? (struct nb_round){1, 0} : (struct nb_round){0, others};
    case NB_ALLTOALL: return (struct nb_round){others, others};
    case NB_HALO: return (struct nb_round){nb_neighbours(job, rank), nb_neighbours(job, rank)};
    default: return (struct nb_round){0, 0};
    }
}

static inline uint32_t nb_wrapped(const struct nb_implicit *job, uint64_t rank)
{
    return (uint32_t)(rank < job->ranks ? rank : rank - job->ranks);
}

static inline struct nb_way nb_shift_way(const struct nb_implicit *job, uint32_t rank,
                                         uint32_t round)
{
    return (struct nb_way){nb_wrapped(job, (uint64_t)rank + job->step[round]), round, 0};
}

static inline struct nb_way nb_way_of(const struct nb_implicit *job, uint32_t rank,
                                      uint32_t repetition, uint32_t round, uint32_t index)
{
    if (job->pattern == NB_SHIFT)
        return nb_shift_way(job, rank, round);
    const uint32_t root = nb_root_of(job, repetition), place = nb_swapped(rank, root);
    switch (job->pattern) {
    case NB_XOR: return nb_xor_way(job, rank, round);
    case NB_BCAST: return (struct nb_way){nb_swapped(nb_child(job, place, index), root), 0, 0};
    case NB_REDUCE: return (struct nb_way){nb_swapped(nb_parent(job, place), root), 0, 0};
    case NB_SCATTER: return (struct nb_way){index < root ? index : index + 1, 0, 0};
    case NB_GATHER: return (struct nb_way){root, 0, 0};
    case NB_ALLTOALL: return (struct nb_way){nb_wrapped(job, (uint64_t)rank + index + 1), 0, 0};
    default: return nb_halo_way(job, rank, index);
    }
}

/* Bytes of the message that a rank sends in a round, in a direction. */
static inline int64_t nb_bytes_of(const struct nb_implicit *job, uint32_t from, uint32_t round,
                                  uint32_t way)
{
    if (!job->parts)
        return job->bytes[job->pattern == NB_HALO ? way / 2 : round];
    if (job->pattern == NB_SHIFT) {
        int64_t chunk = ((int64_t)from + job->first - round) % job->parts;
        chunk += chunk < 0 ? job->parts : 0;
        return job->total / job->parts + (chunk < job->total % job->parts);
    }
    return job->step[round] ? nb_halves(job, nb_place_in_core(job, from), round) : job->total;
}
#endif
