"""Times what benchmarks compare."""

import time
from collections.abc import Callable
from typing import Any


def timed(calls: int, function: Callable, *arguments: object) -> tuple[float, Any]:
    """CPU seconds of the best of so many calls, since the machine may be shared, and the result."""
    spent = []
    for _ in range(calls):
        begin = time.process_time()
        result = function(*arguments)
        spent.append(time.process_time() - begin)
    return min(spent), result
