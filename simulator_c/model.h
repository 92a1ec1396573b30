/* What an operation costs in both modes of LogGOPS, by the piece that a message's size is in.
 *
 * exact, with D = O and B = G times (bytes - least), none for an empty message, in whole ps:
 *   calc w:     occupies the CPU until noise has let it work for w;
 *   send:       occupies the CPU for o + D; the message leaves when o is over and arrives L
 *               later; the NIC can send again g + B after the begin, later by as much as noise
 *               delayed o;
 *   reception:  occupies the CPU until it has worked for r + D and all bytes are there, B after r
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

static inline const struct nb_piece *nb_piece_of(const struct nb_network *network, uint64_t bytes)
{
    int32_t i = network->pieces - 1;
    while (i > 0 && bytes < (uint64_t)network->piece[i].least)
        i--;
    return &network->piece[i];
}

static inline uint64_t nb_per_byte(const struct nb_network *network, const struct nb_piece *piece,
                                   double cost, uint64_t bytes)
{
    uint64_t more = bytes - (uint64_t)piece->least;
    if (more == 0)
        return 0;
    if (network->mode == NB_COMPAT)
        return more * (uint64_t)cost;
    return bytes ? (uint64_t)llrint((double)more * cost) : 0;
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
    const struct nb_piece *piece = nb_piece_of(network, bytes);
    uint64_t o = (uint64_t)piece->o, g = (uint64_t)piece->g,
             D = nb_per_byte(network, piece, piece->O, bytes),
             B = nb_per_byte(network, piece, piece->G, bytes);
    struct nb_times times;
    if (network->mode == NB_COMPAT) {
        times.noise = nb_noise_added(noise, rank, t, o);
        times.cpu = t + o + D + times.noise;
        times.gap = t + g + B;
        times.arrival = t + o + (uint64_t)piece->L;
    } else {
        uint64_t left = nb_noise_finish(noise, rank, t, o);
        times.cpu = D ? nb_noise_finish(noise, rank, t, o + D) : left;
        times.gap = left - o + g + B;
        times.arrival = left + (uint64_t)piece->L;
        times.noise = times.cpu - t - o - D;
    }
    return times;
}

static inline struct nb_times nb_receive(const struct nb_network *network,
                                         const struct nb_noise *noise, uint32_t rank, uint64_t t,
                                         uint64_t bytes)
{
    const struct nb_piece *piece = nb_piece_of(network, bytes);
    uint64_t r = (uint64_t)piece->r, D = nb_per_byte(network, piece, piece->O, bytes),
             B = nb_per_byte(network, piece, piece->G, bytes), longer = D > B ? D : B;
    struct nb_times times;
    if (network->mode == NB_COMPAT) {
        times.noise = nb_noise_added(noise, rank, t, r);
        times.cpu = t + r + longer + times.noise;
    } else {
        uint64_t taken = nb_noise_finish(noise, rank, t, r);
        uint64_t copied = D ? nb_noise_finish(noise, rank, t, r + D) : taken;
        times.cpu = copied > taken + B ? copied : taken + B;
        times.noise = times.cpu - t - r - longer;
    }
    times.gap = t + (uint64_t)piece->g + B;
    times.arrival = 0;
    return times;
}
#endif
