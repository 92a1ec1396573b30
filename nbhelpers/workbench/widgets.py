"""The workbench in JupyterLab: six tabs of plain ipywidgets, each a step of a `Session`.

Owns which choice redraws which step. Everything that is computed is the session's; on a page
without a kernel (NOISEBOOK_STATIC) the same steps stand beneath each other.
"""

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..errors import InputError, NoisebookError
from . import views
from ._choices import Choices
from ._clickable import Bars, Tree
from .measuring import AGAIN, FIRST, TRIAL, Measuring, Progress
from .nodes import nodes_of
from .saved import is_elsewhere, save_notebook
from .session import Session, limited

STATIC = "NOISEBOOK_STATIC"
MEASURE, RUNS, CUTOFF, FACTOR, MITIGATION = 0, 1, 2, 3, 4  # places of the tabs
TITLES = ("1 Begin", "2 Runs", "3 Cutoff and tree", "4 Factor", "5 Mitigation", "6 Save")
UNCLAIMED = "A preview without its null; it claims nothing."
NO_FACTOR = "The null finds no factor, so no mitigation is suggested."
PREVIEW = views.NO_CLAIM.format("the null distribution is being computed …")


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
        At the present cutoff, with its null as soon as that is there.
    preview
        The same without a null: it claims nothing.

    Examples
    --------
    >>> Workbench().session.is_recorded
    True
    """

    def __init__(self, session: Session | None = None):
        self.session = session or Session()
        self.explanation: Any = None
        self.preview: Any = None
        self.measuring: Measuring | None = None
        self._turn = 0
        self._stale: set[int] = set()
        self._steps = {
            RUNS: self._show_runs_only,
            FACTOR: self._show_factor,
            MITIGATION: self._show_mitigation,
        }
        self._lock = threading.RLock()
        self._null: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"Workbench({self.session.command or self.session.folder})"

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display

        static = os.environ.get(STATIC)
        display(HTML(views.page_html(self.session)) if static else self.widget())

    # ---- the tabs ----

    def widget(self) -> Any:
        """The tabs, for a running JupyterLab (ipywidgets)."""
        import ipywidgets

        self.choices = Choices(self.session)
        self.bars, self.tree = Bars(self._cut), Tree(self._look_at)
        shown = ("opened", "runs", "claim", "factors", "factor", "mitigation", "trial", "saved")
        self.shown = {name: ipywidgets.HTML() for name in shown}
        self._connect()
        self.tabs = ipywidgets.Tab(self.choices.steps(self.bars, self.tree, self.shown))
        self.tabs.titles = TITLES
        self.tabs.observe(lambda change: self._draw(), "selected_index")
        self._show_runs()
        if not self.session.measured().empty:
            self.tabs.selected_index = CUTOFF
        return self.tabs

    def _connect(self) -> None:
        choices = self.choices
        clicks: dict[str, Callable[[], object]] = {
            "open": lambda: self._open(choices.path.value),
            "start": lambda: self._measure(FIRST),
            "stop": self._stop,
            "limit": self._limit,
            "unlimit": lambda: self._change(limits=()),
            "search": lambda: self._cut("search"),
            "find": lambda: self._cut(None),
            "try": lambda: self._measure(TRIAL),
            "again": lambda: self._measure(AGAIN),
            "ask": self._request_answer,
            "save": self._save,
        }
        for name, call in clicks.items():
            choices.buttons[name].on_click(lambda _, call=call: self._guarded(call))
        choices.campaign.observe(lambda change: self._pick(change["new"]), "value")
        choices.cell.observe(lambda change: self._select_cell(change["new"]), "value")
        choices.outcome.observe(lambda change: self._judge(change["new"]), "value")
        choices.metric.observe(lambda change: self._range_of(change["new"]), "value")
        choices.excluded.observe(lambda change: self._exclude(change["new"]), "value")
        choices.cutoff.observe(lambda change: self._slide(change["new"]), "value")
        choices.mitigation.observe(lambda change: self._mitigate(change["new"]), "value")

    def _guarded(self, call: Callable[[], object]) -> None:
        """A click whose error is shown in its step."""
        try:
            call()
        except NoisebookError as error:
            self.shown["saved"].value = views.failed(error)
            self.choices.fails(error)

    # ---- 1: open, or measure ----

    def _pick(self, path: str | None) -> None:
        if path and not self.choices.is_filling:
            self._open(path)

    def _open(self, text: str) -> None:
        """Recorded runs that a person named; what is wrong with them is said beneath."""
        try:
            if self.measuring and self.measuring.is_running:
                raise InputError("it measures at present", fix="stop it first, or wait for its end")
            session = Session.of_recorded(text, seed=self.session.seed)
            count = len(session.measured())
        except NoisebookError as error:
            self.shown["opened"].value = views.failed(error)
            return
        with self._lock:
            self.session = session
            self.choices.command.value = self.choices.progress.value = ""
            self.choices.bar.value = 0
            self._show_runs()
        self.shown["opened"].value = views.paragraph(
            f"Opened {session.folder}: {count} runs, judged by {session.judged}."
        )
        self.tabs.selected_index = RUNS

    def _measure(self, step: str) -> None:
        if self.measuring and self.measuring.is_running:
            self.choices.says("It measures already: stop it first.")
            return
        if step == FIRST:
            session = self.choices.measured_session(self.session)
            # what is wrong with the command is said before anything is started
            session.workload  # noqa: B018
            self._begin_measuring(session)
        self.session.workload  # noqa: B018
        self.choices.says("Starting; if another study measures, this waits for it.")
        self.measuring = Measuring(self.session, step, lambda at: self._on_progress(step, at))

    def _begin_measuring(self, session: Session) -> None:
        """Of another command: nothing of the runs before stays."""
        with self._lock:
            before, self.session = self.session, session
            self.shown["opened"].value = ""
            if session.folder != before.folder:
                self._show_runs()

    def _stop(self) -> None:
        if self.measuring:
            self.measuring.stop()

    def _on_progress(self, step: str, at: Progress) -> None:
        """From the thread that reads what the measuring process says."""
        self.choices.at(at)
        if not at.ended:
            return
        with self._lock:
            self.session = replace(self.session)  # reads the runs anew
            if step == FIRST:
                self._show_runs()
                self.choices.list_campaigns()
            else:
                self._stale.add(MITIGATION)
                self._draw()

    # ---- 2: outcome, limits, excluded metrics ----

    def _change(self, **changed: Any) -> None:
        with self._lock:
            self.session = replace(self.session, **changed)
            self._show_runs()

    def _exclude(self, metrics: tuple[str, ...]) -> None:
        if not self.choices.is_filling:
            self._change(excluded=metrics)

    def _select_cell(self, cell: str | None) -> None:
        if cell is not None and not self.choices.is_filling:
            self._change(cell=cell, cutoff=None, node="")

    def _judge(self, outcome: str) -> None:
        if outcome and not self.choices.is_filling:
            self._change(outcome=outcome, cutoff=None, node="")

    def _limit(self) -> None:
        with self._lock:
            self.session = limited(self.session, self.choices.limit())
            self._show_runs()

    def _range_of(self, metric: str) -> None:
        self.choices.set_range(self.session, metric)
        if metric and not self.choices.is_filling:
            self._stale.add(RUNS)
            self._draw()

    def _show_runs(self) -> None:
        """Everything, from the runs on."""
        try:
            self.choices.fill(self.session)
            if self.session.measured().empty:
                text = "There are no runs yet: measure in step 1."
                self._show_nothing(views.paragraph(text))
                return
            self.session.table  # noqa: B018  # says what is wrong with the limits
            self._stale.add(RUNS)
            self._show_cutoff()
        except NoisebookError as error:
            self._show_nothing(views.failed(error))

    def _show_nothing(self, why: str) -> None:
        """In all steps that follow from the runs: nothing of other runs stays."""
        self._turn += 1
        self.preview = self.explanation = None
        for name in ("runs", "claim", "factor", "mitigation", "trial"):
            self.shown[name].value = why
        self.shown["factors"].value = ""
        self.bars.clear()
        self.tree.clear()

    def _draw(self) -> None:
        """Draw the step that is seen, where choices changed what it shows."""
        at = self.tabs.selected_index
        with self._lock:
            if self.preview is not None and at in self._stale:
                self._stale.discard(at)
                self._steps[at]()

    def _show_runs_only(self) -> None:
        text = views.runs_html(self.session)
        metric = self.choices.metric.value
        if metric:
            text += views.scatter_html(self.session, self.preview, metric)
        self.shown["runs"].value = text

    # ---- 3: cutoff, tree, factors ----

    def _cut(self, cutoff: float | str | None) -> None:
        with self._lock:
            self.session = replace(self.session, cutoff=cutoff, node="")
            self._show_cutoff()

    def _slide(self, cutoff: float) -> None:
        if not self.choices.is_filling:
            self._cut(cutoff)

    def _show_cutoff(self) -> None:
        """At once a preview that claims nothing; the null follows from a thread, the last wins."""
        self._turn += 1
        self.preview = self.explanation = self.session.explanation(permutations=0)
        self.choices.fill_cutoff(self.session, self.explanation)
        self.bars.show(self.session, self.explanation)
        self.tree.show(nodes_of(self.explanation, self.session.table), UNCLAIMED)
        self._show_explanation(PREVIEW)
        self._stale |= {FACTOR, MITIGATION}
        self._draw()
        if self._null is None:
            self._null = threading.Thread(target=self._compute_null, daemon=True)
            self._null.start()

    def _compute_null(self) -> None:
        """Of the present cutoff; where that changed meanwhile, of the new one."""
        while True:
            with self._lock:
                session, turn = self.session, self._turn
                if self.preview is None:
                    self._null = None
                    return
            try:
                found = session.explanation()
                chance = session.chance(found)
                failed = ""
            except NoisebookError as error:
                failed = views.failed(error)
            with self._lock:
                if turn == self._turn:
                    self._null = None
                    if failed:
                        self._show_nothing(failed)
                    else:
                        self._show_null(session, found, chance)
                    return

    def _show_null(self, session: Session, found: Any, chance: Any) -> None:
        """A claim with its tree; or why there is none, with the tree on a click only."""
        before, self.explanation = session.chosen(self.preview), found
        if found.found:
            self.tree.show(nodes_of(found, session.table))
        else:
            root = nodes_of(self.preview, session.table)
            self.tree.refuse(views.nothing_found(found, chance), root)
        self._show_explanation()
        if session.chosen(found) != before:
            self._stale |= {FACTOR, MITIGATION}
            self._draw()

    def settle(self) -> "Workbench":
        """Wait until the null is there and nothing is measured; for scripts."""
        if self.measuring:
            self.measuring.wait()
        if null := self._null:
            null.join()
        return self

    def _show_explanation(self, pending: str = "") -> None:
        found = self.explanation
        self.shown["claim"].value = pending or views.claim_html(found)
        self.shown["factors"].value = views.factors_html(found, preview=bool(pending))

    # ---- 4: the factor ----

    def _look_at(self, metric: str) -> None:
        with self._lock:
            self.session = replace(self.session, node=metric)
            self._stale |= {FACTOR, MITIGATION}
        self.tabs.selected_index = FACTOR

    def _show_factor(self) -> None:
        metric = self.session.chosen(self.explanation)
        self.choices.answer.value = ""
        self.shown["factor"].value = views.node_html(self.session, self.preview, metric)

    def _request_answer(self) -> None:
        """The local language model's words, marked as such."""
        from ..mitigation.language_model import request_explanation

        metric = self.session.chosen(self.explanation)
        try:
            text = request_explanation(metric)
        except NoisebookError as error:
            self.choices.answer.value = views.failed(error)
            return
        self.choices.answer.value = views.paragraph(text)

    # ---- 5: the mitigation ----

    def _mitigate(self, mitigation: str | None) -> None:
        if not self.choices.is_filling:
            with self._lock:
                self.session = replace(self.session, mitigation=mitigation or "")
                self._show_mitigation()

    def _show_mitigation(self) -> None:
        from ..mitigation import mitigations

        metric = self.session.chosen(self.explanation)
        self.choices.fill_mitigations(self.session, metric)
        chosen = self.choices.mitigation.value
        if not chosen:
            text = f"No mitigation is known for {metric}." if metric else NO_FACTOR
            self.shown["mitigation"].value = views.paragraph(text)
            self.shown["trial"].value = views.trials_html(self.session)
            return
        self.session = replace(
            self.session, mitigation=chosen, rounds=max(1, self.choices.rounds.value)
        )
        known = mitigations()[chosen]
        self.shown["mitigation"].value = views.mitigation_html(self.session, known)
        shown = views.before_after_html(self.session, chosen) + views.trials_html(self.session)
        self.shown["trial"].value = shown

    # ---- 6: save ----

    def _save(self) -> None:
        self.shown["saved"].value = views.paragraph("The notebook is being run …")
        path = save_notebook(self.session)
        where = (
            "with a copy of its runs beside it" if is_elsewhere(self.session) else "from its runs"
        )
        text = f"Saved and run: {os.path.relpath(path)}. It computes all again, {where}."
        self.shown["saved"].value = views.paragraph(f"{text} It measures nothing.")
