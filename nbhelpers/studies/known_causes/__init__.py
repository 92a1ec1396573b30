"""Known causes: planted in runs on purpose, with the truth recorded, to score an attribution."""

from .catalogue import (
    Cause,
    afflicted,
    cause_campaign,
    cause_runs,
    causes,
    describe_causes,
    not_planted,
    refused,
)
from .scores import explained_cause, score_causes, score_nothing, score_sentences

__all__ = [
    "Cause",
    "afflicted",
    "cause_campaign",
    "cause_runs",
    "causes",
    "describe_causes",
    "explained_cause",
    "not_planted",
    "refused",
    "score_causes",
    "score_nothing",
    "score_sentences",
]
