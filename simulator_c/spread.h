/* L and G of a message, drawn from measured values: by its number in the schedule and a seed, so
 * neither the order of events nor a thread can change a draw. */
#ifndef NB_SPREAD_H
#define NB_SPREAD_H

#include <stddef.h>

#include "simulator.h"

/* splitmix64 (Steele, Lea, Flood, OOPSLA 2014) of a message's number. */
static inline uint64_t nb_spread_bits(uint64_t seed, uint64_t message)
{
    uint64_t z = seed + (message + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* One of `count` places, from 32 random bits. */
static inline uint64_t nb_spread_place(uint64_t bits, uint32_t count)
{
    return (bits & 0xFFFFFFFFu) * count >> 32;
}

/* Out of line: with the draws in the loop, the loop without draws would be slower. */
static __attribute__((noinline, cold, unused)) const struct nb_network *
nb_draw(const struct nb_network *network, uint64_t message, struct nb_network *room)
{
    const struct nb_spread *spread = network->spread;
    uint64_t bits = nb_spread_bits(spread->seed, message);
    *room = *network;
    if (spread->latencies)
        room->L = spread->latency[nb_spread_place(bits >> 32, spread->latencies)];
    if (spread->gaps)
        room->G = spread->gap[nb_spread_place(bits, spread->gaps)];
    return room;
}

/* The network as a message meets it; `room`: for the answer, where it is drawn. */
static inline const struct nb_network *nb_drawn(const struct nb_network *network, uint64_t message,
                                                struct nb_network *room)
{
    return __builtin_expect(network->spread != NULL, 0) ? nb_draw(network, message, room) : network;
}
#endif
