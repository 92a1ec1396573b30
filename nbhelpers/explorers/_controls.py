"""The controls of an explorer: what can be chosen, in which range, and how a choice is written.

Owns how each kind of control becomes a widget.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

WIDE = {"width": "90%"}
STYLE = {"description_width": "12em"}
SAME = 1e-6  # of a step


class Control(Protocol):
    """One control: its name in a state, its label, its start value."""

    @property
    def name(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def start(self) -> Any: ...
    def clean(self, value: Any) -> Any:
        """The value as a state has it: hashable, of the right type."""

    def words(self, value: Any) -> str:
        """The value in words, with its unit."""

    def widget(self) -> Any:
        """An ipywidget whose `value` is the control's."""


@dataclass(frozen=True)
class Slider:
    """A number between two others, by steps."""

    name: str
    label: str
    start: float
    low: float
    high: float
    step: float
    unit: str = ""

    def clean(self, value: Any) -> float:
        """The start exactly where the slider stands on it: a browser adds up steps."""
        value = float(value)
        return float(self.start) if abs(value - self.start) < SAME * self.step else value

    def words(self, value: float) -> str:
        return f"{value:.4g} {self.unit}".rstrip()

    def widget(self) -> Any:
        import ipywidgets

        return ipywidgets.FloatSlider(
            self.start,
            min=self.low,
            max=self.high,
            step=self.step,
            description=self.label,
            tooltip=self.label,
            readout=False,  # the view says the value, in one piece with what it leads to
            continuous_update=True,
            style=STYLE,
            layout=WIDE,
        )


@dataclass(frozen=True)
class Span:
    """Two numbers, the beginning and the end of a part of a range."""

    name: str
    label: str
    start: tuple[float, float]
    low: float
    high: float
    step: float
    unit: str = ""

    def clean(self, value: Any) -> tuple[float, float]:
        """At least one step long, and within the range."""
        low, high = sorted(float(end) for end in value)
        low = max(min(low, self.high - self.step), self.low)
        return low, max(high, low + self.step)

    def words(self, value: tuple[float, float]) -> str:
        return f"{value[0]:.4g} to {value[1]:.4g} {self.unit}".rstrip()

    def widget(self) -> Any:
        import ipywidgets

        return ipywidgets.FloatRangeSlider(
            value=self.start,
            min=self.low,
            max=self.high,
            step=self.step,
            description=self.label,
            tooltip=self.label,
            readout=False,
            continuous_update=True,
            style=STYLE,
            layout=WIDE,
        )


@dataclass(frozen=True)
class Choice:
    """One of a few values, along a slider; `options` are the values in order."""

    name: str
    label: str
    start: Any
    options: Sequence[Any]
    unit: str = ""

    def clean(self, value: Any) -> Any:
        return value

    def words(self, value: Any) -> str:
        number = f"{value:,}" if isinstance(value, int) else f"{value}"
        return f"{number} {self.unit}".rstrip()

    def widget(self) -> Any:
        import ipywidgets

        return ipywidgets.SelectionSlider(
            options=[(self.words(value), value) for value in self.options],
            value=self.start,
            description=self.label,
            tooltip=self.label,
            readout=False,
            continuous_update=True,
            style=STYLE,
            layout=WIDE,
        )


@dataclass(frozen=True)
class Pick:
    """One of a few words, in a list."""

    name: str
    label: str
    start: str
    options: Sequence[str]

    def clean(self, value: Any) -> str:
        return str(value)

    def words(self, value: str) -> str:
        return value

    def widget(self) -> Any:
        import ipywidgets

        return ipywidgets.Dropdown(
            options=list(self.options),
            value=self.start,
            description=self.label,
            tooltip=self.label,
            style=STYLE,
        )
