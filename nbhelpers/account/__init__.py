"""The account: where the time of a run went, and where a slow run lost its time."""

from .table import Account

__all__ = ["Account"]
