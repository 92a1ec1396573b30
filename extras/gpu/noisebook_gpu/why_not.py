"""Whether this machine has a GPU of NVIDIA: `python -m noisebook_gpu.why_not` prints why not."""

import ctypes

from .nvml import Nvml


def why_not() -> str:
    """Why the tests on a GPU cannot run here; "" if they can."""
    try:
        library = Nvml()
    except OSError as error:
        return f"no NVIDIA driver answers ({error.args[-1]})"
    devices = library.devices
    library.close()
    if not devices:
        return "the driver finds no GPU"
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "there is no libcuda.so.1, by which programs use the GPU"
    return ""


if __name__ == "__main__":
    print(why_not())
