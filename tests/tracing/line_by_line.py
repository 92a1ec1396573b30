"""Osnoise text read line by line, by the regular expressions alone: for tests and benchmarks."""

from collections.abc import Iterator

import numpy as np

from nbhelpers.tracing._osnoise_columns import NUMBERS, Lines


def no_usual_lines(text: bytes) -> Iterator[Lines]:
    """In place of `blocks_of_lines`: one block of which no line is usual."""
    block = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(block == ord("\n"))
    begins = np.concatenate([[0], ends[:-1] + 1])
    none = np.zeros(0, dtype=np.int64)
    numbers = dict.fromkeys(NUMBERS, none)
    yield Lines(block, begins, ends, np.arange(len(ends)), none, none, [], numbers)
