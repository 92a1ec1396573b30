/* device.hpp: the host's side of the SYCL programs: the CPU device, its kernels, their launches,
 * and where the threads may run.
 *
 * The kernels are compiled when the program runs (Intel's runtime, kernels as a string), or ahead
 * of time by icpx or acpp (NB_AHEAD_OF_TIME); the programs do not see the difference. Variables
 * that the runtime needs are set here, so that a user has nothing to export.
 */
#ifndef NOISEBOOK_SYCL_DEVICE_HPP
#define NOISEBOOK_SYCL_DEVICE_HPP

#include "../noisebook.h"

#include "kernel.h"
#include "placement.hpp"
#include <dlfcn.h>
#include <exception>
#include <string>
#include <utility>

namespace nb
{

#ifndef NB_AHEAD_OF_TIME
namespace jit = sycl::ext::oneapi::experimental;
using bundle = sycl::kernel_bundle<sycl::bundle_state::executable>;

/* The folder of the runtime's libraries, from where libsycl was loaded. */
inline std::string runtime_folder()
{
    Dl_info found;
    void *symbol = dlsym(RTLD_DEFAULT, "__sycl_register_lib");
    std::string path = symbol && dladdr(symbol, &found) && found.dli_fname ? found.dli_fname : "";
    char *real = realpath(path.c_str(), nullptr);
    path = real ? real : path;
    free(real);
    return path.substr(0, path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
}

/* Before the first call of the runtime. The wheels' own list of devices names a folder that exists
 * nowhere; ONEAPI_DEVICE_SELECTOR=opencl:... finds nothing in 2026.2; another OpenCL on the machine
 * must not become the device by chance; and a process that is confined to some CPUs would get a
 * thread more than there are. */
inline void prepare_environment(const cpu_set &allowed)
{
    std::string libraries = runtime_folder(), driver = libraries + "/libintelocl.so";
    setenv("OCL_ICD_FILENAMES", driver.c_str(), 1);
    setenv("OCL_ICD_VENDORS", libraries.c_str(), 1);
    unsetenv("ONEAPI_DEVICE_SELECTOR");
    if (!wanted_threads())
        setenv("DPCPP_CPU_NUM_CUS", std::to_string(allowed.size()).c_str(), 1);
    setenv("SYCL_CACHE_PERSISTENT", "1", 0);
    setenv("SYCL_CACHE_DIR", (libraries + "/../../cache").c_str(), 0);
}

inline bundle compile(const sycl::queue &queue, const char *source, const char *header,
                      const char *real)
{
    std::string log,
        text = std::string("#define NB_AT_RUN_TIME\n#define REAL ") + real + "\n" + source;
    jit::include_files headers{"kernel.h", header};
    try {
        auto parsed = jit::create_kernel_bundle_from_source(
            queue.get_context(), jit::source_language::sycl, text, jit::properties{headers});
        return jit::build(parsed,
                          jit::properties{jit::build_options{"-ffast-math"}, jit::save_log{&log}});
    } catch (const sycl::exception &error) {
        throw std::runtime_error(std::string("the kernels could not be compiled: ") + error.what() +
                                 "\n" + log +
                                 "  what to do: the runtime reads the system's C++ headers. On "
                                 "Debian or Ubuntu: apt-get install g++ libc6-dev");
    }
}
#else
inline void prepare_environment(const cpu_set &)
{
}
#endif

/* The CPU as a SYCL device, with an in-order queue. */
class device
{
  public:
    /* `source` and `header` are the kernels' texts, `real` the type of their numbers; not needed
     * ahead of time. */
    device(const char *source, const char *header, const char *real = "double")
        : allowed_(allowed_cpus()),
          queue_((prepare_environment(allowed_), cpu()), sycl::property::queue::in_order{})
#ifndef NB_AHEAD_OF_TIME
          ,
          kernels_(compile(queue_, source, header, real))
#endif
    {
        (void)source, (void)header, (void)real;
    }

    /* That work at the same time. The device counts the CPUs that the process may use; a smaller
     * wish it follows without saying so. */
    int threads() const
    {
        int units = (int)queue_.get_device().get_info<sycl::info::device::max_compute_units>(),
            wanted = wanted_threads();
        return wanted > 0 && wanted < units ? wanted : units;
    }

    /* `items` work-items in groups of `local`, rounded up to whole groups. */
    template <typename Kernel>
    void launch(long items, long local, const typename Kernel::arguments_type &arguments)
    {
        sycl::nd_range<1> range((size_t)((items + local - 1) / local * local), (size_t)local);
#ifdef NB_AHEAD_OF_TIME
        queue_.parallel_for(range, Kernel{arguments});
#else
        static const sycl::kernel kernel = kernels_.ext_oneapi_get_kernel(Kernel::symbol());
        queue_.submit([&](sycl::handler &handler) {
            handler.set_args(arguments);
            handler.parallel_for(range, kernel);
        });
#endif
    }

    void wait()
    {
        queue_.wait_and_throw();
    }

    /* On cache lines of its own; nullptr without memory. */
    template <typename Value> Value *allocate(long count)
    {
        return sycl::aligned_alloc_shared<Value>(64, (size_t)count, queue_);
    }

    void release(void *memory)
    {
        sycl::free(memory, queue_);
    }

    /* Compiles what is left, wakes all threads and touches the memory, until as many threads as
     * compute units are there; then they are placed. */
    template <typename Work> void warm_up(Work work)
    {
        for (int passes = 0;
             passes < MOST_PASSES && (!passes || (int)own_threads().size() < threads()); passes++)
            work();
        place_threads(allowed_);
        placed_ = affinity_of_threads();
    }

    /* For the last line: what the kernels ran on, where the threads may run since the warm-up, and,
     * if that changed, at the end. */
    std::string words() const
    {
        std::string now = affinity_of_threads();
        sycl::device here = queue_.get_device();
        return "device=" + one_word(here.get_info<sycl::info::device::name>()) +
               " driver=" + one_word(here.get_info<sycl::info::device::driver_version>()) +
               " affinity=" + placed_ + (now == placed_ ? "" : " affinity_at_end=" + now);
    }

  private:
    enum { MOST_PASSES = 20 };

    static std::string one_word(std::string text)
    {
        for (char &letter : text)
            if (isspace((unsigned char)letter) || letter == '=')
                letter = '_';
        return text.empty() ? "unknown" : text;
    }

    static sycl::device cpu()
    {
        try {
            return sycl::device(sycl::cpu_selector_v);
        } catch (const sycl::exception &error) {
            throw std::runtime_error(
                std::string("no CPU among the SYCL devices: ") + error.what() +
                "\n  what to do: install the runtime anew: make sycl ACCEPT_LICENCE=yes");
        }
    }

    std::string placed_;
    cpu_set allowed_; /* before the runtime pins anything */
    sycl::queue queue_;
#ifndef NB_AHEAD_OF_TIME
    bundle kernels_;
#endif
};

/* Runs a program; what goes wrong in the runtime becomes a message and exit status 1. */
template <typename Program> int guarded(const char *name, Program program)
{
    try {
        return program();
    } catch (const std::exception &error) {
        fprintf(stderr, "%s: %s\n", name, error.what());
        return 1;
    }
}

} // namespace nb

#endif
