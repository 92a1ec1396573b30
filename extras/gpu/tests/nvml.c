/* NVML as a recorded machine answered: two GPUs, no fans, no memory information. */
#include <stddef.h>
typedef unsigned long long u64;
static int calls;
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
    return code == 3 ? "Not Supported" : "Unknown";
}
int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 2;
    return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned at, void **device)
{
    *device = (void *)(size_t)(at + 1);
    return 0;
}
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz)
{
    *mhz = type == 1 ? 1000 * (unsigned)(size_t)device : 2619;
    return 0;
}
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    *celsius = 30 + (unsigned)(size_t)device + (sensor + calls++ > 1 ? 12 : 0);
    return 0;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *mw)
{
    (void)device;
    *mw = 75500;
    return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void *device, u64 *mj)
{
    static u64 spent;
    *mj = spent += 500 * (u64)(size_t)device;
    return 0;
}
int nvmlDeviceGetFanSpeed(void *device, unsigned *percent)
{
    (void)device;
    (void)percent;
    return 3;
}
int nvmlDeviceGetViolationStatus(void *device, int policy, u64 *two)
{
    static u64 ns[8];
    (void)device;
    two[0] = 1;
    two[1] = ns[policy] += policy ? 0 : 1000;
    return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, u64 *bits)
{
    *bits = (size_t)device == 2 ? 0x24 : 0;
    return 0;
}
int nvmlDeviceGetSamples(void *device, int type, u64 since, unsigned *kind, unsigned *count,
                         u64 *samples)
{
    (void)device;
    if (type != 1)
        return 3;
    *kind = 1;
    if (samples) {
        samples[0] = since - 5;
        samples[1] = 0xffffffff00000000ULL | 99;
        samples[2] = since + 5;
        samples[3] = 0xffffffff00000000ULL | 40;
        samples[4] = since + 9;
        samples[5] = 60;
    }
    *count = 3;
    return 0;
}
