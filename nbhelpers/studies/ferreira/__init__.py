"""The study of Ferreira, Bridges and Brightwell (SC 2008): is the noise that was asked for the
noise that is there, and what it costs.
"""

from .design import measured_signatures, program_signatures
from .loops import Loops
from .programs import Programs, program_table
from .shapes import shapes_table, shown_shapes
from .simulated import increasing_sentences, increasing_slowdown
from .tables import (
    background_sentence,
    difference_sentence,
    program_sentences,
    share_answer,
    share_errors,
    share_sentence,
    share_table,
    simulated_sentence,
)

__all__ = [
    "Loops",
    "Programs",
    "background_sentence",
    "difference_sentence",
    "increasing_sentences",
    "increasing_slowdown",
    "measured_signatures",
    "program_sentences",
    "program_signatures",
    "program_table",
    "shapes_table",
    "share_answer",
    "share_sentence",
    "share_errors",
    "share_table",
    "shown_shapes",
    "simulated_sentence",
]
