"""The workbench: the whole way from runs to a mitigation that was tried, step by step."""

from typing import TYPE_CHECKING

from .. import lazily

if TYPE_CHECKING:
    from .session import Session
    from .widgets import Workbench
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
