"""How a column is headed and printed: the unit stands in its name, so the rule stands here once.

`mean_us` is headed "mean (µs)", `cpu_share` "CPU" in per cent; the CSV keeps the names and the full
precision.
"""

import math
from collections.abc import Callable, Iterable, Sequence

from ..facts import plain_number

UNITS = {  # ending: unit, how a number is printed, factor
    "_percent": ("%", "{:.2f}", 1),
    "_share": ("%", "{:.3f}", 100),
    "_seconds": ("s", "{:.4f}", 1),
    "_hz": ("1/s", "{:.1f}", 1),
    "_per_s": ("1/s", "{:.1f}", 1),
    "_mhz": ("MHz", "{:.0f}", 1),
    "_ms": ("ms", "{:.3f}", 1),
    "_us": ("µs", "{:.1f}", 1),
    "_ns": ("ns", "{:.0f}", 1),
    "_s": ("s", "{:.4f}", 1),
    "_c": ("°C", "{:.1f}", 1),
}
WHOLE = {  # column: heading, how a number is printed, factor
    "share": ("share (%)", "{:.2f}", 100),
    "seconds": ("run time (s)", "{:.4f}", 1),
    "p_value": ("p", "{:.3f}", 1),
    "p_corrected": ("p, corrected", "{:.3f}", 1),
    "paper_p_corrected": ("paper p, corrected", "{:.3f}", 1),
}
_LEAST = 1e-4  # smaller ones are only said to be so
_MOST_DECIMALS = 4
_MOST_OF_INTERVALS, _TOO_LARGE = 6, 1e6
_SPREAD = 1000  # of the largest number to the smallest: beyond it, no decimals in common


def heading(column: str) -> str:
    """The column's name for a reader."""
    return _look(column)[0]


def intervals_of(columns: Iterable[object]) -> dict[str, tuple[str, str]]:
    """Columns whose interval follows in the next two: name -> those of its low and high end.

    For `seconds` they are `seconds_low` and `seconds_high`; for `median_percent` also
    `median_low_percent` and `median_high_percent`, or `low_percent` and `high_percent`. The
    published value may stand between; the interval is not that one's.
    """
    names = [str(column) for column in columns]
    found: dict[str, tuple[str, str]] = {}
    for at, name in enumerate(names):
        after = at + 2 if names[at + 1 : at + 2] == [f"{name} (published)"] else at + 1
        low_high = tuple(names[after : after + 2])
        if low_high in _ends(name) and low_high not in found.values():
            found[name] = low_high
    return found


def _ends(name: str) -> list[tuple[str, str]]:
    """The names that the ends of a column's interval may have."""
    unit = _ending(name)
    base = name.removesuffix(unit)
    return [
        (f"{name}_low", f"{name}_high"),
        (f"{base}_low{unit}", f"{base}_high{unit}"),
        (f"low{unit}", f"high{unit}"),
    ]


def numbers(column: str, values: Iterable[object]) -> Callable[[float], str]:
    """How the numbers of a column are printed for a reader: by its unit, else with the decimals
    that give the smallest four digits.
    """
    _, text, factor = _look(column)
    if text:
        return lambda value: _printed(value * factor, text)
    plain = _in_common(
        [abs(value) for value in values if isinstance(value, float) and math.isfinite(value)]
    )
    return lambda value: _printed(value, plain) if value else "0"


def within(column: str, row: Sequence[float]) -> Callable[[float], str] | None:
    """How a number with an interval is printed: with two digits of half the interval. None: it has
    none, or is so large that its digits say more than the interval.
    """
    value, low, high = row
    factor = _look(column)[2]
    half = factor * (high - low) / 2
    if not (math.isfinite(value) and math.isfinite(half) and half > 0):
        return None
    if factor * max(map(abs, row)) >= _TOO_LARGE:
        return None
    decimals = min(max(1 - math.floor(math.log10(half)), 0), _MOST_OF_INTERVALS)
    return lambda number: f"{number * factor:z.{decimals}f}"


def _printed(value: float, text: str) -> str:
    shown = plain_number(value) if text == "{:.4g}" else text.format(value)
    if value == 0 or not math.isfinite(value) or float(shown.replace(",", "")) != 0:
        return shown
    return f"{value:.2g}" if abs(value) >= _LEAST else f"{'>-' if value < 0 else '<'}{_LEAST:.4f}"


def _in_common(sizes: list[float]) -> str:
    if all(size == int(size) and size < 1e9 for size in sizes):
        return "{:.0f}"
    least, most = min(size for size in sizes if size), max(sizes)
    if most > _SPREAD * least:
        return "{:.4g}"
    return f"{{:.{min(max(3 - math.floor(math.log10(least)), 0), _MOST_DECIMALS)}f}}"


def _look(column: str) -> tuple[str, str, float]:
    """Heading, format and factor of a column; no format where its name has no unit."""
    if column in WHOLE:
        return WHOLE[column]
    base, published, _ = column.partition(" (published)")
    ending = _ending(base)
    unit, text, factor = UNITS.get(ending, ("", "", 1))
    words = base.removesuffix(ending).replace("_", " ").replace("cpu", "CPU")
    words += ", published" if published else ""
    return f"{words} ({unit})" if unit else words, text, factor


def _ending(name: str) -> str:
    """The unit in which a name ends, as `UNITS` has it."""
    return next((ending for ending in UNITS if name.endswith(ending)), "")
