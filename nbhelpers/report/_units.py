"""How a column is headed and printed: the unit stands in its name, so the rule stands here once.

`mean_us` is headed "mean (µs)", `cpu_share` "CPU" in per cent; the CSV keeps the names and the full precision.
"""

UNITS = {  # ending: unit, how a number is printed, factor
    "_percent": ("%", "{:.2f}", 1), "_share": ("%", "{:.3f}", 100), "_seconds": ("s", "{:.4f}", 1), "_hz": ("1/s", "{:.1f}", 1),
    "_per_s": ("1/s", "{:.1f}", 1), "_ms": ("ms", "{:.3f}", 1), "_us": ("µs", "{:.1f}", 1), "_ns": ("ns", "{:.0f}", 1),
}
WHOLE = {"share": ("share (%)", "{:.2f}", 100), "seconds": ("run time (s)", "{:.4f}", 1), "p_value": ("p", "{:.3f}", 1)}


def heading(column: str) -> str:
    """The column's name for a reader."""
    if column in WHOLE:
        return WHOLE[column][0]
    name, unit, _, _ = _unit(column)
    return f"{name} ({unit})" if unit else name


def printed(column: str, value: float) -> str:
    """A number of the column for a reader."""
    if column in WHOLE:
        return WHOLE[column][1].format(value * WHOLE[column][2])
    _, unit, text, factor = _unit(column)
    return text.format(value * factor) if unit else f"{value:.4g}"


def _unit(column: str) -> tuple[str, str, str, float]:
    base, published = column.removesuffix(" (published)"), column.endswith(" (published)")
    for ending, (unit, text, factor) in UNITS.items():
        if base.endswith(ending):
            return _words(base.removesuffix(ending)) + (", published" if published else ""), unit, text, factor
    return _words(base) + (", published" if published else ""), "", "", 1


def _words(name: str) -> str:
    return name.replace("_", " ").replace("cpu", "CPU")
