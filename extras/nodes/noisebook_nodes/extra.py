"""What Noisebook has to know of this extra: nothing but that it is here; users import it."""

from nbhelpers.extras import Extra

EXTRA = Extra()
