"""How often something was, in words, with the 95 % Wilson interval."""

from statsmodels.stats.proportion import proportion_confint


def share(hits: int, count: int) -> str:
    if not count:
        return "0 of 0"
    low, high = proportion_confint(hits, count, method="wilson")
    return f"{hits} of {count} ({hits / count:.1%}, {low:.1%} to {high:.1%})"


def aligned_share(hits: int, count: int) -> str:
    """The same, for lines below each other."""
    low, high = proportion_confint(hits, count, method="wilson")
    return f"{hits:>4} of {count:<4} {hits / count:6.1%} (95 % interval {low:.1%} to {high:.1%})"
