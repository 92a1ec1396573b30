/* A stand-in for libnvidia-ml.so.1: clock cap, fan, persistence of one GPU in the file $FAKE_GPU;
 * the numbers -1 mean the driver's own control. */
#include <stdio.h>
#include <stdlib.h>
struct state {
    int cap, fan, persistence;
};
static struct state get(void)
{
    struct state state = {-1, -1, 0};
    FILE *file = fopen(getenv("FAKE_GPU"), "r");
    if (file) {
        if (fscanf(file, "%d %d %d", &state.cap, &state.fan, &state.persistence) != 3)
            abort();
        fclose(file);
    }
    return state;
}
static int put(struct state state)
{
    FILE *file = fopen(getenv("FAKE_GPU"), "w");
    fprintf(file, "%d %d %d", state.cap, state.fan, state.persistence);
    return fclose(file);
}
int nvmlInit_v2(void)
{
    return 0;
}
int nvmlShutdown(void)
{
    return 0;
}
const char *nvmlErrorString(int code)
{
    return code == 4 ? "Insufficient Permissions" : "Not Supported";
}
int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 1;
    return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned number, void **gpu)
{
    *gpu = (void *)(long)(number + 1);
    return 0;
}
int nvmlDeviceGetMaxClockInfo(void *gpu, int type, unsigned *mhz)
{
    (void)gpu;
    (void)type;
    *mhz = 2000;
    return 0;
}
int nvmlDeviceGetClockInfo(void *gpu, int type, unsigned *mhz)
{
    (void)gpu;
    (void)type;
    int cap = get().cap;
    *mhz = cap < 0 || getenv("FAKE_FORGETS") ? 1980 : (unsigned)cap;
    if (getenv("FAKE_IDLE") || getenv("FAKE_SLOW"))
        *mhz = 345;
    return 0;
}
int nvmlDeviceGetUtilizationRates(void *gpu, unsigned *rates)
{
    (void)gpu;
    rates[0] = getenv("FAKE_IDLE") ? 0 : 97;
    rates[1] = 20;
    return 0;
}
int nvmlDeviceSetGpuLockedClocks(void *gpu, unsigned low, unsigned high)
{
    (void)gpu;
    (void)low;
    if (getenv("FAKE_REFUSES"))
        return 4;
    struct state state = get();
    state.cap = (int)high;
    return put(state);
}
int nvmlDeviceResetGpuLockedClocks(void *gpu)
{
    (void)gpu;
    struct state state = get();
    state.cap = -1;
    return put(state);
}
int nvmlDeviceGetNumFans(void *gpu, unsigned *count)
{
    (void)gpu;
    *count = getenv("FAKE_PASSIVE") ? 0 : 1;
    return 0;
}
int nvmlDeviceSetFanSpeed_v2(void *gpu, unsigned fan, unsigned speed)
{
    (void)gpu;
    (void)fan;
    struct state state = get();
    state.fan = (int)speed;
    return put(state);
}
int nvmlDeviceGetTargetFanSpeed(void *gpu, unsigned fan, unsigned *speed)
{
    (void)gpu;
    (void)fan;
    *speed = (unsigned)get().fan;
    return 0;
}
int nvmlDeviceGetFanSpeed_v2(void *gpu, unsigned fan, unsigned *speed)
{
    (void)gpu;
    (void)fan;
    *speed = getenv("FAKE_STUCK") ? 30 : (unsigned)get().fan;
    return 0;
}
int nvmlDeviceSetDefaultFanSpeed_v2(void *gpu, unsigned fan)
{
    (void)gpu;
    (void)fan;
    struct state state = get();
    state.fan = -1;
    return put(state);
}
int nvmlDeviceGetPersistenceMode(void *gpu, unsigned *mode)
{
    (void)gpu;
    *mode = (unsigned)get().persistence;
    return 0;
}
int nvmlDeviceSetPersistenceMode(void *gpu, unsigned mode)
{
    (void)gpu;
    struct state state = get();
    state.persistence = (int)mode;
    return put(state);
}
