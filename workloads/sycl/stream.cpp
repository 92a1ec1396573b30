/* stream: the five kernels by which BabelStream (Deakin et al. 2018) measures memory bandwidth,
 * SYCL; the time of each repetition is printed.
 *
 *     stream [--elements N] [--repeats N] [--precision double|single]
 *     threads: DPCPP_CPU_NUM_CUS; three arrays of N numbers
 *
 * The twin of ../stream.c: the same arrays, order, start values and output; each element and each
 * dot product is checked. A kernel's time runs from its launch to the end of its wait.
 * Exit status: 0 verified, 1 not verified, no memory or no SYCL, 2 usage.
 */
#include "device.hpp"

#include "../compiler.h"
#include "../options.h"
#include "../series.h"

#include <numeric>

namespace in_double
{
#define REAL double
#include "stream_kernels.h"
#undef REAL
} // namespace in_double
namespace in_single
{
#define REAL float
#include "stream_kernels.h"
#undef REAL
} // namespace in_single

static const char source[] =
#include "stream_kernels.inc"
    ;
static const char header[] =
#include "kernel.inc"
    ;

enum { COPY, MUL, ADD, TRIAD, DOT, KERNELS, LOCAL = 1024, MOST_SINGLE = 1500 };
static const long dot_chunk = in_double::DOT_CHUNK, dot_sums = in_double::DOT_SUMS;

static const char *const names[] = {"copy", "mul", "add", "triad", "dot"};
static const char *const precisions[] = {"double", "single", nullptr};

struct double_precision {
    using real = double;
    using arrays = in_double::stream_arrays;
    using fill = in_double::stream_fill_kernel;
    using copy = in_double::stream_copy_kernel;
    using mul = in_double::stream_mul_kernel;
    using add = in_double::stream_add_kernel;
    using triad = in_double::stream_triad_kernel;
    using dot = in_double::stream_dot_kernel;
    static constexpr const char *type = "double";
};

struct single_precision {
    using real = float;
    using arrays = in_single::stream_arrays;
    using fill = in_single::stream_fill_kernel;
    using copy = in_single::stream_copy_kernel;
    using mul = in_single::stream_mul_kernel;
    using add = in_single::stream_add_kernel;
    using triad = in_single::stream_triad_kernel;
    using dot = in_single::stream_dot_kernel;
    static constexpr const char *type = "float";
};

/* Sound numbers are ordered; one that is none is the worst. */
static double larger(double left, double right)
{
    return !nb_within(left, 1e300) || (nb_within(right, 1e300) && left > right) ? left : right;
}

static std::string print_series(const std::vector<double> &times, long repeats)
{
    std::string spreads;
    for (int which = 0; which < KERNELS; which++) {
        const double *kernel_times = times.data() + which * repeats;
        struct nb_spread spread = nb_spread_of(kernel_times, repeats);
        char text[200];
        nb_series_print(names[which], "s", kernel_times, repeats);
        snprintf(text, sizeof text, "%s_min_s=%.9f %s_avg_s=%.9f %s_max_s=%.9f ", names[which],
                 spread.min, names[which], spread.mean, names[which], spread.max);
        spreads += text;
    }
    return spreads;
}

template <typename Precision> class benchmark
{
  public:
    using real = typename Precision::real;

    benchmark(long elements, long repeats)
        : device_(source, header, Precision::type), repeats_(repeats),
          times_((size_t)(KERNELS * repeats)), sums_((size_t)repeats)
    {
        s_.count = elements;
    }

    ~benchmark()
    {
        for (real *memory : {s_.a, s_.b, s_.c, s_.partial})
            device_.release(memory);
    }

    bool allocate()
    {
        for (real **memory : {&s_.a, &s_.b, &s_.c})
            *memory = device_.template allocate<real>(s_.count);
        s_.partial = device_.template allocate<real>(chunks());
        return s_.a && s_.b && s_.c && s_.partial;
    }

    void fill()
    {
        launch<typename Precision::fill>(s_.count, LOCAL);
    }

    void warm_up()
    {
        device_.warm_up([&] {
            fill();
            repeat(0); /* its times are overwritten */
        });
        fill();
    }

    /* One repetition. */
    void repeat(long done)
    {
        int64_t before_ns = nb_now_ns();
        for (int which = 0; which < KERNELS; which++) {
            double sum = kernel(which);
            int64_t after_ns = nb_now_ns();
            times_[(size_t)(which * repeats_ + done)] = (double)(after_ns - before_ns) * 1e-9;
            before_ns = after_ns;
            if (which == DOT)
                sums_[(size_t)done] = sum;
        }
    }

    int report(const nb_region &region)
    {
        double error = 0;
        bool verified = is_verified(error);
        std::string spreads = print_series(times_, repeats_);
        nb_region_print(&region, "stream",
                        "threads=%d elements=%ld repeats=%ld precision=%s %scompiler=%s %s "
                        "sum=%.15g error=%.3e series_values=%ld verified=%s",
                        device_.threads(), s_.count, repeats_,
                        precisions[sizeof(real) == sizeof(float)], spreads.c_str(), NB_COMPILER,
                        device_.words().c_str(), sums_.back(), error, nb_series_total(),
                        verified ? "yes" : "no");
        return verified ? 0 : 1;
    }

  private:
    long chunks() const
    {
        return (s_.count + dot_chunk - 1) / dot_chunk;
    }

    template <typename Kernel> void launch(long items, long local)
    {
        device_.template launch<Kernel>(items, local, s_);
        device_.wait();
    }

    double kernel(int which)
    {
        if (which == COPY)
            launch<typename Precision::copy>(s_.count, LOCAL);
        else if (which == MUL)
            launch<typename Precision::mul>(s_.count, LOCAL);
        else if (which == ADD)
            launch<typename Precision::add>(s_.count, LOCAL);
        else if (which == TRIAD)
            launch<typename Precision::triad>(s_.count, LOCAL);
        else {
            launch<typename Precision::dot>(chunks(), 1);
            return (double)std::accumulate(s_.partial, s_.partial + chunks(), (real)0);
        }
        return 0;
    }

    static double distance(const real *values, long count, double expected)
    {
        double worst = 0;
        for (long i = 0; i < count; i++)
            worst = larger(fabs((double)values[i] - expected) / fabs(expected), worst);
        return worst;
    }

    /* Each element and each dot product against the recursion in scalars. */
    bool is_verified(double &error) const
    {
        const double epsilon = sizeof(real) == sizeof(float) ? 1.2e-7 : 2.2e-16;
        const double scalar = (real)SCALAR;
        double a = (real)START_A, b = 0, c = 0, dots = 0;
        for (long done = 0; done < repeats_; done++) {
            c = a;
            b = scalar * c;
            c = a + b;
            a = b + scalar * c;
            double expected = a * b * (double)s_.count;
            dots = larger(fabs(sums_[(size_t)done] - expected) / expected, dots);
        }
        double arrays = larger(larger(distance(s_.a, s_.count, a), distance(s_.b, s_.count, b)),
                               distance(s_.c, s_.count, c));
        double most_arrays = epsilon * (100 + 4 * (double)repeats_),
               most_dots = most_arrays + epsilon * (double)(dot_chunk / dot_sums + chunks());
        bool verified = nb_within(arrays, most_arrays) && nb_within(dots, most_dots);
        if (!verified)
            fprintf(stderr,
                    "stream: not verified: relative error of the arrays %.3g (bound %.3g), of the "
                    "dot products %.3g (bound %.3g)\n",
                    arrays, most_arrays, dots, most_dots);
        error = larger(arrays, dots);
        return verified;
    }

    nb::device device_;
    typename Precision::arrays s_{};
    long repeats_;
    std::vector<double> times_, sums_;
};

template <typename Precision> static int run(long elements, long repeats)
{
    benchmark<Precision> measured(elements, repeats);
    nb_region region;
    if (!measured.allocate()) {
        fprintf(stderr, "stream: no memory for three arrays of %ld numbers\n", elements);
        return 1;
    }
    measured.warm_up();
    nb_region_begin(&region);
    for (long done = 0; done < repeats; done++)
        measured.repeat(done);
    nb_region_end(&region);
    return measured.report(region);
}

int main(int count, char **words)
{
    struct nb_option options[] = {
        {"elements", 1, 2147483648, 1 << 25, 0, nullptr},
        {"repeats", 1, 10000, 100, 0, nullptr},
        {"precision", 0, 0, 0, 0, precisions},
        {}
    };
    if (nb_parse_options(count, words, options))
        return 2;
    long elements = (long)options[0].value, repeats = (long)options[1].value;
    bool single = options[2].value > 0;
    if (single && repeats > MOST_SINGLE)
        return nb_usage("stream", options, "repeats in single precision (at most 1500)", "more");
    return nb::guarded("stream", [&] {
        return single ? run<single_precision>(elements, repeats)
                      : run<double_precision>(elements, repeats);
    });
}
