"""NVIDIA's GPUs: a metric layer by NVML, one by the profiler nsys, and settings as mitigations."""

from .nsys import profile_with_nsys
from .settings import GpuSetting

__all__ = ["GpuSetting", "profile_with_nsys"]
