"""Keeps the first GPU busy for so many seconds by NVIDIA's driver alone (no CUDA toolkit), then
prints how the driver loads modules: `python load.py SECONDS` → `loading=LAZY`.
"""

import ctypes
import sys
import time

PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry burn(.param .u64 out, .param .u32 count)
{
    .reg .f32 %f<3>;
    .reg .u32 %r<4>;
    .reg .u64 %rd<3>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    ld.param.u32 %r1, [count];
    mov.u32 %r2, %tid.x;
    cvt.rn.f32.u32 %f1, %r2;
    mov.u32 %r3, 0;
again:
    fma.rn.f32 %f1, %f1, 0f3F7FF972, 0f3A83126F;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p1, %r3, %r1;
    @%p1 bra again;
    st.global.f32 [%rd2], %f1;
    ret;
}
"""
BLOCKS, THREADS, TURNS = 1024, 256, 2_000_000
LOADING = {1: "EAGER", 2: "LAZY"}


def call(cuda: ctypes.CDLL, name: str, *arguments: object) -> None:
    """Call a function of the driver; an error ends the program."""
    if code := getattr(cuda, name)(*arguments):
        sys.exit(f"{name}: CUDA error {code}")


def main(seconds: float) -> None:
    """Launch the kernel again and again."""
    cuda = ctypes.CDLL("libcuda.so.1")
    device, mode = ctypes.c_int(), ctypes.c_int()
    context, module, kernel = (ctypes.c_void_p() for _ in range(3))
    out, count = ctypes.c_uint64(), ctypes.c_uint(TURNS)
    call(cuda, "cuInit", 0)
    call(cuda, "cuDeviceGet", ctypes.byref(device), 0)
    call(cuda, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call(cuda, "cuCtxSetCurrent", context)
    call(cuda, "cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(PTX))
    call(cuda, "cuModuleGetFunction", ctypes.byref(kernel), module, b"burn")
    call(cuda, "cuMemAlloc_v2", ctypes.byref(out), ctypes.c_size_t(4096))
    pointers = (ctypes.c_void_p * 2)(ctypes.addressof(out), ctypes.addressof(count))
    grid = [ctypes.c_uint(n) for n in (BLOCKS, 1, 1, THREADS, 1, 1, 0)]
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        call(cuda, "cuLaunchKernel", kernel, *grid, None, pointers, None)
        call(cuda, "cuCtxSynchronize")
    call(cuda, "cuModuleGetLoadingMode", ctypes.byref(mode))
    print(f"loading={LOADING.get(mode.value, mode.value)}")


if __name__ == "__main__":
    main(float(sys.argv[1]))
