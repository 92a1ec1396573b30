/* stream: the five kernels by which BabelStream (Deakin et al. 2018) measures memory bandwidth,
 * SYCL; the time of each repetition is printed.
 *
 *     stream [--elements N] [--repeats N]
 *     threads: DPCPP_CPU_NUM_CUS; three arrays of N doubles
 *
 * The twin of ../stream.c: the same arrays, order, start values, checks and output. A kernel's time
 * runs from its launch to the end of its wait.
 * Exit status: 0 verified, 1 not verified, no memory or no SYCL, 2 usage.
 */
#include "device.hpp"

#include "../compiler.h"
#include "../options.h"
#include "../series.h"

#include "stream_kernels.h"
#include <numeric>

static const char source[] =
#include "stream_kernels.inc"
    ;
static const char header[] =
#include "kernel.inc"
    ;

#define ERROR_BOUND 1e-8 /* relative */

enum { COPY, MUL, ADD, TRIAD, DOT, KERNELS, LOCAL = 1024 };

static const char *const names[] = {"copy", "mul", "add", "triad", "dot"};

static long chunks(const stream_arrays &s)
{
    return (s.count + DOT_CHUNK - 1) / DOT_CHUNK;
}

static double dot(nb::device &device, const stream_arrays &s)
{
    device.launch<stream_dot_kernel>(chunks(s), 1, s);
    device.wait();
    return std::accumulate(s.partial, s.partial + chunks(s), 0.0);
}

static double kernel(nb::device &device, const stream_arrays &s, int which)
{
    if (which == DOT)
        return dot(device, s);
    if (which == COPY)
        device.launch<stream_copy_kernel>(s.count, LOCAL, s);
    else if (which == MUL)
        device.launch<stream_mul_kernel>(s.count, LOCAL, s);
    else if (which == ADD)
        device.launch<stream_add_kernel>(s.count, LOCAL, s);
    else
        device.launch<stream_triad_kernel>(s.count, LOCAL, s);
    device.wait();
    return 0;
}

/* One repetition; the times go to times[kernel * repeats]. Returns the dot product. */
static double repeat(nb::device &device, const stream_arrays &s, double *times, long repeats)
{
    double sum = 0;
    int64_t before_ns = nb_now_ns();
    for (int which = 0; which < KERNELS; which++) {
        sum += kernel(device, s, which);
        int64_t after_ns = nb_now_ns();
        times[which * repeats] = (double)(after_ns - before_ns) * 1e-9;
        before_ns = after_ns;
    }
    return sum;
}

static void fill(nb::device &device, const stream_arrays &s)
{
    device.launch<stream_fill_kernel>(s.count, LOCAL, s);
    device.wait();
}

static double mean_distance(const double *values, long count, double expected)
{
    double sum = 0;
    for (long i = 0; i < count; i++)
        sum += fabs(values[i] - expected);
    return sum / (double)count / fabs(expected);
}

/* The greatest relative error of the arrays and the last dot product; a value that is no number
 * stays one. */
static double error_of(const stream_arrays &s, double sum, long repeats)
{
    double a = START_A, b = START_B, c = START_C, worst = 0;
    for (long done = 0; done < repeats; done++) {
        c = a;
        b = SCALAR * c;
        c = a + b;
        a = b + SCALAR * c;
    }
    double expected = a * b * (double)s.count;
    for (double error :
         {fabs(sum - expected) / expected, mean_distance(s.a, s.count, a),
          mean_distance(s.b, s.count, b), mean_distance(s.c, s.count, c)})
        worst = error <= worst ? worst : error;
    return worst;
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

static int report(nb::device &device, const stream_arrays &s, const nb_region &region,
                  const std::vector<double> &times, long repeats, double sum)
{
    double error = error_of(s, sum, repeats);
    bool verified = nb_within(error, ERROR_BOUND);
    std::string spreads = print_series(times, repeats);
    if (!verified)
        fprintf(stderr, "stream: not verified: relative error %.3g (bound %.3g)\n", error,
                ERROR_BOUND);
    nb_region_print(&region, "stream",
                    "threads=%d elements=%ld repeats=%ld %scompiler=%s %s sum=%.15g error=%.3e "
                    "series_values=%ld "
                    "verified=%s",
                    device.threads(), s.count, repeats, spreads.c_str(), NB_COMPILER,
                    device.words().c_str(), sum, error, nb_series_total(), verified ? "yes" : "no");
    return verified ? 0 : 1;
}

static bool allocate(nb::device &device, stream_arrays &s)
{
    s.a = device.allocate<double>(s.count);
    s.b = device.allocate<double>(s.count);
    s.c = device.allocate<double>(s.count);
    s.partial = device.allocate<double>(chunks(s));
    return s.a && s.b && s.c && s.partial;
}

static int run(long elements, long repeats)
{
    nb::device device(source, header);
    stream_arrays s{};
    std::vector<double> times((size_t)(KERNELS * repeats));
    double sum = 0;
    nb_region region;
    s.count = elements;
    if (!allocate(device, s)) {
        fprintf(stderr, "stream: no memory for three arrays of %ld doubles\n", elements);
        return 1;
    }
    device.warm_up([&] {
        fill(device, s);
        repeat(device, s, times.data(), repeats); /* its times are overwritten */
    });
    fill(device, s);
    nb_region_begin(&region);
    for (long done = 0; done < repeats; done++)
        sum = repeat(device, s, times.data() + done, repeats);
    nb_region_end(&region);
    int status = report(device, s, region, times, repeats, sum);
    for (double *memory : {s.a, s.b, s.c, s.partial})
        device.release(memory);
    return status;
}

int main(int count, char **words)
{
    struct nb_option options[3] = {
        {"elements", 1, 2147483648, 1 << 25, 0, nullptr}, {"repeats", 1, 10000, 100, 0, nullptr}, {}
    };
    if (nb_parse_options(count, words, options))
        return 2;
    return nb::guarded("stream",
                       [&] { return run((long)options[0].value, (long)options[1].value); });
}
