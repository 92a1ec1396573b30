"""Whether the overheads that an injector uses still hold: asked before each run, measured again
where they do not.

Owns when that is asked, the short check, and the sentence about a change.
"""

import time
from dataclasses import replace

import numpy as np
import pandas as pd

from ..errors import RunError, Unavailable
from ..machine import measuring
from ..statistics import bootstrap_interval
from ._machine_state import differences, machine_state
from .costs import SHORT_NS, Overheads
from .overheads import cache_path, cached_overheads, measure_overheads, replayed_costs
from .rules import Plan

CHECK_AFTER_S = 600.0
CHECKED = {SHORT_NS: 40, 3_000_000: 20}  # length in ns -> events; 0.3 s
# what the prediction may be off by: so much, or so much of it
TOLERATED_US, TOLERATED_SHARE = 2.0, 0.25
_last_check_s = float("-inf")  # of this process, time.monotonic


def refreshed(plan: Plan, check_after_s: float = CHECK_AFTER_S) -> tuple[Plan, str]:
    """Bring the overheads of a plan up to date; which events it injects stays as it is.

    The machine's state is compared each time. Where that is the same, and neither a measurement nor
    a check is younger than `check_after_s`, 60 events are injected in 0.3 s. Only a bias that its
    interval proves, and that is larger than tolerated, leads to a new measurement.

    Parameters
    ----------
    plan
        What a campaign replays.
    check_after_s
        Age of a measurement or of a check after which the next check is due.

    Returns
    -------
    The plan, with other overheads if they changed, and a sentence on that; empty: they did not.
    """
    costs = plan.overheads
    if not costs.measured or plan.rules.exit_cost_us is not None or not plan.longest_realtime_ns:
        return plan, ""
    why = differences(costs.state, machine_state())
    newer = cached_overheads(cache_path())
    if newer and newer.measured_at > costs.measured_at:
        return _with(plan, newer, why or "measured meanwhile by another campaign or cell")
    why = why or (_bias(costs) if _is_due(costs, check_after_s) else "")
    found = measure_overheads(again=True) if why else costs
    return _with(plan, found, why) if why and found.measured else (plan, "")


def _with(plan: Plan, found: Overheads, why: str) -> tuple[Plan, str]:
    before = plan.overheads
    return replace(plan, overheads=found), (
        f"the overheads of an injected event are those of {found.measured_at} from here on, not of"
        f" {before.measured_at} ({why}): exit cost {before.exit_us:.1f} → {found.exit_us:.1f} µs,"
        f" floor {before.floor_us:.1f} → {found.floor_us:.1f} µs; the plan's events stay the same"
    )


def _is_due(costs: Overheads, check_after_s: float) -> bool:
    return min(costs.age_s(), time.monotonic() - _last_check_s) >= check_after_s


def _bias(costs: Overheads) -> str:
    """What the prediction is off by on a kind of core, in words; empty: it holds."""
    global _last_check_s
    _last_check_s = time.monotonic()
    try:
        with measuring():
            found = [bias_of(own, replayed_costs(own.cpu, 0, CHECKED)) for own in costs.kinds]
    except (Unavailable, RunError):
        return ""
    return ", ".join(filter(None, found))


def bias_of(costs: Overheads, events: pd.DataFrame) -> str:
    """What the predicted exit cost is off by, in words; empty: no more than tolerated, or not
    proven.

    Parameters
    ----------
    costs
        Costs of the kind of core that the events were injected on.
    events
        Table of `replayed_costs`.
    """
    wrong = []
    for length_us, own in events[events["over_us"] < 1].groupby("length_us"):
        predicted_us = costs.exit_ns(own["length_us"] * 1e3, own["wake_us"] * 1e3) / 1e3
        error_us = own["beyond_us"].to_numpy() - predicted_us
        low, high = bootstrap_interval(error_us, "median", repeats=500)
        tolerated_us = max(TOLERATED_US, TOLERATED_SHARE * float(np.median(predicted_us)))
        if low > tolerated_us or high < -tolerated_us:
            wrong.append(
                f"exit cost after {length_us:g} µs off by {np.median(error_us):+.1f} µs"
                f" [{low:+.1f}, {high:+.1f}], n = {len(own)}"
            )
    return ", ".join(wrong)
