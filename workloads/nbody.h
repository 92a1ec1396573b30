/* nbody.h: what nbody.c and its SYCL twin have in common: the sphere that they begin with, and what
 * they verify; after options.h. C11 and C++11. */
#define ENERGY_BOUND 1e-5   /* relative; a sound run stays below 1e-7 */
#define MOMENTUM_BOUND 1e-9 /* relative to the sum of the momenta's sizes */

/* splitmix64 as a function of a counter, so that the initial state needs no order. */
static double uniform(uint64_t seed, uint64_t counter)
{
    uint64_t bits = (seed << 40) + (counter + 1) * UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((bits ^ (bits >> 31)) >> 11) * 0x1p-53;
}

/* A vector of the given length in a direction drawn from two uniform numbers. */
static void direction(double length, double u, double v, double *x, double *y, double *z)
{
    double up = 2 * u - 1, flat = sqrt(fmax(0, 1 - up * up)), angle = 2 * M_PI * v;
    *x = length * flat * cos(angle);
    *y = length * flat * sin(angle);
    *z = length * up;
}

static double sum(const double *values, long count)
{
    double total = 0;
    for (long i = 0; i < count; i++)
        total += values[i];
    return total;
}

static void remove_mean(double *values, long count)
{
    double mean = sum(values, count) / (double)count;
    for (long i = 0; i < count; i++)
        values[i] -= mean;
}

/* Size of the total momentum, which began as 0, relative to the sum of the bodies' momenta. */
static double momentum_drift(const double *vx, const double *vy, const double *vz, long count)
{
    double px = sum(vx, count), py = sum(vy, count), pz = sum(vz, count), sizes = 0;
    for (long i = 0; i < count; i++)
        sizes += sqrt(vx[i] * vx[i] + vy[i] * vy[i] + vz[i] * vz[i]);
    return sqrt(px * px + py * py + pz * pz) / sizes;
}

static uint64_t hash(uint64_t state, const double *values, long count)
{
    for (long i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        state = (state ^ bits) * UINT64_C(0x100000001b3);
        state ^= state >> 29;
    }
    return state;
}

static uint64_t checksum_of(const double *x, const double *y, const double *z, long count)
{
    uint64_t state = UINT64_C(0xcbf29ce484222325);
    return hash(hash(hash(state, x, count), y, count), z, count);
}

/* Whether energy and momentum were conserved; a message where they were not. */
static int is_conserved(double energy_drift, double momentum)
{
    int verified = nb_within(energy_drift, ENERGY_BOUND) && nb_within(momentum, MOMENTUM_BOUND);
    if (!verified)
        fprintf(stderr,
                "nbody: not verified: relative drift of energy %.3g (bound %.3g), of momentum %.3g "
                "(bound %.3g)\n",
                energy_drift, ENERGY_BOUND, momentum, MOMENTUM_BOUND);
    return verified;
}
