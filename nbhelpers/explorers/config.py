"""A noise config against what it costs: how much of the delta is taken, how long its events are,
and what the machine's shortest event makes of them.

Owns the view of one such plan. Nothing is injected.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from ..errors import InputError
from ..injection import Overheads, Plan, Rules, make_plan
from ..noise import NoiseConfig
from . import _drawing as draw
from ._base import Explorer
from ._controls import Choice, Control, Slider

ROW, LEFT = 34, 90  # px
CLASSES = {"real-time": "#0072B2", "ordinary": "#D55E00"}
REALTIME = ("SCHED_FIFO", "SCHED_RR", "SCHED_DEADLINE")


@dataclass(frozen=True, eq=False)
class ConfigExplorer(Explorer):
    """What a noise config would cost.

    Attributes
    ----------
    events
        Noise events of one run, as of `delta_noise`.
    merge
        As of `NoiseConfig.from_events`.
    """

    events: pd.DataFrame = field(repr=False)
    merge: str

    def controls(self) -> tuple[Control, ...]:
        """Share of the events, scale of their length, shortest event of the machine."""
        return self._controls

    @cached_property
    def _controls(self) -> tuple[Control, ...]:
        return (
            Slider("share", "longest events taken", 100, 1, 100, 1, "%"),
            Slider("scale", "length of each event ×", 1.0, 0.1, 4.0, 0.1),
            Choice("shortest", "shortest event", 0, (0, 1, 2, 5, 10, 20, 50, 100), "µs"),
        )

    def chosen(self) -> list[dict[str, Any]]:
        """As it is, then each control changed alone."""
        shares = [{"share": share} for share in (50, 10)]
        scales = [{"scale": scale} for scale in (0.5, 2.0)]
        return [{}, *shares, *scales, *({"shortest": us} for us in (10, 50))]

    def config(self, state: dict[str, Any]) -> NoiseConfig:
        """The config of a state: the longest events, each made longer or shorter."""
        count = max(1, round(len(self.events) * state["share"] / 100))
        order = self.events["duration_ns"].sort_values(ascending=False, kind="stable").index
        events = self.events.loc[order[:count]].sort_index()
        lengths = (events["duration_ns"] * state["scale"]).round().astype("int64").clip(lower=1)
        changed = events.assign(duration_ns=lengths)
        changed.attrs = dict(self.events.attrs)
        return NoiseConfig.from_events(changed, merge=self.merge)

    def plan(self, config: NoiseConfig, shortest_us: float) -> Plan:
        """What would be injected, by typical overheads: the same on every machine."""
        rules = Rules(
            shortest_us=shortest_us, exit_cost_us=0, longest_event_s=60, allow_full_stop=True
        )
        return make_plan(config, rules=rules, overheads=Overheads())

    def draw(self, state: dict[str, Any]) -> str:
        """The planned events on a time line, and their number and time by class."""
        config = self.config(state)
        plan = self.plan(config, state["shortest"])
        events = plan.injected
        share = events["duration_ns"].sum() / (config.window_ns * len(config.cpus))
        table = plan.summary()
        names = ["kind", "policy", "events", "injected_events", "injected_us", "dropped_events"]
        return (
            f"<p>{len(events)} events are injected, {events['duration_ns'].sum() / 1e6:.2f} ms in"
            f" all: {share:.3%} of the time of {len(config.cpus)} CPUs.</p>"
            f"{_time_line(config, events)}"
            + table[names].to_html(float_format=lambda us: f"{us:.0f}", border=0, index=False)
        )


def explore_config(events: pd.DataFrame, merge: str = "improved") -> ConfigExplorer:
    """Look at what a noise config costs before anything is injected.

    Parameters
    ----------
    events
        Noise events of one run (`delta_noise`).
    merge
        As of `NoiseConfig.from_events`.

    Returns
    -------
    ConfigExplorer: share, scale and shortest event can be chosen.

    Raises
    ------
    InputError
        No event is left.
    """
    if events.empty:
        raise InputError("no event is left to inject", fix="choose another run: delta_noise(run=…)")
    return ConfigExplorer(events.reset_index(drop=True), merge)


def _time_line(config: NoiseConfig, events: pd.DataFrame) -> str:
    rows = ROW * len(config.cpus)
    frame = draw.Frame(LEFT, 10, draw.WIDTH - LEFT - 20, rows, (0, config.window_ns / 1e6))
    realtime = events["policy"].isin(REALTIME)
    parts = []
    for number, cpu in enumerate(config.cpus):
        top = frame.top + ROW * number
        parts.append(draw.text(LEFT - 10, top + 22, f"CPU {cpu}", "end"))
        for name, colour in CLASSES.items():
            here = events[(events["cpu"] == cpu) & (realtime == (name == "real-time"))]
            left = frame.at_x(here["start_ns"] / 1e6)
            wide = (here["duration_ns"] / 1e6 / (frame.x[1] or 1) * frame.width).clip(lower=0.8)
            parts.append(draw.bars(left, top + 4, wide, ROW - 8, colour))
    legend = "".join(
        draw.box(LEFT + 120 * place, rows + 60, 12, 12, f'fill="{colour}"')
        + draw.text(LEFT + 120 * place + 18, rows + 71, name)
        for place, (name, colour) in enumerate(CLASSES.items())
    )
    label = "planned noise on each CPU"
    return draw.picture(rows + 82, label, *parts, frame.x_axis("ms from the start"), legend)
