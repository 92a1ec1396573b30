/* nbody_single.c: see nbody_single.h. */
#include <math.h>

#include "nbody_single.h"

/* Not inlined, so that the order of a sum does not depend on the thread's share. */
__attribute__((noinline)) static void attract(struct nb_particle *particles, long count, long i,
                                              float softening)
{
    struct nb_particle own = particles[i];
    float ax = 0, ay = 0, az = 0;
    for (long j = 0; j < count; j++) {
        struct nb_particle other = particles[j];
        float dx = other.place[0] - own.place[0], dy = other.place[1] - own.place[1],
              dz = other.place[2] - own.place[2];
        float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + softening * softening);
        float pull = other.mass * inverse * inverse * inverse;
        ax += dx * pull;
        ay += dy * pull;
        az += dz * pull;
    }
    particles[i].acceleration[0] = ax;
    particles[i].acceleration[1] = ay;
    particles[i].acceleration[2] = az;
}

void nb_single_accelerate(struct nb_particle *particles, long count, float softening)
{
#pragma omp parallel for schedule(static)
    for (long i = 0; i < count; i++)
        attract(particles, count, i, softening);
}

static void kick(struct nb_particle *particles, long count, float time)
{
    for (long i = 0; i < count; i++)
        for (int d = 0; d < 3; d++)
            particles[i].velocity[d] += time * particles[i].acceleration[d];
}

static void drift(struct nb_particle *particles, long count, float time)
{
    for (long i = 0; i < count; i++)
        for (int d = 0; d < 3; d++)
            particles[i].place[d] += time * particles[i].velocity[d];
}

void nb_single_step(struct nb_particle *particles, long count, float softening, float time)
{
    kick(particles, count, time / 2);
    drift(particles, count, time);
    nb_single_accelerate(particles, count, softening);
    kick(particles, count, time / 2);
}
