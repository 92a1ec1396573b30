/* nbody_kernels.h: all pairs gravity and leapfrog in the precision REAL, a work-item a body; the
 * device vectorises over work-items. */
#include "kernel.h"

#define SOFTENING 0.05

struct bodies {
    long count;
    REAL mass, *x, *y, *z, *vx, *vy, *vz, *ax, *ay, *az;
    double *scratch;
};

struct nbody_step {
    bodies b;
    REAL time; /* the whole step's */
};

/* Half a kick with the old accelerations, then the drift. */
static void nbody_move(long i, nbody_step a)
{
    const bodies &b = a.b;
    if (i >= b.count)
        return;
    b.vx[i] += a.time / 2 * b.ax[i];
    b.vy[i] += a.time / 2 * b.ay[i];
    b.vz[i] += a.time / 2 * b.az[i];
    b.x[i] += a.time * b.vx[i];
    b.y[i] += a.time * b.vy[i];
    b.z[i] += a.time * b.vz[i];
}
NB_KERNEL(nbody_move, nbody_step)

/* The accelerations at the new places, then the other half of the kick. */
static void nbody_attract(long i, nbody_step a)
{
    const bodies &b = a.b;
    if (i >= b.count)
        return;
    REAL xi = b.x[i], yi = b.y[i], zi = b.z[i], ax = 0, ay = 0, az = 0;
    for (long j = 0; j < b.count; j++) {
        REAL dx = b.x[j] - xi, dy = b.y[j] - yi, dz = b.z[j] - zi;
        REAL square = dx * dx + dy * dy + dz * dz + (REAL)(SOFTENING * SOFTENING);
        REAL pull = 1 / (square * sycl::sqrt(square));
        ax += pull * dx;
        ay += pull * dy;
        az += pull * dz;
    }
    b.ax[i] = b.mass * ax;
    b.ay[i] = b.mass * ay;
    b.az[i] = b.mass * az;
    b.vx[i] += a.time / 2 * b.ax[i];
    b.vy[i] += a.time / 2 * b.ay[i];
    b.vz[i] += a.time / 2 * b.az[i];
}
NB_KERNEL(nbody_attract, nbody_step)

/* Kinetic plus half the potential energy of a body with all others, in double precision. */
static void nbody_energy(long i, nbody_step a)
{
    const bodies &b = a.b;
    if (i >= b.count)
        return;
    double potential = 0, xi = b.x[i], yi = b.y[i], zi = b.z[i], vx = b.vx[i], vy = b.vy[i],
           vz = b.vz[i], mass = 1.0 / (double)b.count;
    for (long j = 0; j < b.count; j++) {
        double dx = b.x[j] - xi, dy = b.y[j] - yi, dz = b.z[j] - zi;
        potential -= j == i ? 0
                            : 1 / sycl::sqrt(dx * dx + dy * dy + dz * dz + SOFTENING * SOFTENING);
    }
    b.scratch[i] = mass * 0.5 * (vx * vx + vy * vy + vz * vz + mass * potential);
}
NB_KERNEL(nbody_energy, nbody_step)
