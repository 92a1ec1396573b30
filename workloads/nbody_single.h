/* nbody_single.h: nbody.c's steps in single precision, as HeCBench's N-body computes them: a
 * structure a body, no sum reordered (nbody_single.c is compiled without -ffast-math). */
#ifndef NOISEBOOK_NBODY_SINGLE_H
#define NOISEBOOK_NBODY_SINGLE_H

struct nb_particle {
    float place[3], velocity[3], acceleration[3], mass;
};

/* The accelerations at the particles' places, by all threads. */
void nb_single_accelerate(struct nb_particle *particles, long count, float softening);

/* Leapfrog: kick, drift, kick. */
void nb_single_step(struct nb_particle *particles, long count, float softening, float time);

#endif
