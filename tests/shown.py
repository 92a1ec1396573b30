"""Takes what a page shows, in tests of its cells."""

from typing import Any


class Shown:
    """Stands for `study` and for `found`, with what a test says of them.

    Attributes
    ----------
    tables, whys
        What was shown, by name, and why a table might have no rows.
    texts
        All sentences that the page computed.
    answer, sentences
        What the page gave to `found.show`.
    """

    def __init__(self, **known: Any):
        self.tables: dict[str, Any] = {}
        self.whys: dict[str, str] = {}
        self.texts: list[str] = []
        self.__dict__.update(known)

    def show(self, answer: Any, *sentences: str) -> None:
        """Take the answer of the page."""
        self.answer, self.sentences = answer, sentences

    def table(self, frame: Any, name: str, *, why: str = "", **others: Any) -> Any:
        """Take a table."""
        self.tables[name], self.whys[name] = frame, why
        return frame

    def figure(self, figure: Any, name: str, data: Any, **more: Any) -> Any:
        """Take what a figure is drawn of."""
        self.tables[name] = data
        return figure

    def text(self, *sentences: str) -> None:
        """Take sentences."""
        self.texts += sentences
