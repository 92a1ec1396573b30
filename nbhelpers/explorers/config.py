"""A noise config against what it costs: how much of the delta is taken, how long its events are,
and what the machine's shortest event makes of them. Nothing is injected.
"""

import pandas as pd

from ..errors import InputError
from ..injection import Overheads, Plan, Rules, make_plan
from ..noise import NoiseConfig
from ..palette import PAGE_IN
from ..report.appearance import style
from ..report.images import DRAWING, embedded
from ..report.lanes import draw_lanes
from ._base import Control, Explorer

CLASSES = {"real-time": "#0072B2", "ordinary": "#D55E00"}
REALTIME = ("SCHED_FIFO", "SCHED_RR", "SCHED_DEADLINE")
# in the twin: each control changed alone
CHOSEN: list[dict[str, float]] = [{}, {"share": 50}, {"share": 10}, {"scale": 0.5}, {"scale": 2.0}]
CHOSEN += [{"shortest": 10}, {"shortest": 50}]


def explore_config(events: pd.DataFrame, merge: str = "improved") -> Explorer:
    """Look at what a noise config costs before anything is injected.

    Parameters
    ----------
    events
        Noise events of one run (`delta_noise`).
    merge
        As of `NoiseConfig.from_events`.

    Returns
    -------
    Explorer: share, scale and shortest event can be chosen.

    Raises
    ------
    InputError
        No event is left.
    """
    if events.empty:
        raise InputError("no event is left to inject", fix="choose another run: delta_noise(run=…)")
    return Explorer(
        lambda **values: _plan_view(planned(events, merge, **values)),
        {
            "share": Control("longest events taken", range(1, 101), 100, "%"),
            "scale": Control("length of each event ×", [n / 10 for n in range(1, 41)], 1.0),
            "shortest": Control("shortest event", (0, 1, 2, 5, 10, 20, 50, 100), 0, "µs"),
        },
        CHOSEN,
    )


def planned(
    events: pd.DataFrame, merge: str, share: float, scale: float, shortest: float
) -> tuple[NoiseConfig, Plan]:
    """The config of the longest events, each made longer or shorter; and what would be injected, by
    typical overheads: the same on every machine.
    """
    events = events.reset_index(drop=True)
    count = max(1, round(len(events) * share / 100))
    changed = events.nlargest(count, "duration_ns").sort_index()
    lengths = (changed["duration_ns"] * scale).round().astype("int64").clip(lower=1)
    config = NoiseConfig.from_events(changed.assign(duration_ns=lengths), merge=merge)
    rules = Rules(shortest_us=shortest, exit_cost_us=0, longest_event_s=60, allow_full_stop=True)
    return config, make_plan(config, rules=rules, overheads=Overheads())


def _plan_view(made: tuple[NoiseConfig, Plan]) -> str:
    """The planned events on a time line, and their number and time by class."""
    import matplotlib.pyplot as plt

    config, plan = made
    events, taken_ns = plan.injected, plan.injected["duration_ns"].sum()
    kinds = events["policy"].isin(REALTIME).map({True: "real-time", False: "ordinary"})
    with DRAWING, style():
        figure, axes = plt.subplots(figsize=(PAGE_IN, 0.9 + 0.25 * len(config.cpus)))
        draw_lanes(axes, events.assign(kind=kinds), list(config.cpus), colours=CLASSES)
        axes.set(xlabel="ms from the start", ylabel="CPU", xlim=(0, config.window_ns / 1e6))
        shown = embedded(figure, "planned noise on each CPU")
    names = ["kind", "policy", "events", "injected_events", "injected_us", "dropped_events"]
    table = plan.summary()[names]
    return (
        f"<p>{len(events)} events are injected, {taken_ns / 1e6:.2f} ms in all:"
        f" {taken_ns / (config.window_ns * len(config.cpus)):.3%} of the time of"
        f" {len(config.cpus)} CPUs.</p>{shown}"
        + table.to_html(float_format=lambda us: f"{us:.0f}", border=0, index=False)
    )
