"""Small pictures as SVG, drawn in milliseconds: rectangles, lines, texts and two axes.

Owns the frame of a picture. Figures for print are those of `report`.
"""

import html
from dataclasses import dataclass

import numpy as np

WIDTH = 860  # px, as wide as the text of a page
FONT = 14  # px: 9 pt and more on a page of 800 px
COLOURS = {"fast": "#0072B2", "slow": "#D55E00", "other": "#767676"}


@dataclass(frozen=True)
class Frame:
    """Where the axes of a picture lie, in px, and the values at their ends."""

    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float] = (0.0, 1.0)
    log_y: bool = False

    def at_x(self, value):
        """Place of a value, or of an array of them."""
        low, high = self.x
        return self.left + (np.asarray(value, float) - low) / ((high - low) or 1) * self.width

    def at_y(self, value):
        """Place of a value, or of an array of them; upwards."""
        (low, high), value = self.y, np.asarray(value, float)
        if self.log_y:
            low, high, value = np.log10(low), np.log10(high), np.log10(value)
        return self.top + self.height - (value - low) / ((high - low) or 1) * self.height

    def x_axis(self, label: str, about: int = 5) -> str:
        """The line below, with ticks, and its label."""
        bottom = self.top + self.height
        parts = [line(self.left, bottom, self.left + self.width, bottom)]
        for value in ticks(*self.x, about):
            place = self.at_x(value)
            parts.append(line(place, bottom, place, bottom + 4))
            parts.append(text(place, bottom + 5 + FONT, f"{value + 0:g}", "middle"))
        middle = self.left + self.width / 2
        return "".join([*parts, text(middle, bottom + 12 + 2 * FONT, label, "middle")])

    def y_axis(self, label: str, about: int = 4) -> str:
        """The line at the left, with ticks; its label stands above it."""
        parts = [line(self.left, self.top, self.left, self.top + self.height)]
        values = ticks(*self.y, about)
        if self.log_y:
            low, high = np.floor(np.log10(self.y[0])), np.ceil(np.log10(self.y[1]))
            values = 10.0 ** np.arange(low, high + 1)
            values = values[(values >= self.y[0]) & (values <= self.y[1])]
        for value in values:
            place = self.at_y(value)
            parts.append(line(self.left - 4, place, self.left, place))
            parts.append(text(self.left - 7, place + 5, f"{value + 0:g}", "end"))
        return "".join([*parts, text(max(self.left - 50, 0), self.top - 10, label)])


def ticks(low: float, high: float, about: int = 5) -> np.ndarray:
    """Round numbers between two others, some `about` of them.

    Examples
    --------
    >>> from nbhelpers.explorers._drawing import ticks
    >>> ticks(0.03, 0.41).tolist()
    [0.1, 0.2, 0.3, 0.4]
    """
    wish = (high - low) / about or 1.0
    power = 10.0 ** np.floor(np.log10(wish))
    step = power * min((1, 2, 5, 10), key=lambda factor: abs(np.log(factor * power / wish)))
    numbers = np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1)
    return np.round(numbers * step, 12) + 0.0


def picture(height: float, label: str, *parts: str) -> str:
    """An SVG of the page's width; `label` says what it shows to those who cannot see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}"'
        f' width="{WIDTH}" style="max-width:100%;height:auto" role="img"'
        f' aria-label="{html.escape(label, quote=True)}" font-family="sans-serif"'
        f' font-size="{FONT}">{"".join(parts)}</svg>'
    )


def text(x: float, y: float, words: str, anchor: str = "start", more: str = "") -> str:
    """Words at a place: "start", "middle" or "end" of them."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor" {more}>'
        f"{html.escape(words)}</text>"
    )


def line(x1: float, y1: float, x2: float, y2: float, more: str = "") -> str:
    """A line, thin unless `more` says otherwise."""
    stroke = "" if "stroke=" in more else ' stroke="currentColor"'
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"{stroke} {more}/>'


def box(x: float, y: float, width: float, height: float, more: str = "") -> str:
    """A rectangle."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}"'
        f" {more}/>"
    )


def bars(x, y, width, height, colour: str) -> str:
    """Many rectangles of one colour as one path; arrays or numbers."""
    values = np.broadcast_arrays(*(np.asarray(part, float) for part in (x, y, width, height)))
    path = "".join(
        f"M{left:.1f} {top:.1f}h{wide:.2f}v{high:.1f}h{-wide:.2f}z"
        for left, top, wide, high in zip(*(part.ravel() for part in values))
    )
    return f'<path d="{path}" fill="{colour}"/>'


def curve(x, y, more: str) -> str:
    """A line through points; arrays."""
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y))
    return f'<polyline points="{points}" fill="none" {more}/>'
