/* nbody: all pairs gravity in double precision, OpenMP; the same bits on any number of threads.
 *
 *     nbody [--bodies N] [--steps N] [--time-step T] [--seed S]        threads: OMP_NUM_THREADS
 *
 * A uniform sphere of total mass 1 and radius 1 (G = 1), near virial balance, moved by leapfrog
 * (kick, drift, kick). Each body's sum is taken by one thread in a fixed order. Timed: the steps.
 * Verified: drift of energy and of momentum, outside the timed region.
 * Exit status: 0 verified, 1 not verified or no memory, 2 usage.
 */
#include <getopt.h>
#include <math.h>
#include <omp.h>

#include "noisebook.h"

#include "options.h"

#include "nbody.h"

#define SOFTENING 0.05

struct bodies {
    long count;
    double mass, *x, *y, *z, *vx, *vy, *vz, *ax, *ay, *az, *scratch;
};

struct options {
    long bodies, steps;
    unsigned long seed;
    double time_step;
};

/* One block for all arrays, each on cache lines of its own; bodies.x is its address. */
static int allocate(struct bodies *b)
{
    double **arrays[] = {&b->x,  &b->y,  &b->z,  &b->vx, &b->vy,
                         &b->vz, &b->ax, &b->ay, &b->az, &b->scratch};
    size_t arrays_count = sizeof arrays / sizeof *arrays, length = ((size_t)b->count + 7) / 8 * 8;
    double *block = aligned_alloc(64, arrays_count * length * sizeof *block);
    for (size_t i = 0; block && i < arrays_count; i++)
        *arrays[i] = block + i * length;
    return block ? 0 : -ENOMEM;
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

static void step(const struct bodies *b, double time)
{
    kick(b, time / 2);
    drift(b, time);
    accelerate(b);
    kick(b, time / 2);
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
#pragma omp parallel for schedule(static)
    for (long i = 0; i < b->count; i++)
        b->scratch[i] = body_energy(b, i);
    return sum(b->scratch, b->count);
}

static int number(const char *text, double low, double high, double *value)
{
    char *end = NULL;
    *value = strtod(text, &end);
    return end == text || *end || !nb_within(*value, high) || *value < low ? -EINVAL : 0;
}

static int usage(const char *option, const char *value)
{
    if (option)
        fprintf(stderr, "nbody: '%s' does not fit %s\n", value, option);
    fprintf(stderr, "usage: nbody [--bodies 16..1000000] [--steps 1..1000000] [--time-step "
                    "1e-9..10] [--seed 0..16777215]\n");
    return 2;
}

/* 0, or 2 after a message. */
static int parse_options(int count, char **words, struct options *options)
{
    static const struct option names[] = {
        {"bodies", 1, 0, 0}, {"steps", 1, 0, 0}, {"time-step", 1, 0, 0}, {"seed", 1, 0, 0}, {0}
    };
    static const double low[] = {16, 1, 1e-9, 0}, high[] = {1e6, 1e6, 10, 16777215};
    double values[] = {6400, 20, 1e-3, 1};
    int index = 0, letter;
    while ((letter = getopt_long(count, words, "", names, &index)) != -1) {
        if (letter != 0)
            return usage(NULL, NULL);
        if (number(optarg, low[index], high[index], &values[index]) ||
            (index != 2 && values[index] != floor(values[index])))
            return usage(names[index].name, optarg);
    }
    if (optind < count)
        return usage("any option", words[optind]);
    *options = (struct options){
        (long)values[0], (long)values[1], (unsigned long)values[3], values[2]
    };
    return 0;
}

static int report(const struct bodies *b, const struct options *options,
                  const struct nb_region *region, double before, double after)
{
    double energy_drift = fabs((after - before) / before),
           momentum = momentum_drift(b->vx, b->vy, b->vz, b->count);
    int verified = is_conserved(energy_drift, momentum);
    uint64_t checksum = checksum_of(b->x, b->y, b->z, b->count);
    nb_region_print(
        region, "nbody",
        "threads=%d bodies=%ld steps=%ld energy=%.15g energy_drift=%.3e checksum=0x%016" PRIx64
        " verified=%s",
        omp_get_max_threads(), options->bodies, options->steps, after, energy_drift, checksum,
        verified ? "yes" : "no");
    return verified ? 0 : 1;
}

int main(int count, char **words)
{
    struct options options = {0};
    struct bodies bodies = {0};
    struct nb_region region;
    if (parse_options(count, words, &options))
        return 2;
    bodies.count = options.bodies;
    if (allocate(&bodies)) {
        fprintf(stderr, "nbody: no memory for %ld bodies\n", options.bodies);
        return 1;
    }
    fill(&bodies, options.seed);
    double before = energy(&bodies);
    accelerate(&bodies); /* the first half kick needs it; it also warms up the team */
    nb_region_begin(&region);
    for (long done = 0; done < options.steps; done++)
        step(&bodies, options.time_step);
    nb_region_end(&region);
    int status = report(&bodies, &options, &region, before, energy(&bodies));
    free(bodies.x);
    return status;
}
