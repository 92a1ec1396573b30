"""The inputs of the workbench and how they stand in the tabs. Owns no computation."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..statistics import stopping
from ._clickable import Bars, Tree
from .measuring import Progress
from .recorded import found_campaigns, with_rates
from .session import Limit, Session
from .views import failed, paragraph

if TYPE_CHECKING:
    from ..attribution import Explanation

_BUTTONS = {
    "open": ("open this path", ""),
    "start": ("measure, or go on", "success"),
    "stop": ("stop", "warning"),
    "limit": ("limit the runs to this range", ""),
    "unlimit": ("remove all limits", ""),
    "search": ("search the cutoff", ""),
    "find": ("find it in the distribution", ""),
    "try": ("try it", "success"),
    "again": ("measure again, to confirm", "success"),
    "ask": ("ask the local language model", ""),
    "save": ("save as an executed notebook", "success"),
}


def button(name: str) -> Any:
    """A button of `_BUTTONS`."""
    import ipywidgets

    text, style = _BUTTONS[name]
    layout = ipywidgets.Layout(width="auto", flex="0 0 auto")
    return ipywidgets.Button(description=text, button_style=style, layout=layout)


def _head(text: str) -> Any:
    import ipywidgets

    return ipywidgets.HTML(f"<b>{text}</b>")


class Choices:
    """All inputs.

    Parameters
    ----------
    session
        Whose choices they show at first.
    """

    def __init__(self, session: Session):
        self.is_filling = False
        self.buttons = {name: button(name) for name in _BUTTONS}
        self._inputs_of_recorded()
        self._inputs_of_measuring(session)
        self._inputs_of_runs(session)
        self._inputs_of_mitigation(session)

    def _inputs_of_recorded(self) -> None:
        import ipywidgets as w

        wide = w.Layout(width="75%")
        self.campaign = w.Dropdown(description="recorded", layout=wide)
        self.path = w.Text(description="or a path", layout=wide)
        self.path.placeholder = "a campaign's folder, or a table: .csv, .csv.gz, .parquet"
        self.list_campaigns()

    def list_campaigns(self) -> None:
        """Offer what is recorded near here; nothing is chosen."""
        with self.filling():
            found = [(str(one), str(one.path)) for one in found_campaigns()]
            self.campaign.options = [(f"choose one of {len(found)} …", ""), *found]
            self.campaign.value = ""

    def _inputs_of_measuring(self, session: Session) -> None:
        import ipywidgets as w

        from ..measurement import available_layers

        here = available_layers()
        names = [name for name in here.index if here.loc[name, "available"]]
        wide = w.Layout(width="90%")
        self.command = w.Text(session.command, description="command", layout=wide)
        self.command.placeholder = "a command line; empty: the recorded runs"
        self.rule = w.Dropdown(options=list(stopping.RULES), value=session.rule)
        self.rule.description = "stop by"
        self.runs = w.BoundedIntText(session.runs, min=1, max=100_000, description="runs")
        self.layers = w.SelectMultiple(options=names, description="metrics", rows=7)
        self.layers.value = tuple(name for name in session.layers if name in names)
        self.bar = w.IntProgress(0, min=0, max=1, layout=wide)
        self.progress = w.HTML()

    def _inputs_of_runs(self, session: Session) -> None:
        import ipywidgets as w

        wide = w.Layout(width="90%")
        self.outcome = w.Dropdown(description="outcome", options=[])
        self.cell = w.Dropdown(description="cell", options=[])
        self.metric = w.Dropdown(description="metric", options=[])
        self.range = w.FloatRangeSlider(readout_format=".4g", layout=wide, description="range")
        self.range.continuous_update = False
        self.excluded = w.SelectMultiple(description="exclude", options=[], rows=8)
        self.cutoff = w.FloatSlider(readout_format=".4g", layout=wide, description="cutoff")
        self.cutoff.continuous_update = False
        self.candidates = w.HBox(layout=w.Layout(flex_flow="row wrap"))

    def _inputs_of_mitigation(self, session: Session) -> None:
        import ipywidgets as w

        self.mitigation = w.Dropdown(
            description="mitigation", options=[], layout=w.Layout(width="60%")
        )
        self.rounds = w.BoundedIntText(session.rounds, min=1, max=10_000, description="rounds")
        self.answer = w.HTML()

    def steps(self, bars: Bars, tree: Tree, shown: dict[str, Any]) -> list[Any]:
        """The six steps."""
        import ipywidgets as w

        by = self.buttons
        side = w.HBox(
            [bars.widget, tree.widget],
            layout=w.Layout(flex_flow="row wrap", align_items="flex-start"),
        )
        cuts = w.HBox([by["find"], by["search"], self.candidates])
        recorded = [self.campaign, w.HBox([self.path, by["open"]]), shown["opened"]]
        measure = [self.command, w.HBox([self.rule, self.runs]), self.layers]
        parts = [
            [
                _head("Open recorded runs"),
                *recorded,
                _head("or measure a command"),
                *measure,
                w.HBox([by["start"], by["stop"]]),
                self.bar,
                self.progress,
            ],
            [
                w.HBox([self.outcome, self.cell]),
                w.HBox([self.metric, by["limit"], by["unlimit"]]),
                self.range,
                shown["runs"],
            ],
            [
                side,
                self.cutoff,
                cuts,
                shown["claim"],
                shown["factors"],
                self.excluded,
            ],
            [shown["claim"], shown["factor"], w.HBox([by["ask"]]), self.answer],
            [
                self.mitigation,
                w.HBox([self.rounds, by["try"], by["again"], by["stop"]]),
                self.progress,
                shown["mitigation"],
                shown["trial"],
            ],
            [w.HBox([by["save"]]), shown["saved"]],
        ]
        return [w.VBox(part) for part in parts]

    @contextmanager
    def filling(self) -> Iterator[None]:
        """Changes in here are not those of a person."""
        before, self.is_filling = self.is_filling, True
        try:
            yield
        finally:
            self.is_filling = before

    # ---- measuring ----

    def measured_session(self, session: Session) -> Session:
        """The session with what stands in step 1."""
        chosen = {
            "rule": self.rule.value,
            "runs": self.runs.value,
            "layers": tuple(self.layers.value),
        }
        command = self.command.value.strip()
        if command and command != session.command:
            return Session.of_command(command, seed=session.seed, **chosen)
        return replace(session, **chosen)

    def says(self, text: str) -> None:
        """A line beneath the progress bar."""
        self.progress.value = paragraph(text)

    def fails(self, error: object) -> None:
        """What went wrong, beneath the progress bar."""
        self.progress.value = failed(error)

    def at(self, progress: Progress) -> None:
        """Show how far a measurement is."""
        self.bar.max, self.bar.value = max(progress.most, 1), progress.done
        if progress.error:
            self.fails(progress.error)
            return
        state = "ended" if progress.ended else "measuring"
        says = f"; {progress.says}" if progress.says else ""
        self.says(f"{state}: {progress.done} of at most {progress.most} runs{says}")

    # ---- what depends on the runs ----

    def fill(self, session: Session) -> None:
        """Outcomes and metrics of the runs."""
        if session.measured().empty:
            return
        with self.filling():
            metrics = session.metrics()
            cells = session.cells()
            self.cell.layout.display = "" if len(cells) > 1 else "none"
            options = [(name, name) for name in cells]
            if "baseline" not in cells:
                options = [("all together", ""), *options]
            if self.cell.options != tuple(options):
                self.cell.options = options
            self.cell.value = session.cell or options[0][1]
            _choose(self.outcome, session.outcomes(), session.outcome or session.outcomes()[0])
            _choose(self.metric, metrics, self.metric.value or session.judged)
            columns = session.may_explain()
            kept = tuple(name for name in session.excluded if name in columns)
            if self.excluded.options != tuple(columns):
                self.excluded.options = columns
            if self.excluded.value != kept:
                self.excluded.value = kept
            self.set_range(session, self.metric.value)

    def set_range(self, session: Session, metric: str) -> None:
        """The range of a metric over all runs, and its limit where there is one."""
        if not metric:
            return
        values = with_rates(session.measured())[metric].to_numpy(float)
        values = values[np.isfinite(values)]
        low, high = float(values.min()), float(values.max())
        _set_ends(self.range, low, high)
        limits = [one for one in session.limits if one.metric == metric]
        self.range.value = (limits[0].low, limits[0].high) if limits else (low, high)

    def limit(self) -> Limit:
        """The chosen range; an end that was not moved holds the outermost runs."""
        low, high = self.range.value
        near = self.range.step / 2  # the browser rounds to whole steps
        low = self.range.min if low - self.range.min < near else low
        high = self.range.max if self.range.max - high < near else high
        return Limit(self.metric.value, low, high)

    def fill_cutoff(self, session: Session, explanation: "Explanation") -> None:
        """The slider at the cutoff, and the buttons of the candidates."""
        with self.filling():
            low, high = float(session.values.min()), float(session.values.max())
            _set_ends(self.cutoff, low, high)
            if np.isfinite(explanation.threshold):
                self.cutoff.value = explanation.threshold
        self.candidates.children = [
            self._candidate(name, value) for name, value in session.candidates().items()
        ]

    def _candidate(self, name: str, value: float) -> Any:
        import ipywidgets

        layout = ipywidgets.Layout(width="auto")
        shown = ipywidgets.Button(description=f"{name} {value:.4g}", layout=layout)
        shown.on_click(lambda _: setattr(self.cutoff, "value", value))
        return shown

    def fill_mitigations(self, session: Session, metric: str) -> None:
        """What may help against the factor behind a metric."""
        with self.filling():
            options = [(one.name, one.id) for one in session.options(metric)]
            if self.mitigation.options != tuple(options):
                self.mitigation.options = options
            ids = [name for _, name in options]
            tried = [name for name in ids if name in session.pairs()]
            if session.mitigation in ids:
                self.mitigation.value = session.mitigation
            elif ids:
                self.mitigation.value = (tried or ids)[0]


def _choose(dropdown: Any, options: list[str], value: str) -> None:
    if dropdown.options != tuple(options):
        dropdown.options = options
    if value in options and dropdown.value != value:
        dropdown.value = value


def _set_ends(slider: Any, low: float, high: float) -> None:
    """New ends of a slider, in an order in which the lower is never above the upper."""
    high = high if high > low else low + (abs(low) or 1.0)
    if low > slider.max:
        slider.max, slider.min = high, low
    else:
        slider.min, slider.max = low, high
    slider.step = (high - low) / 500
