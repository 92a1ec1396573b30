/* What an operation costs: the LogGOPS model in both modes.
 *
 * exact, with D = O and B = G times (bytes - 1), none for an empty message, rounded to whole ps:
 *   calc w:     occupies the CPU until noise has let it work for w;
 *   send:       occupies the CPU for o + D; the message leaves when o is over and arrives L
 *               later; the NIC can send again g + B after the begin, later by as much as noise
 *               delayed o;
 *   reception:  occupies the CPU until it has worked for o + D and all bytes are there, B after o
 *               is over: noise that strikes while it waits for bytes is absorbed; the NIC can
 *               receive again g + B after the begin.
 *
 * compat: noise only from [t, t + o), added to what the CPU does and never to the message; an empty
 * message costs -O and -G.
 */
#ifndef NB_MODEL_H
#define NB_MODEL_H

#include <math.h>

#include "noise.h"

static inline uint64_t nb_later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

struct nb_times {
    uint64_t cpu;     /* the CPU is free again */
    uint64_t gap;     /* the NIC is free again for the same direction */
    uint64_t arrival; /* the first byte is there (sends only) */
    uint64_t noise;   /* by how much noise has put off `cpu` */
};

static inline uint64_t nb_per_byte(const struct nb_network *network, double cost, uint64_t bytes)
{
    if (bytes == 1)
        return 0;
    if (network->mode == NB_COMPAT)
        return (bytes - 1) * (uint64_t)cost;
    return bytes ? (uint64_t)llrint((double)(bytes - 1) * cost) : 0;
}

static inline struct nb_times nb_calc(const struct nb_network *network,
                                      const struct nb_noise *noise, uint32_t rank, uint64_t t,
                                      uint64_t ns)
{
    struct nb_times times = {0, 0, 0, 0};
    if (network->mode == NB_COMPAT) {
        times.noise = nb_noise_added(noise, rank, t, ns);
        times.cpu = t + ns + times.noise;
    } else {
        times.cpu = nb_noise_finish(noise, rank, t, ns * 1000);
        times.noise = times.cpu - t - ns * 1000;
    }
    return times;
}

static inline struct nb_times nb_send(const struct nb_network *network,
                                      const struct nb_noise *noise, uint32_t rank, uint64_t t,
                                      uint64_t bytes)
{
    uint64_t o = (uint64_t)network->o, g = (uint64_t)network->g;
    uint64_t D = nb_per_byte(network, network->O, bytes),
             B = nb_per_byte(network, network->G, bytes);
    struct nb_times times;
    if (network->mode == NB_COMPAT) {
        times.noise = nb_noise_added(noise, rank, t, o);
        times.cpu = t + o + D + times.noise;
        times.gap = t + g + B;
        times.arrival = t + o + (uint64_t)network->L;
    } else {
        uint64_t left = nb_noise_finish(noise, rank, t, o);
        times.cpu = D ? nb_noise_finish(noise, rank, t, o + D) : left;
        times.gap = left - o + g + B;
        times.arrival = left + (uint64_t)network->L;
        times.noise = times.cpu - t - o - D;
    }
    return times;
}

static inline struct nb_times nb_receive(const struct nb_network *network,
                                         const struct nb_noise *noise, uint32_t rank, uint64_t t,
                                         uint64_t bytes)
{
    uint64_t o = (uint64_t)network->o;
    uint64_t D = nb_per_byte(network, network->O, bytes),
             B = nb_per_byte(network, network->G, bytes), longer = D > B ? D : B;
    struct nb_times times;
    if (network->mode == NB_COMPAT) {
        times.noise = nb_noise_added(noise, rank, t, o);
        times.cpu = t + o + longer + times.noise;
    } else {
        uint64_t taken = nb_noise_finish(noise, rank, t, o);
        uint64_t copied = D ? nb_noise_finish(noise, rank, t, o + D) : taken;
        times.cpu = copied > taken + B ? copied : taken + B;
        times.noise = times.cpu - t - o - longer;
    }
    times.gap = t + (uint64_t)network->g + B;
    times.arrival = 0;
    return times;
}
#endif
