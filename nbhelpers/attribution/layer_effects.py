"""Does a metric layer change what it measures? Owns that one question."""

import html
from dataclasses import dataclass

from ..statistics.comparison import Comparison, compare


@dataclass(frozen=True, eq=False)
class LayerEffect:
    """Whether a metric layer changes what it measures.

    Attributes
    ----------
    changes, sentence
        Whether one of the three tests says so; the same in words, with the changes that are ruled
        out.
    comparison
        Without the layer against with it.
    """

    changes: bool
    sentence: str
    comparison: Comparison

    def __repr__(self) -> str:
        return f"LayerEffect({self.sentence})"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.sentence)}</p>"


def layer_effect(
    without: object,
    with_layer: object,
    layer: str = "the layer",
    outcome: str | None = None,
    seed: int = 0,
) -> LayerEffect:
    """Test whether a metric layer changes the distribution of the runs.

    Parameters
    ----------
    without, with_layer
        Runs tables or arrays, best interleaved in rounds.
    layer
        Its name, for the sentence.
    outcome
        Column to compare; None: what the program is judged by.
    seed
        Of resamples and shuffles.

    Returns
    -------
    LayerEffect; the interval of the mean in its sentence is what is ruled out, since a difference
    that is not shown may still be there.
    """
    result = compare(without, with_layer, outcome, seed)
    mean, cv = result.table.loc["mean"], result.table.loc["cv"]
    changed = [name for name in result.tests.index if result.tests.loc[name, "differs"]]
    numbers = (
        f"mean {_percent(mean.ratio)} ({_percent(mean.low)} to {_percent(mean.high)}), coefficient"
        f" of variation × {cv.ratio:.2f}"
    )
    if not changed:
        sentence = (
            f"No change of the distribution by {layer} is shown; a change of the mean beyond"
            f" {_percent(mean.low)} to {_percent(mean.high)} is ruled out."
        )
    else:
        tests = ", ".join(f"{name} p = {result.tests.loc[name, 'p_holm']:.3f}" for name in changed)
        sentence = f"{layer[:1].upper()}{layer[1:]} changes the distribution ({tests}): {numbers}."
    return LayerEffect(bool(changed), sentence, result)


def _percent(ratio: float) -> str:
    return f"{ratio - 1:+.1%}"
