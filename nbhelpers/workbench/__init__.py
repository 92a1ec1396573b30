"""The workbench: the whole way from runs to a mitigation that was tried, step by step."""

from .session import Session
from .widgets import Workbench

__all__ = [
    "Session",
    "Workbench",
]
