/* kernel.h: what makes a plain function a SYCL kernel, in each of the three ways in which the
 * kernels' sources are read.
 *
 * A kernel is a function `static void name(long item, struct arguments a)`, followed by
 * NB_KERNEL(name, arguments); `item` is its place in the launch. Defined are NB_AT_RUN_TIME where
 * the runtime compiles the source as a string, NB_AHEAD_OF_TIME where a SYCL compiler (icpx, acpp)
 * reads it together with the host's program, and neither for the host's own compiler, which only
 * needs names and types.
 */
#ifndef NOISEBOOK_SYCL_KERNEL_H
#define NOISEBOOK_SYCL_KERNEL_H

#include <cstdint>
#include <sycl/sycl.hpp>

#if defined(NB_AT_RUN_TIME)
#define NB_KERNEL(name, arguments)                                                                 \
    extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY(                                                  \
        (sycl::ext::oneapi::experimental::nd_range_kernel<1>)) void                                \
    name##_kernel(arguments a)                                                                     \
    {                                                                                              \
        name((long)sycl::ext::oneapi::this_work_item::get_nd_item<1>().get_global_linear_id(), a); \
    }
#elif defined(NB_AHEAD_OF_TIME)
#define NB_KERNEL(name, arguments)                      \
    struct name##_kernel {                              \
        using arguments_type = arguments;               \
        arguments a;                                    \
        void operator()(sycl::nd_item<1> item) const    \
        {                                               \
            name((long)item.get_global_linear_id(), a); \
        }                                               \
    };
#else
#define NB_KERNEL(name, arguments)        \
    struct name##_kernel {                \
        using arguments_type = arguments; \
        static const char *symbol()       \
        {                                 \
            (void)name;                   \
            return #name "_kernel";       \
        }                                 \
    };
#endif

#endif
