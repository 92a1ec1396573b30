/* A stand-in for libcuda.so.1: it starts, and has the version $FAKE_CUDA. */
#include <stdlib.h>
int cuInit(void)
{
    return 0;
}
int cuDriverGetVersion(int *version)
{
    *version = getenv("FAKE_CUDA") ? atoi(getenv("FAKE_CUDA")) : 12010;
    return 0;
}
