"""The study of slow workers in training jobs: tables and sentences of stage 85."""

from .host_noise import (
    distances,
    measured_steps,
    predicted_and_measured,
    prediction_sentence,
    prices,
)
from .jobs import jobs_sentence, jobs_table, planted_sentence, planted_table, workers_table
from .scale import (
    host_sentence,
    jobs_at_scale,
    noise_sentence,
    straggler_sentence,
    stragglers_at_scale,
)

__all__ = [
    "distances",
    "host_sentence",
    "jobs_at_scale",
    "jobs_sentence",
    "jobs_table",
    "measured_steps",
    "noise_sentence",
    "planted_sentence",
    "planted_table",
    "predicted_and_measured",
    "prediction_sentence",
    "prices",
    "straggler_sentence",
    "stragglers_at_scale",
    "workers_table",
]
