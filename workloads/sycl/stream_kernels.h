/* stream_kernels.h: BabelStream's five kernels (Deakin et al. 2018) in
 * the precision REAL. The first four have a
 * work-item an element; dot has one a chunk, as on a CPU device a reduction within groups takes
 * several times as long. */
#include "kernel.h"

#define START_A 0.1
#define START_B 0.2
#define START_C 0.0
#define SCALAR 0.4 /* a shrinks by 0.96 a repetition, so that one left out is seen */

enum { DOT_CHUNK = 16384, DOT_SUMS = 32 };

struct stream_arrays {
    long count;
    REAL *a, *b, *c, *partial; /* partial: one sum a chunk */
};

static void stream_fill(long i, stream_arrays s)
{
    if (i >= s.count)
        return;
    s.a[i] = (REAL)START_A;
    s.b[i] = (REAL)START_B;
    s.c[i] = (REAL)START_C;
}
NB_KERNEL(stream_fill, stream_arrays)

static void stream_copy(long i, stream_arrays s)
{
    if (i < s.count)
        s.c[i] = s.a[i];
}
NB_KERNEL(stream_copy, stream_arrays)

static void stream_mul(long i, stream_arrays s)
{
    if (i < s.count)
        s.b[i] = (REAL)SCALAR * s.c[i];
}
NB_KERNEL(stream_mul, stream_arrays)

static void stream_add(long i, stream_arrays s)
{
    if (i < s.count)
        s.c[i] = s.a[i] + s.b[i];
}
NB_KERNEL(stream_add, stream_arrays)

static void stream_triad(long i, stream_arrays s)
{
    if (i < s.count)
        s.a[i] = s.b[i] + (REAL)SCALAR * s.c[i];
}
NB_KERNEL(stream_triad, stream_arrays)

/* Many sums side by side, so that neither the latency of an addition nor its order holds the vector
 * unit up. */
static void stream_dot(long chunk, stream_arrays s)
{
    const REAL *a = s.a + chunk * DOT_CHUNK, *b = s.b + chunk * DOT_CHUNK;
    long length = sycl::min((long)DOT_CHUNK, s.count - chunk * DOT_CHUNK), i = 0;
    REAL sums[DOT_SUMS] = {0}, sum = 0;
    for (; i + DOT_SUMS <= length; i += DOT_SUMS)
        for (int lane = 0; lane < DOT_SUMS; lane++)
            sums[lane] += a[i + lane] * b[i + lane];
    for (; i < length; i++)
        sum += a[i] * b[i];
    for (int lane = 0; lane < DOT_SUMS; lane++)
        sum += sums[lane];
    s.partial[chunk] = sum;
}
NB_KERNEL(stream_dot, stream_arrays)
