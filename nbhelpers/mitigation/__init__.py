"""What to do about slow runs: factors, mitigations that act and prove it, and the autopilot."""

from typing import TYPE_CHECKING

from .. import lazily

if TYPE_CHECKING:
    from .knowledge import explain_factor, factors, mitigations, references
    from .loop import autopilot
    from .report import Report
    from .treatment import BASELINE, Treatment, treat_workload, treatment_cells
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
