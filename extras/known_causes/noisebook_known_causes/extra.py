"""What Noisebook has to know of this extra: its notebook, with its record and values, and how it is
found out which causes cannot be planted here.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nbhelpers.extras import Extra


def missing_causes(
    parameters: Mapping[str, Any], argument: None
) -> Iterator[tuple[str, str, str, str]]:
    """The causes that the stage is asked for and that are left out, see `nbhelpers.promise`."""
    from nbhelpers.promise import LEFT_OUT

    from .campaigns import planting_error
    from .catalogue import causes

    for name in parameters["names"] or list(causes()):
        if error := planting_error(name):
            sentence = f"The cause {name} is left out: {error.what}."
            yield name, LEFT_OUT, sentence, error.fix or ""


EXTRA = Extra(Path(__file__).parent / "notebooks", checks={"causes": missing_causes})
