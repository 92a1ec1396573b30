"""The workbench in JupyterLab: six tabs of plain ipywidgets, each a step of a `Session`.

Owns the inputs, and which choice redraws what. Everything that is computed is the session's; on a
page without a kernel (NOISEBOOK_STATIC) the same steps stand beneath each other.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..errors import InputError, NoisebookError
from ..statistics import stopping
from . import views
from .measuring import AGAIN, FIRST, TRIAL, Measuring, Progress
from .recorded import found_campaigns, with_rates
from .saved import STATIC, is_elsewhere, save_notebook
from .session import Limit, Session

BEGIN, RUNS, CUTOFF, FACTOR, MITIGATION, SAVE = range(6)  # places of the tabs
TITLES = ("1 Begin", "2 Runs", "3 Cutoff and tree", "4 Factor", "5 Mitigation", "6 Save")
STEPS = 200  # of a slider
WIDE = {"width": "90%"}


class Workbench:
    """The way from runs to a mitigation that was tried, step by step.

    Parameters
    ----------
    session
        Where to begin; None: recorded runs with a known cause.

    Attributes
    ----------
    session
        What is chosen at present.
    explanation
        At the present cutoff: at once without a null, which claims nothing; then with it. None
        where there are no runs.

    Examples
    --------
    >>> Workbench().session.is_recorded
    True
    """

    def __init__(self, session: Session | None = None):
        self.session = session or Session()
        self.explanation: Any = None
        self.measuring: Measuring | None = None
        self._nothing = ""  # why there is nothing to explain
        self._turn, self._filler = 0, 0  # the thread that fills in values
        self._lock, self._computing = threading.RLock(), threading.Lock()
        self._null: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"Workbench({self.session.command or self.session.folder})"

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display

        static = os.environ.get(STATIC)
        display(HTML(views.page_html(self.session)) if static else self.widget())

    # ---- the tabs and their inputs ----

    def widget(self) -> Any:
        """The tabs, for a running JupyterLab (ipywidgets)."""
        import ipywidgets

        with suppress(RuntimeError):  # a script has none
            self._loop = asyncio.get_running_loop()
        self.shown = [ipywidgets.HTML() for _ in TITLES]
        self.said, self.factors = ipywidgets.HTML(), ipywidgets.HTML()
        self.bar = ipywidgets.IntProgress(0, min=0, max=1, layout=WIDE)
        self.nodes = ipywidgets.HBox(layout={"flex_flow": "row wrap"})
        self.tabs = ipywidgets.Tab([ipywidgets.VBox(list(step)) for step in self._steps()])
        self.tabs.titles = TITLES
        self.tabs.observe(lambda _: self._draw(), "selected_index")
        self._list_campaigns()
        self._change()
        if not self.session.measured().empty:
            self.tabs.selected_index = CUTOFF
        return self.tabs

    def _steps(self) -> Iterator[list[Any]]:
        """What each tab holds, from the top."""
        import ipywidgets as w

        from ..measurement import available_layers

        here = available_layers()
        layers, session = here.index[here["available"]].tolist(), self.session
        later: dict[str, Any] = {"layout": WIDE, "continuous_update": False}
        row, put, head = w.HBox, self._input, "<b>{}</b>".format

        self.campaign = put(w.Dropdown, "recorded", self._pick, layout=WIDE)
        self.path = put(w.Text, "or a path", layout=WIDE, placeholder="a folder, .csv, .parquet")
        self.command = put(w.Text, "command", layout=WIDE, value=session.command)
        self.rule = put(w.Dropdown, "stop by", options=list(stopping.RULES), value=session.rule)
        self.runs = put(w.BoundedIntText, "runs", value=session.runs, min=1, max=100_000)
        self.layers = put(w.SelectMultiple, "metrics", options=layers, rows=7)
        self.layers.value = tuple(name for name in session.layers if name in layers)
        opens = self._button("open this path", lambda: self._open(self.path.value))
        start = self._button("measure, or go on", lambda: self._measure(FIRST), "success")
        stops = [self._button("stop", self._stop, "warning") for _ in range(2)]
        yield [
            w.HTML(head("Open recorded runs")), self.campaign, row([self.path, opens]),
            w.HTML(head("or measure a command")), self.command, row([self.rule, self.runs]),
            self.layers, row([start, stops[0]]), self.bar, self.said,
        ]  # fmt: skip

        self.outcome = put(w.Dropdown, "outcome", lambda name: self._choose(outcome=name))
        self.cell = put(w.Dropdown, "cell", lambda name: self._choose(cell=name))
        self.metric = put(w.Dropdown, "metric", lambda _: self._look_along())
        self.range = put(w.SelectionRangeSlider, "range", options=[("", 0)], **later)
        limit = self._button("limit the runs to this range", self._limit)
        unlimit = self._button("remove all limits", lambda: self._change(limits=()))
        limits = row([self.metric, limit, unlimit])
        yield [row([self.outcome, self.cell]), limits, self.range, self.shown[RUNS]]

        self.cutoff = put(w.SelectionSlider, "cutoff", self._cut, options=[("", 0)], **later)
        self.excluded = put(
            w.SelectMultiple, "exclude", lambda names: self._change(excluded=names), rows=8
        )
        find = self._button("find it in the distribution", lambda: self._cut(None))
        shown = [self.shown[CUTOFF], self.nodes, self.factors]
        yield [self.cutoff, find, *shown, self.excluded]

        yield [self.shown[FACTOR]]

        self.mitigation = put(w.Dropdown, "mitigation", self._mitigate)
        self.rounds = put(w.BoundedIntText, "rounds", value=session.rounds, min=1, max=10_000)
        tries = self._button("try it", lambda: self._measure(TRIAL), "success")
        again = self._button("measure again, to confirm", lambda: self._measure(AGAIN), "success")
        measures = row([self.rounds, tries, again, stops[1]])
        yield [self.mitigation, measures, self.said, self.shown[MITIGATION]]

        yield [self._button("save as an executed notebook", self._save, "success"), self.said]

    def _input(self, kind: Any, text: str, change: Callable | None = None, **look: Any) -> Any:
        """An input; what happens when a person, and not this program, changes its value."""
        made = kind(description=text, **look)

        def changed(one: dict[str, Any]) -> None:
            if change and self._filler != threading.get_ident():
                self._guarded(change, one["new"])

        made.observe(changed, "value")
        return made

    def _button(self, text: str, call: Callable[[], object], style: str = "") -> Any:
        import ipywidgets

        layout = {"width": "auto", "flex": "0 0 auto"}
        made = ipywidgets.Button(description=text, button_style=style, layout=layout)
        made.on_click(lambda _: self._guarded(call))
        return made

    def _guarded(self, call: Callable, *values: object) -> None:
        """Do what was chosen; an error is shown in the steps that measure, open and save."""
        try:
            call(*values)
        except NoisebookError as error:
            self.said.value = views.failed(error)

    def _says(self, text: str) -> None:
        self.said.value = views.paragraph(text)

    @contextmanager
    def _filling(self) -> Iterator[None]:
        """Changes in here are not those of a person."""
        with self._lock:
            before, self._filler = self._filler, threading.get_ident()
            try:
                yield
            finally:
                self._filler = before

    # ---- 1: open, or measure ----

    def _list_campaigns(self) -> None:
        """Offer what is recorded near here; nothing is chosen."""
        with self._filling():
            found = [(str(one), str(one.path)) for one in found_campaigns()]
            self.campaign.options = [(f"choose one of {len(found)} …", ""), *found]
            self.campaign.value = ""

    def _pick(self, path: str | None) -> None:
        if path:
            self._open(path)

    def _open(self, text: str) -> None:
        """Recorded runs that a person named."""
        self._check_idle()
        session = Session.of_recorded(text, seed=self.session.seed)
        with self._lock:
            self.session, self.command.value, self.bar.value = session, "", 0
            self._change()
        self.tabs.selected_index = RUNS
        runs = len(session.measured())
        self._says(f"Opened {session.folder}: {runs} runs, judged by {session.judged}.")

    def _check_idle(self) -> None:
        if self.measuring and self.measuring.is_running:
            raise InputError("it measures at present", fix="stop it first, or wait for its end")

    def _measure(self, step: str) -> None:
        self._check_idle()
        session = self._typed() if step == FIRST else self.session
        session.workload  # noqa: B018  # says what is wrong with the command
        if session.folder != self.session.folder:
            self.session = session
            self._change()
        self.session = replace(session, rounds=self.rounds.value)
        self._says("Starting; if another study measures, this waits for it.")
        self.measuring = Measuring(self.session, step, lambda at: self._on_progress(step, at))

    def _typed(self) -> Session:
        """The session with what stands in step 1."""
        layers, command = tuple(self.layers.value), self.command.value.strip()
        chosen = {"rule": self.rule.value, "runs": self.runs.value, "layers": layers}
        if command and command != self.session.command:
            return Session.of_command(command, seed=self.session.seed, **chosen)
        return replace(self.session, **chosen)

    def _stop(self) -> None:
        if self.measuring and self.measuring.is_running:
            self._says("Stopping …")
            self.measuring.stop()

    def _on_progress(self, step: str, at: Progress) -> None:
        """From the threads that watch the measuring process."""
        self.bar.max, self.bar.value = max(at.most, 1), at.done
        state = "ended" if at.ended else "measuring"
        says = f"; {at.says}" if at.says else ""
        text = views.paragraph(f"{state}: {at.done} of at most {at.most} runs{says}")
        self.said.value = views.failed(at.error) if at.error else text
        if at.ended:
            self._in_turn(self._change)  # reads the runs anew
            self._list_campaigns()

    def _in_turn(self, call: Callable[[], object]) -> None:
        """On the cells' thread, between cells: a figure that another thread has open would be shown
        beneath the cell that ends meanwhile.
        """
        if self._loop and self._loop.is_running():
            self._loop.call_soon_threadsafe(call)
        else:
            call()

    # ---- 2: outcome, limits, excluded metrics ----

    def _choose(self, **changed: Any) -> None:
        """Other runs, or judged by something else: what was cut and looked at is of the others."""
        self._change(**changed, cutoff=None, node="")

    def _look_along(self) -> None:
        """The metric against the outcome."""
        with self._filling():
            self._fill_cutoff()
        self._draw()

    def _limit(self) -> None:
        low, high = self.range.value
        self._change(limits=self.session.limited(Limit(self.metric.value, low, high)).limits)

    def _change(self, **changed: Any) -> None:
        """Everything, from the runs on: at once a preview that claims nothing; the null follows
        from a thread, and that of the last change is shown.
        """
        with self._lock:
            self.session = session = replace(self.session, **changed)
            self._turn += 1
            self.explanation, self._nothing = None, ""
            for place, step in enumerate(self.shown):  # nothing of other runs stays
                if place != self.tabs.selected_index:
                    step.value = ""
            self.factors.value, self.nodes.children = "", ()
            try:
                with self._filling():
                    self._fill()
                    self.explanation = session.explanation(permutations=0)
                    self._fill_cutoff()
            except NoisebookError as error:
                self._nothing = views.failed(error)
            self._draw()
            self._null = threading.Thread(target=self._compute_null, args=(self._turn, session))
            self._null.daemon = True
            self._null.start()

    def _compute_null(self, turn: int, session: Session) -> None:
        with self._computing:
            if turn != self._turn or self._nothing:
                return
            found, failed = None, ""
            try:
                found = session.explanation()
            except NoisebookError as error:
                failed = views.failed(error)
        with self._lock:
            if turn == self._turn:
                self.explanation, self._nothing = found, failed
                self._in_turn(self._draw)

    def settle(self) -> "Workbench":
        """Wait until the null is there and nothing is measured; for scripts."""
        if self.measuring:
            self.measuring.wait()
        if self._null:
            self._null.join()
        return self

    def _fill(self) -> None:
        """What can be chosen of these runs."""
        session = self.session
        if session.measured().empty:
            return
        cells, outcomes, metrics = session.cells(), session.outcomes(), session.metrics()
        together = [] if "baseline" in cells else [("all together", "")]
        self.cell.options = [*together, *((name, name) for name in cells)]
        self.cell.value = session.cell or self.cell.options[0][1]
        self.cell.layout.display = "" if len(cells) > 1 else "none"
        self.outcome.options = tuple(outcomes)
        self.outcome.value = session.outcome or outcomes[0]
        before, self.metric.options = self.metric.value, tuple(metrics)
        self.metric.value = before if before in metrics else session.judged
        columns = tuple(session.may_explain())
        if self.excluded.options != columns:
            self.excluded.value = ()  # the browser marks by place, before it has the new list
            self.excluded.options = columns
        self.excluded.value = tuple(name for name in session.excluded if name in columns)

    def _fill_cutoff(self) -> None:
        """Where it can be, and the slider at it; and the range of the metric over all runs."""
        at = float(self.explanation.threshold)
        if at not in dict(self.cutoff.options).values():  # else a person has just put it there
            _offer(self.cutoff, self.session.values, at)
        if np.isfinite(at):
            self.cutoff.value = at
        values = with_rates(self.session.measured())[self.metric.value].to_numpy(float)
        _offer(self.range, values[np.isfinite(values)])
        self.range.index = (0, len(self.range.options) - 1)

    # ---- what the steps show ----

    def _draw(self) -> None:
        """The step that is seen."""
        draw = {
            RUNS: self._draw_runs,
            CUTOFF: self._draw_cutoff,
            FACTOR: self._draw_factor,
            MITIGATION: self._draw_mitigation,
        }
        at = self.tabs.selected_index
        with self._lock, self._filling():
            if self._nothing:
                for place in draw:
                    self.shown[place].value = self._nothing
            elif self.explanation is not None and at in draw:
                draw[at]()

    def _draw_runs(self) -> None:
        scatter = views.scatter_html(self.session, self.explanation, self.metric.value)
        self.shown[RUNS].value = views.runs_html(self.session) + scatter

    def _draw_cutoff(self) -> None:
        found = self.explanation
        self.shown[CUTOFF].value = views.tree_html(self.session, found)
        self.factors.value = views.factors_html(found)
        self._offer_nodes([] if views.is_refused(found) else views.metrics_of(found))

    def _draw_factor(self) -> None:
        metric = self.session.chosen(self.explanation)
        node = views.node_html(self.session, self.explanation, metric)
        self.shown[FACTOR].value = views.claim_html(self.explanation) + node

    def _draw_mitigation(self) -> None:
        session = self.session
        options = session.options(session.chosen(self.explanation))
        ids, tried = [one.id for one in options], session.pairs()
        self.mitigation.options = tuple((one.name, one.id) for one in options)
        if ids:
            first = next((name for name in ids if name in tried), ids[0])
            chosen = session.mitigation if session.mitigation in ids else first
            self.mitigation.value = chosen
            self.session = replace(session, mitigation=chosen)
        self.shown[MITIGATION].value = views.mitigations_html(self.session, self.explanation)

    def _offer_nodes(self, metrics: list[str]) -> None:
        """A button for each metric that a tree asks for: a click explains it."""
        self.nodes.children = [
            self._button(f"what is {metric}?", partial(self._look_at, metric)) for metric in metrics
        ]

    # ---- 3 to 6 ----

    def _cut(self, cutoff: float | None) -> None:
        self._change(cutoff=cutoff, node="")

    def _look_at(self, metric: str) -> None:
        self.session = replace(self.session, node=metric)
        self.tabs.selected_index = FACTOR

    def _mitigate(self, mitigation: str | None) -> None:
        self.session = replace(self.session, mitigation=mitigation or "")
        self._draw()

    def _save(self) -> None:
        self._says("The notebook is being run …")
        path = save_notebook(self.session)
        copied = is_elsewhere(self.session)
        where = "with a copy of its runs beside it" if copied else "from its runs"
        text = f"Saved and run: {os.path.relpath(path)}. It computes all again, {where}."
        self._says(f"{text} It measures nothing.")


def _offer(slider: Any, values: np.ndarray, *more: float) -> None:
    """Numbers along a slider, from the least to the largest."""
    steps = np.linspace(values.min(), values.max(), STEPS)
    numbers = np.unique([*steps, *filter(np.isfinite, more)]).tolist()
    slider.options = [(f"{number:.4g}", number) for number in numbers]
