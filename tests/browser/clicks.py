"""The widgets of a notebook in a real browser, as a person sees and clicks them.

Owns the page with the workbench, and waiting until it shows something.
"""

import time

from .lab import Notebook


class Page(Notebook):
    """A notebook with the workbench in it, run once."""

    def __init__(self, opened, server, stage: str):
        super().__init__(opened, server, stage)
        self.clicks, self.clicked = 0, 0.0  # and choices; when the last one was
        self.page.add_style_tag(content=".Toastify { display: none; }")  # JupyterLab's own news

    @property
    def bench(self):
        """The workbench: the first output with tabs."""
        return self.page.locator(".jp-OutputArea .widget-tab").first

    @property
    def shown(self):
        """The step that is seen."""
        return self.bench.locator(".widget-tab-contents > :not(.lm-mod-hidden)").first

    def tab(self, title: str) -> None:
        """Click a tab."""
        self._count()
        self.bench.locator(".lm-TabBar-tab", has_text=title).click()

    def click(self, text: str) -> None:
        """Click a button of the step that is seen."""
        self._count()
        self.shown.get_by_role("button", name=text, exact=True).click()

    def input(self, label: str, kind: str = "select"):
        """The input that stands behind a label, in the step that is seen."""
        labelled = self.shown.locator(f".jupyter-widgets:has(> label:text-is('{label}'))")
        return labelled.locator(kind).first

    def choose(self, label: str, text: str) -> None:
        """The option with this text, as soon as there is one."""
        option = self.input(label).locator("option", has_text=text.replace(" ", "\xa0"))
        option.first.wait_for(state="attached", timeout=60_000)
        self._count()
        self.input(label).select_option(label=text.replace(" ", "\xa0"), timeout=60_000)

    def chosen(self, label: str) -> str:
        """The text of the chosen option."""
        text = self.input(label).evaluate("list => list.selectedOptions[0]?.label ?? ''")
        return text.replace("\xa0", " ")

    def _count(self) -> None:
        self.clicks, self.clicked = self.clicks + 1, time.monotonic()

    def latency(self, *parts: str) -> float:
        """Seconds from the last click until the step shows one of these texts."""
        self.wait_until(lambda text: any(part in text for part in parts))
        return time.monotonic() - self.clicked

    def nodes(self):
        """The metrics of the tree that can be clicked, from the top."""
        return self.shown.locator("button:text-matches('^what is ')")

    def root(self) -> str:
        """The metric at the root of the tree."""
        return self.nodes().first.inner_text().removeprefix("what is ").removesuffix("?")

    def claim(self, holds=lambda text: True) -> str:
        """Wait until something holds of what the step shows, and its null is there."""
        self.wait_until(holds)
        return self.wait_until(
            lambda text: "is being computed" not in text and "p_value" in text and holds(text)
        )

    def wait_for(self, part: str, seconds: float = 60) -> str:
        """Wait until the step shows a text; all that it shows then."""
        return self.wait_until(lambda text: part in text, seconds)

    def wait_for_picture(self, alternative: str) -> None:
        """Wait until the step shows a picture."""
        self.shown.locator(f"img[alt='{alternative}']").wait_for(timeout=60_000)

    def wait_until(self, holds, seconds: float = 60) -> str:
        """Wait until something holds of what the step shows; all that it shows then."""
        began = time.monotonic()
        while not holds(now := self.text()):
            assert time.monotonic() < began + seconds, now
            time.sleep(0.02)
        return now

    def text(self) -> str:
        """All that the step shows."""
        return self.shown.inner_text()

    def errors(self) -> list[str]:
        """Tracebacks in the notebook, and what the browser's console said."""
        outputs = self.page.locator(".jp-RenderedText[data-mime-type*='stderr']")
        return [*outputs.all_inner_texts(), *self.said]
