/* nbody.h: what nbody.c and its SYCL twin have in common: the sphere that they begin with, and what
 * they verify; after options.h. C11 and C++11. */
#define SOFTENING 0.05
#define DOUBLE_EPSILON 2.2e-16
#define SINGLE_EPSILON 1.2e-7

static const char *const precisions[] = {"double", "single", NULL};

/* Where a body is, how it moves and by what it is pulled: nine arrays, `stride` apart. */
enum { NB_X, NB_V = 3, NB_A = 6, NB_VALUES = 9 };

struct nb_bodies {
    long count, stride;
    double mass, *values;
};

static const double *nb_values(const struct nb_bodies *b, int which)
{
    return b->values + which * b->stride;
}

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

/* The pull on one body by a formula and in an order other than the programs', and the sum of its
 * terms' sizes, to which rounding is relative. */
static double pull_on(const struct nb_bodies *b, long i, double pull[3])
{
    const double *x[3] = {nb_values(b, NB_X), nb_values(b, NB_X + 1), nb_values(b, NB_X + 2)};
    double sizes = 0;
    pull[0] = pull[1] = pull[2] = 0;
    for (long j = b->count - 1; j >= 0; j--) {
        double square = SOFTENING * SOFTENING, distance[3];
        for (int d = 0; d < 3; d++) {
            distance[d] = x[d][j] - x[d][i];
            square += distance[d] * distance[d];
        }
        double weight = b->mass * pow(square, -1.5);
        for (int d = 0; d < 3; d++) {
            pull[d] += weight * distance[d];
            sizes += weight * fabs(distance[d]);
        }
    }
    return sizes;
}

/* By bits, as a comparison with NaN may be optimised away. */
static double worse(double left, double right)
{
    return !nb_within(left, 1e300) || (nb_within(right, 1e300) && left > right) ? left : right;
}

enum { SAMPLED = 64 };

/* The greatest error of the accelerations of some bodies, the first and the last among them. */
static double force_error(const struct nb_bodies *b)
{
    long checked = b->count < SAMPLED ? b->count : (long)SAMPLED;
    double worst = 0, pull[3];
    for (long at = 0; at < checked; at++) {
        long i = at * (b->count - 1) / (checked - 1);
        double sizes = pull_on(b, i, pull);
        for (int d = 0; d < 3; d++)
            worst = worse(fabs(nb_values(b, NB_A + d)[i] - pull[d]) / sizes, worst);
    }
    return worst;
}

/* The greatest error of places and velocities after one step of leapfrog (kick, drift, kick) from
 * `before`, given the accelerations of both. */
static double motion_error(const struct nb_bodies *before, const struct nb_bodies *after,
                           double time)
{
    double worst = 0;
    for (int d = 0; d < 3; d++) {
        const double *x = nb_values(before, NB_X + d), *v = nb_values(before, NB_V + d),
                     *a = nb_values(before, NB_A + d), *new_x = nb_values(after, NB_X + d),
                     *new_v = nb_values(after, NB_V + d), *new_a = nb_values(after, NB_A + d);
        for (long i = 0; i < before->count; i++) {
            double half = v[i] + time / 2 * a[i], place = x[i] + time * half,
                   end = half + time / 2 * new_a[i];
            worst = worse(fabs(new_x[i] - place) / (1 + fabs(place)), worst);
            worst = worse(fabs(new_v[i] - end) / (1 + fabs(end)), worst);
        }
    }
    return worst;
}

/* What a run is verified by; all relative. */
struct nb_errors {
    double energy, momentum, force, motion;
    long steps_left_out;
};

/* A sum of n rounded terms is off by some sqrt(n) roundings. A sound run with steps of 1e-3 stays
 * below 1e-8 in energy (single: 1e-6). */
static struct nb_errors nb_bounds(int single, long count)
{
    double epsilon = single ? SINGLE_EPSILON : DOUBLE_EPSILON;
    struct nb_errors bounds = {
        single ? 1e-4 : 1e-6, single ? 1e-5 : 1e-12,
        (single ? 2 : 50) * epsilon * sqrt((double)count), 10 * epsilon, 0
    };
    return bounds;
}

/* Whether a run does what it has to; a message where it does not. */
static int is_verified(const struct nb_errors *found, int single, long count)
{
    struct nb_errors bounds = nb_bounds(single, count);
    int verified = nb_within(found->energy, bounds.energy) &&
                   nb_within(found->momentum, bounds.momentum) &&
                   nb_within(found->force, bounds.force) &&
                   nb_within(found->motion, bounds.motion) && !found->steps_left_out;
    if (!verified)
        fprintf(stderr,
                "nbody: not verified: relative drift of energy %.3g (bound %.3g), of momentum %.3g "
                "(bound %.3g), error of the forces %.3g (bound %.3g), of a step %.3g (bound %.3g), "
                "%ld steps left out\n",
                found->energy, bounds.energy, found->momentum, bounds.momentum, found->force,
                bounds.force, found->motion, bounds.motion, found->steps_left_out);
    return verified;
}
