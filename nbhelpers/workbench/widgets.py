"""The workbench in JupyterLab: three tabs of plain ipywidgets on a `Session`.

The second is one screen: runs, cutoff, tree and factor. Owns the inputs, and which choice redraws
what. Everything that is computed is the session's. One thread, the one that made the widgets,
changes what is chosen and shown: JupyterLab's messages, the null and the measuring process arrive
on others, and wait for their turn.
"""

import asyncio
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from ..errors import InputError, NoisebookError
from ..statistics import stopping
from . import views
from .by_hand import AFTER, BEFORE
from .measuring import Measuring, Progress
from .recorded import FIRST, found_campaigns
from .session import AGAIN, TRIAL, Session

BEGIN, RUNS, MITIGATION = range(3)  # places of the tabs
TITLES = ("1 Begin", "2 Runs and factor", "3 Mitigation")
WIDE = {"width": "90%"}
# to choose from, or to begin from; {command} is what is measured
BACKENDS = ("srun -n 1 {command}", "podman run --rm IMAGE {command}", "ssh NODE {command}")
STEPS = 200  # of an arrow key, from the least to the largest
# JupyterLab's own rules for tables do not reach into widgets; pages have theirs
LOOK = Path(__file__).with_suffix(".css")


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
        self._turn = 0  # of the last change
        self._filler = 0  # the thread that fills in values
        self._computing = threading.Lock()
        self._null: threading.Thread | None = None
        self._waiting: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._owner = 0  # the thread that made the widgets
        self._loop: asyncio.AbstractEventLoop | None = None

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display(self.widget())

    # ---- the tabs and their inputs ----

    def widget(self) -> Any:
        """The tabs, for a running JupyterLab (ipywidgets)."""
        import ipywidgets

        self._owner = threading.get_ident()
        with suppress(RuntimeError):  # a script has none
            self._loop = asyncio.get_running_loop()
        self.said = ipywidgets.HTML()
        self.shown = {step: ipywidgets.HTML() for step in (RUNS, MITIGATION)}
        self.bar = ipywidgets.IntProgress(0, min=0, max=1, layout=WIDE)
        self.tabs = ipywidgets.Tab([ipywidgets.VBox(list(step)) for step in self._steps()])
        self.tabs.titles = TITLES
        self.tabs.observe(lambda _: self._in_turn(self._draw), "selected_index")
        self._list_campaigns()
        self._change()
        if not self.session.measured().empty:
            self.tabs.selected_index = RUNS
        return self.tabs

    def _steps(self) -> Iterator[list[Any]]:
        """What each tab holds, from the top."""
        import ipywidgets as w

        from ..measurement import available_layers

        here = available_layers()
        layers, session = here.index[here["available"]].tolist(), self.session
        row = partial(w.HBox, layout={"flex_flow": "row wrap"})
        put, button, choose, says = self._input, self._button, self._choose, self.said
        late: dict[str, Any] = {"layout": WIDE, "continuous_update": False}
        typed: dict[str, Any] = {"style": {"description_width": "initial"}}
        stop = button("stop", self._stop, "warning")

        self.campaign = put(w.Combobox, "recorded", self._open, **late)
        self.campaign.placeholder = "choose one, or type the path of a folder, .csv, .parquet"
        self.command = put(w.Text, "command", layout=WIDE, value=session.command)
        self.by = put(w.Combobox, "run by", value=session.run, options=BACKENDS, layout=WIDE)
        self.rule = put(w.Dropdown, "stop by", options=list(stopping.RULES), value=session.rule)
        self.runs = put(w.BoundedIntText, "runs", value=session.runs, min=1, max=100_000)
        self.layers = put(w.SelectMultiple, "metrics", options=layers, rows=7)
        self.layers.value = tuple(name for name in session.layers if name in layers)
        start = button("measure, or go on", lambda: self._measure(FIRST), "success")
        rules = row([self.rule, self.runs])
        measured = [self.command, self.by, rules, self.layers, row([start, stop])]
        yield [self.campaign, *measured, self.bar, says]

        self.outcome = put(w.Dropdown, "outcome", lambda name: choose(outcome=name))
        self.cell = put(w.Dropdown, "cell", lambda name: choose(cell=name))
        self.cutoff = put(w.FloatText, "cutoff", lambda at: choose(cutoff=at), **typed)
        find = button("find it in the distribution", choose)
        self.metric = put(w.Dropdown, "metric", self._look_at)
        self.least, self.most = (put(w.FloatText, text, **typed) for text in ("from", "to"))
        limit = button("limit the runs to this range", self._limit)
        unlimit = button("remove all limits", lambda: self._change(limits={}))
        self.nodes = row()
        exclude = lambda names: self._change(excluded=names)  # noqa: E731
        self.excluded = put(w.SelectMultiple, "exclude", exclude, rows=8)
        chosen = [row([self.outcome, self.cell]), row([self.cutoff, find])]
        limits = row([self.metric, self.least, self.most, limit, unlimit])
        yield [*chosen, limits, self.nodes, self.shown[RUNS], self.excluded]

        self.mitigation = put(w.Dropdown, "mitigation", self._mitigate, layout=WIDE)
        self.rounds = put(w.BoundedIntText, "rounds", value=session.rounds, min=1, max=10_000)
        tries = button("try it", lambda: self._measure(TRIAL), "success")
        again = button("measure again, to confirm", lambda: self._measure(AGAIN), "success")
        save = button("save what was chosen", self._save)
        self.automatic = row([tries, again])
        measures = row([self.rounds, self.automatic, stop, save])
        without = button("measure without it", lambda: self._measure_side(BEFORE))
        having = button("I have done it: measure with it", lambda: self._measure_side(AFTER))
        self.by_hand = row([without, having])
        yield [self.mitigation, measures, self.by_hand, says, self.shown[MITIGATION]]

    def _input(self, kind: Any, text: str, change: Callable | None = None, **look: Any) -> Any:
        """An input; what happens when a person, and not this program, changes its value."""
        made = kind(description=text, **look)

        def changed(one: dict[str, Any]) -> None:
            if change and self._filler != threading.get_ident():
                self._in_turn(change, one["new"])

        made.observe(changed, "value")
        return made

    def _button(self, text: str, call: Callable[[], object], style: str = "") -> Any:
        import ipywidgets

        layout = {"width": "auto", "flex": "0 0 auto"}
        made = ipywidgets.Button(description=text, button_style=style, layout=layout)
        made.on_click(lambda _: self._in_turn(call))
        return made

    def _guarded(self, call: Callable, *values: Any) -> None:
        """An error is shown in the steps that measure, open and save."""
        try:
            call(*values)
        except NoisebookError as error:
            self.said.value = views.failed(error)

    def _says(self, text: str) -> None:
        self.said.value = views.paragraph(text)

    @contextmanager
    def _filling(self) -> Iterator[None]:
        """Changes in here are not those of a person."""
        self._filler = self._owner
        try:
            yield
        finally:
            self._filler = 0

    # ---- 1: open, or measure ----

    def _list_campaigns(self) -> None:
        """Offer what is recorded; nothing is chosen."""
        with self._filling():
            self._found = {words: path for path, words in found_campaigns().items()}
            self.campaign.options, self.campaign.value = list(self._found), ""

    def _open(self, text: str) -> None:
        """Recorded runs that a person chose or named."""
        self._check_idle()
        session = Session.of_recorded(self._found.get(text, text), seed=self.session.seed)
        self.command.value, self.bar.value = "", 0
        self._change(session)
        self.tabs.selected_index = RUNS
        runs = len(session.measured())
        self._says(f"Opened {session.folder}: {runs} runs, judged by {session.judged}.")

    def _check_idle(self) -> None:
        if self.measuring and self.measuring.is_running:
            raise InputError("it measures at present", fix="stop it first, or wait for its end")

    def _measure(self, step: str) -> None:
        self._check_idle()
        session = self._typed() if step == FIRST else self.session
        session = replace(session, rounds=self.rounds.value)
        session.workload  # noqa: B018  # says what is wrong with the command
        if session.folder != self.session.folder:
            self._change(session)
        self.session = session
        self._says("Starting; if another study measures, this waits for it.")
        self.measuring = Measuring(session, step, partial(self._in_turn, self._on_progress))

    def _measure_side(self, side: str) -> None:
        """One side of a mitigation by hand, as the machine is now."""
        self._measure(f"{replace(self.session, rounds=self.rounds.value).next_step()}.{side}")

    def _typed(self) -> Session:
        """The session with what stands in step 1."""
        layers, command = tuple(self.layers.value), self.command.value.strip()
        chosen = {"rule": self.rule.value, "runs": self.runs.value, "layers": layers}
        by = self.by.value.strip()
        if command and (command, by) != (self.session.command, self.session.run):
            return Session.of_command(command, run=by, seed=self.session.seed, **chosen)
        return replace(self.session, **chosen)

    def _stop(self) -> None:
        if self.measuring and self.measuring.is_running:
            self._says("Stopping …")
            self.measuring.stop()

    def _on_progress(self, at: Progress) -> None:
        """After a run; at the end read the runs anew, then say so: the next step is ready."""
        self.bar.max, self.bar.value = max(at.most, 1), at.done
        if at.ended:
            self._list_campaigns()
            self._change()
        state = "ended" if at.ended else "measuring"
        says = f"; {at.says}" if at.says else ""
        text = views.paragraph(f"{state}: {at.done} of at most {at.most} runs{says}")
        self.said.value = views.failed(at.error) if at.error else text

    def _in_turn(self, call: Callable, *values: Any) -> None:
        """On the owner's thread; from another one between cells, in the order of arrival: a figure
        that another thread has open would be shown beneath the cell that ends meanwhile.
        """
        if threading.get_ident() == self._owner:
            self._guarded(call, *values)
            return
        self._waiting.put(partial(self._guarded, call, *values))
        if self._loop and self._loop.is_running():
            self._loop.call_soon_threadsafe(self._catch_up)

    def _catch_up(self) -> None:
        while not self._waiting.empty():
            self._waiting.get()()

    # ---- what is chosen ----

    def _look_at(self, metric: str, **chosen: Any) -> None:
        """The metric against the outcome, and what is known of it."""
        if not self._nothing:
            self.session = replace(self.session, node=metric, **chosen)
            with self._filling():
                self._fill_numbers()
            self._draw()

    def _limit(self) -> None:
        if not self._nothing:
            limit = {self._limited(): [self.least.value, self.most.value]}
            self._change(limits=self.session.limits | limit)

    def _limited(self) -> str:
        """The metric that can be limited: the one that is looked at, else what is judged."""
        shown = self.session.chosen(self.explanation)
        return shown if shown in self.session.metrics() else self.session.judged

    def _mitigate(self, mitigation: str) -> None:
        """And its metric: both stay, whatever the null finds."""
        if not self._nothing:
            self._look_at(self.session.chosen(self.explanation), mitigation=mitigation)

    def _choose(self, **changed: Any) -> None:
        """Other runs, or judged otherwise: what was cut and looked at is of the others."""
        self._change(**{"cutoff": None, "node": ""} | changed)

    def _change(self, session: Session | None = None, **changed: Any) -> None:
        """Everything, from the runs on: at once a preview that claims nothing; the null follows,
        from a thread, and that of the last change is shown.
        """
        self.session = session = replace(session or self.session, **changed)
        self._turn += 1
        self.explanation, self._nothing = None, ""
        try:
            with self._filling():
                self._fill()
                self.explanation = session.explanation(permutations=0)
                self._fill_numbers()
        except NoisebookError as error:
            self._nothing, self.nodes.children = views.failed(error), ()
            self.metric.options = self.mitigation.options = ()
        self._draw()
        if not self._nothing:
            null = (self._turn, self.session)
            self._null = threading.Thread(target=self._compute_null, args=null, daemon=True)
            self._null.start()

    def _compute_null(self, turn: int, session: Session) -> None:
        with self._computing:
            if turn == self._turn:
                self._in_turn(self._show_null, turn, session.explanation())

    def _show_null(self, turn: int, found: Any) -> None:
        if turn == self._turn:
            self.explanation = found
            self._draw()

    def settle(self) -> "Workbench":
        """Wait until the null is there and nothing is measured; for scripts."""
        if self.measuring:
            self.measuring.wait()
        self._catch_up()  # what was chosen meanwhile starts another null
        if self._null:
            self._null.join()
        self._catch_up()
        return self

    # ---- what can be chosen, and what the steps show ----

    def _fill(self) -> None:
        """What can be chosen of these runs."""
        session = self.session
        if session.measured().empty:
            return
        cells, outcomes = session.cells(), session.outcomes()
        together = [] if "baseline" in cells else [("all together", "")]
        _offer(self.cell, [*together, *((name, name) for name in cells)], session.cell)
        self.cell.layout.display = "" if len(cells) > 1 else "none"
        _offer(self.outcome, [(name, name) for name in outcomes], session.outcome)
        columns = tuple(session.may_explain())
        if self.excluded.options != columns:
            self.excluded.value = ()  # the browser marks by place, before it has the new list
            self.excluded.options = columns
        self.excluded.value = tuple(name for name in session.excluded if name in columns)

    def _fill_numbers(self) -> None:
        """The cutoff; the metrics, and which was chosen; the range of what is looked at."""
        at = float(self.explanation.threshold)
        if np.isfinite(at) and at != self.session.cutoff:  # else a person has just put it there
            self.cutoff.value = float(f"{at:.4g}")
        self.cutoff.step = _step(self.session.values)
        session, metrics = self.session, self.session.metrics()
        # "" until a person chose: what a preview shows can be chosen, and then stays
        options = [("the first factor", ""), *((name, name) for name in metrics)]
        _offer(self.metric, options, session.node if session.node in metrics else "")
        values = session.measured()[self._limited()].to_numpy(float)
        values = values[np.isfinite(values)]
        step = self.least.step = self.most.step = _step(values)
        # outwards, so that the ends that nobody moves lose no run
        ends = math.floor(values.min() / step), math.ceil(values.max() / step)
        self.least.value, self.most.value = (float(f"{end * step:.15g}") for end in ends)

    def _draw(self) -> None:
        """The runs, even unseen, so that a click on their tab waits for nothing; and the
        mitigation if it is seen.
        """
        session, found = self.session, self.explanation
        if self._nothing:
            for step in self.shown.values():
                step.value = self._nothing
            return
        with self._filling():
            self._show(RUNS, views.runs_html(session, found))
            self._offer_metrics(views.metrics_of(found))
            text = ""
            if self.tabs.selected_index == MITIGATION:
                metric = session.chosen(found)
                options = [(one.name, one.id) for one in session.options(metric)]
                self.session = session = replace(session, mitigation=session.suggested(metric))
                _offer(self.mitigation, options, session.mitigation)
                self.by_hand.layout.display = "" if session.is_by_hand else "none"
                self.automatic.layout.display = "none" if session.is_by_hand else ""
                text = views.mitigations_html(session, found)
            self._show(MITIGATION, text)

    def _show(self, step: int, text: str) -> None:
        look = LOOK.read_text("utf-8")
        self.shown[step].value = f'<style>{look}</style><div class="explorer">{text}</div>'

    def _offer_metrics(self, metrics: list[str]) -> None:
        """A button for each metric that the tree asks for."""
        texts = {f"what is {metric}?": partial(self._look_at, metric) for metric in metrics}
        if [one.description for one in self.nodes.children] != list(texts):
            self.nodes.children = [self._button(text, call) for text, call in texts.items()]

    def _save(self) -> None:
        self._says(f"Saved: {self.session.save()}. Notebook 02 opens it as the parameter saved.")


def _offer(choice: Any, options: list[tuple[str, str]], value: str) -> None:
    """Options of a list, and the chosen one; without a choice the first."""
    if list(choice.options) != options:
        choice.options = options
    if options:
        choice.value = value or options[0][1]


def _step(values: np.ndarray) -> float:
    """What an arrow key adds: a round number, about a part of STEPS of what the values span."""
    return float(f"{np.ptp(values) / STEPS:.1g}") or 1.0
