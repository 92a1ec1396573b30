/* nbody: all pairs gravity, SYCL; the same bits on any number of threads.
 *
 *     nbody [--bodies N] [--steps N] [--time-step T] [--seed S] [--local-size L]
 *           [--precision double|single]
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

namespace in_double
{
#define REAL double
#include "nbody_kernels.h"
#undef REAL
} // namespace in_double
namespace in_single
{
#define REAL float
#include "nbody_kernels.h"
#undef REAL
} // namespace in_single

static const char source[] =
#include "nbody_kernels.inc"
    ;
static const char header[] =
#include "kernel.inc"
    ;

struct double_precision {
    using real = double;
    using bodies = in_double::bodies;
    using move = in_double::nbody_move_kernel;
    using attract = in_double::nbody_attract_kernel;
    using energy = in_double::nbody_energy_kernel;
    static constexpr const char *type = "double";
};

struct single_precision {
    using real = float;
    using bodies = in_single::bodies;
    using move = in_single::nbody_move_kernel;
    using attract = in_single::nbody_attract_kernel;
    using energy = in_single::nbody_energy_kernel;
    static constexpr const char *type = "float";
};

struct settings {
    long bodies, steps, local;
    uint64_t seed;
    double time_step;
};

/* The simulation, and what is known of it on the host. */
template <typename Precision> class simulation
{
  public:
    using real = typename Precision::real;

    explicit simulation(const settings &s) : device_(source, header, Precision::type), settings_(s)
    {
        b_.count = s.bodies;
    }

    ~simulation()
    {
        device_.release(b_.x);
        device_.release(b_.scratch);
    }

    bool allocate()
    {
        real **arrays[] = {&b_.x, &b_.y, &b_.z, &b_.vx, &b_.vy, &b_.vz, &b_.ax, &b_.ay, &b_.az};
        long at = 0;
        stride_ = (b_.count + 15) / 16 * 16;
        b_.x = device_.template allocate<real>(NB_VALUES * stride_);
        b_.scratch = device_.template allocate<double>(b_.count);
        for (real **array : arrays)
            *array = b_.x + stride_ * at++;
        return b_.x && b_.scratch;
    }

    void fill()
    {
        std::vector<double> values((size_t)(NB_VALUES * stride_));
        double *x = values.data(), *v = x + NB_V * stride_;
        for (long i = 0; i < b_.count; i++) {
            uint64_t c = 5 * (uint64_t)i, seed = settings_.seed;
            direction(cbrt(uniform(seed, c)), uniform(seed, c + 1), uniform(seed, c + 2), &x[i],
                      &x[i + stride_], &x[i + 2 * stride_]);
            direction(sqrt(0.6), uniform(seed, c + 3), uniform(seed, c + 4), &v[i], &v[i + stride_],
                      &v[i + 2 * stride_]);
        }
        for (int d = 0; d < 3; d++)
            remove_mean(v + d * stride_, b_.count);
        b_.mass = (real)(1.0 / (double)b_.count);
        std::copy(values.begin(), values.end(), b_.x);
    }

    void step(double time)
    {
        device_.template launch<typename Precision::move>(b_.count, settings_.local,
                                                          {b_, (real)time});
        device_.template launch<typename Precision::attract>(b_.count, settings_.local,
                                                             {b_, (real)time});
        device_.wait();
        steps_++;
    }

    double energy()
    {
        device_.template launch<typename Precision::energy>(b_.count, settings_.local, {b_, 0});
        device_.wait();
        return sum(b_.scratch, b_.count);
    }

    /* A step of no time moves nothing and leaves the accelerations that the first half kick needs.
     */
    double warm_up()
    {
        double before = 0;
        device_.warm_up([&] {
            before = energy();
            step(0);
        });
        steps_ = 0;
        return before;
    }

    std::vector<double> values() const
    {
        return std::vector<double>(b_.x, b_.x + NB_VALUES * stride_);
    }

    /* One more step, and what it is off by. */
    void check_step(nb_errors &errors)
    {
        std::vector<double> start = values();
        step(settings_.time_step);
        std::vector<double> end = values();
        nb_bodies before = {b_.count, stride_, 1.0 / (double)b_.count, start.data()},
                  after = {b_.count, stride_, 1.0 / (double)b_.count, end.data()};
        errors.force = force_error(&after);
        errors.motion = motion_error(&before, &after, settings_.time_step);
    }

    int report(const nb_region &region, double before)
    {
        double after = energy();
        std::vector<double> found = values();
        const double *x = found.data(), *v = x + NB_V * stride_;
        uint64_t checksum = checksum_of(x, x + stride_, x + 2 * stride_, b_.count);
        nb_errors errors = {
            fabs((after - before) / before),
            momentum_drift(v, v + stride_, v + 2 * stride_, b_.count), 0, 0,
            settings_.steps - steps_
        };
        check_step(errors);
        int single = sizeof(real) == sizeof(float);
        bool verified = is_verified(&errors, single, b_.count);
        nb_region_print(&region, "nbody",
                        "threads=%d bodies=%ld steps=%ld local_size=%ld precision=%s compiler=%s "
                        "%s energy=%.15g energy_drift=%.3e force_error=%.3e checksum=0x%016" PRIx64
                        " verified=%s",
                        device_.threads(), b_.count, settings_.steps, settings_.local,
                        precisions[single], NB_COMPILER, device_.words().c_str(), after,
                        errors.energy, errors.force, checksum, verified ? "yes" : "no");
        return verified ? 0 : 1;
    }

  private:
    nb::device device_;
    settings settings_;
    typename Precision::bodies b_{};
    long stride_ = 0, steps_ = 0;
};

template <typename Precision> static int run(const settings &s)
{
    simulation<Precision> simulated(s);
    nb_region region;
    if (!simulated.allocate()) {
        fprintf(stderr, "nbody: no memory for %ld bodies\n", s.bodies);
        return 1;
    }
    simulated.fill();
    double before = simulated.warm_up();
    nb_region_begin(&region);
    for (long done = 0; done < s.steps; done++)
        simulated.step(s.time_step);
    nb_region_end(&region);
    return simulated.report(region, before);
}

int main(int count, char **words)
{
    struct nb_option options[] = {
        {"bodies", 16, 1e6, 6400, 0, nullptr},
        {"steps", 1, 1e6, 20, 0, nullptr},
        {"time-step", 1e-9, 10, 1e-3, 1, nullptr},
        {"seed", 0, 16777215, 1, 0, nullptr},
        {"local-size", 1, 1024, 64, 0, nullptr},
        {"precision", 0, 0, 0, 0, precisions},
        {}
    };
    if (nb_parse_options(count, words, options))
        return 2;
    settings s = {
        (long)options[0].value, (long)options[1].value, (long)options[4].value,
        (uint64_t)options[3].value, options[2].value
    };
    return nb::guarded("nbody", [&] {
        return options[5].value > 0 ? run<single_precision>(s) : run<double_precision>(s);
    });
}
