"""Training of large models under noise: recorded jobs, what they would take without stragglers."""

from .at_scale import noise_at_scale
from .kineto import published_kineto
from .launches import noise_on_hosts
from .naming import planted, slow_stages, slow_workers
from .scenarios import WhatIf, what_if
from .trace import published_job

__all__ = [
    "WhatIf",
    "noise_at_scale",
    "noise_on_hosts",
    "planted",
    "published_job",
    "published_kineto",
    "slow_stages",
    "slow_workers",
    "what_if",
]
