/* nbody: all pairs gravity in double precision, SYCL; the same bits on any number of threads.
 *
 *     nbody [--bodies N] [--steps N] [--time-step T] [--seed S] [--local-size L]
 *     threads: DPCPP_CPU_NUM_CUS
 *
 * The twin of ../nbody.c: the same sphere, leapfrog and checks; a step is two launches, a body a
 * work-item, L of them a group.
 * Exit status: 0 verified, 1 not verified, no memory or no SYCL, 2 usage.
 */
#include "device.hpp"

#include "../compiler.h"
#include "../options.h"

#include "../nbody.h"
#include "nbody_kernels.h"

static const char source[] =
#include "nbody_kernels.inc"
    ;
static const char header[] =
#include "kernel.inc"
    ;

struct settings {
    long bodies, steps, local;
    uint64_t seed;
    double time_step;
};

/* One block for all arrays, each on cache lines of its own; bodies.x is its address. */
static bool allocate(nb::device &device, bodies &b)
{
    double **arrays[] = {&b.x, &b.y, &b.z, &b.vx, &b.vy, &b.vz, &b.ax, &b.ay, &b.az, &b.scratch};
    long length = (b.count + 7) / 8 * 8, at = 0;
    double *block = device.allocate<double>((long)(sizeof arrays / sizeof *arrays) * length);
    for (double **array : arrays)
        *array = block ? block + length * at++ : nullptr;
    return block;
}

static void fill(bodies &b, uint64_t seed)
{
    for (long i = 0; i < b.count; i++) {
        uint64_t c = 5 * (uint64_t)i;
        direction(cbrt(uniform(seed, c)), uniform(seed, c + 1), uniform(seed, c + 2), &b.x[i],
                  &b.y[i], &b.z[i]);
        direction(sqrt(0.6), uniform(seed, c + 3), uniform(seed, c + 4), &b.vx[i], &b.vy[i],
                  &b.vz[i]);
        b.ax[i] = b.ay[i] = b.az[i] = b.scratch[i] = 0;
    }
    b.mass = 1.0 / (double)b.count;
    remove_mean(b.vx, b.count);
    remove_mean(b.vy, b.count);
    remove_mean(b.vz, b.count);
}

static void step(nb::device &device, const bodies &b, const settings &s, double time)
{
    device.launch<nbody_move_kernel>(b.count, s.local, {b, time});
    device.launch<nbody_attract_kernel>(b.count, s.local, {b, time});
    device.wait();
}

static double energy(nb::device &device, const bodies &b, const settings &s)
{
    device.launch<nbody_energy_kernel>(b.count, s.local, {b, 0});
    device.wait();
    return sum(b.scratch, b.count);
}

static int report(nb::device &device, const bodies &b, const settings &s, const nb_region &region,
                  double before)
{
    double after = energy(device, b, s), energy_drift = fabs((after - before) / before),
           momentum = momentum_drift(b.vx, b.vy, b.vz, b.count);
    bool verified = is_conserved(energy_drift, momentum);
    uint64_t checksum = checksum_of(b.x, b.y, b.z, b.count);
    nb_region_print(&region, "nbody",
                    "threads=%d bodies=%ld steps=%ld local_size=%ld compiler=%s %s energy=%.15g "
                    "energy_drift=%.3e "
                    "checksum=0x%016" PRIx64 " verified=%s",
                    device.threads(), s.bodies, s.steps, s.local, NB_COMPILER,
                    device.words().c_str(), after, energy_drift, checksum, verified ? "yes" : "no");
    return verified ? 0 : 1;
}

static int run(const settings &s)
{
    nb::device device(source, header);
    bodies b{};
    nb_region region;
    b.count = s.bodies;
    if (!allocate(device, b)) {
        fprintf(stderr, "nbody: no memory for %ld bodies\n", s.bodies);
        return 1;
    }
    fill(b, s.seed);
    double before = 0;
    device.warm_up([&] {
        before = energy(device, b, s);
        /* a step of no time moves nothing and leaves the accelerations that the first half kick
         * needs */
        step(device, b, s, 0);
    });
    nb_region_begin(&region);
    for (long done = 0; done < s.steps; done++)
        step(device, b, s, s.time_step);
    nb_region_end(&region);
    int status = report(device, b, s, region, before);
    device.release(b.x);
    return status;
}

int main(int count, char **words)
{
    struct nb_option options[6] = {
        {"bodies", 16, 1e6, 6400, 0, nullptr},     {"steps", 1, 1e6, 20, 0, nullptr},
        {"time-step", 1e-9, 10, 1e-3, 1, nullptr}, {"seed", 0, 16777215, 1, 0, nullptr},
        {"local-size", 1, 1024, 64, 0, nullptr},   {}
    };
    if (nb_parse_options(count, words, options))
        return 2;
    settings s = {
        (long)options[0].value, (long)options[1].value, (long)options[4].value,
        (uint64_t)options[3].value, options[2].value
    };
    return nb::guarded("nbody", [&] { return run(s); });
}
