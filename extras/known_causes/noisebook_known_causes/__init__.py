"""Known causes: planted in runs on purpose, with the truth recorded, to score an attribution."""

from .campaigns import cause_runs, not_planted_sentences, planting_error
from .catalogue import causes, describe_causes
from .scores import explained_cause, score_causes, score_nothing

__all__ = [
    "cause_runs",
    "causes",
    "describe_causes",
    "explained_cause",
    "not_planted_sentences",
    "planting_error",
    "score_causes",
    "score_nothing",
]
