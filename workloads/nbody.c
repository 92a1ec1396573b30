/* nbody: all pairs gravity, OpenMP; the same bits on any number of threads.
 *
 *     nbody [--bodies N] [--steps N] [--time-step T] [--seed S] [--precision double|single]
 *     threads: OMP_NUM_THREADS
 *
 * A uniform sphere of total mass 1 and radius 1 (G = 1), near virial balance, moved by leapfrog
 * (kick, drift, kick). Each body's sum is taken by one thread in a fixed order. double: an array a
 * coordinate, vectorised. single: HeCBench's kernel (nbody_single.h). Timed: the steps. Verified:
 * drift of energy and of momentum, one more step and its forces against another formula, outside
 * the timed region.
 * Exit status: 0 verified, 1 not verified or no memory, 2 usage.
 */
#include <math.h>
#include <omp.h>

#include "noisebook.h"

#include "options.h"

#include "nbody.h"
#include "nbody_single.h"

struct bodies {
    long count, stride;
    double mass, *x, *y, *z, *vx, *vy, *vz, *ax, *ay, *az, *scratch;
    struct nb_particle *particles; /* NULL: in double precision */
    long steps;                    /* done */
};

/* One block for all arrays, each on cache lines of its own; bodies.x is its address. */
static int allocate(struct bodies *b, int single)
{
    double **arrays[] = {&b->x,  &b->y,  &b->z,  &b->vx, &b->vy,
                         &b->vz, &b->ax, &b->ay, &b->az, &b->scratch};
    size_t arrays_count = sizeof arrays / sizeof *arrays, length = ((size_t)b->count + 7) / 8 * 8;
    double *block = aligned_alloc(64, arrays_count * length * sizeof *block);
    for (size_t i = 0; block && i < arrays_count; i++)
        *arrays[i] = block + i * length;
    b->stride = (long)length;
    b->particles = single ? malloc((size_t)b->count * sizeof *b->particles) : NULL;
    return block && (!single || b->particles) ? 0 : -ENOMEM;
}

/* Touches every page in the thread that will work on it. */
static void fill(struct bodies *b, uint64_t seed)
{
#pragma omp parallel for schedule(static)
    for (long i = 0; i < b->count; i++) {
        uint64_t c = 5 * (uint64_t)i;
        direction(cbrt(uniform(seed, c)), uniform(seed, c + 1), uniform(seed, c + 2), &b->x[i],
                  &b->y[i], &b->z[i]);
        direction(sqrt(0.6), uniform(seed, c + 3), uniform(seed, c + 4), &b->vx[i], &b->vy[i],
                  &b->vz[i]);
        b->ax[i] = b->ay[i] = b->az[i] = b->scratch[i] = 0;
    }
    b->mass = 1.0 / (double)b->count;
    remove_mean(b->vx, b->count);
    remove_mean(b->vy, b->count);
    remove_mean(b->vz, b->count);
}

/* Not inlined: joined with the loop over bodies it could be unrolled there, and the order of a sum
 * depend on the thread's share. */
__attribute__((noinline)) static void attract(const struct bodies *b, long i)
{
    const double *restrict x = b->x, *restrict y = b->y, *restrict z = b->z;
    double xi = x[i], yi = y[i], zi = z[i], ax = 0, ay = 0, az = 0;
    for (long j = 0; j < b->count; j++) {
        double dx = x[j] - xi, dy = y[j] - yi, dz = z[j] - zi;
        double square = dx * dx + dy * dy + dz * dz + SOFTENING * SOFTENING;
        double pull = 1 / (square * sqrt(square));
        ax += pull * dx;
        ay += pull * dy;
        az += pull * dz;
    }
    b->ax[i] = b->mass * ax;
    b->ay[i] = b->mass * ay;
    b->az[i] = b->mass * az;
}

static void accelerate(const struct bodies *b)
{
    if (b->particles) {
        nb_single_accelerate(b->particles, b->count, SOFTENING);
        return;
    }
#pragma omp parallel for schedule(static)
    for (long i = 0; i < b->count; i++)
        attract(b, i);
}

static void kick(const struct bodies *b, double time)
{
    for (long i = 0; i < b->count; i++) {
        b->vx[i] += time * b->ax[i];
        b->vy[i] += time * b->ay[i];
        b->vz[i] += time * b->az[i];
    }
}

static void drift(const struct bodies *b, double time)
{
    for (long i = 0; i < b->count; i++) {
        b->x[i] += time * b->vx[i];
        b->y[i] += time * b->vy[i];
        b->z[i] += time * b->vz[i];
    }
}

static void step(struct bodies *b, double time)
{
    b->steps++;
    if (b->particles) {
        nb_single_step(b->particles, b->count, SOFTENING, (float)time);
        return;
    }
    kick(b, time / 2);
    drift(b, time);
    accelerate(b);
    kick(b, time / 2);
}

/* From the arrays to the particles. Each page is touched by the thread that will work on it. */
static void load(const struct bodies *b)
{
#pragma omp parallel for schedule(static)
    for (long i = 0; i < (b->particles ? b->count : 0); i++) {
        struct nb_particle *particle = &b->particles[i];
        for (int d = 0; d < 3; d++) {
            particle->place[d] = (float)b->x[i + d * b->stride];
            particle->velocity[d] = (float)b->vx[i + d * b->stride];
            particle->acceleration[d] = 0;
        }
        particle->mass = (float)b->mass;
    }
}

/* And back: what follows is computed in double precision. */
static void store(const struct bodies *b)
{
    for (long i = 0; i < (b->particles ? b->count : 0); i++)
        for (int d = 0; d < 3; d++) {
            b->x[i + d * b->stride] = b->particles[i].place[d];
            b->vx[i + d * b->stride] = b->particles[i].velocity[d];
            b->ax[i + d * b->stride] = b->particles[i].acceleration[d];
        }
}

/* Kinetic plus half the potential energy of a body with all others. */
__attribute__((noinline)) static double body_energy(const struct bodies *b, long i)
{
    double potential = 0;
    for (long j = 0; j < b->count; j++) {
        double dx = b->x[j] - b->x[i], dy = b->y[j] - b->y[i], dz = b->z[j] - b->z[i];
        potential -= j == i ? 0 : 1 / sqrt(dx * dx + dy * dy + dz * dz + SOFTENING * SOFTENING);
    }
    double square = b->vx[i] * b->vx[i] + b->vy[i] * b->vy[i] + b->vz[i] * b->vz[i];
    return b->mass * 0.5 * (square + b->mass * potential);
}

static double energy(const struct bodies *b)
{
    store(b);
#pragma omp parallel for schedule(static)
    for (long i = 0; i < b->count; i++)
        b->scratch[i] = body_energy(b, i);
    return sum(b->scratch, b->count);
}

/* One more step, and what it is off by. Negative without memory. */
static int check_step(struct bodies *b, double time, struct nb_errors *errors)
{
    size_t bytes = (size_t)(NB_VALUES * b->stride) * sizeof(double);
    struct nb_bodies before = {b->count, b->stride, b->mass, malloc(bytes)},
                     after = {b->count, b->stride, b->mass, b->x};
    if (!before.values)
        return -ENOMEM;
    memcpy(before.values, b->x, bytes);
    step(b, time);
    store(b);
    errors->force = force_error(&after);
    errors->motion = motion_error(&before, &after, time);
    free(before.values);
    return 0;
}

static int report(struct bodies *b, const struct nb_option *options, const struct nb_region *region,
                  double before)
{
    long steps = (long)options[1].value;
    int single = b->particles != NULL;
    double after = energy(b);
    struct nb_errors errors = {
        .energy = fabs((after - before) / before),
        .momentum = momentum_drift(b->vx, b->vy, b->vz, b->count),
        .steps_left_out = steps - b->steps
    };
    uint64_t checksum = checksum_of(b->x, b->y, b->z, b->count);
    int verified = !check_step(b, options[2].value, &errors) &&
                   is_verified(&errors, single, b->count);
    nb_region_print(region, "nbody",
                    "threads=%d bodies=%ld steps=%ld precision=%s energy=%.15g energy_drift=%.3e "
                    "force_error=%.3e checksum=0x%016" PRIx64 " verified=%s",
                    omp_get_max_threads(), b->count, steps, precisions[single], after,
                    errors.energy, errors.force, checksum, verified ? "yes" : "no");
    return verified ? 0 : 1;
}

int main(int count, char **words)
{
    struct nb_option options[] = {
        {.name = "bodies", .low = 16, .high = 1e6, .value = 6400},
        {.name = "steps", .low = 1, .high = 1e6, .value = 20},
        {.name = "time-step", .low = 1e-9, .high = 10, .value = 1e-3, .fraction = 1},
        {.name = "seed", .high = 16777215, .value = 1},
        {.name = "precision", .words = precisions},
        {0}
    };
    struct nb_region region;
    if (nb_parse_options(count, words, options))
        return 2;
    struct bodies bodies = {.count = (long)options[0].value};
    long steps = (long)options[1].value;
    if (allocate(&bodies, (int)options[4].value)) {
        fprintf(stderr, "nbody: no memory for %ld bodies\n", bodies.count);
        return 1;
    }
    fill(&bodies, (uint64_t)options[3].value);
    load(&bodies);
    double before = energy(&bodies);
    accelerate(&bodies); /* the first half kick needs it; it also warms up the team */
    nb_region_begin(&region);
    for (long done = 0; done < steps; done++)
        step(&bodies, options[2].value);
    nb_region_end(&region);
    int status = report(&bodies, options, &region, before);
    free(bodies.x), free(bodies.particles);
    return status;
}
