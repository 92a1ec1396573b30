"""What Noisebook has to know of this extra: readers of metrics, and an action of mitigations."""

from typing import Any

from nbhelpers.extras import Extra


def _nvml(source: Any, root: Any) -> Any:
    from .readings import NvmlReader

    return NvmlReader(source, root)


def _nsys(source: Any, root: Any) -> Any:
    from .nsys import NsysReader

    return NsysReader(source, root)


def _setting(**fields: Any) -> Any:
    from .settings import GpuSetting

    return GpuSetting(**fields)


EXTRA = Extra(readers={"nvml": _nvml, "nsys": _nsys}, actions={"gpu": _setting})
