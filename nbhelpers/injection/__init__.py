"""Injection: replays a noise config while a workload runs, and logs every event."""

from typing import TYPE_CHECKING

from .. import lazily

if TYPE_CHECKING:
    from .hog import Hog, random_schedule
    from .injector import Injector
    from .log import read_logs
    from .observed_loss import observe_loss
    from .overheads import measure_overheads
    from .plan import make_plan
    from .rules import Overheads, Plan, Rules
    from .simple import inject, injection_campaign
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
