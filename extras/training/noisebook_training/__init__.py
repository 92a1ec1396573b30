"""Training of large models under noise: recorded jobs, what they would take without stragglers."""

from importlib import import_module

_OWNERS = {  # name -> the module that defines it; loaded when it is asked for
    "WhatIf": "scenarios",
    "distances": "host_noise",
    "exchanged": "naming",
    "jobs_at_scale": "at_scale",
    "kineto_job": "process_groups",
    "measured_steps": "host_noise",
    "named": "naming",
    "played": "scenarios",
    "predicted_and_measured": "host_noise",
    "prices": "host_noise",
    "published_job": "trace",
    "slow_stages": "naming",
    "slow_workers": "naming",
    "what_if": "scenarios",
    "worker_steps": "scenarios",
}
__all__ = sorted(_OWNERS)


def __getattr__(name: str) -> object:
    if name not in _OWNERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_OWNERS[name]}"), name)
