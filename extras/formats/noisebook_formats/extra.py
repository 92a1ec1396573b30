"""What Noisebook has to know of this extra: where its notebook lies, with its record and values."""

from pathlib import Path

from nbhelpers.extras import Extra

EXTRA = Extra(Path(__file__).parent / "notebooks")
